"""Two nodes follow one log while clients write, answers are lost and nodes are killed, all from one seed.

What was acknowledged is in the log once, what is in the log is what every node has, and that is what a naive
twin makes of the log.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest

from actors.search.catalog_view import CatalogView
from actors.search.command_writer import CommitConfig
from actors.search.open_search import SearchConfig
from actors.search.search_node import SearchNode
from actors.search.upkeep import UpkeepConfig
from graphdb.config import Settings
from graphdb.errors import LogUnavailable, StorageFull, UnavailableError
from graphdb.search.catalog.catalog_commands import CreateIndex, DocumentWrite, WriteDocuments
from graphdb.search.catalog.command_codec import decode_command
from graphdb.search.errors import SearchError
from graphdb.search.segments.operations import Action, Operation
from tests.support.memory_log import Fault, MemoryLog, answer_is_lost
from tests.support.search_nodes import found
from tests.support.timing import HANG_S

INDEX = "books"
CONFIG = SearchConfig(
    commit=CommitConfig(log_wait_s=0.1, log_poll_s=0.01),
    upkeep=UpkeepConfig(look_s=0.01, flush_s=0.05),
)
ROUNDS, CLIENTS, REQUESTS, IDS = 4, 4, 8, 12


def away(log: MemoryLog, entries: object) -> None:
    raise LogUnavailable("away")


def granted(log: MemoryLog, entries: object) -> None:
    """No fault."""


def full(view: CatalogView) -> int:
    """In place of a flush: a killed process has none."""
    raise StorageFull("killed")


class World:
    """A log, two nodes on it, and what clients were told. Every body is written once."""

    def __init__(self, directory: Path, seed: int, settles_at_once: bool) -> None:
        self.rng = Random(seed)
        self.log = MemoryLog(settles_at_once=settles_at_once)
        self.acknowledged: set[bytes] = set()
        self.nodes: list[SearchNode] = []
        self._directories = [directory / "a", directory / "b"]
        self._bodies = 0

    async def start(self) -> None:
        self.nodes = [
            SearchNode(Settings.model_validate({"server": {"data_dir": directory}}), self.log, config=CONFIG)
            for directory in self._directories
        ]
        for node in self.nodes:
            await node.start()

    async def kill(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """End both; on disk is what was flushed before."""
        with monkeypatch.context() as patched:
            patched.setattr(CatalogView, "flush", full)
            for node in self.nodes:
                await node.close()

    def fault(self) -> Fault:
        return self.rng.choice([granted, granted, granted, answer_is_lost(True), answer_is_lost(False), away])

    def write(self) -> DocumentWrite:
        self._bodies += 1
        doc_id = str(self.rng.randrange(IDS))
        if self.rng.random() < 0.2:
            return DocumentWrite(INDEX, Operation(Action.DELETE, doc_id))
        body = b'{"number": %d}' % self._bodies
        return DocumentWrite(INDEX, Operation(Action.INDEX, doc_id, body))

    async def client(self) -> None:
        for _ in range(REQUESTS):
            node = self.rng.choice(self.nodes)
            writes = [self.write() for _ in range(self.rng.randint(1, 5))]
            try:
                results = await node.write(writes, self.rng.choice(["true", "false", "wait_for"]))
            except (SearchError, UnavailableError):
                continue
            for write, result in zip(writes, results, strict=True):
                if result.result.error is None and write.operation.action is Action.INDEX:
                    self.acknowledged.add(write.operation.body)

    def logged(self) -> list[DocumentWrite]:
        """All writes in the log, in its order."""
        commands = [decode_command(entry.payload) for entry in self.log.entries]
        return [
            write for command in commands if isinstance(command, WriteDocuments) for write in command.writes
        ]

    async def check(self) -> None:
        """Both nodes have what the log says, and the log has once what was acknowledged."""
        bodies = [write.operation.body for write in self.logged() if write.operation.body]
        assert len(bodies) == len(set(bodies)), "something was logged twice"
        assert self.acknowledged <= set(bodies)
        twin: dict[str, bytes] = {}
        for write in self.logged():
            twin[write.operation.doc_id] = write.operation.body
        expected = {doc_id: body for doc_id, body in twin.items() if body}
        for node in self.nodes:
            await self._await_applied(node)
            index = node.catalog.find(INDEX)
            assert index is not None
            await node.refresh([index])
            documents = {doc_id: index.shards.get(doc_id) for doc_id in map(str, range(IDS))}
            assert {key: one.source for key, one in documents.items() if one is not None} == expected
            assert found(node, INDEX) == len(expected)
        first, second = (self._numbers(node) for node in self.nodes)
        assert first == second

    def _numbers(self, node: SearchNode) -> dict[str, tuple[int, int]]:
        index = node.catalog.find(INDEX)
        assert index is not None
        documents = ((doc_id, index.shards.get(doc_id)) for doc_id in map(str, range(IDS)))
        return {doc_id: (one.version, one.seq_no) for doc_id, one in documents if one is not None}

    async def _await_applied(self, node: SearchNode) -> None:
        async with asyncio.timeout(HANG_S):
            while node.status().snapshot_index < self.log.last_index:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


@pytest.mark.parametrize("seed", range(8))
def test_nodes_agree_with_the_log_whatever_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()

    async def run() -> None:
        world = World(tmp_path, seed, settles_at_once=bool(seed % 2))
        for round_ in range(ROUNDS):
            await world.start()
            if round_ == 0:
                await world.nodes[0].perform(
                    CreateIndex(INDEX, "u1", {"settings": {"refresh_interval": "20ms"}})
                )
            world.log.faults = [world.fault() for _ in range(40)]
            await asyncio.gather(*(world.client() for _ in range(CLIENTS)))
            world.log.faults.clear()
            await world.check()
            await world.kill(monkeypatch)
        await world.start()
        await world.check()
        await world.kill(monkeypatch)

    asyncio.run(run())
