"""Filters that come again: the rows that they leave are kept, and always those of now."""

from typing import Any

import numpy as np
import orjson
import pytest

from graphdb.search.analysis import Analyzers
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher, collect, parse_query
from graphdb.search.query.knn import _KEPT_MAX, KnnQuery, is_kept
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.operations import Action, Operation

ANALYZERS = Analyzers.of({})
FIELDS = {
    "v": {"type": "dense_vector", "dims": 1, "similarity": "l2_norm"},
    "w": {"type": "dense_vector", "dims": 1, "similarity": "l2_norm"},
    "n": {"type": "integer"},
    "tag": {"type": "keyword"},
    "text": {"type": "text"},
}


@pytest.fixture
def shard() -> "IndexShard[Mapping]":
    shard = IndexShard("i", Mapping.of({"properties": FIELDS}, ANALYZERS), {})
    for number in range(20):
        body = {"v": [number], "n": number, "tag": "even" if number % 2 == 0 else "odd", "text": "a b"}
        write(shard, str(number), body | ({"w": [number]} if number % 3 == 0 else {}))
    shard.refresh()
    return shard


def write(shard: "IndexShard[Mapping]", doc_id: str, body: dict[str, Any]) -> None:
    shard.apply([Operation(Action.INDEX, doc_id, orjson.dumps(body))])


def parsed(shard: "IndexShard[Mapping]", filters: Any, field: str = "v") -> KnnQuery:
    body = {"field": field, "query_vector": [0.0], "k": 20, "num_candidates": 20, "filter": filters}
    query = parse_query({"knn": body}, QueryContext(shard.mapping, ANALYZERS))
    assert isinstance(query, KnnQuery)
    return query


def found(shard: "IndexShard[Mapping]", filters: Any, field: str = "v") -> list[str]:
    searcher = Searcher(shard.leaves(), shard.mapping, ANALYZERS)
    docs = collect(parsed(shard, filters, field), searcher, 20).docs
    return [leaf.segment.doc_id(doc) for leaf, doc in map(searcher.locate, docs.tolist())]


def kept(shard: "IndexShard[Mapping]", filters: Any, field: str = "v") -> list[bool]:
    (leaf,) = shard.leaves()
    return [is_kept(leaf, field, query) for query in parsed(shard, filters, field).filters]


EVEN = {"term": {"tag": "even"}}


@pytest.mark.parametrize(
    "query",
    [
        EVEN,
        {"terms": {"tag": ["even", "none"]}},
        {"range": {"n": {"gte": 3, "lt": 9}}},
        {"term": {"n": 4}},
        {"terms": {"n": [4, 5]}},
        {"exists": {"field": "w"}},
        {"match": {"text": "a"}},
        {"bool": {"must": [EVEN], "must_not": [{"term": {"n": 4}}], "should": [{"exists": {"field": "w"}}]}},
        {"match_all": {}},
    ],
)
def test_a_filter_that_comes_again_is_known(shard: "IndexShard[Mapping]", query: dict[str, Any]) -> None:
    assert kept(shard, query) == [False]
    first = found(shard, query)
    assert kept(shard, query) == [True]
    assert found(shard, query) == first
    assert kept(shard, query, "w") == [False]
    assert set(found(shard, query, "w")) == {one for one in first if int(one) % 3 == 0}


@pytest.mark.parametrize(
    "query",
    [
        {"knn": {"field": "v", "query_vector": [7.0], "k": 2}},
        {"fuzzy": {"text": {"value": "aa", "fuzziness": 1}}},
        {"ids": {"values": ["1", "2"]}},
        {"terms": {"n": list(range(2_000))}},
        {"bool": {"filter": [{"wildcard": {"tag": "ev*"}}]}},
    ],
)
def test_what_depends_on_more_or_is_large_is_not_kept(
    shard: "IndexShard[Mapping]", query: dict[str, Any]
) -> None:
    first = found(shard, query)
    assert kept(shard, query) == [False]
    assert found(shard, query) == first


def test_several_filters_are_kept_alone(shard: "IndexShard[Mapping]") -> None:
    low, high = {"range": {"n": {"gte": 3}}}, {"range": {"n": {"lt": 9}}}
    assert found(shard, [low, high, EVEN]) == ["4", "6", "8"]
    assert kept(shard, [high, low]) == [True, True]
    assert found(shard, [high, low]) == [str(number) for number in range(3, 9)]


def test_deletes_and_updates_show_at_once(shard: "IndexShard[Mapping]") -> None:
    assert "4" in found(shard, EVEN)
    shard.apply([Operation(Action.DELETE, "4")])
    write(shard, "6", {"v": [6], "tag": "odd"})
    write(shard, "7", {"v": [7], "tag": "even"})
    shard.refresh()
    expected = [str(number) for number in range(20) if number % 2 == 0 and number not in (4, 6)]
    assert found(shard, EVEN) == sorted([*expected, "7"], key=int)


def test_the_least_recently_asked_go_first(shard: "IndexShard[Mapping]") -> None:
    found(shard, EVEN)
    for number in range(_KEPT_MAX):
        found(shard, {"range": {"n": {"gte": -number}}})
        if number == _KEPT_MAX // 2:
            found(shard, EVEN)
    assert kept(shard, EVEN) == [True]
    assert kept(shard, {"range": {"n": {"gte": 0}}}) == [False]
    assert kept(shard, {"range": {"n": {"gte": 1 - _KEPT_MAX}}}) == [True]


def test_rows_of_nested_objects_are_those_of_their_documents() -> None:
    inner = {"v": {"type": "dense_vector", "dims": 1, "similarity": "l2_norm"}}
    fields = {"objects": {"type": "nested", "properties": inner}, "tag": {"type": "keyword"}}
    shard = IndexShard("i", Mapping.of({"properties": fields}, ANALYZERS), {})
    for number in range(6):
        objects = [{"v": [number + place / 10]} for place in range(number % 3)]
        write(shard, str(number), {"objects": objects, "tag": "even" if number % 2 == 0 else "odd"})
    shard.refresh()
    for _ in range(2):
        assert found(shard, EVEN, "objects.v") == ["2", "4"]
    shard.apply([Operation(Action.DELETE, "2")])
    shard.refresh()
    assert found(shard, EVEN, "objects.v") == ["4"]
    assert np.count_nonzero(shard.leaves()[0].live) < shard.leaves()[0].segment.size
