"""Two nodes follow the graph for the same index at once, while answers are lost, entries come late and nodes
are killed, all from one seed.

However that goes, in the end every node has the documents that the graph has, and no others.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from actors.search import document_writer, index_follower
from actors.search.catalog_view import CatalogView
from actors.search.command_writer import CommitConfig
from actors.search.open_search import SearchConfig
from actors.search.search_node import SearchNode
from actors.search.upkeep import UpkeepConfig
from graphdb.config import Settings
from graphdb.errors import LogUnavailable, OutcomeUnknown, QueryTimeout, StorageFull
from graphdb.model import LogEntry
from graphdb.search.catalog.catalog_commands import CreateIndex, DocumentWrite
from graphdb.search.catalog.state import Index
from tests.support.logged_graph import LoggedGraph
from tests.support.memory_log import Fault, MemoryLog, answer_is_lost
from tests.support.timing import HANG_S

EX = "http://example.org/"
WORKS = 9
ROUNDS, CHANGES = 3, 14
CONFIG = SearchConfig(
    commit=CommitConfig(log_wait_s=0.05, log_poll_s=0.01),
    upkeep=UpkeepConfig(look_s=0.01, flush_s=0.05),
)
YEARS = ("1900", "1901", "'some year'")  # the last one is refused
MAPPINGS = {"properties": {"year": {"type": "long"}, "title": {"type": "text", "analyzer": "mine"}}}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"analysis": {"analyzer": {"mine": {"type": "standard"}}}},
    "patterns": {"analysis": {"analyzer": {"mine": {"type": "pattern", "pattern": "\\s+"}}}},
}


def granted(log: MemoryLog, entries: Sequence[LogEntry]) -> None:
    """No fault."""


def away(log: MemoryLog, entries: Sequence[LogEntry]) -> None:
    raise LogUnavailable("away")


def killed(view: CatalogView) -> int:
    """In place of a flush: a killed process has none."""
    raise StorageFull("killed")


class Side:
    """A log as one of several nodes has it."""

    def __init__(self, log: MemoryLog) -> None:
        self._log, self.needed_from = log, 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def truncate_before(self, index: int, view: str) -> None:
        self.needed_from = index

    async def drop_before(self, index: int) -> int:
        return index


class World:
    """A graph, its log, and two nodes that both believe that they lead."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.graph = LoggedGraph(MemoryLog(settles_at_once=False))
        self.nodes: list[SearchNode] = []
        self._sides: dict[Path, Any] = {directory / name: Side(self.graph.log) for name in ("a", "b")}
        for one in self._sides:
            one.mkdir()

    async def start(self) -> None:
        for directory, log in self._sides.items():
            settings = Settings.model_validate({"server": {"data_dir": directory}})
            self.nodes.append(SearchNode(settings, log, self.graph, CONFIG))
            await self.nodes[-1].start()

    async def kill(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """End both; on disk is what was flushed before."""
        with monkeypatch.context() as patched:
            patched.setattr(CatalogView, "flush", killed)
            for node in self.nodes:
                await node.close()
        self.nodes.clear()

    def fault(self) -> Fault:
        return self.rng.choice(
            [granted, granted, granted, answer_is_lost(True), answer_is_lost(False), away, self._late]
        )

    def _late(self, log: MemoryLog, entries: Sequence[LogEntry]) -> None:
        """Nobody knows what becomes of them; then they are stored after all."""
        asyncio.get_running_loop().call_later(self.rng.uniform(0.01, 0.3), log.store, entries)
        raise OutcomeUnknown("the leader was killed")

    async def happen(self) -> None:
        """The graph changes, mostly while it answers."""
        for _ in range(CHANGES):
            change = self.graph.insert if self.rng.random() < 0.6 else self.graph.delete
            change(" ".join(self._statement() for _ in range(self.rng.randint(1, 4))))
            self.graph.failing = QueryTimeout("slow") if self.rng.random() < 0.1 else None
            if self.rng.random() < 0.1:
                self._forget()
            await asyncio.sleep(self.rng.uniform(0, 0.06))
        self.graph.failing = None

    def _forget(self) -> None:
        """What both nodes have on disk, the log need not have any more."""
        log = self.graph.log
        log.forget_before(max(log.first_index, min(side.needed_from for side in self._sides.values())))

    def _statement(self) -> str:
        work = f":w{self.rng.randrange(WORKS)}"
        return self.rng.choice(
            [
                f"{work} a :Work .",
                f"{work} :title 'title {self.rng.randrange(4)}' .",
                f"{work} :year {self.rng.choice(YEARS)} .",
                f"{work} :frame _:f{self.rng.randrange(3)} .",
                f"_:f{self.rng.randrange(3)} :wood 'wood {self.rng.randrange(4)}' .",
            ]
        )

    async def check(self) -> None:
        """All nodes have what an index has that is made of the graph now."""
        wanted = await self._made_anew()
        for node in self.nodes:
            await until(partial(self._has, node, wanted))

    def _has(self, node: SearchNode, wanted: dict[str, Any]) -> bool:
        return not self._is_behind(node) and documents(node, "works") == wanted

    async def _made_anew(self) -> dict[str, Any]:
        """The documents of an index that nothing has ever happened to."""
        name = f"anew{self.graph.log.last_index}"
        shown = index_of(self.nodes[0], "works")
        body = {"settings": {**SETTINGS["plain"], "graph": shown.settings["graph"]}, "mappings": MAPPINGS}
        await self.nodes[0].perform(CreateIndex(name, name, body))
        await until(lambda: index_of(self.nodes[0], name).cursor > 0)
        return documents(self.nodes[0], name)

    def _is_behind(self, node: SearchNode) -> bool:
        return node.status().snapshot_index < self.graph.log.last_index


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not holds():  # noqa: ASYNC110 what is waited for tells nobody
            await asyncio.sleep(0.01)


def index_of(node: SearchNode, name: str) -> Index:
    index = node.catalog.find(name)
    assert index is not None
    return index


def documents(node: SearchNode, name: str) -> dict[str, Any]:
    shard = index_of(node, name).shards
    found = {doc_id: shard.get(doc_id) for doc_id in shard.ids()}
    return {doc_id: orjson.loads(one.source) for doc_id, one in found.items() if one is not None}


def split_small(writes: Sequence[DocumentWrite]) -> list[tuple[Sequence[DocumentWrite], int]]:
    """Several entries for a few documents."""
    return [(writes[start : start + 2], 1) for start in range(0, len(writes), 2)]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for seconds waits for a moment."""
    monkeypatch.setattr(index_follower, "_GATHER_S", 0.005)
    monkeypatch.setattr(index_follower, "_AGAIN_S", 0.01)
    monkeypatch.setattr(index_follower, "_AGAIN_S_MAX", 0.05)
    monkeypatch.setattr(index_follower, "_REST_S_MAX_OF_ALL", 0.05)
    monkeypatch.setattr(index_follower, "_SAVE_S", 0.2)
    monkeypatch.setattr(index_follower, "_READ_AT_ONCE", 4)
    monkeypatch.setattr(document_writer, "split_writes", split_small)


@pytest.mark.parametrize("seed", range(8))
def test_rivals_make_the_documents_of_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    async def run() -> None:
        world = World(tmp_path, seed)
        for round_ in range(ROUNDS):
            await world.start()
            if round_ == 0:
                settings = {**SETTINGS[("plain", "patterns")[seed % 2]], "graph": {"shape": f"{EX}Work"}}
                await world.nodes[0].perform(
                    CreateIndex("works", "u1", {"settings": settings, "mappings": MAPPINGS})
                )
            world.graph.log.faults = [world.fault() for _ in range(60)]
            await world.happen()
            if round_ % 2:
                world.graph.log.faults.clear()
                await world.check()
            await world.kill(monkeypatch)
            world.graph.log.faults.clear()
        await world.start()
        await world.check()
        await world.kill(monkeypatch)

    asyncio.run(run())
