"""Requests that ask for far too much are refused, or end with their time, and take little memory."""

import tracemalloc
from typing import Any

import pytest

from graphdb.errors import QueryTimeout
from graphdb.search.deadline import limited
from graphdb.search.errors import SearchError
from graphdb.search.scripts.faults import ScriptFault
from graphdb.search.scripts.values import check_extent
from tests.support.timing import quick_enough
from tests.unit.search.results.index import Index

COUNT = 2_000
DOCUMENTS: list[dict[str, Any]] = [
    {"title": f"word{number % 7} fox", "tag": f"t{number}", "place": [number % 180, number % 80], **{
        f"part{part}": {"inner": part} for part in range(20)
    }}
    for number in range(COUNT)
]  # fmt: skip
PROPERTIES = {"title": {"type": "text"}, "tag": {"type": "keyword"}, "place": {"type": "geo_point"}}


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, DOCUMENTS)


@pytest.mark.parametrize("sign", ["|", "+"])
def test_a_simple_query_string_of_many_words_is_refused_at_once(index: Index, sign: str) -> None:
    for took in quick_enough(1.0):
        with took, pytest.raises(SearchError, match="maxClauseCount"):
            index.search(
                {"query": {"simple_query_string": {"query": f"a{sign}" * 500_000, "fields": ["title"]}}}
            )


def test_words_and_signs_of_a_simple_query_string_join_from_left_to_right(index: Index) -> None:
    def ids(text: str) -> set[str]:
        query = {"simple_query_string": {"query": text, "fields": ["title"]}}
        hits = index.search({"query": query, "size": COUNT})["hits"]["hits"]
        return {hit["_id"] for hit in hits}

    words = {number: ids(f"word{number}") for number in range(7)}
    assert ids("word1|word2|word3") == words[1] | words[2] | words[3]
    assert ids("word1|word2+fox") == words[1] | words[2]
    assert ids("word1+fox|word2") == words[1] | words[2]
    assert ids("word1+word2|fox+word3") == words[3]
    assert ids("(word1|word2)+fox+word2") == words[2]


def test_many_spans_are_refused_at_once(index: Index) -> None:
    inner = {"span_or": {"clauses": [{"span_term": {"title": "fox"}}] * 1_000}}
    for took in quick_enough(2.0):
        with took, pytest.raises(SearchError, match="spans or intervals"):
            index.search({"query": {"span_or": {"clauses": [inner] * 1_000}}})


# with how often at least the clock is to be looked at
COSTLY: dict[str, tuple[int, dict[str, Any]]] = {
    "distances to many points": (16, {"sort": {"_geo_distance": {"place": [[1, 2]] * 2_000}}}),
    "many inner hits": (2_000, {
        "collapse": {"field": "tag", "inner_hits": [{"name": str(name), "size": 9} for name in range(10)]},
        "size": 200,
    }),
    "many patterns for a source": (
        100, {"_source": [f"*{number}*x" for number in range(100)], "size": 100}
    ),
    "pairs of many filters": (5_050, {
        "size": 0,
        "aggs": {"a": {"adjacency_matrix": {"filters": {
            f"f{number}": {"match": {"title": f"word{number % 7}"}} for number in range(100)
        }}}},
    }),
    "many clauses": (
        4_000, {"query": {"bool": {"must": [{"bool": {"must": [{"term": {"tag": "t1"}}]}}] * 2_000}}}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("looks_min", "body"), COSTLY.values(), ids=COSTLY)
def test_time_is_looked_at_again_and_again(index: Index, looks_min: int, body: dict[str, Any]) -> None:
    looks = [0]

    def look() -> None:
        looks[0] += 1

    with limited(look):
        index.search(body)
    assert looks[0] >= looks_min


def test_a_search_ends_where_its_time_does(index: Index) -> None:
    def look() -> None:
        raise QueryTimeout("over")

    for _, body in COSTLY.values():
        with limited(look), pytest.raises(QueryTimeout):
            index.search(body)


def test_distances_to_many_points_take_little_memory(index: Index) -> None:
    tracemalloc.start()
    try:
        answer = index.search({"sort": {"_geo_distance": {"place": [[1, 2], [3, 4]] * 1_000}}, "size": 3})
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
    few = index.search({"sort": {"_geo_distance": {"place": [[1, 2], [3, 4]]}}, "size": 3})
    assert [hit["sort"] for hit in answer["hits"]["hits"]] == [hit["sort"] for hit in few["hits"]["hits"]]


def test_values_of_scripts_have_a_depth() -> None:
    def nested(depth: int) -> list[Any]:
        value: list[Any] = []
        for _ in range(depth):
            value = [value]
        return value

    check_extent(nested(199))
    with pytest.raises(ScriptFault, match="nests deeper"):
        check_extent(nested(900))
