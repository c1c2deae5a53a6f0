"""The runner of views, shown with a sixth view, which counts the entries of each kind."""

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.log.view_runner import ViewRunner
from actors.log.view_sources import LogReading, Pace, Restart, Snapshot
from graphdb.errors import CorruptionError, LogCompacted, LogUnavailable, StorageFull
from graphdb.log.views import SnapshotView
from graphdb.model import EntryKind, LogEntry
from tests.support.memory_log import MemoryLog
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

PACE = Pace(again_s=0.001, again_s_max=0.004, anew_s_max=0.004, behind_s=0.001)
KINDS = (EntryKind.CHANGES, EntryKind.SEARCH, EntryKind.NOTHING)
FILE = "counts.json"


class EntryCounts:
    """The sixth view: how many entries of each kind there are. This is all that a view costs."""

    def __init__(self) -> None:
        self.index = 0
        self.counts: Counter[str] = Counter()

    def apply(self, entries: Sequence[LogEntry]) -> None:
        for entry in entries:
            self.counts[entry.kind.name] += 1
            self.index = entry.log_index

    def check(self) -> None:
        """It takes every entry."""

    def make_snapshot(self, tree: Path) -> int:
        (tree / FILE).write_text(json.dumps(self.counts))
        return self.index

    def adopt_snapshot(self, log_index: int, tree: Path | None) -> None:
        assert tree is not None
        self.counts = Counter(json.loads((tree / FILE).read_text()))
        self.index = log_index


class FaultyCounts(EntryCounts):
    """Before it applies an entry, what `faults` say for its place happens, once."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[int, Callable[[], None]] = {}
        self.batches: list[list[int]] = []
        self._refusal: Exception | None = None

    def apply(self, entries: Sequence[LogEntry]) -> None:
        self._refusal = None
        self.batches.append([entry.log_index for entry in entries])
        for entry in entries:
            assert entry.log_index == self.index + 1, "nothing is applied twice, or passed over"
            try:
                self.faults.pop(entry.log_index, lambda: None)()
            except StorageFull as full:
                self._refusal = full
                return
            super().apply([entry])

    def check(self) -> None:
        if self._refusal is not None:
            raise self._refusal


class FaultyLog(MemoryLog):
    """Reads and polls fail as `away` says: each for so many times."""

    def __init__(self) -> None:
        super().__init__()
        self.away = self.blind = 0
        self.reads = 0

    async def read(self, from_index: int, max_bytes: int = 4 << 20) -> list[LogEntry]:
        self.reads += 1
        if self.away:
            self.away -= 1
            raise LogUnavailable("the log is away")
        await asyncio.sleep(0)
        return (await super().read(from_index, max_bytes))[:7]

    async def watch_index(self, known_index: int, timeout_s: float = 10.0) -> int:
        if self.blind:
            self.blind -= 1
            raise LogUnavailable("the log is away")
        return await super().watch_index(known_index, timeout_s)

    def write(self, count: int, kind: EntryKind = EntryKind.CHANGES) -> int:
        self.store([LogEntry(0, 0, kind, bytes(16), 0, b"") for _ in range(count)])
        return self.last_index


def raising(error: Exception) -> Callable[[], None]:
    def fault() -> None:
        raise error

    return fault


def counting(
    view: SnapshotView[LogEntry, None], log: MemoryLog, **options: Any
) -> ViewRunner[LogEntry, None]:
    return ViewRunner("counts", view, LogReading(log), **({"pace": PACE} | options))


@asynccontextmanager
async def running(runner: ViewRunner[LogEntry, None]) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(runner.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not true():  # noqa: ASYNC110 a runner tells nobody that it rests
            await asyncio.sleep(0)


def on_thread(function: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
    return asyncio.to_thread(function, *arguments)


@contextmanager
def held(view: FaultyCounts, index: int) -> Iterator[threading.Event]:
    """Let the application of an entry begin, and wait: yields what tells that it has begun."""
    begun, go_on = threading.Event(), threading.Event()

    def fault() -> None:
        begun.set()
        assert go_on.wait(HANG_S)

    view.faults[index] = fault
    try:
        yield begun
    finally:
        go_on.set()


def restarting(
    view: SnapshotView[LogEntry, None], log: MemoryLog, tree: Path, errors: list[Exception] | None = None
) -> Restart:
    """Snapshots of the state at the log's end, as another node makes them; before the first, errors."""

    @asynccontextmanager
    async def snapshot() -> AsyncIterator[Snapshot]:
        if errors:
            raise errors.pop(0)
        other = EntryCounts()
        other.apply(whole_log)
        yield Snapshot(other.make_snapshot(tree), tree)

    whole_log = list(log.entries)
    return Restart(view, snapshot)


