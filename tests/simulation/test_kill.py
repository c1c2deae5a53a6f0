"""kill -9, twenty times, on a process with a shard and its log: no acknowledged update is ever missing."""

import asyncio
import contextlib
import multiprocessing
from multiprocessing.context import ForkServerContext
from pathlib import Path
from random import Random

import pytest
from pyoxigraph import Literal, NamedNode

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from graphdb.config import Settings
from tests.simulation.killed_node import CLEARED, CLEARED_QUADS, WRITERS, serve
from tests.support.shards import Shard, no_readers

KILLS = 20


@pytest.mark.slow
def test_a_killed_node_has_every_acknowledged_update(tmp_path: Path) -> None:
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.simulation.killed_node"])
    random, acknowledged, first = Random(7), set[int](), 0
    for _ in range(KILLS):
        acknowledged.update(run_and_kill(processes, tmp_path, first, random.randrange(1, 120)))
        first = max(acknowledged, default=0) // WRITERS * WRITERS + 10 * WRITERS
    updates, twins, first_index = asyncio.run(recovered(tmp_path))
    assert acknowledged <= updates
    assert updates == twins, "an update is there by half"
    assert len(acknowledged) > 5 * KILLS
    assert first_index > 1, "the log was compacted on the way"


def run_and_kill(processes: ForkServerContext, data_dir: Path, first: int, updates: int) -> list[int]:
    """The updates that a node acknowledged before it was killed."""
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=serve, args=(data_dir, first, theirs))
    process.start()
    theirs.close()
    acknowledged = [int(ours.recv_bytes()) for _ in range(updates)]
    process.kill()
    with contextlib.suppress(EOFError):
        while True:
            acknowledged.append(int(ours.recv_bytes()))
    process.join()
    process.close()
    ours.close()
    return acknowledged


async def recovered(data_dir: Path) -> tuple[set[int], set[int], int]:
    """What a node finds after the last kill: the two quads of each update, and where its log begins."""
    log = UpdateLog(str(data_dir / "log"), socket_directory=str(data_dir))

    async def endpoint() -> str:
        return log.endpoint()

    shard = Shard.standalone(Settings(server={"data_dir": data_dir}), LogClient(endpoint), no_readers())
    await shard.start()
    numbers: dict[NamedNode, set[int]] = {NamedNode("urn:number"): set(), NamedNode("urn:twin"): set()}
    cleared = [quad for quad in shard.dataset_quads() if quad.graph_name == CLEARED]
    assert len(cleared) in (0, CLEARED_QUADS), "a graph is emptied by half"
    for quad in shard.graph_quads(None):
        assert isinstance(quad.object, Literal)
        numbers[quad.predicate].add(int(quad.object.value))
    await shard.close()
    first_index = log.status().first_index
    log.close()
    return numbers[NamedNode("urn:number")], numbers[NamedNode("urn:twin")], first_index
