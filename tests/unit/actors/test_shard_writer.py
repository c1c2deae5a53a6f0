"""The writer over a log that does as it is told: who is answered what, and when."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from pyoxigraph import NamedNode, Quad, Store

from actors.log.protocol import LogStatus
from actors.shard.shard_writer import Admit, ShardWriter, WriterConfig
from graphdb.errors import (
    ConfigError,
    GraphDBError,
    KeyReused,
    LogCompacted,
    LogUnavailable,
    NotLeader,
    OutcomeUnknown,
    StorageFull,
)
from graphdb.log.payloads import encode_changes, encode_close
from graphdb.log.recent_requests import RecentRequests
from graphdb.log.replay import Replayer
from graphdb.log.request_ids import keyed
from graphdb.log.views import ViewStatus
from graphdb.model import ChangeSet, Confirmation, EntryKind, ForeseeingOutcome, LogEntry
from graphdb.sparql.plain_data import OneTriple, plain_update
from graphdb.store import apply, hidden_graphs
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from tests.support.timing import HANG_S

ID = bytes(range(16))
CONFIG = WriterConfig(part_bytes_max=300, log_wait_s=0.2, log_poll_s=0.001, retry_s=0.01)


class ToldLog:
    """Keeps entries; before an append or a read the next one in `fates` happens, if there is one."""

    def __init__(self, *, settles_at_once: bool = False) -> None:
        self.settles_at_once = settles_at_once
        self.entries: list[LogEntry] = []
        self.on_append: list[Callable[[list[LogEntry]], None]] = []
        self.on_read: list[Exception] = []
        self.appends = self.reads = 0
        self.is_newest: list[bool | Exception] = []

    def add(self, *entries: LogEntry) -> None:
        for entry in entries:
            index = len(self.entries) + 1
            self.entries.append(LogEntry(index, 0, entry.kind, entry.request_id, 0, entry.payload))

    async def append(self, entries: list[LogEntry], expected_index: int = 0) -> int:
        self.appends += 1
        if self.on_append:
            self.on_append.pop(0)(entries)
        if any(entry.kind.concerns_quads for entry in self.entries[expected_index - 1 :]):
            return 0
        self.add(*entries)
        return len(self.entries) + 1 - len(entries)

    async def read(self, from_index: int, max_bytes: int = 0) -> list[LogEntry]:
        self.reads += 1
        if self.on_read:
            raise self.on_read.pop(0)
        return self.entries[from_index - 1 :]

    async def confirm(self, index: int) -> bool:
        fate = self.is_newest.pop(0) if self.is_newest else True
        if isinstance(fate, Exception):
            raise fate
        return fate

    async def status(self) -> LogStatus:
        return LogStatus(1, len(self.entries))

    async def append_unconditionally(self, entries: Sequence[LogEntry]) -> int:
        self.add(*entries)
        return len(self.entries) + 1 - len(entries)

    async def watch_index(self, known_index: int, timeout_s: float = 0) -> int:
        return len(self.entries)

    async def truncate_before(self, index: int, view: str) -> None: ...

    async def drop_before(self, index: int) -> int:
        return index

    async def report_view(self, status: ViewStatus) -> None: ...

    async def reported_views(self) -> list[ViewStatus]:
        return []

    async def close(self) -> None: ...


def quad(name: str) -> Quad:
    return Quad(NamedNode(f"urn:{name}"), NamedNode("urn:p"), NamedNode("urn:o"))


def adding(name: str, count: int = 0) -> Callable[[Overlay], Iterator[ChangeSet]]:
    """Add a quad; with a count, as many more, each in a part of its own."""

    def plan(state: Overlay) -> Iterator[ChangeSet]:
        if not state.contains(quad(name)):
            yield ChangeSet((), (quad(name),))
            for number in range(count):
                yield ChangeSet((), (quad(f"{name}-{number}"),))

    return plan


def foreign(name: str, request_id: bytes = b"f" * 16) -> LogEntry:
    return LogEntry(0, 0, EntryKind.CHANGES, request_id, 0, encode_changes(ChangeSet((), (quad(name),))))


def raising(error: Exception) -> Callable[[list[LogEntry]], None]:
    def fate(entries: list[LogEntry]) -> None:
        raise error

    return fate


@asynccontextmanager
async def writing(
    log: ToldLog,
    requests: RecentRequests | None = None,
    admit: Admit | None = None,
    config: WriterConfig = CONFIG,
) -> AsyncIterator[tuple[ShardWriter, Replayer]]:
    ids = iter(range(1, 1000))
    store = QuadStore(Store())
    replayer = Replayer(store.apply_many, 0, requests=requests, is_settled=lambda: not store.is_removing)
    writer = ShardWriter(
        store,
        log,
        replayer,
        config,
        clock_ms=lambda: 0,
        fresh_request_id=lambda: next(ids).to_bytes(16, "big"),
        admit=admit,
    )
    writer.start()
    try:
        yield writer, replayer
        assert {*store.dataset_quads()} == set(_naive(log.entries[: writer.applied_index]))
    finally:
        await writer.close()


def _naive(entries: list[LogEntry]) -> set[Quad]:
    store = QuadStore(Store())
    replayer = Replayer(store.apply_many, 0)
    replayer.replay(entries)
    replayer.close()
    return {*store.dataset_quads()}


def test_an_id_that_was_seen_is_answered_and_not_planned() -> None:
    async def go() -> None:
        log = ToldLog()
        async with writing(log) as (writer, _):
            first = await writer.write(adding("a", 5), request_id=ID)
            assert (first.affected_triples, first.message) == (6, "update applied")
            again = await writer.write(lambda state: pytest.fail("planned"), request_id=ID)
            assert again == Confirmation(first.snapshot_index, 6, "applied before")

    asyncio.run(go())


def test_the_second_of_two_with_one_key_waits_for_the_first() -> None:
    one, other = (keyed("k", "POST", b"/", (text,)) for text in (b"1", b"2"))

    async def go() -> None:
        log = ToldLog()
        async with writing(log) as (writer, _):
            answers = await asyncio.gather(
                writer.write(adding("a"), request_id=one),
                writer.write(adding("b"), request_id=other),
                writer.write(adding("c"), request_id=one),
                writer.write(adding("d")),
                return_exceptions=True,
            )
            assert answers[0] == Confirmation(1, 1)
            assert isinstance(answers[1], KeyReused)
            assert answers[2] == Confirmation(1, 1, "applied before")
            assert answers[3] == Confirmation(2, 1)

    asyncio.run(go())


def test_what_may_be_forgotten_is_not_done_again() -> None:
    async def go() -> None:
        log = ToldLog()
        log.add(*(foreign(f"f{number}", bytes([number] * 16)) for number in range(5)))
        async with writing(log, RecentRequests(kept=2)) as (writer, _):
            writer.hear(5)
            await writer.applied.wait_for(5)
            with pytest.raises(OutcomeUnknown, match="too much was written since"):
                await writer.write(adding("a"), request_id=ID, since=2)
            assert (await writer.write(adding("a"), request_id=ID, since=3)).snapshot_index == 6

    asyncio.run(go())


def test_a_list_that_is_ahead_of_the_store_answers_nobody_too_early() -> None:
    async def go() -> None:
        log, ahead = ToldLog(), RecentRequests()
        ahead.remember(ID, 1, 1)
        log.add(foreign("a", ID))
        async with writing(log, ahead) as (writer, _):
            confirmation = await writer.write(adding("a"), request_id=ID)
            assert confirmation.snapshot_index == writer.applied_index == 1

    asyncio.run(go())


@pytest.mark.parametrize("count", [0, 8])
@pytest.mark.parametrize("nth", [0, 3])
def test_who_does_not_lead_says_so_at_once(count: int, nth: int) -> None:
    async def go() -> None:
        log = ToldLog()
        refused = raising(NotLeader("no", 1, 2))
        log.on_append = [*([lambda entries: None] * (nth if count else 0)), refused]
        async with writing(log) as (writer, _):
            with pytest.raises(NotLeader) as caught:
                await writer.write(adding("a", count))
            assert caught.value.leader_hint == 2
            assert (log.reads, writer.fault) == (0, None)

    asyncio.run(go())


def test_who_changes_nothing_is_answered_from_the_newest_state() -> None:
    async def go() -> None:
        log = ToldLog()
        async with writing(log) as (writer, _):
            await writer.write(adding("a"))
            log.add(foreign("b"))
            log.is_newest = [False]
            assert await writer.write(adding("a")) == Confirmation(2, 0)
            log.is_newest = [NotLeader("no")]
            with pytest.raises(NotLeader):
                await writer.write(adding("a"))
            log.is_newest = [LogUnavailable("no connection")]
            assert await writer.write(adding("a")) == Confirmation(2, 0)

    asyncio.run(go())


def test_requests_that_are_on_their_way_through_the_loop_share_a_batch() -> None:
    async def go() -> None:
        log = ToldLog()

        async def write(steps: int) -> Confirmation:
            for _ in range(steps):
                await asyncio.sleep(0)
            return await writer.write(adding(str(steps)), quick=True)

        async with writing(log) as (writer, _):
            answers = await asyncio.gather(*map(write, range(1, 41)))
            assert answers == [Confirmation(index, 1) for index in range(1, 41)]
            assert log.appends == 1

    asyncio.run(go())


@pytest.mark.parametrize("error", [OutcomeUnknown("lost"), LogUnavailable("gone")])
@pytest.mark.parametrize("count", [0, 1])
def test_a_lost_append_is_decided_when_its_place_is_taken(error: GraphDBError, count: int) -> None:
    async def go(stored: bool) -> None:
        log, sent = ToldLog(), list[LogEntry]()

        def lose(entries: list[LogEntry]) -> None:
            sent.extend(entries)
            raise error

        log.on_append = [lambda entries: None] * (2 if count else 0) + [lose]
        patient = replace(CONFIG, log_wait_s=HANG_S)  # a busy machine takes longer than the others wait
        async with writing(log, config=patient) as (writer, _):
            request = asyncio.ensure_future(writer.write(adding("a", count)))
            appends = 3 if count else 1
            async with asyncio.timeout(HANG_S):
                while log.appends < appends:  # noqa: ASYNC110 a busy machine takes its time
                    await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert (log.appends, request.done()) == (appends, False), "it waits, and sends nothing"
            log.add(*(sent if stored else [foreign("b")]))
            confirmation = await request
            assert confirmation.affected_triples == count + 1
            assert log.appends == (appends if stored else 2 * appends)

    for stored in (False, True):
        asyncio.run(go(stored))


def test_an_append_that_stays_undecided_has_an_unknown_outcome() -> None:
    async def go() -> None:
        log = ToldLog()
        log.on_append = [raising(OutcomeUnknown("lost"))]
        async with writing(log) as (writer, _):
            answers = await asyncio.gather(
                writer.write(adding("a")),
                writer.write(lambda state: iter(())),
                return_exceptions=True,
            )
            assert [type(answer) for answer in answers] == [OutcomeUnknown, LogUnavailable]
            assert writer.fault is None
            assert (await writer.write(adding("b"))).snapshot_index == 1

    asyncio.run(go())


def test_a_standalone_log_is_asked_once() -> None:
    async def go() -> None:
        log = ToldLog(settles_at_once=True)
        log.on_append = [raising(OutcomeUnknown("lost"))]
        async with writing(log) as (writer, _):
            assert (await writer.write(adding("a"))).snapshot_index == 1
            assert (log.appends, log.reads) == (2, 1)

    asyncio.run(go())


def test_a_log_that_was_compacted_is_trouble_and_not_asked_again() -> None:
    async def go() -> None:
        log = ToldLog()
        async with writing(log) as (writer, _):
            log.on_read = [LogCompacted("gone")]
            writer.hear(5)
            await asyncio.sleep(0.05)
            assert isinstance(writer.fault, LogCompacted)
            for _ in range(3):
                writer.hear(6)
                with pytest.raises(LogCompacted):
                    await writer.write(adding("a"))
            assert (log.reads, log.appends) == (1, 0)

    asyncio.run(go())


@pytest.mark.parametrize("in_empty_reads", [False, True])
def test_what_is_heard_while_the_log_is_read_is_not_missed(in_empty_reads: bool) -> None:
    async def go() -> None:
        log = ToldLog()
        async with writing(log) as (writer, _):

            async def read(from_index: int, max_bytes: int = 0) -> list[LogEntry]:
                entries = log.entries[from_index - 1 :]
                if len(log.entries) < 3 and (not entries or not in_empty_reads):
                    log.add(foreign(f"late{len(log.entries)}"))
                    writer.hear(len(log.entries))
                return entries

            log.read = read  # type: ignore[method-assign]
            log.add(foreign("first"))
            writer.hear(2 if in_empty_reads else 1)
            async with asyncio.timeout(HANG_S):
                await writer.applied.wait_for(3)

    asyncio.run(go())


class _Disk:
    """Admits writes as a full disk does."""

    def __init__(self) -> None:
        self.is_full = False
        self.asked: list[tuple[bool, int]] = []

    async def admit(self, adds: bool, needed_bytes: int) -> None:
        self.asked.append((adds, needed_bytes))
        if self.is_full and adds:
            raise StorageFull.for_inserts()


def test_a_change_that_did_not_fit_leaves_no_parts_behind() -> None:
    async def go() -> None:
        log, disk = ToldLog(), _Disk()

        def fill(entries: list[LogEntry]) -> None:
            disk.is_full = True

        log.on_append = [lambda entries: None, fill]
        async with writing(log, admit=disk.admit) as (writer, replayer):
            with pytest.raises(StorageFull):
                await writer.write(adding("a", 9))
            assert replayer.resume_index == writer.applied_index == 2
            sizes = [size for _, size in disk.asked]
            assert sizes == sorted(set(sizes)), "each part is asked for with those before it"
            disk.is_full = False
            assert (await writer.write(adding("a", 9))).affected_triples == 10

    asyncio.run(go())


def removing(name: str) -> Callable[[Overlay], Iterator[ChangeSet]]:
    def plan(state: Overlay) -> Iterator[ChangeSet]:
        yield ChangeSet(removed=(quad(name),) if state.contains(quad(name)) else ())

    return plan


def test_on_a_full_disk_what_only_removes_is_written_whatever_waits_beside_it() -> None:
    async def go() -> None:
        log, disk = ToldLog(), _Disk()
        async with writing(log, admit=disk.admit) as (writer, _):
            for name in ("a", "b"):
                await writer.write(adding(name))
            disk.is_full = True
            added, removed, as_before = await asyncio.gather(
                writer.write(adding("c")),
                writer.write(removing("a")),
                writer.write(adding("b")),
                return_exceptions=True,
            )
            assert isinstance(added, StorageFull)
            assert isinstance(removed, Confirmation)
            assert removed.affected_triples == 1
            assert isinstance(as_before, Confirmation), "nothing is added"
            assert [entry.log_index for entry in log.entries] == [1, 2, 3]
            disk.is_full = False
            assert (await writer.write(adding("c"))).affected_triples == 1

    asyncio.run(go())


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_log_that_cannot_start_refuses_writes_and_does_not_end_the_writer(is_idle: bool) -> None:
    async def go() -> None:
        log = ToldLog()
        async with writing(log) as (writer, _):
            log.on_read = [ConfigError("the update log cannot start")] * 2
            if is_idle:
                writer.hear(1)
            else:
                log.on_append = [raising(ConfigError("the update log cannot start"))]
                with pytest.raises(LogUnavailable, match="cannot start"):
                    await writer.write(adding("a"))
            async with asyncio.timeout(HANG_S):
                while log.on_read or writer.fault is not None:  # noqa: ASYNC110 nobody tells
                    await asyncio.sleep(0.01)
            assert (await writer.write(adding("b"))).snapshot_index == 1

    asyncio.run(go())


def test_what_others_write_is_applied_together_unless_somebody_waits_for_it() -> None:
    async def go() -> None:
        log = ToldLog()
        config = replace(CONFIG, gather_s=4 * HANG_S)
        async with writing(log, config=config) as (writer, _):
            for number in (1, 2, 3):
                log.add(foreign(f"f{number}"))
                writer.hear(number)
                await asyncio.sleep(0.01)
            assert writer.applied_index == 0
            assert await writer.reach(3, HANG_S)
            log.add(foreign("f4"))
            writer.hear(4)
            confirmation = await asyncio.wait_for(writer.write(adding("a")), HANG_S)
            assert confirmation == Confirmation(5, 1)

    asyncio.run(go())


def test_a_follower_hides_what_another_node_empties(monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows the log meanwhile, and what comes to the graph comes after the quads are gone."""
    monkeypatch.setattr(hidden_graphs, "_QUADS_MIN", 0)
    monkeypatch.setattr(hidden_graphs, "_BLOCK_BYTES", 1)
    monkeypatch.setattr(apply, "_PUT_BACK_MAX", -1)
    may_go, remove_some = threading.Event(), hidden_graphs.HiddenGraphs.remove_some

    def gated(hidden: hidden_graphs.HiddenGraphs) -> None:
        assert may_go.wait(HANG_S)
        remove_some(hidden)

    monkeypatch.setattr(hidden_graphs.HiddenGraphs, "remove_some", gated)
    emptied, other = NamedNode("urn:g"), NamedNode("urn:h")
    old = [Quad(NamedNode(f"urn:{number}"), NamedNode("urn:p"), emptied, emptied) for number in range(9)]
    beside, new = (Quad(emptied, NamedNode("urn:p"), other, graph) for graph in (other, emptied))

    def change(number: int, *added: Quad) -> LogEntry:
        payload = encode_changes(ChangeSet(added=added))
        return LogEntry(0, 0, EntryKind.CHANGES, bytes([number] * 16), 0, payload)

    lines = encode_changes(ChangeSet(removed=tuple(old)))
    close = encode_close(1, (emptied,))

    async def go() -> None:
        log = ToldLog()
        log.add(
            change(1, *old),
            LogEntry(0, 0, EntryKind.PART, ID, 0, lines),
            LogEntry(0, 0, EntryKind.CLOSE_CLEARED, ID, 0, close),
        )
        async with writing(log) as (writer, replayer):
            try:
                for there in (set[Quad](), {beside}):
                    writer.hear(len(log.entries))
                    await writer.applied.wait_for(len(log.entries))
                    assert writer._quads.is_removing
                    assert {*writer._quads.dataset_quads()} == there
                    assert replayer.resume_index == 1
                    log.add(change(3, new) if there else change(2, beside))
                writer.hear(5)
            finally:
                may_go.set()
            await writer.applied.wait_for(5)
            assert {*writer._quads.dataset_quads()} == {beside, new}
            assert replayer.resume_index == 5

    asyncio.run(go())


