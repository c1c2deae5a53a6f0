"""Which index is due when, with a clock that only the test moves; for which one graphs are made."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from actors.search import upkeep
from actors.search.catalog_view import SearchThread
from actors.search.upkeep import GraphSchedule, Merger, RefreshSchedule
from graphdb.log.file_system import RealFileSystem
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import CreateIndex, DeleteIndices
from graphdb.search.catalog.state import Index
from graphdb.search.vectors import GraphFiles

pytestmark = pytest.mark.anyio


def finder(**intervals: str | None) -> Callable[[str], Index | None]:
    """Indexes by name, with their refresh_interval."""
    catalog = Catalog()
    for number, (name, interval) in enumerate(intervals.items(), 1):
        settings = {} if interval is None else {"refresh_interval": interval}
        outcome = catalog.apply(CreateIndex(name, f"u{number}", {"settings": {"index": settings}}), number, 0)
        assert outcome.error is None
    return catalog.find


@pytest.mark.parametrize(
    ("interval", "written_at", "now", "due"),
    [
        (None, 0, 0.9, False),
        (None, 0, 1.0, True),
        ("200ms", 5, 5.1, False),
        ("200ms", 5, 5.25, True),
        ("2m", 0, 119, False),
        ("2m", 0, 121, True),
        ("-1", 0, 1e9, False),
    ],
)
def test_an_index_is_due_when_its_interval_is_over(
    interval: str | None, written_at: float, now: float, due: bool
) -> None:
    schedule = RefreshSchedule(finder(books=interval))
    schedule.note_written(["books"], written_at)
    schedule.note_written(["books"], now)  # the first write counts
    assert schedule.take_due(now) == (["books"] if due else [])
    assert schedule.take_due(now) == []


def test_an_index_that_was_not_written_to_is_never_due() -> None:
    assert RefreshSchedule(finder(books=None)).take_due(1e9) == []


def test_an_index_that_is_gone_is_forgotten() -> None:
    schedule = RefreshSchedule(finder())
    schedule.note_written(["gone"], 0)
    assert (schedule.take_due(0), schedule.take_due(1e9)) == (["gone"], [])


async def test_who_waits_is_told_of_the_refresh_of_each_index() -> None:
    schedule = RefreshSchedule(finder(a=None, b=None))
    schedule.note_written(["a", "b"], 0)
    waiting = asyncio.create_task(schedule.wait_for(["a", "b"]))
    await asyncio.sleep(0)
    for name in ("a", "b"):
        assert not waiting.done()
        for future in schedule.take_waiting([name]):
            future.set_result(None)
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert waiting.done()


async def test_enough_who_wait_force_a_refresh() -> None:
    schedule = RefreshSchedule(finder(books="-1"))
    schedule.note_written(["books"], 0)
    waiting = [asyncio.create_task(schedule.wait_for(["books"])) for _ in range(999)]
    await asyncio.sleep(0)
    assert schedule.take_due(1) == []
    waiting.append(asyncio.create_task(schedule.wait_for(["books"])))
    await asyncio.sleep(0)
    assert schedule.take_due(1) == ["books"]
    for future in schedule.take_all_waiting():
        future.set_result(None)
    await asyncio.gather(*waiting)


async def test_waiting_for_an_index_with_nothing_to_refresh_does_not_take_the_interval() -> None:
    schedule = RefreshSchedule(finder(books="-1"))
    waiting = asyncio.create_task(schedule.wait_for(["books"]))
    await asyncio.sleep(0)
    assert schedule.take_due(0) == ["books"]
    for future in schedule.take_waiting(["books"]):
        future.set_result(None)
    await waiting


def test_no_graphs_are_made_for_an_index_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor for one that has been made anew under its name."""
    stops: list[Callable[[], bool]] = []
    monkeypatch.setattr(upkeep, "missing_graphs", lambda leaves, mapping: ["one"])
    monkeypatch.setattr(upkeep, "keep_graphs", lambda leaves, mapping, files, stop: stops.append(stop))
    catalog = Catalog()
    catalog.apply(CreateIndex("i", "u1", {}), 1, 0).get()
    index = catalog.find("i")
    assert index is not None
    thread = SearchThread()
    try:
        files = GraphFiles(RealFileSystem(), str(tmp_path))
        assert Merger(catalog.find, thread, lambda index, shard: files)._keep_graphs(index)
        (stop,) = stops
        assert not stop()
        catalog.apply(DeleteIndices(("u1",)), 2, 0).get()
        assert stop()
        catalog.apply(CreateIndex("i", "u2", {}), 3, 0).get()
        assert stop()
    finally:
        thread.close()


