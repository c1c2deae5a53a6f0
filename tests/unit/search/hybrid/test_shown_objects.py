"""`inner_hits` of `knn`: the objects of the documents that were found; `collapse` with `rescore`."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

VECTOR = {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}
FIELDS = {
    "t": {"type": "text"},
    "k": {"type": "keyword"},
    "part": {"type": "nested", "properties": {"v": VECTOR, "name": {"type": "keyword"}}},
}
DOCS: list[dict[str, Any]] = [
    {"t": "red", "k": "a", "part": [{"v": [0, 1], "name": "x"}, {"v": [3, 0], "name": "y"}]},
    {"t": "red red", "k": "a", "part": [{"v": [0, 2], "name": "x"}]},
    {"t": "red red blue", "k": "b", "part": [{"v": [9, 9], "name": "z"}, {"name": "y"}]},
    {"t": "blue", "k": "b"},
]
KNN = {"field": "part.v", "query_vector": [0, 0], "k": 2, "num_candidates": 10}


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(FIELDS, DOCS)


def shown(hit: dict[str, Any], name: str = "part") -> list[tuple[str, float]]:
    """Names and scores of its inner hits."""
    return [
        (one["_source"]["name"], round(one["_score"], 4)) for one in hit["inner_hits"][name]["hits"]["hits"]
    ]


def test_all_objects_of_what_is_found_are_shown_by_their_distance(index: Index) -> None:
    hits = index.hits(knn={**KNN, "inner_hits": {}})
    assert [(hit["_id"], shown(hit)) for hit in hits] == [
        ("0", [("x", 0.5), ("y", 0.1)]),
        ("1", [("x", 0.2)]),
    ]
    first, _ = index.hits(knn={**KNN, "inner_hits": {"name": "best", "size": 1}, "boost": 2})
    assert shown(first, "best") == [("x", 1.0)]
    assert first["inner_hits"]["best"]["hits"]["total"]["value"] == 2


def test_those_that_are_too_far_are_not_shown(index: Index) -> None:
    first, second = index.hits(knn={**KNN, "inner_hits": {}, "similarity": 2})
    assert (shown(first), shown(second)) == ([("x", 0.5)], [("x", 0.2)])


def test_several_have_names_of_their_own(index: Index) -> None:
    far = {**KNN, "query_vector": [3, 0], "inner_hits": {"name": "far"}}
    (first, *_) = index.hits(knn=[{**KNN, "inner_hits": {"name": "near"}}, far])
    assert (shown(first, "near"), shown(first, "far")) == (
        [("x", 0.5), ("y", 0.1)],
        [("y", 1.0), ("x", 0.0909)],
    )
    with pytest.raises(SearchError, match="already contains an entry for key"):
        index.hits(knn=[{**KNN, "inner_hits": {}}] * 2)


def test_a_knn_in_a_nested_query_shows_all_that_the_rest_of_it_matches(index: Index) -> None:
    whole = {"path": "part", "query": {"knn": KNN}, "inner_hits": {}}
    first, second = index.hits(query={"nested": whole})
    assert (shown(first), shown(second)) == ([("x", 0.5), ("y", 0.1)], [("x", 0.2)])
    both = {"bool": {"must": [{"knn": KNN}], "must_not": [{"term": {"part.name": "y"}}]}}
    first, second = index.hits(query={"nested": {**whole, "query": both}})
    assert (shown(first), shown(second)) == ([("x", 0.5)], [("x", 0.2)])


def test_a_hit_of_words_shows_objects_too(index: Index) -> None:
    hits = index.hits(query={"match": {"t": "blue"}}, knn={**KNN, "inner_hits": {}})
    by_id = {hit["_id"]: hit for hit in hits}
    assert shown(by_id["2"]) == [("z", round(1 / 163, 4))]
    assert shown(by_id["3"]) == []


def test_the_best_of_groups_are_rescored(index: Index) -> None:
    """As Elasticsearch 8.19: the groups' best by the query alone, then their second score."""
    rescore = {"query": {"rescore_query": {"match": {"t": "blue"}}, "rescore_query_weight": 100}}
    query = {"match": {"t": "red"}}
    plain = {hit["_id"]: hit["_score"] for hit in index.hits(query=query)}
    hits = index.hits(query=query, rescore=rescore, collapse={"field": "k", "inner_hits": {"name": "all"}})
    assert [hit["fields"]["k"] for hit in hits] == [["b"], ["a"]]
    assert [hit["_id"] for hit in hits] == ["2", max("01", key=lambda one: plain[one])]
    assert hits[0]["_score"] > 10
    inner = [one["_score"] for one in hits[0]["inner_hits"]["all"]["hits"]["hits"]]
    assert inner == [plain["2"]]
