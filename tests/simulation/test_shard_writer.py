"""The writer over a log that dies, loses answers and fills up, and a store that fills up too, each from one
seed.

After each run: whoever was answered is in the log and in the store, whoever was refused is not, and the store
is what the log makes of an empty one, also when any part of it is replayed twice.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyoxigraph import NamedNode, Quad, RdfFormat, Store, serialize

from actors.log.protocol import LogStatus
from actors.shard.shard_writer import ShardWriter
from graphdb.errors import (
    AlreadyExists,
    GraphDBError,
    LogUnavailable,
    OutcomeUnknown,
    StorageFull,
    UnavailableError,
)
from graphdb.log.file_log import FileLog, FileLogConfig
from graphdb.log.log_end import LogEnd
from graphdb.log.replay import Replayer
from graphdb.log.views import ViewStatus
from graphdb.model import ChangeSet, Confirmation, EntryKind, ForeseeingOutcome, LogEntry
from graphdb.rdf.quad_lines import LineChange
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.plain_data import OneTriple, plain_update
from graphdb.store.clearing import Emptied, clear_lines
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from tests.simulation.lossy_file_system import LossyFileSystem
from tests.support.small_writes import CONFIG, at, quad


class DyingLog:
    """A log in this process, the way a client sees one whose process may die at any moment."""

    settles_at_once = True

    def __init__(self, random: Random, faults: bool) -> None:
        self.random = random
        self.faults = faults
        self.system = LossyFileSystem(random)
        self._open()
        self.down_for = 0

    def _open(self) -> None:
        self.log = FileLog(self.system, "log", FileLogConfig(segment_bytes=4000, reserve_bytes=1000))
        self.end = LogEnd.of_opened(self.log.last_index)

    async def append(self, entries: list[LogEntry], expected_index: int = 0) -> int:
        await self._reach()
        fate = self.random.randrange(12) if self.faults else 0
        if fate == 1:
            raise StorageFull("full")
        if fate == 2:
            self._die()
            raise OutcomeUnknown("died before it was written")
        if fate == 3:
            self._foreign_entry(EntryKind.CHANGES)
        for _ in range(self.random.choice([0, 0, 1, 3])):
            self._foreign_entry(EntryKind.SEARCH)
        index = self._append(entries, expected_index)
        if fate == 4:
            self._die()
            raise OutcomeUnknown("died after it was written")
        return index

    def _append(self, entries: list[LogEntry], expected_index: int) -> int:
        first_index = self.log.last_index + 1
        if not self.end.admits(expected_index):
            return 0
        self.log.append([at(entry, first_index + i) for i, entry in enumerate(entries)])
        self.end = self.end.extended(entries)
        return first_index

    def _foreign_entry(self, kind: EntryKind) -> None:
        """Somebody else writes: their entry changes nothing here."""
        self._append([LogEntry(0, 0, kind, b"somebody else's!", 0, bytes(16))], 0)

    def _die(self) -> None:
        self.log.close()
        self.system.crash()
        self._open()
        self.down_for = self.random.choice([0, 1, 3, 10_000 if self.random.random() < 0.1 else 5])

    async def _reach(self) -> None:
        await asyncio.sleep(self.random.choice([0, 0, 0.0005, 0.001]))  # others come meanwhile
        if self.down_for:
            self.down_for -= 1
            raise LogUnavailable("no connection")

    async def read(self, from_index: int, max_bytes: int = 500) -> list[LogEntry]:
        await self._reach()
        return self.log.read(from_index, 500)

    async def status(self) -> LogStatus:
        return LogStatus(self.log.first_index, self.log.last_index)

    async def confirm(self, index: int) -> bool:
        return True

    async def append_unconditionally(self, entries: Sequence[LogEntry]) -> int:
        return self._append([*entries], 0)

    async def watch_index(self, known_index: int, timeout_s: float = 0) -> int:
        return self.log.last_index

    async def truncate_before(self, index: int, view: str) -> None:
        self.log.truncate_before(index)

    async def drop_before(self, index: int) -> int:
        return index

    async def report_view(self, status: ViewStatus) -> None: ...

    async def reported_views(self) -> list[ViewStatus]:
        return []

    async def close(self) -> None: ...


class FillingStore(QuadStore):
    """A store whose disk is full now and then."""

    def __init__(self, random: Random, faults: bool) -> None:
        super().__init__(Store())
        self.random, self.faults = random, faults

    def apply(self, change: ChangeSet) -> None:
        self._may_fail()
        super().apply(change)

    def apply_many(self, changes: Iterable[ChangeSet]) -> None:
        self._may_fail()
        super().apply_many(changes)

    def _may_fail(self) -> None:
        if self.faults and self.random.randrange(15) == 0:
            raise StorageFull("full")


class ForeseenOutcome(ForeseeingOutcome):
    """Answers as a port does: with what was made of a result that was foreseen, where it was right."""

    def __init__(self) -> None:
        self.told: asyncio.Future[Confirmation] = asyncio.get_running_loop().create_future()
        self._foreseen: tuple[Confirmation, Confirmation] | None = None

    def done(self) -> bool:
        return self.told.done()

    def foresee(self, result: Confirmation, /) -> None:
        assert not self.done()
        self._foreseen = result, replace(result)

    def set_result(self, result: Confirmation, /) -> None:
        if self._foreseen is not None and result is self._foreseen[0]:
            assert result == self._foreseen[1]
        self.told.set_result(result)

    def set_exception(self, exception: Exception, /) -> None:
        self.told.set_exception(exception)


class Requests:
    """Requests for one run; each leaves a mark of its own in the store, but for those that clear a graph."""

    def __init__(self, random: Random, directory: Path, quick_share: float = 0.5) -> None:
        self.random, self.directory, self.quick_share = random, directory, quick_share
        self.answers: dict[int, Confirmation | GraphDBError] = {}

    def clear(self, number: int, seed: int, state: Overlay) -> Iterable[ChangeSet] | LineChange:
        """Empty a graph that has no marks, and perhaps take its name."""
        random = Random(seed)
        graph = NamedNode(f"urn:g{random.choice([1, 2])}")
        if not state.graph_exists(graph):
            return ()
        emptied = Emptied((graph,), (graph,) if random.randrange(2) else ())
        change = clear_lines(state.applied_store(), emptied, self.directory / f"{number}")
        if change.dropped_graphs:
            return change
        names = random.sample(["x1", "x2", "b1"], random.randrange(4))  # in its place
        added = self.directory / f"{number}-added"
        new = [
            each for each in (quad(name, int(graph.value[-1])) for name in names) if not state.contains(each)
        ]
        added.write_bytes(serialize(new, format=RdfFormat.N_QUADS) or b"")
        return replace(change, added=added)

    def plan(self, number: int, seed: int, state: Overlay) -> Iterator[ChangeSet]:
        """Toggle some quads; sometimes many (in parts), sometimes with a query, sometimes fail."""
        random = Random(seed)
        size = random.choice([1, 1, 2, 2, 2, 5, 5, 30])
        if random.randrange(6) == 0:
            list(state.applied_store().query_text("SELECT * { GRAPH ?g { ?s ?p ?o } }", Dataset()))  # type: ignore[arg-type]
        if random.randrange(10) == 0:
            raise AlreadyExists("graph", "urn:g")
        names = random.sample([*(f"n{i}" for i in range(30)), *(f"b{i}" for i in range(30))], size)
        quads = [quad(f"mark{number}", 0), *(quad(name, random.randrange(3)) for name in names)]
        removed = [each for each in quads if state.contains(each)]
        added = [each for each in quads if each not in removed]
        new = dict.fromkeys(each.graph_name for each in added)
        created = tuple(graph for graph in new if not state.graph_exists(graph))  # type: ignore[arg-type]
        if size < 30:
            yield ChangeSet(tuple(removed), tuple(added), (), created)  # type: ignore[arg-type]
            return
        yield ChangeSet(tuple(removed), tuple(added[:10]), (), created)  # type: ignore[arg-type]
        yield ChangeSet((), tuple(added[10:]))

    def one(self, number: int) -> tuple[OneTriple, bool]:
        """A triple in the default graph that comes or goes; whether it is the mark of the request."""
        marks = self.random.randrange(3) > 0
        name = f"mark{number}" if marks else f"one{self.random.randrange(3)}"
        verb = "INSERT" if marks or self.random.randrange(2) else "DELETE"
        update = plain_update(f"{verb} DATA {{ <urn:{name}> <urn:p> <urn:o> }}", None, 4)
        assert isinstance(update, OneTriple)
        return update, marks

    async def send(self, writer: ShardWriter, number: int) -> None:
        seed = self.random.randrange(1 << 30)
        await asyncio.sleep(0.0005 * self.random.randrange(4))
        kind = self.random.randrange(8)
        update, marks = self.one(number) if kind in (1, 2, 3) else (None, kind > 0)
        plan = self.plan if kind else self.clear
        outcome = ForeseenOutcome()
        try:
            if update is not None:
                writer.begin(update, outcome, quick=True)
            else:
                quick = self.random.random() < self.quick_share
                writer.begin(lambda state: plan(number, seed, state), outcome, quick=quick)
            confirmation = await outcome.told
        except GraphDBError as error:
            if marks:
                self.answers[number] = error
        else:
            if marks:
                self.answers[number] = confirmation
            assert writer.applied_index >= confirmation.snapshot_index or writer.lacks_confirmed


async def run(seed: int, directory: Path, faults: bool, requests_count: int = 20) -> None:
    random = Random(seed)
    log, store = DyingLog(random, faults), FillingStore(random, faults)
    requests = Requests(random, directory, quick_share=random.choice([0.5, 1.0]))
    ids = iter(range(1, 1 << 20))
    writer = ShardWriter(
        store,
        log,
        Replayer(store.apply_many, 0),
        CONFIG,
        clock_ms=lambda: 0,
        fresh_request_id=lambda: next(ids).to_bytes(16, "big"),
    )
    writer.start()
    await asyncio.gather(*(requests.send(writer, number) for number in range(requests_count)))
    store.faults = log.faults = False
    log.down_for = 0
    writer.hear(log.log.last_index)
    await writer.in_turn(
        lambda index: None
    )  # whatever was in the way is overcome before it is this one's turn
    await writer.close()
    check(log.log, store, requests.answers, writer.applied_index)


def check(
    log: FileLog, store: QuadStore, answers: dict[int, Confirmation | GraphDBError], applied_index: int
) -> None:
    entries: list[LogEntry] = []
    while more := log.read(len(entries) + 1):
        entries += more
    assert applied_index == len(entries)
    for number, answer in answers.items():
        mark = quad(f"mark{number}", 0)
        there = store.contains(mark) or store.contains(Quad(mark.subject, mark.predicate, mark.object))
        if isinstance(answer, Confirmation):
            assert there, f"{number} was acknowledged and is lost"
            assert answer.affected_triples > 0
            told = entries[answer.snapshot_index - 1]
            assert told.kind is EntryKind.CLOSE or b"mark%d" % number in told.payload, "another's index"
        elif not isinstance(answer, OutcomeUnknown):
            assert not there, f"{number} was refused and is there: {answer!r}"
    for prefix in (len(entries) // 2, len(entries)):
        assert state_after(entries, twice=prefix) == state_of(store)


def state_after(entries: list[LogEntry], twice: int) -> tuple[set[Quad], set[object]]:
    """What the log makes of an empty store, its first entries replayed beforehand."""
    store = QuadStore(Store())
    for part in (entries[:twice], entries):
        replayer = Replayer(store.apply_many, 0)
        replayer.replay(part)
        replayer.close()
    return state_of(store)


def state_of(store: QuadStore) -> tuple[set[Quad], set[object]]:
    return set(store.dataset_quads()), set(store.named_graphs())


@pytest.mark.parametrize("ten", range(20))
def test_whatever_the_log_does_answers_are_true(ten: int, tmp_path: Path) -> None:
    for seed in range(ten * 5, ten * 5 + 5):
        try:
            asyncio.run(run(seed, tmp_path, faults=True))
        except Exception as error:
            raise AssertionError(f"run({seed})") from error


def test_without_trouble_nobody_is_refused_for_want_of_a_log(tmp_path: Path) -> None:
    async def go() -> None:
        random = Random(3)
        log, store = DyingLog(random, False), FillingStore(random, False)
        requests = Requests(random, tmp_path)
        ids = iter(range(1, 1000))
        writer = ShardWriter(
            store,
            log,
            Replayer(store.apply_many, 0),
            CONFIG,
            clock_ms=lambda: 0,
            fresh_request_id=lambda: next(ids).to_bytes(16, "big"),
        )
        writer.start()
        await asyncio.gather(*(requests.send(writer, number) for number in range(100)))
        writer.hear(log.log.last_index)
        await writer.in_turn(lambda index: None)
        await writer.close()
        assert not [a for a in requests.answers.values() if isinstance(a, UnavailableError)]
        check(log.log, store, requests.answers, writer.applied_index)

    asyncio.run(go())