async def test_a_view_follows_the_log_and_others_wait_for_it() -> None:
    log, view = FaultyLog(), FaultyCounts()
    told: list[int] = []
    runner = counting(view, log, on_applied=lambda entries, _: told.extend(e.log_index for e in entries))
    assert runner.status().state == "starting"
    log.write(20)
    async with running(runner):
        assert await runner.reach(20, 5)
        log.write(3, EntryKind.SEARCH)
        await runner.applied.wait_for(23)
        assert (view.counts, told) == ({"CHANGES": 20, "SEARCH": 3}, [*range(1, 24)])
        status = runner.status()
        assert (status.state, status.error, status.entries_behind) == ("following", None, 0)
        assert (status.index, status.heard_index, status.entries, status.failures) == (23, 23, 23, 0)
        assert not await runner.reach(24, 0.01)


async def test_progress_is_told_while_it_catches_up() -> None:
    log, view = FaultyLog(), FaultyCounts()
    log.write(20)
    reached: list[int] = []
    await counting(view, log).catch_up(reached.append)
    assert reached == [7, 14, 20]


async def test_a_log_that_is_away_is_tried_again_at_growing_intervals() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log, pace=Pace(again_s=0.1, again_s_max=2.0))
    pauses = [runner._pause_after(LogUnavailable("x")) for _ in range(7)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])
    assert (runner.status().state, runner.status().error) == ("waiting", "x")


async def test_a_log_that_comes_back_is_followed_from_where_the_view_was() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log)
    log.away, log.blind = 5, 3
    log.write(20)
    async with running(runner):
        assert await runner.reach(20, 5)
    assert (runner.status().failures, runner.status().error, view.counts["CHANGES"]) == (5, None, 20)


async def test_to_catch_up_with_a_log_that_is_away_fails_and_keeps_what_was_applied() -> None:
    log, view = FaultyLog(), FaultyCounts()
    log.write(20)
    runner = counting(view, log)

    def away_after(index: int) -> None:
        log.away = 1

    with pytest.raises(LogUnavailable):
        await runner.catch_up(away_after)
    assert view.index == 7
    await runner.catch_up()
    assert view.index == 20


async def test_a_forgotten_place_is_told_to_who_can_mend_it() -> None:
    log, view = FaultyLog(), FaultyCounts()
    log.write(20)
    log.forget_before(10)
    runner = counting(view, log)
    with pytest.raises(LogCompacted):
        await runner.run()
    assert runner.status().state == "failed"
    with pytest.raises(LogCompacted):
        await runner.catch_up()


async def test_a_view_whose_place_is_forgotten_begins_anew_with_a_snapshot(tmp_path: Path) -> None:
    log, view = FaultyLog(), FaultyCounts()
    log.write(20)
    restart = restarting(view, log, tmp_path, [LogUnavailable("no copy yet"), OSError("a torn copy")])
    log.forget_before(10)
    runner = counting(view, log, restart=restart, perform=on_thread)
    async with running(runner):
        await runner.applied.wait_for(20)  # it came with the snapshot
        log.write(3)
        assert await runner.reach(23, 5)
    assert (view.counts["CHANGES"], view.batches) == (23, [[21, 22, 23]])
    assert (runner.status().state, runner.status().failures) == ("following", 3)


async def test_a_view_that_is_lost_after_it_had_to_wait_begins_anew_at_once(tmp_path: Path) -> None:
    log, view = FaultyLog(), FaultyCounts()
    pace = Pace(again_s=0.5, again_s_max=1.0, anew_s_max=60.0)
    runner = counting(view, log, pace=pace, restart=restarting(view, log, tmp_path))
    waits = [runner._pause_after(StorageFull("full")) for _ in range(6)]
    assert waits == [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert runner._pause_after(LogCompacted("gone")) == 0
    assert runner.status().state == "restarting"
    again = [runner._pause_after(LogUnavailable("no copy yet")) for _ in range(7)]
    assert again == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]