REST_S, WAIT_S = 1.0, 10.0


def graph_schedule() -> tuple[GraphSchedule, dict[str, float]]:
    written_at: dict[str, float] = {}
    return GraphSchedule(written_at, REST_S, WAIT_S), written_at


def test_graphs_of_an_index_at_rest_are_not_put_off() -> None:
    schedule, written_at = graph_schedule()
    assert not schedule.puts_off("books", 5.0)
    written_at["books"] = 6.0
    assert schedule.puts_off("books", 6.5)
    assert not schedule.puts_off("books", 7.0)
    assert (schedule.next_due, schedule.take_due(1e9)) == (None, [])


def test_graphs_may_be_made_at_once_for_what_was_written_before_a_start() -> None:
    schedule, written_at = graph_schedule()
    written_at["books"] = 5.0
    schedule.hurry(["books"])
    assert [schedule.puts_off("books", 5.0) for _ in range(2)] == [False, True]


@pytest.mark.parametrize("seed", range(20))
def test_graphs_wait_for_the_last_write_but_not_for_long(seed: int) -> None:
    """The twin looks at each moment for each index, and knows no more than when it was put off first."""
    chance = random.Random(seed)
    schedule, written_at = graph_schedule()
    since: dict[str, float] = {}
    now, taken, in_turn = 0.0, 0, 0
    for _ in range(2_000):
        now += chance.choice((0.0, 0.1, 0.4))
        name = chance.choice("ab")
        due = {
            one: min(written_at.get(one, -1e9) + REST_S, first + WAIT_S) if one in written_at else first
            for one, first in since.items()
        }
        assert schedule.next_due == min(due.values(), default=None)
        match chance.choice(("write", "write", "look", "take", "forget")):
            case "write":
                written_at[name] = now
            case "forget" if written_at.get(name, now) + 2 * REST_S < now:
                del written_at[name]
            case "look":
                since.setdefault(name, now)
                rested = name not in written_at or now >= written_at[name] + REST_S
                is_due = rested or now >= since[name] + WAIT_S
                in_turn += not is_due
                assert schedule.puts_off(name, now) is not is_due
                if is_due:
                    del since[name]
            case "take":
                expected = {one for one, at in due.items() if now >= at}
                assert set(schedule.take_due(now)) == expected
                for one in expected:
                    taken += 1
                    del since[one]
                    assert not schedule.puts_off(one, now)
    assert taken
    assert in_turn


async def test_what_is_put_off_is_made_when_the_index_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []
    monkeypatch.setattr(upkeep, "missing_graphs", lambda leaves, mapping: ["one"])
    monkeypatch.setattr(upkeep, "keep_graphs", lambda *arguments: made.append("one"))
    catalog = Catalog()
    catalog.apply(CreateIndex("i", "u1", {}), 1, 0).get()
    thread = SearchThread()
    answers = [True, False]
    try:
        files = GraphFiles(RealFileSystem(), str(tmp_path))
        merger = Merger(
            catalog.find, thread, lambda index, shard: files, puts_graphs_off=lambda name: answers.pop(0)
        )
        for expected in ([], ["one"]):
            merger.look_at(["i"])
            assert merger._task is not None
            await merger._task
            assert made == expected
    finally:
        thread.close()
