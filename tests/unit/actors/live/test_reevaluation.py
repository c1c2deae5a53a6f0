"""Live queries that are evaluated anew, on a node with a real store, a real log and real readers."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal

from actors.live.whole_evaluation import ReaderEvaluation
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import GraphDBError, LimitExceeded, Overloaded, QueryCancelled
from graphdb.live.sparql_queries import SolutionQuery, WholeQuery, solution_id
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.shards import Shard, open_shard
from tests.support.timing import HANG_S
from tests.unit.actors.live.test_subscription_hub import Heard, query

pytestmark = pytest.mark.anyio

COUNT = query("LIVE SELECT (COUNT(*) AS ?n) WHERE { ?s <urn:p> ?o }")
NEWEST = query("LIVE SELECT ?o WHERE { ?s <urn:p> ?o } ORDER BY DESC(?o) LIMIT 1")
REACHED = query("LIVE SELECT ?o WHERE { <urn:s> <urn:p>+ ?o }")


class Folding(Heard):
    """A sink that does as it is told."""

    def __init__(self, count: int | None = None) -> None:
        """count: the row that there is at the beginning."""
        super().__init__()
        self.records: dict[str, dict[str, Any]] = {}
        if count is not None:
            self.records[solution_id([("n", Literal(count))], 0)] = {"n": count}
        self.states: dict[int, Counter[str]] = {}  # after what was told of an index

    def notify(self, subscriptions: Any, notification: Any) -> None:
        super().notify(subscriptions, notification)
        if notification.action == "DELETE":
            del self.records[notification.result["id"]]
        else:
            assert notification.result["id"] not in self.records
            self.records[notification.result["id"]] = notification.result
        shown = (str({**record, "id": None}) for record in self.records.values())
        self.states[notification.index] = Counter(shown)

    async def last(self, index: int) -> None:
        async with asyncio.timeout(HANG_S):
            while not self.errors and max(self.states, default=0) < index:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert not self.errors

    async def failure(self) -> GraphDBError:
        async with asyncio.timeout(HANG_S):
            while not self.errors:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        return self.errors[0]


async def add(shard: Shard, number: int, predicate: str = "p") -> int:
    text = f"INSERT DATA {{ <urn:s> <urn:{predicate}> {number} }}"
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())).snapshot_index


def counted(number: int) -> "Counter[str]":
    return Counter([str({"id": None, "n": number})])


async def test_each_state_is_told_in_order_whoever_joins_when(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        first = await add(shard, 0)
        sink, resumed, later = Folding(0), Heard(), Heard()
        await shard.subscribe(COUNT, first - 1, sink)
        indexes = {first: 1}

        async def keep_writing() -> None:
            for number in range(1, 20):
                indexes[await add(shard, number)] = number + 1
                await add(shard, number, "other")

        writing = asyncio.create_task(keep_writing())
        await asyncio.sleep(0.2)
        since = sorted(indexes)[len(indexes) // 2]
        await shard.subscribe(COUNT, since, resumed)
        await shard.subscribe(COUNT, None, later)
        await writing
        await sink.last(max(indexes))
        assert sink.states == {index: counted(number) for index, number in indexes.items()}
        for one in (resumed, later):
            begun = next(iter(one.begun.values()))
            expected = [
                (index, action) for index in indexes if index > begun for action in ("DELETE", "CREATE")
            ]
            assert await one.count(len(expected)) == expected
        assert next(iter(resumed.begun.values())) == since
        assert 1 <= shard.live_report().reevaluated_queries <= 3
        assert shard.live_report().lag_entries == 0
        for one in (sink, resumed, later):
            assert await shard.unsubscribe(next(iter(one.begun)))
        assert shard.live_report().subscriptions == shard.live_report().reevaluated_queries == 0
    assert list((tmp_path / "live").iterdir()) == []


async def test_limits_and_paths(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        newest, reached = Folding(), Folding()
        await shard.subscribe(NEWEST, None, newest)
        await shard.subscribe(REACHED, None, reached)
        a = await add(shard, 1)
        b = await add(shard, 0)
        text = "INSERT DATA { <urn:s> <urn:p> <urn:t> . <urn:t> <urn:p> 7 }"
        c = (await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())).snapshot_index
        await reached.last(c)
        await newest.last(c)
        assert list(newest.states) == [a, c]
        assert list(reached.states) == [a, b, c]
        assert reached.states[c].total() == 4


async def test_a_query_that_takes_too_long_ends_alone(tmp_path: Path) -> None:
    limits = {"reevaluation_timeout_seconds": 4}
    async with open_shard(tmp_path, live=limits, readers={"count": 3}) as shard:
        text = " ".join(f"<urn:n{number}> <urn:q> {number} ." for number in range(300))
        await shard.writes(FULL_VISIBILITY).update(parse_update(f"INSERT DATA {{ {text} }}"), Dataset())
        endless = query(
            "LIVE SELECT (COUNT(*) AS ?n) "
            "WHERE { ?a <urn:q> ?x . ?b <urn:q> ?y . ?c <urn:q> ?z . ?d <urn:q> ?w "
            "FILTER(?x + ?y + ?z + ?w < 0) }"
        )
        quick, slow = Folding(0), Folding()
        await shard.subscribe(COUNT, None, quick)
        asking = asyncio.create_task(shard.subscribe(endless, None, slow))
        await asyncio.sleep(0.2)
        indexes = [await add(shard, number) for number in range(3)]
        await quick.last(indexes[-1])
        assert list(quick.states) == indexes
        assert not asking.done(), "the others were told meanwhile"
        with pytest.raises(LimitExceeded, match="milliseconds"):
            await asking
        assert not slow.begun
        assert shard.live_report().reevaluated_queries == 1


async def test_what_falls_behind_is_ended_and_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, may_go = ReaderEvaluation.answer, asyncio.Event()

    async def held_up(*args: Any) -> bytes:
        await may_go.wait()
        return await answer(*args)

    async with open_shard(tmp_path, live={"max_reevaluation_backlog": 5}) as shard:
        sink, again = Folding(0), Folding(0)
        await shard.subscribe(COUNT, None, sink)
        monkeypatch.setattr(ReaderEvaluation, "answer", held_up)
        indexes = [await add(shard, number) for number in range(12)]
        assert "wait" in str(await sink.failure())
        assert isinstance(sink.errors[0], LimitExceeded)
        assert shard.live_report().subscriptions == 0
        may_go.set()
        beside, start = Folding(0), next(iter(sink.begun.values()))
        await asyncio.gather(*(shard.subscribe(COUNT, start, one) for one in (again, beside)))
        assert shard.live_report().reevaluated_queries == 1
        for one in (again, beside):
            await one.last(indexes[-1])
            assert one.states == {index: counted(number) for number, index in enumerate(indexes, 1)}


async def test_there_may_be_so_many_and_each_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, is_listed, may_go = ReaderEvaluation._ask, asyncio.Event(), asyncio.Event()

    async def held_up(*args: Any) -> bytes:
        is_listed.set()
        await may_go.wait()
        return await ask(*args)

    async with open_shard(tmp_path, live={"max_reevaluated_queries": 1}) as shard:
        sink = Folding(0)
        await shard.subscribe(COUNT, None, sink)
        await shard.subscribe(COUNT, None, Folding(0))
        with pytest.raises(Overloaded, match=r"^1 live queries .* \(live\.max_reevaluated_queries\)"):
            await shard.subscribe(NEWEST, None, Folding())
        monkeypatch.setattr(ReaderEvaluation, "_ask", held_up)
        await add(shard, 0)
        await asyncio.wait_for(is_listed.wait(), HANG_S)
        (running,) = shard.running_queries()
        assert running.form == "LIVE"
        assert shard.cancel_query(running.id)
        may_go.set()
        assert isinstance(await sink.failure(), QueryCancelled)
        assert shard.live_report().subscriptions == 0


async def test_a_group_too_large_to_be_looked_at_is_evaluated_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphdb.live.matcher._LOOKS_MAX", 20)
    grouped = query("LIVE SELECT ?s (COUNT(*) AS ?n) WHERE { ?s <urn:p> ?o } GROUP BY ?s")
    assert isinstance(grouped, SolutionQuery)
    assert isinstance(grouped.whole, WholeQuery)
    async with open_shard(tmp_path) as shard:
        sink = Folding()
        await shard.subscribe(grouped, None, sink)
        start = next(iter(sink.begun.values()))
        indexes = [await add(shard, number) for number in range(60)]
        await sink.last(indexes[-1])
        assert list(sink.states) == indexes
        assert shard.live_report().reevaluated_queries == 1
        resumed = Folding()
        subscription = await shard.subscribe(grouped, start, resumed)
        await resumed.last(indexes[-1])
        assert resumed.states == sink.states
        assert resumed.records == sink.records
        assert await shard.unsubscribe(subscription)