async def test_a_missing_entry_is_never_passed_over() -> None:
    log, view = FaultyLog(), FaultyCounts()
    log.write(3)
    del log.entries[0]
    with pytest.raises(CorruptionError, match="entry 1 is missing"):
        await counting(view, log).run()


async def test_what_comes_while_a_view_is_slow_is_applied_together() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log, perform=on_thread)
    async with running(runner):
        with held(view, 1) as begun:
            log.write(1)
            await asyncio.to_thread(begun.wait, 5)
            assert runner.applied.exact is None
            for _ in range(5):
                log.write(1)
            assert not await runner.reach(1, 0.02)
        assert await runner.reach(6, 5)
    assert view.batches == [[1], [2, 3, 4, 5, 6]]
    assert runner.applied.exact == 6


async def test_a_cancelled_runner_lets_an_application_come_to_its_end() -> None:
    log, view = FaultyLog(), FaultyCounts()
    told: list[int] = []
    options = {"perform": on_thread, "on_applied": lambda entries, _: told.append(entries[-1].log_index)}
    runner = counting(view, log, **options)
    log.write(5)
    with held(view, 3) as begun:
        task = asyncio.create_task(runner.run())
        await asyncio.to_thread(begun.wait, 5)
        task.cancel()
        await asyncio.sleep(0.02)
        assert not task.done(), "the view is in the midst of its entries"
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (view.index, told) == (5, [5])
    log.write(5)
    async with running(runner):
        assert await runner.reach(10, 5)
    assert view.counts["CHANGES"] == 10


async def test_a_mistake_in_a_view_is_raised_or_ends_in_a_new_beginning(tmp_path: Path) -> None:
    log, view = FaultyLog(), FaultyCounts()
    log.write(5)
    view.faults[3] = raising(ZeroDivisionError("a mistake"))
    runner = counting(view, log)
    with pytest.raises(ZeroDivisionError):
        await runner.run()
    assert (runner.status().state, runner.status().index) == ("failed", 2)
    assert "a mistake" in str(runner.status().error)

    view.faults[4] = raising(ZeroDivisionError("a mistake"))
    runner = counting(view, log, restart=restarting(view, log, tmp_path))
    async with running(runner):
        assert await runner.reach(5, 5)
    assert view.counts["CHANGES"] == 5


async def test_what_a_view_cannot_take_now_comes_again() -> None:
    log, view = FaultyLog(), FaultyCounts()
    log.write(5)
    view.faults = {2: raising(StorageFull("full")), 4: raising(StorageFull("full"))}
    runner = counting(view, log)
    with pytest.raises(StorageFull):
        await runner.catch_up()
    async with running(runner):
        assert await runner.reach(5, 5)
    assert view.batches == [[1, 2, 3, 4, 5], [2, 3, 4, 5], [4, 5]]
    assert runner.status().failures == 1


async def test_nothing_is_read_while_the_owner_is_not_ready() -> None:
    log, view = FaultyLog(), FaultyCounts()
    fulls: list[Exception] = [StorageFull("full")] * 4

    async def ready() -> None:
        if fulls:
            raise fulls.pop()

    runner = counting(view, log, ready=ready)
    log.write(1)
    async with running(runner):
        assert await runner.reach(1, 5)
    assert (log.reads, fulls) == (1, [])


async def test_entries_are_gathered_until_somebody_waits_for_them() -> None:
    log, view = FaultyLog(), FaultyCounts()
    idle = asyncio.Event()

    async def on_idle() -> None:
        idle.set()

    pace = Pace(gather_s=60.0, idle_s=0.01)
    runner = counting(view, log, on_idle=on_idle, pace=pace)
    async with running(runner):
        await idle.wait()
        log.write(1)
        await asyncio.sleep(0.02)
        log.write(1)
        await asyncio.sleep(0.02)
        assert view.batches == []
        assert await runner.reach(2, 5)
    assert view.batches == [[1, 2]]


async def test_those_who_want_a_view_to_come_to_an_index_share_the_way() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log)
    log.write(5)
    impatient = asyncio.create_task(runner.come_to(5))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.gather(*(runner.come_to(5) for _ in range(3)))
    assert (log.reads, view.batches) == (1, [[1, 2, 3, 4, 5]])
    await runner.close()