class Foreseeing(ForeseeingOutcome):
    """Keeps what it is told, and what the log held when it was told."""

    def __init__(self, log: ToldLog) -> None:
        self.log = log
        self.foreseen: list[tuple[Confirmation, int]] = []
        self.told: asyncio.Future[Confirmation] = asyncio.get_running_loop().create_future()

    def done(self) -> bool:
        return self.told.done()

    def foresee(self, result: Confirmation, /) -> None:
        assert not self.done()
        self.foreseen.append((result, len(self.log.entries)))

    def set_result(self, result: Confirmation, /) -> None:
        self.told.set_result(result)

    def set_exception(self, exception: Exception, /) -> None:
        self.told.set_exception(exception)


class SyncingLog(ToldLog):
    """Takes entries a few turns of the event loop after they were sent."""

    async def append(self, entries: list[LogEntry], expected_index: int = 0) -> int:
        for _ in range(3):
            await asyncio.sleep(0)
        return await super().append(entries, expected_index)


def begun(log: ToldLog, writer: ShardWriter, *names: str) -> list[Foreseeing]:
    outcomes = [Foreseeing(log) for _ in names]
    for name, outcome in zip(names, outcomes, strict=True):
        writer.begin(adding(name), outcome, quick=True)
    return outcomes


def test_results_are_foreseen_while_the_log_syncs() -> None:
    async def go() -> None:
        log = SyncingLog()
        async with writing(log) as (writer, _):
            outcomes = begun(log, writer, "a", "b", "a", "c")
            results = [await outcome.told for outcome in outcomes]
            assert [(each.snapshot_index, each.affected_triples) for each in results] == [
                (1, 1),
                (2, 1),
                (2, 0),
                (3, 1),
            ]
            for outcome, result in zip(outcomes, results, strict=True):
                [(foreseen, held)] = outcome.foreseen
                assert foreseen is result
                assert held == 0, "it was told when the log had the entry"

    asyncio.run(go())


