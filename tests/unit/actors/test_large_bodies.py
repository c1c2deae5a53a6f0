"""Documents that a process makes lines of: what becomes of them when it hangs, ends, or its client leaves."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from actors.shard import large_bodies, lines_process
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import StorageFull
from graphdb.model import Confirmation, EntryKind
from graphdb.rdf.formats import RdfSyntax
from tests.support.readers import exists
from tests.support.shards import Shard, open_shard
from tests.support.small_disk import fill, mounted
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

GRAPH = NamedNode("urn:large")
INTEGER = b"http://www.w3.org/2001/XMLSchema#integer"
QUADS = 12_000  # in more than 2 MB


def document(first: int = 0) -> bytes:
    return b"".join(b"<urn:s%d> <urn:p> <urn:o%0200d> .\n" % (n, n) for n in range(first, QUADS))


async def whole(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 100_000):
        yield body[start : start + 100_000]


async def put(
    shard: Shard, body: AsyncIterator[bytes], syntax: RdfSyntax = RdfSyntax.N_TRIPLES
) -> Confirmation:
    return await shard.writes(FULL_VISIBILITY).write_graph(
        body, syntax, graph=GRAPH, whole_dataset=False, replace=True, base_iri=None
    )


def scratch(shard: Shard) -> list[str]:
    """What bodies have left on the disk."""
    return [path.name for path in shard.opened().directory.scratch.iterdir() if path.name.startswith("tmp")]


class Signalled:
    """The processes that perform a task, `_Conversion` or `_Comparison`, each signalled when it starts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, task: str, number: signal.Signals) -> None:
        self.pids: list[int] = []
        popen = subprocess.Popen

        def start(command: list[str], **options: Any) -> "subprocess.Popen[bytes]":
            process: subprocess.Popen[bytes] = popen(command, **options)
            if lines_process.__name__ in command and task in command:
                process.send_signal(number)
                self.pids.append(process.pid)
            return process

        monkeypatch.setattr(subprocess, "Popen", start)


@pytest.mark.parametrize("task", ["_Conversion", "_Comparison"])
async def test_a_process_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, task: str
) -> None:
    """While it makes lines, and while it compares, in the writer's turn."""
    async with open_shard(tmp_path) as shard:
        assert (await put(shard, whole(document(1)))).affected_triples == QUADS - 1
        monkeypatch.setattr(lines_process, "_STILL_LOOKS", 4)
        signalled = Signalled(monkeypatch, task, signal.SIGSTOP)
        assert (await put(shard, whole(document()))).affected_triples == 1
        [pid] = signalled.pids
        assert not exists(pid)
        assert len(list(shard.graph_quads(GRAPH))) == QUADS
        assert scratch(shard) == []
    assert "its process did nothing for 2 s" in caplog.text


async def test_a_document_that_has_nothing_of_a_graph_takes_its_place(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        await put(shard, whole(document(1)))
        other = document().replace(b"<urn:p>", b"<urn:other>")
        done = await put(shard, whole(other))
        assert done.affected_triples == 2 * QUADS - 1
        assert {quad.predicate for quad in shard.graph_quads(GRAPH)} == {NamedNode("urn:other")}
        (last,) = await shard.node.parts.log.read(done.snapshot_index)
        assert last.kind is EntryKind.CLOSE_CLEARED


async def test_a_process_that_works_without_an_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Here it is stopped, and seems to use the processor all the same."""
    monkeypatch.setattr(lines_process, "_LIMIT_S", 1.0)
    monkeypatch.setattr(lines_process, "_LIMIT_BYTES_A_SECOND", len(document()))
    monkeypatch.setattr(lines_process, "_processor_s", lambda _: time.monotonic())
    async with open_shard(tmp_path) as shard:
        signalled = Signalled(monkeypatch, "_Conversion", signal.SIGSTOP)
        assert (await put(shard, whole(document()))).affected_triples == QUADS
        [pid] = signalled.pids
        assert not exists(pid)
        assert len(list(shard.graph_quads(GRAPH))) == QUADS
    assert "its process had no answer after 2 s" in caplog.text


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_process_that_ends_costs_time_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    async with open_shard(tmp_path) as shard:
        Signalled(monkeypatch, "_Conversion", number)
        assert (await put(shard, whole(document()))).affected_triples == QUADS
        assert (await put(shard, whole(document(1)))).affected_triples == 1
        assert len(list(shard.graph_quads(GRAPH))) == QUADS - 1
        assert scratch(shard) == []


@pytest.mark.parametrize("body", [b"(" + b"1 " * 50_000, b"(" * 50_000], ids=["flat", "nested"])
async def test_short_documents_with_many_quads_are_read_by_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    """Else they would keep all who ask the port waiting."""
    ended = b")" * body.count(b"(")
    async with open_shard(tmp_path) as shard:
        signalled = Signalled(monkeypatch, "_Conversion", signal.SIGCONT)
        done = await put(shard, whole(b"<urn:s> <urn:p> " + body + ended + b" ."), RdfSyntax.TURTLE)
        assert done.affected_triples in (100_001, 99_999)
        assert len(signalled.pids) == 1


async def test_blank_nodes_may_keep_their_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_bodies, "read_quads", None)  # a quad at a time it would be slow

    async def add(shard: Shard, lines: bytes) -> int:
        writes = shard.writes(FULL_VISIBILITY)
        done = await writes.write_graph(
            whole(lines),
            RdfSyntax.N_QUADS,
            graph=None,
            whole_dataset=True,
            replace=False,
            base_iri=None,
            keep_blank_nodes=True,
        )
        return done.affected_triples

    mine = b'_:mine <urn:p> <urn:o> <urn:large> .\n_:mine <urn:p> "01"^^<%s> <urn:large> .\n' % INTEGER
    async with open_shard(tmp_path) as shard:
        assert await add(shard, mine + document() + mine) == QUADS + 2
        own = {quad.object for quad in shard.graph_quads(GRAPH) if quad.subject == BlankNode("mine")}
        assert own == {NamedNode("urn:o"), Literal("1", datatype=NamedNode(INTEGER.decode()))}
        assert await add(shard, mine + document() + b"_:mine <urn:p> <urn:q> .\n") == 1
        assert scratch(shard) == []


async def test_a_client_that_leaves_in_the_midst_leaves_nothing(tmp_path: Path) -> None:
    class Left(Exception):
        pass

    async def half() -> AsyncIterator[bytes]:
        yield document()[:-20]
        raise Left

    async with open_shard(tmp_path) as shard:
        with pytest.raises(Left):
            await put(shard, half())
        assert (shard.snapshot_index(), scratch(shard)) == (0, [])
        assert (await put(shard, whole(document()))).affected_triples == QUADS


async def test_a_disk_that_fills_up_while_lines_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mounted(tmp_path / "disk", 300, "tmpfs") as disk:
        data_dir, filler = disk / "data", disk / "filler"
        data_dir.mkdir()
        async with open_shard(data_dir, server={"disk_reserve_mb": 24}) as shard:
            started = Signalled(monkeypatch, "_Conversion", signal.SIGSTOP)
            putting = asyncio.create_task(put(shard, whole(document())))
            async with asyncio.timeout(HANG_S):
                while not started.pids:  # noqa: ASYNC110 nobody tells
                    await asyncio.sleep(0.01)
            fill(filler)
            os.kill(started.pids[0], signal.SIGCONT)
            with pytest.raises(StorageFull):
                await putting
            assert (shard.snapshot_index(), scratch(shard)) == (0, [])
            filler.unlink()
            monkeypatch.undo()
            assert (await put(shard, whole(document()))).affected_triples == QUADS