async def test_settling_waits_for_what_the_log_is_to_hold() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log)
    log.away = 3
    waiting = asyncio.create_task(runner.settle(lambda: view.index >= 2, wait_s=5, poll_s=0.001, pause=True))
    log.write(1)
    await asyncio.sleep(0.02)
    log.write(1)
    assert await waiting
    assert not await runner.settle(lambda: False, wait_s=0.01, poll_s=0.001, pause=False)
    log.away = 1_000
    with pytest.raises(LogUnavailable):
        await runner.settle(lambda: True, wait_s=0.01, poll_s=0.001, pause=False)


async def keep_up(runner: ViewRunner[LogEntry, None]) -> bool:
    return await runner.keep_up(wait_s=20, poll_s=0.001)


async def test_an_owner_with_other_work_keeps_a_view_up_between_it() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log)
    assert await keep_up(runner)
    assert log.reads == 0, "nothing was heard of"
    runner.hear(log.write(5))
    log.away = 2  # not for as long as the owner waits
    assert await keep_up(runner)
    assert (view.index, runner.fault, runner.retry_s) == (5, None, None)

    runner.hear(log.write(5))
    view.faults[8] = raising(StorageFull("full"))
    assert not await keep_up(runner)
    fault = runner.fault
    assert isinstance(fault, StorageFull)
    assert fault.__traceback__ is None
    assert (view.index, runner.status().state, runner.retry_s) == (7, "waiting", PACE.again_s)
    assert await keep_up(runner)
    assert (view.index, runner.fault, runner.status().state) == (10, None, "following")

    runner.fall_behind(LogUnavailable("the owner could not apply its own write"))
    assert runner.status().state == "waiting"
    assert await keep_up(runner)


@pytest.mark.parametrize(
    ("error", "state"), [(LogCompacted("gone"), "restarting"), (CorruptionError("torn", "view"), "failed")]
)
async def test_an_owner_does_not_try_again_what_cannot_succeed(error: Exception, state: str) -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log)
    runner.hear(log.write(5))
    view.faults[3] = raising(error)
    for _ in range(3):
        assert not await keep_up(runner)
    assert (log.reads, runner.retry_s, runner.status().state) == (1, None, state)
    assert type(runner.fault) is type(error)


async def test_an_owner_reads_as_far_as_was_heard() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log)
    runner.hear(log.write(5))
    assert await keep_up(runner)
    assert (log.reads, view.index) == (1, 5)
    assert await keep_up(runner)
    assert log.reads == 1
    runner.hear(log.write(10))
    assert await keep_up(runner)
    assert (log.reads, view.index) == (3, 15)


async def test_an_owner_hears_of_more_entries_while_it_watches() -> None:
    log, view = FaultyLog(), FaultyCounts()
    heard = asyncio.Event()

    async def on_heard() -> None:
        heard.set()

    runner = counting(view, log, on_heard=on_heard)
    watching = asyncio.create_task(runner.watch())
    await asyncio.sleep(0.01)
    assert not heard.is_set()
    log.blind = 1
    log.write(3)
    async with asyncio.timeout(HANG_S):
        await heard.wait()
    assert runner.is_behind
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


class WatchedLog(FaultyLog):
    """Counts the answers to polls."""

    def __init__(self) -> None:
        super().__init__()
        self.polls = 0

    async def watch_index(self, known_index: int, timeout_s: float = 10.0) -> int:
        index = await super().watch_index(known_index, timeout_s)
        self.polls += 1
        return index


async def test_while_it_gathers_it_does_not_hear_of_each_entry() -> None:
    log, view = WatchedLog(), FaultyCounts()
    runner = counting(view, log, pace=Pace(gather_s=2, behind_watch_s=10))
    async with running(runner):
        for _ in range(20):
            log.write(1)
            await asyncio.sleep(0.001)
        assert log.polls == 1
        await runner.applied.wait_for(20)
        log.write(1)
        assert await runner.reach(21, 5), "it hears on once it is there"


async def test_a_view_that_stays_behind_tells_how_far() -> None:
    log, view = WatchedLog(), FaultyCounts()
    runner = counting(view, log, pace=Pace(gather_s=10, behind_watch_s=0.005))
    async with running(runner), asyncio.timeout(HANG_S):
        for count in (1, 2, 3):
            log.write(1)
            while runner.status().entries_behind < count:  # noqa: ASYNC110 nothing tells of it
                await asyncio.sleep(0.001)
        assert view.index == 0