def test_the_result_of_one_is_foreseen_too() -> None:
    async def go() -> None:
        log = SyncingLog()
        async with writing(log) as (writer, _):
            [outcome] = begun(log, writer, "a")
            result = await outcome.told
            assert result.snapshot_index == 1
            assert outcome.foreseen == [(result, 0)]

    asyncio.run(go())


def test_what_cannot_be_foreseen_takes_effect() -> None:
    class Failing(Foreseeing):
        def foresee(self, result: Confirmation, /) -> None:
            raise RuntimeError("no answer is prepared")

    async def go() -> None:
        log = SyncingLog()
        async with writing(log) as (writer, _):
            outcome = Failing(log)
            writer.begin(adding("a"), outcome, quick=True)
            assert (await outcome.told).snapshot_index == 1
            assert len(log.entries) == 1

    asyncio.run(go())


def test_a_log_that_answers_at_once_leaves_nothing_to_foresee() -> None:
    async def go() -> None:
        log = ToldLog()
        async with writing(log) as (writer, _):
            outcomes = begun(log, writer, "a", "b")
            assert [(await outcome.told).snapshot_index for outcome in outcomes] == [1, 2]
            await asyncio.sleep(0)
            assert [outcome.foreseen for outcome in outcomes] == [[], []]

    asyncio.run(go())


