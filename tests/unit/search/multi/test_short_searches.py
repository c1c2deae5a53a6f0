"""Which searches with aggregations may run where others wait, and that counting alone counts the same."""

from typing import Any

import numpy as np
import orjson
import pytest

from graphdb.search.analysis import Analyzers
from graphdb.search.mapping import Mapping
from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.multi.prepared import Prepared, is_short
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.operations import Action, Operation

ROWS = 3_000
ANALYZERS = Analyzers.of({})
FIELDS = {
    "text": {"type": "text"},
    "tags": {"type": "keyword"},
    "number": {"type": "integer"},
    "at": {"type": "date"},
}
TERMS = {"terms": {"field": "tags"}}


@pytest.fixture(scope="module")
def target() -> Target:
    """Two segments, and deleted documents in both."""
    shard = IndexShard("i", Mapping.of({"properties": FIELDS}, ANALYZERS), {})
    chance = np.random.default_rng(3)
    for start in (0, ROWS // 2):
        shard.apply([_written(number, chance) for number in range(start, start + ROWS // 2)])
        shard.refresh()
    shard.apply([Operation(Action.DELETE, str(number), b"") for number in range(0, ROWS, 7)])
    shard.refresh()
    context = QueryContext(shard.mapping, ANALYZERS, index_name="i")
    return Target(Searcher(shard.leaves(), shard.mapping, ANALYZERS), context)


def _written(number: int, chance: np.random.Generator) -> Operation:
    tags = [f"t{tag}" for tag in chance.integers(0, 50 if number < ROWS // 2 else 60, 3).tolist()]
    document = {"text": f"word{number % 3} every", "tags": tags, "number": number, "at": number * 3_600_000}
    return Operation(Action.INDEX, str(number), orjson.dumps(document))


def _prepared(target: Target, **body: Any) -> Prepared:
    return prepare({"size": 0, **body}, [target], Searchers())


def _is_short(target: Target, aggregation: dict[str, Any], **more: Any) -> bool:
    return is_short(_prepared(target, aggs={"one": aggregation}, **more))


def test_few_buckets_of_few_documents_are_short(target: Target) -> None:
    assert not _is_short(target, TERMS)  # the terms of both segments are not put together yet
    _prepared(target, aggs={"one": TERMS}).run()
    assert _is_short(target, TERMS)
    assert _is_short(target, TERMS, query={"match_phrase": {"text": "word1 every"}}, size=10)
    assert _is_short(target, {"histogram": {"field": "number", "interval": 100}})
    assert _is_short(target, {"date_histogram": {"field": "at", "calendar_interval": "month"}})
    assert _is_short(target, {"avg": {"field": "number"}})
    assert _is_short(target, {"cardinality": {"field": "tags"}})
    assert _is_short(target, {"range": {"field": "number", "ranges": [{"to": 100}, {"from": 100}]}})
    below = {"aggs": {"below": {"avg": {"field": "number"}}, "other": {"cardinality": {"field": "tags"}}}}
    assert _is_short(target, TERMS | below)
    assert _is_short(target, {"histogram": {"field": "number", "interval": 100}} | below)


def test_others_are_not(target: Target) -> None:
    _prepared(target, aggs={"one": TERMS}).run()
    below = {"aggs": {"below": TERMS}}
    assert not _is_short(target, TERMS | below)
    assert not _is_short(target, {"histogram": {"field": "number", "interval": 100}} | below)
    assert not _is_short(target, {"histogram": {"field": "number", "interval": 1}})
    assert not _is_short(target, {"histogram": {"field": "number", "interval": 1e-9}})
    far = {"histogram": {"field": "number", "interval": 10, "offset": 1e300}}
    assert not _is_short(target, far)
    assert not _is_short(target, {"date_histogram": {"field": "at", "fixed_interval": "1ms"}})
    bounds = {"extended_bounds": {"min": 0, "max": 10**9}}
    assert not _is_short(target, {"histogram": {"field": "number", "interval": 100} | bounds})
    assert not _is_short(target, {"geo_bounds": {"field": "place"}})
    assert not _is_short(target, TERMS, query={"wildcard": {"tags": "*1"}})
    assert not _is_short(target, TERMS, min_score=0.1)
    several = {str(number): TERMS for number in range(5)}
    assert not is_short(_prepared(target, aggs=several))


@pytest.mark.parametrize(
    "query", [{"match_all": {}}, {"term": {"text": "word2"}}, {"term": {"text": "none"}}]
)
@pytest.mark.parametrize("least", [1, 30])
def test_counted_alone_as_with_documents(target: Target, query: dict[str, Any], least: int) -> None:
    """An aggregation below has the documents of each bucket gathered."""
    terms = {"terms": {"field": "tags", "size": 20, "min_doc_count": least}}
    both = {"alone": terms, "with": {**terms, "aggs": {"below": {"max": {"field": "number"}}}}}
    answer = _prepared(target, query=query, aggs=both).run()["aggregations"]
    for bucket in answer["with"]["buckets"]:
        del bucket["below"]
    assert answer["alone"] == answer["with"]
    assert bool(answer["alone"]["buckets"]) == (query != {"term": {"text": "none"}})


def test_documents_that_stand_for_several_count_so() -> None:
    shard = IndexShard("i", Mapping.of({"properties": FIELDS}, ANALYZERS), {})
    bodies = [{"tags": [f"t{n % 3}"], "number": n % 5 * 10, "_doc_count": n % 4 + 1} for n in range(60)]
    shard.apply([Operation(Action.INDEX, str(n), orjson.dumps(body)) for n, body in enumerate(bodies)])
    shard.refresh()
    searcher = Searcher(shard.leaves(), shard.mapping, ANALYZERS)
    target = Target(searcher, QueryContext(shard.mapping, ANALYZERS, index_name="i"))
    below = {"aggs": {"below": {"max": {"field": "number"}}}}
    for aggregation in (TERMS, {"histogram": {"field": "number", "interval": 10}}):
        both = {"alone": aggregation, "with": aggregation | below}
        answer = _prepared(target, aggs=both).run()["aggregations"]
        counts = {
            name: [(bucket["key"], bucket["doc_count"]) for bucket in found["buckets"]]
            for name, found in answer.items()
        }
        assert counts["alone"] == counts["with"]
        assert sum(count for _, count in counts["alone"]) == 150  # of 1, 2, 3 and 4, 15 times each