async def test_nothing_is_gathered_while_somebody_waits() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log, pace=Pace(gather_s=10))
    async with running(runner):
        log.write(30)
        assert await runner.reach(30, 5), "though it reads seven at once"
        first = asyncio.create_task(runner.reach(31, 5))
        await asyncio.sleep(0)
        assert not await runner.reach(40, 0.001)
        log.write(1)
        assert await first, "the other one has given up, this one waits on"


@pytest.mark.parametrize("seed", range(30))
async def test_whatever_happens_a_view_is_what_the_log_makes_it(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    log, view = FaultyLog(), FaultyCounts()
    whole: list[LogEntry] = []

    @asynccontextmanager
    async def snapshots() -> AsyncIterator[Snapshot]:
        if rng.random() < 0.3:
            raise LogUnavailable("no copy yet")
        other = EntryCounts()
        other.apply(whole[: rng.randint(max(view.index, log.first_index - 1), len(whole))])
        yield Snapshot(other.make_snapshot(tmp_path), tmp_path)

    runner = counting(view, log, perform=on_thread, restart=Restart(view, snapshots))
    task = asyncio.create_task(runner.run())
    for _ in range(60):
        match rng.choice(("write", "write", "away", "forget", "cancel", "full", "crash", "rest")):
            case "write":
                for _ in range(rng.randint(1, 9)):
                    log.write(1, rng.choice(KINDS))
                    whole.append(log.entries[-1])
            case "away":
                log.away, log.blind = rng.randint(0, 3), rng.randint(0, 3)
            case "forget" if log.entries:
                log.forget_before(rng.randint(log.first_index, log.last_index))
            case "cancel":
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                task = asyncio.create_task(runner.run())
            case "full":
                view.faults[log.last_index + rng.randint(1, 3)] = raising(StorageFull("full"))
            case "crash":
                view.faults[log.last_index + rng.randint(1, 3)] = raising(ZeroDivisionError("a mistake"))
            case "rest":
                await asyncio.sleep(rng.choice((0, 0.002)))
        await asyncio.sleep(0)
    assert await runner.reach(len(whole), 20), runner.status()
    assert view.counts == Counter(entry.kind.name for entry in whole)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_view_that_rests_applies_what_it_is_given_within_the_call() -> None:
    log, view = FaultyLog(), FaultyCounts()
    told: list[int] = []
    runner = counting(
        view,
        log,
        perform_now=lambda function, *arguments: function(*arguments),
        on_applied=lambda entries, _: told.extend(entry.log_index for entry in entries),
        pace=Pace(watch_pause_s=HANG_S),
    )
    assert not runner.rests
    async with running(runner):
        log.write(3)
        assert await runner.reach(3, HANG_S)
        await until(lambda: runner.rests)
        reads = log.reads
        for _ in range(5):
            index = log.write(1)
            runner.apply_now(log.entries[-1:])
            runner.hear(index)
            assert (view.index, runner.applied.current, told[-1]) == (index, index, index)
            assert runner.rests
        assert log.reads == reads
        assert runner.status().entries == 8
        runner.hear(log.write(2))  # and goes on as ever
        assert await runner.reach(10, HANG_S)
        assert told == list(range(1, 11))


@pytest.mark.parametrize("error", [LogUnavailable("away"), CorruptionError("damaged", "view"), MemoryError()])
async def test_what_a_call_meets_is_for_the_run(error: Exception) -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log, perform_now=lambda function, *arguments: function(*arguments))
    async with running(runner) as task:
        await until(lambda: runner.rests)
        view.faults[1] = raising(error)
        index = log.write(1)
        runner.apply_now(log.entries[-1:])
        assert not runner.rests
        runner.hear(index)
        if isinstance(error, LogUnavailable):
            assert await runner.reach(1, HANG_S)
            assert runner.status().failures == 1
        else:
            with pytest.raises(type(error)):
                await task
            assert view.index == 0


async def test_while_a_view_is_busy_it_does_not_rest() -> None:
    log, view = FaultyLog(), FaultyCounts()
    runner = counting(view, log, perform=on_thread)
    async with running(runner):
        with held(view, 1) as begun:
            log.write(1)
            await asyncio.to_thread(begun.wait, HANG_S)
            assert not runner.rests
        await until(lambda: runner.rests)
        assert view.index == 1