def test_what_was_foreseen_does_not_count_where_other_entries_come_between() -> None:
    async def go() -> None:
        log = SyncingLog()
        log.on_append = [lambda _: log.add(LogEntry(0, 0, EntryKind.SEARCH, b"s" * 16, 0, b""))]
        async with writing(log) as (writer, _):
            outcomes = begun(log, writer, "a", "b")
            assert [(await outcome.told).snapshot_index for outcome in outcomes] == [2, 3]
            assert [outcome.foreseen[0][0].snapshot_index for outcome in outcomes] == [1, 2]

    asyncio.run(go())


@pytest.mark.parametrize("error", [StorageFull("full"), OutcomeUnknown("lost")])
def test_what_was_foreseen_does_not_count_where_the_log_fails(error: GraphDBError) -> None:
    async def go() -> None:
        log = SyncingLog(settles_at_once=True)
        log.on_append = [raising(error)]
        async with writing(log) as (writer, _):
            outcomes = begun(log, writer, "a", "b")
            if isinstance(error, StorageFull):
                for outcome in outcomes:
                    with pytest.raises(StorageFull):
                        await outcome.told
                assert log.entries == []
            else:  # nothing was stored, so both are planned and logged again
                assert [(await outcome.told).snapshot_index for outcome in outcomes] == [1, 2]
                assert [len(outcome.foreseen) for outcome in outcomes] == [2, 2]
            assert all(outcome.foreseen for outcome in outcomes)

    asyncio.run(go())


