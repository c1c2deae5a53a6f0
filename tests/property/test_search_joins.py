"""`has_child`, `has_parent`, `parent_id`, and aggregations over `join`, against plain Python."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.results import SearchOptions, search
from tests.unit.search.results.index import Index

FIELDS = {
    "j": {"type": "join", "relations": {"film": ["review", "award"], "review": "reply"}},
    "n": {"type": "integer"},
}
CHILDREN = {"review": "film", "award": "film", "reply": "review"}
documents = st.lists(
    st.fixed_dictionaries(
        {
            "j": st.one_of(
                st.just("film"),
                st.fixed_dictionaries(
                    {"name": st.sampled_from(sorted(CHILDREN)), "parent": st.integers(0, 11).map(str)}
                ),
            ),
            "n": st.integers(1, 4),
        }
    ),
    max_size=12,
)
KINDS: dict[str, Callable[[list[int]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "avg": lambda values: sum(values) / len(values),
}


def name(doc: dict[str, Any]) -> str:
    return str(doc["j"] if isinstance(doc["j"], str) else doc["j"]["name"])


def parent(doc: dict[str, Any], docs: list[dict[str, Any]]) -> int:
    """The number of the parent, -1 where there is none of its relation."""
    number = -1 if isinstance(doc["j"], str) else int(doc["j"]["parent"])
    found = 0 <= number < len(docs) and name(docs[number]) == CHILDREN[name(doc)]
    return number if found else -1


def scores(index: Index, query: dict[str, Any]) -> dict[int, float]:
    return {int(hit["_id"]): hit["_score"] for hit in index.hits(query=query, size=50, _source=False)}


def scored(least: int) -> dict[str, Any]:
    """Matches n from a number on, and scores it."""
    where = {"range": {"n": {"gte": least}}}
    factor = {"field": "n"}
    return {"function_score": {"query": where, "field_value_factor": factor, "boost_mode": "replace"}}


@settings(max_examples=60, deadline=None)
@given(documents, st.sampled_from(sorted(CHILDREN)), st.integers(1, 4), st.sampled_from(sorted(KINDS)))
def test_relations(docs: list[dict[str, Any]], kind: str, least: int, mode: str) -> None:
    index = Index(FIELDS, docs)
    values: dict[int, list[int]] = {}
    for doc in docs:
        if name(doc) == kind and doc["n"] >= least and parent(doc, docs) >= 0:
            values.setdefault(parent(doc, docs), []).append(doc["n"])
    body: dict[str, Any] = {"type": kind, "query": scored(least), "score_mode": mode}
    expected = {number: pytest.approx(KINDS[mode](own)) for number, own in values.items()}
    assert scores(index, {"has_child": body}) == expected
    several = {"has_child": {"type": kind, "query": scored(least), "min_children": 2, "max_children": 2}}
    assert scores(index, several) == {number: 1.0 for number, own in values.items() if len(own) == 2}
    above = CHILDREN[kind]
    wanted = {}
    for number, doc in enumerate(docs):
        up = parent(doc, docs)
        if up >= 0 and name(docs[up]) == above and docs[up]["n"] >= least:
            wanted[number] = float(docs[up]["n"])
    body = {"parent_type": above, "query": scored(least), "score": True}
    assert scores(index, {"has_parent": body}) == wanted
    own = [number for number, doc in enumerate(docs) if name(doc) == kind and doc["j"]["parent"] == "1"]
    assert sorted(scores(index, {"parent_id": {"type": kind, "id": "1"}})) == own
    named = [number for number, doc in enumerate(docs) if name(doc) == kind]
    assert sorted(scores(index, {"term": {"j": kind}})) == named


@settings(max_examples=60, deadline=None)
@given(documents, st.sampled_from(sorted(CHILDREN)), st.integers(1, 4))
def test_inner_hits_are_what_a_hit_is_related_to(docs: list[dict[str, Any]], kind: str, least: int) -> None:
    index = Index(FIELDS, docs)
    links = [
        (up, down) for down, doc in enumerate(docs) if name(doc) == kind and (up := parent(doc, docs)) >= 0
    ]
    inner = {"inner_hits": {"size": 20, "_source": False, "sort": ["_doc"]}}
    below = [(up, down) for up, down in links if docs[down]["n"] >= least]
    query: dict[str, Any] = {"has_child": {"type": kind, "query": scored(least), **inner}}
    assert inner_hits(index, query, kind) == grouped(below)
    # A hit that matches for another reason has none.
    either = {"bool": {"should": [query, {"match_all": {}}]}}
    assert inner_hits(index, either, kind) == {number: [] for number in range(len(docs))} | grouped(below)
    above = CHILDREN[kind]
    known = [
        (int(doc["j"]["parent"]), down) for down, doc in enumerate(docs) if not isinstance(doc["j"], str)
    ]
    over = [
        (down, up)
        for up, down in known
        if up < len(docs) and CHILDREN[name(docs[down])] == above == name(docs[up]) and docs[up]["n"] >= least
    ]
    query = {"has_parent": {"parent_type": above, "query": scored(least), **inner}}
    assert inner_hits(index, query, above) == grouped(over)


def inner_hits(index: Index, query: dict[str, Any], kind: str) -> dict[int, list[int]]:
    """By the number of each hit, what stands below it; the score of that is its n."""
    found = {}
    for hit in whole(index, query)["hits"]["hits"]:
        below = hit["inner_hits"][kind]["hits"]
        assert below["total"]["value"] == len(below["hits"])
        found[int(hit["_id"])] = sorted(int(one["_id"]) for one in below["hits"])
    return found


def whole(index: Index, query: dict[str, Any]) -> dict[str, Any]:
    """All shards at once: apart they refuse it."""
    with pytest.raises(SearchError, match="not supported where shards are searched apart"):
        index.search({"query": query, "size": 50})
    return search({"query": query, "size": 50}, index.searcher, index.context, None, SearchOptions())


def grouped(links: list[tuple[int, int]]) -> dict[int, list[int]]:
    return {owner: sorted(other for one, other in links if one == owner) for owner, _ in links}


def test_inner_hits_have_scores_names_and_pages() -> None:
    reviews = [{"j": {"name": "review", "parent": "0"}, "n": n} for n in (1, 3, 2)]
    index = Index(FIELDS, [{"j": "film", "n": 4}, *reviews])
    inner = {"name": "best", "size": 2}
    query = {"has_child": {"type": "review", "query": scored(1), "inner_hits": inner}}
    [film] = whole(index, query)["hits"]["hits"]
    best = film["inner_hits"]["best"]["hits"]
    assert [(hit["_id"], hit["_score"], hit["_source"]) for hit in best["hits"]] == [
        ("2", 3.0, reviews[1]),
        ("3", 2.0, reviews[2]),
    ]
    assert (best["total"]["value"], best["max_score"]) == (3, 3.0)
    both = [{"has_child": {"type": "review", "query": {"match_all": {}}, "inner_hits": {}}} for _ in range(2)]
    with pytest.raises(SearchError, match="already contains an entry for key \\[review\\]"):
        index.hits(query={"bool": {"must": both}})


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"has_child": {"type": "film", "query": {"match_all": {}}}}, "doesn't hold \\[film\\] as a child"),
        (
            {"has_parent": {"parent_type": "x", "query": {"match_all": {}}}},
            "hold \\[x\\] as a parent",
        ),
        ({"parent_id": {"type": "film", "id": 1}}, "no relation found for child \\[film\\]"),
        ({"has_child": {"type": "award", "query": {"match_all": {}}, "max_children": 0}}, "positive"),
    ],
)
def test_queries_that_are_refused(query: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        Index(FIELDS, [{"j": "film"}]).ids(query=query)
    with pytest.raises(SearchError, match="no join field"):
        Index({"n": {"type": "integer"}}, []).ids(query={"parent_id": {"type": "award", "id": 1}})


@pytest.mark.parametrize("value", ["x", {"name": "award"}, ["film", "film"], 1, {"name": "film", "x": 1}])
def test_documents_that_are_refused(value: Any) -> None:
    with pytest.raises(SearchError):
        Index(FIELDS, [{"j": value}])


@pytest.mark.parametrize("relations", [{"a": "a"}, {"a": "c", "b": ["c"]}, {"a": 1}, "a"])
def test_mappings_that_are_refused(relations: Any) -> None:
    with pytest.raises(SearchError):
        Index({"j": {"type": "join", "relations": relations}}, [])
    with pytest.raises(SearchError):
        Index({"j": FIELDS["j"], "i": FIELDS["j"]}, [])


def twice(sub: dict[str, Any]) -> dict[str, Any]:
    """The same in two overlapping buckets."""
    filters = {"low": {"range": {"n": {"lte": 3}}}, "high": {"range": {"n": {"gte": 2}}}}
    return {"b": {"filters": {"filters": filters}, "aggs": {"r": sub}}}


@settings(max_examples=60, deadline=None)
@given(documents, st.sampled_from(sorted(CHILDREN)), st.sampled_from(["children", "parent"]))
def test_aggregations(docs: list[dict[str, Any]], kind: str, way: str) -> None:
    index = Index(FIELDS, docs)
    links = [
        (up, down) for down, doc in enumerate(docs) if name(doc) == kind and (up := parent(doc, docs)) >= 0
    ]
    if way == "parent":
        links = [(down, up) for up, down in links]
    aggs = twice(
        {way: {"type": kind}, "aggs": {"s": {"sum": {"field": "n"}}, "v": {"terms": {"field": "n"}}}}
    )
    # What is related is found whether the query matches it or not.
    found = index.aggregations(aggs, query={"range": {"n": {"lte": 3}}})["b"]["buckets"]
    for key, holds in (("low", (1, 2, 3)), ("high", (2, 3))):
        reached = {end for start, end in links if docs[start]["n"] in holds}
        bucket = found[key]["r"]
        assert bucket["doc_count"] == len(reached)
        assert bucket["s"]["value"] == sum(docs[end]["n"] for end in reached)
        values = sorted(docs[end]["n"] for end in reached)
        assert {one["key"]: one["doc_count"] for one in bucket["v"]["buckets"]} == {
            value: values.count(value) for value in values
        }


def test_aggregations_order_buckets_and_name_their_type() -> None:
    reviews = [{"j": {"name": "review", "parent": parent}, "n": 1} for parent in ("0", "0", "1")]
    index = Index(FIELDS, [{"j": "film", "n": 1}, {"j": "film", "n": 2}, *reviews])
    aggs = {
        "n": {"terms": {"field": "n", "order": {"r": "asc"}}, "aggs": {"r": {"children": {"type": "review"}}}}
    }
    query = {"term": {"j": "film"}}
    buckets = index.aggregations(aggs, query=query)["n"]["buckets"]
    assert [(one["key"], one["r"]["doc_count"]) for one in buckets] == [(2, 1), (1, 2)]
    for way in ("children", "parent"):
        answer = index.search({"aggs": {"r": {way: {"type": "x"}}}}, SearchOptions(typed_keys=True))
        assert answer["aggregations"] == {f"{way}#r": {"doc_count": 0}}
        with pytest.raises(
            SearchError, match=f"Missing \\[child_type\\] field for {way} aggregation \\[r\\]"
        ):
            index.aggregations({"r": {way: {}}})
