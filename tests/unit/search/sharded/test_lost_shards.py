"""Shards that are lost in the middle of a search: another copy answers, or the rest does."""

import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pytest

from graphdb.search.analysis import Analyzers
from graphdb.search.answer_room import one_answer, room_of_answer, take_room
from graphdb.search.errors import SearchError
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.segments import SegmentBuilder
from graphdb.search.sharded import Call, Lost, NoShard, SearchShard, SearchTask, search_shards
from graphdb.search.sharded.steps import Answered
from tests.support.search_apart import Transport, shards_apart
from tests.support.timing import HANG_S

Copies = dict[int, list[SearchShard]]
COUNT = 3
BODY: dict[str, Any] = {
    "query": {"match": {"t": "fox"}},
    "sort": [{"n": "desc"}],
    "size": 4,
    "aggs": {"n": {"terms": {"field": "n"}, "aggs": {"s": {"sum": {"field": "n"}}}}},
}


@pytest.fixture
def copies() -> Iterator[Copies]:
    """Searches that have not ended, because a shard was lost, end at last."""
    made = copies_of_shards()
    yield made
    every = [copy for of_shard in made.values() for copy in of_shard]
    for copy in [*every, *every]:
        copy.end_idle()
    assert not any(map(len, every))
    for thread in tasks():
        thread.join(HANG_S)
        assert not thread.is_alive()


def tasks() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "search-task"]


def copies_of_shards() -> Copies:
    """Two copies of each of three shards; document i is in shard i modulo 3."""
    analyzers = Analyzers.of({})
    mapping = Mapping.of({"properties": {"t": {"type": "text"}, "n": {"type": "integer"}}}, analyzers)
    parts = []
    for number in range(COUNT):
        builder = SegmentBuilder()
        for doc in range(number, 12, COUNT):
            source = {"t": "fox", "n": doc}
            parsed, mapping = mapping.parse(source)
            builder.add(str(doc), orjson.dumps(source), doc, 1, parsed)
        segment = builder.build(f"s{number}")
        parts.append([Leaf(segment, np.ones(segment.size, np.bool_), 0)])
    context = QueryContext(mapping, analyzers, index_name="i")
    like = Searcher(parts[0], mapping, analyzers, index_name="i")
    made = [shards_apart(parts, like, lambda now_ms: context) for _ in range(2)]
    return {number: [made[0][number], made[1][number]] for number in range(COUNT)}


def test_each_call_of_a_search_may_be_the_one_that_is_not_answered(copies: Copies) -> None:
    calm = Transport()
    expected, _ = search_shards("calm", copies, SearchTask(BODY), calm)
    assert [hit["_id"] for hit in expected["hits"]["hits"]] == ["11", "10", "9", "8"]
    for answered in range(calm.calls // COUNT):
        transport = Transport()
        transport.lost[copies[1][0]] = answered
        answer, failures = search_shards(f"lost {answered}", copies, SearchTask(BODY), transport)
        assert answer == expected
        assert not failures.lost
        assert not any(len(copy) for number in (0, 2) for copy in copies[number])


def test_without_a_copy_the_rest_answers(copies: Copies) -> None:
    transport = Transport()
    transport.lost |= {copies[1][0]: 2, copies[1][1]: 3}
    answer, failures = search_shards("some", copies, SearchTask(BODY), transport)
    assert failures.lost == {1: Lost("connection refused")}
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["11", "9", "8", "6"]
    assert answer["hits"]["total"] == {"value": 8, "relation": "eq"}


def test_no_part_of_an_answer_where_none_is_wanted(copies: Copies) -> None:
    transport = Transport()
    transport.lost |= {copies[1][0]: 2, copies[1][1]: 3}
    with pytest.raises(NoShard) as failed:
        search_shards("whole", copies, SearchTask(BODY), transport, partial=False)
    assert failed.value.failures.lost == {1: Lost("connection refused")}
    transport.lost = {copy: 0 for of_shard in copies.values() for copy in of_shard}
    with pytest.raises(NoShard):
        search_shards("none", copies, SearchTask(BODY), transport)


def test_an_error_of_the_request_ends_the_search_everywhere(copies: Copies) -> None:
    with pytest.raises(SearchError, match="No mapping found"):
        search_shards("wrong", copies, SearchTask({"sort": ["missing"]}), Transport())
    assert not any(len(copy) for of_shard in copies.values() for copy in of_shard)


def test_a_search_that_nobody_goes_on_with_ends(copies: Copies) -> None:
    shard = copies[0][0]
    shard.begin("left", 1, 0, pickle.dumps(SearchTask(BODY)))
    (thread,) = tasks()
    shard.end_idle()
    assert len(shard) == 1
    shard.end_idle()
    assert len(shard) == 0
    thread.join(HANG_S)
    assert not thread.is_alive()


def test_what_is_shown_again_takes_room_once(copies: Copies) -> None:
    """A shard that is lost when others have answered makes these answer again."""

    class Counting(Transport):
        taken = 0

        def _called(self, call: Call) -> Any:
            step = super()._called(call)
            if isinstance(step, Answered):
                take_room(len(step.result))
                self.taken += len(step.result)
            return step

    calm = Counting()
    search_shards("calm", copies, SearchTask(BODY), calm)
    taken = []
    for answered in range(calm.calls // COUNT):
        transport = Counting()
        transport.lost[copies[2][0]] = answered
        with one_answer():
            search_shards(f"lost {answered}", copies, SearchTask(BODY), transport)
            room = room_of_answer()
            assert room is not None
            assert room.taken_bytes == calm.taken
        taken.append(transport.taken)
    assert max(taken) > calm.taken, "some had answered when a shard was lost"