def test_a_state_that_another_writer_has_changed_is_planned_upon_anew() -> None:
    async def go() -> None:
        log = SyncingLog()
        log.on_append = [lambda _: log.add(foreign("a"))]
        async with writing(log) as (writer, _):
            first, second = begun(log, writer, "a", "b")
            assert await first.told == Confirmation(1, 0)
            assert await second.told == Confirmation(2, 1)
            assert first.foreseen[0][0] == Confirmation(1, 1)

    asyncio.run(go())


class HeldLog(ToldLog):
    """Takes an append in when it is let go."""

    def __init__(self) -> None:
        super().__init__(settles_at_once=True)
        self.begun, self.let_go = asyncio.Event(), asyncio.Event()

    async def append(self, entries: list[LogEntry], expected_index: int = 0) -> int:
        self.begun.set()
        await self.let_go.wait()
        return await super().append(entries, expected_index)


def one(verb: str, name: str) -> OneTriple:
    update = plain_update(f"{verb} DATA {{ <urn:{name}> <urn:p> <urn:o> }}", None, 4)
    assert isinstance(update, OneTriple)
    return update


async def some_steps() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("fails", [False, True], ids=["logged", "another was first"])
def test_what_comes_while_a_batch_is_logged_is_planned_upon_it(fails: bool) -> None:
    planned: list[bool] = []

    def removing_a(state: Overlay) -> tuple[ChangeSet, ...]:
        planned.append(state.contains(quad("a")))
        return (ChangeSet((quad("a"),)),) if planned[-1] else ()

    async def go() -> None:
        log = HeldLog()
        async with writing(log) as (writer, _):
            first = asyncio.create_task(writer.write(one("INSERT", "a"), quick=True))
            await log.begun.wait()
            second = asyncio.create_task(writer.write(removing_a, quick=True))
            third = asyncio.create_task(writer.write(one("INSERT", "a"), quick=True))
            fourth = asyncio.create_task(writer.write(one("DELETE", "none"), quick=True))
            await some_steps()
            assert planned == [True]
            if fails:
                log.add(foreign("f"))
                writer.hear(1)
            log.let_go.set()
            place = int(fails)
            assert await first == Confirmation(place + 1, 1)
            assert await second == Confirmation(place + 2, 1)
            assert await third == Confirmation(place + 3, 1)
            assert (await fourth).affected_triples == 0
            assert planned == [True] * (2 if fails else 1)
            # where they had to wait anew, all are in one batch
            assert log.appends == 2

    asyncio.run(go())


def test_what_is_not_quick_or_has_the_same_key_waits_for_the_batch_that_is_logged() -> None:
    key = keyed("k", "POST", b"/", (b"1",))

    async def go() -> None:
        log = HeldLog()
        async with writing(log) as (writer, _):
            first = asyncio.create_task(writer.write(one("INSERT", "a"), quick=True, request_id=key))
            await log.begun.wait()
            again = asyncio.create_task(writer.write(one("INSERT", "a"), quick=True, request_id=key))
            slow = asyncio.create_task(writer.write(adding("b")))
            await some_steps()
            log.let_go.set()
            assert await first == Confirmation(1, 1)
            assert await again == Confirmation(1, 1, "applied before")
            assert await slow == Confirmation(2, 1)

    asyncio.run(go())


def test_a_turn_of_its_own_comes_behind_what_was_planned_before_it() -> None:
    async def go() -> None:
        log = HeldLog()
        async with writing(log) as (writer, _):
            first = asyncio.create_task(writer.write(one("INSERT", "a"), quick=True))
            await log.begun.wait()
            second = asyncio.create_task(writer.write(one("INSERT", "b"), quick=True))
            await some_steps()
            turn = asyncio.create_task(writer.in_turn(lambda index: index))
            await some_steps()
            log.let_go.set()
            assert await turn == 2
            assert (first.done(), second.done()) == (True, True)

    asyncio.run(go())


@pytest.mark.parametrize("error", [StorageFull("full"), LogUnavailable("away")])
def test_what_was_planned_is_not_lost_where_the_append_fails(error: Exception) -> None:
    async def go() -> None:
        log = HeldLog()
        log.on_append.append(raising(error))
        async with writing(log) as (writer, _):
            first = asyncio.create_task(writer.write(one("INSERT", "a"), quick=True))
            await log.begun.wait()
            second = asyncio.create_task(writer.write(one("INSERT", "b"), quick=True))
            await some_steps()
            log.let_go.set()
            if isinstance(error, StorageFull):
                with pytest.raises(StorageFull):
                    await first
                assert await second == Confirmation(1, 1)
            else:
                assert {(await first).snapshot_index, (await second).snapshot_index} == {1, 2}

    asyncio.run(go())
