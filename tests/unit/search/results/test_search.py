from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.results import SearchOptions
from tests.unit.search.results.index import Index

PROPERTIES = {
    "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
    "tag": {"type": "keyword"},
    "price": {"type": "double"},
    "year": {"type": "integer"},
    "day": {"type": "date"},
    "place": {"type": "geo_point"},
    "authors": {"type": "nested", "properties": {"name": {"type": "keyword"}, "age": {"type": "integer"}}},
}
DOCUMENTS: list[dict[str, Any]] = [
    {
        "title": "quick fox",
        "tag": ["b", "a"],
        "price": 2.5,
        "year": 2001,
        "day": "2020-01-01",
        "place": "1,2",
        "authors": [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 40}],
    },
    {"title": "fox", "tag": "a", "year": [1999, 2005], "day": "2020-02-01"},
    {
        "title": "slow dog",
        "tag": "c",
        "price": 1.25,
        "authors": {"name": "Ann", "age": 20},
        "more": {"x": 1, "y": {"z": 2}},
    },
    {"title": "nothing"},
]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, DOCUMENTS)


def test_the_form_of_an_answer(index: Index) -> None:
    answer = index.search({"query": {"term": {"tag": "a"}}, "_source": ["title"]})
    assert answer["timed_out"] is False
    assert answer["hits"]["total"] == {"value": 2, "relation": "eq"}
    first, second = answer["hits"]["hits"]
    assert set(first) == {"_index", "_id", "_score", "_source"}
    assert (first["_index"], first["_id"], first["_source"]) == ("books", "0", {"title": "quick fox"})
    assert second["_id"] == "1"
    assert answer["hits"]["max_score"] == first["_score"] == second["_score"]


def test_a_search_by_score_alone_equals_the_long_way(index: Index) -> None:
    query = {"match": {"title": "fox dog"}}
    short = index.search({"query": query, "size": 2})["hits"]
    long = index.search({"query": query, "size": 2, "min_score": 0})["hits"]
    assert short == long


@pytest.mark.parametrize(
    ("sort", "ids", "values"),
    [
        (["year"], ["1", "0", "2", "3"], [1999, 2001, 2**63 - 1, 2**63 - 1]),
        ([{"year": "desc"}], ["1", "0", "2", "3"], [2005, 2001, -(2**63), -(2**63)]),
        (
            [{"year": {"order": "asc", "mode": "avg"}}],
            ["0", "1", "2", "3"],
            [2001, 2002, 2**63 - 1, 2**63 - 1],
        ),
        ([{"year": {"missing": 2000, "mode": "max"}}], ["2", "3", "0", "1"], [2000, 2000, 2001, 2005]),
        (
            [{"price": {"order": "desc", "missing": "_first"}}],
            ["1", "3", "0", "2"],
            ["Infinity", "Infinity", 2.5, 1.25],
        ),
        ([{"tag": {"order": "asc"}}], ["0", "1", "2", "3"], ["a", "a", "c", None]),
        ([{"tag": {"order": "desc", "missing": "bb"}}], ["2", "3", "0", "1"], ["c", "bb", "b", "a"]),
        ([{"day": {"format": "yyyy/MM"}}], ["0", "1", "2", "3"], ["2020/01", "2020/02", None, None]),
        (
            [
                {
                    "authors.age": {
                        "order": "asc",
                        "nested": {"path": "authors", "filter": {"term": {"authors.name": "Bob"}}},
                    }
                }
            ],
            ["0", "1", "2", "3"],
            [40, 2**63 - 1, 2**63 - 1, 2**63 - 1],
        ),
        ([{"nope": {"unmapped_type": "long"}}], ["0", "1", "2", "3"], [2**63 - 1] * 4),
        ([{"_doc": "desc"}], ["3", "2", "1", "0"], [6, 5, 3, 2]),
    ],
)
def test_sort(index: Index, sort: list[Any], ids: list[str], values: list[Any]) -> None:
    hits = index.hits(sort=sort)
    assert [hit["_id"] for hit in hits] == ids
    assert [hit["sort"] for hit in hits] == [[value] for value in values]
    assert all(hit["_score"] is None for hit in hits)


def test_sort_by_distance(index: Index) -> None:
    (hit, *others) = index.hits(sort=[{"_geo_distance": {"place": {"lat": 2, "lon": 2}, "unit": "km"}}])
    assert hit["sort"] == [pytest.approx(111.195, abs=0.001)]
    assert all(other["sort"] == ["Infinity"] for other in others)


def test_from_size_and_search_after(index: Index) -> None:
    assert index.ids(sort=["_doc"], **{"from": 1}, size=2) == ["1", "2"]
    assert index.ids(sort=[{"year": "asc"}, "_doc"], search_after=[2001, 2]) == ["2", "3"]
    assert index.ids(sort=[{"tag": "asc"}], search_after=["b"]) == ["2", "3"]


@pytest.mark.parametrize(
    ("tracked", "total"),
    [
        (True, {"value": 4, "relation": "eq"}),
        (2, {"value": 2, "relation": "gte"}),
        (4, {"value": 4, "relation": "eq"}),
    ],
)
def test_total(index: Index, tracked: Any, total: Any) -> None:
    assert index.search({"track_total_hits": tracked})["hits"]["total"] == total


def test_total_may_be_left_out(index: Index) -> None:
    assert "total" not in index.search({"track_total_hits": False})["hits"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (["more.y"], {"more": {"y": {"z": 2}}}),
        ("*.x", {"more": {"x": 1}}),
        ({"includes": ["more"], "excludes": ["more.y.*"]}, {"more": {"x": 1, "y": {}}}),
        ({"includes": ["authors.age"]}, {"authors": {"age": 20}}),
    ],
)
def test_source_filter(index: Index, source: Any, shown: Any) -> None:
    (hit,) = index.hits(query={"term": {"tag": "c"}}, _source=source)
    assert hit["_source"] == shown


def test_source_may_be_left_out(index: Index) -> None:
    assert all("_source" not in hit for hit in index.hits(_source=False))
    assert all(set(hit) == {"_index", "_score"} for hit in index.hits(stored_fields="_none_"))


def test_fields_and_docvalue_fields(index: Index) -> None:
    (hit,) = index.hits(
        query={"term": {"title.raw": "quick fox"}},
        _source=False,
        fields=["title*", "tag", {"field": "day", "format": "yyyy"}, "authors.*"],
    )
    assert hit["fields"] == {
        "title": ["quick fox"],
        "title.raw": ["quick fox"],
        "tag": ["b", "a"],
        "day": ["2020"],
        "authors": [{"name": ["Ann"], "age": [30]}, {"name": ["Bob"], "age": [40]}],
    }
    (hit,) = index.hits(query={"term": {"title.raw": "quick fox"}}, docvalue_fields=["tag", "year", "day"])
    assert hit["fields"] == {"tag": ["a", "b"], "year": [2001], "day": ["2020-01-01T00:00:00.000Z"]}


def test_inner_hits_of_nested_objects(index: Index) -> None:
    query = {
        "nested": {
            "path": "authors",
            "query": {"range": {"authors.age": {"gte": 30}}},
            "inner_hits": {"size": 1},
        }
    }
    (hit,) = index.hits(query=query)
    inner = hit["inner_hits"]["authors"]["hits"]
    assert inner["total"] == {"value": 2, "relation": "eq"}
    assert inner["hits"] == [
        {
            "_index": "books",
            "_id": "0",
            "_nested": {"field": "authors", "offset": 0},
            "_score": 1.0,
            "_source": {"name": "Ann", "age": 30},
        }
    ]


def test_post_filter_narrows_hits_and_not_aggregations(index: Index) -> None:
    answer = index.search(
        {"post_filter": {"term": {"tag": "c"}}, "aggs": {"n": {"value_count": {"field": "tag"}}}}
    )
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["2"]
    assert answer["hits"]["total"]["value"] == 1
    assert answer["aggregations"] == {"n": {"value": 4}}


def test_min_score_and_rescore(index: Index) -> None:
    query = {"constant_score": {"filter": {"exists": {"field": "tag"}}}}
    assert index.ids(query=query, min_score=1.5) == []
    rescore = {
        "window_size": 3,
        "query": {
            "rescore_query": {"constant_score": {"filter": {"term": {"tag": "c"}}, "boost": 4}},
            "query_weight": 0.5,
            "rescore_query_weight": 2,
        },
    }
    hits = index.hits(query=query, rescore=rescore)
    assert [(hit["_id"], hit["_score"]) for hit in hits] == [("2", 8.5), ("0", 0.5), ("1", 0.5)]


def test_rescores_are_explained(index: Index) -> None:
    rescore = [
        {
            "window_size": 3,
            "query": {
                "rescore_query": {"constant_score": {"filter": {"term": {"tag": "c"}}, "boost": 4}},
                "query_weight": 0.5,
                "rescore_query_weight": 2,
            },
        },
        {"window_size": 1, "query": {"rescore_query": {"match_all": {}}, "score_mode": "multiply"}},
    ]
    query = {"constant_score": {"filter": {"exists": {"field": "tag"}}}}
    hits = index.hits(query=query, rescore=rescore, explain=True)
    assert (
        [hit["_explanation"]["value"] for hit in hits] == [hit["_score"] for hit in hits] == [8.5, 0.5, 0.5]
    )
    both, alone = hits[0]["_explanation"], hits[1]["_explanation"]
    assert (both["description"], alone["description"]) == ("product of:", "product of:")
    before, second = both["details"][0]["details"][0], both["details"][1]
    assert (before["description"], before["value"]) == ("sum of:", 8.5)
    assert [part["value"] for part in before["details"]] == [0.5, 8.0]
    assert [part["description"] for part in second["details"]][1] == "secondaryWeight"
    first = before["details"][0]["details"]
    assert [(part["value"], part["description"]) for part in first][1] == (0.5, "primaryWeight")


def test_versions_names_and_explanations(index: Index) -> None:
    (hit,) = index.hits(
        query={"term": {"tag": {"value": "c", "_name": "mine"}}},
        version=True,
        seq_no_primary_term=True,
        explain=True,
    )
    assert (hit["_version"], hit["_seq_no"], hit["_primary_term"]) == (1, 2, 1)
    assert hit["matched_queries"] == ["mine"]
    assert hit["_explanation"]["value"] == pytest.approx(hit["_score"])


def test_terminate_after(index: Index) -> None:
    answer = index.search({"terminate_after": 2})
    assert answer["terminated_early"] is True
    assert answer["hits"]["total"] == {"value": 2, "relation": "eq"}


@pytest.mark.parametrize("key", ["script_fields", "runtime_mappings"])
def test_what_is_not_offered_may_be_empty(index: Index, key: str) -> None:
    assert index.search({key: {}}) == index.search({})


def test_what_only_suggests_finds_nothing(index: Index) -> None:
    term: dict[str, Any] = {"s": {"text": "x", "term": {"field": "title"}}}
    for suggest in ({}, term):
        assert index.search({"suggest": suggest})["hits"] == {
            "total": {"value": 0, "relation": "eq"},
            "max_score": None,
            "hits": [],
        }
    assert index.hits(suggest={}, query={"match_all": {}}) == index.hits()


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        ({"nope": {}}, "parsing_exception", "Unknown key for a START_OBJECT in [nope]."),
        ({"from": -1}, "illegal_argument_exception", "[from] parameter cannot be negative but was [-1]"),
        ({"size": -1}, "illegal_argument_exception", "[size] parameter cannot be negative, found [-1]"),
        (
            {"from": 9_995},
            "illegal_argument_exception",
            "Result window is too large, from + size must be less than or equal to: [10000] but was [10005].",
        ),
        ({"sort": ["title"]}, "illegal_argument_exception", "Fielddata is disabled on [title] in [books]."),
        ({"sort": ["nope"]}, "query_shard_exception", "No mapping found for [nope] in order to sort on"),
        (
            {"sort": ["tag"], "search_after": [1, 2]},
            "illegal_argument_exception",
            "search_after has 2 value(s) but sort has 1.",
        ),
        (
            {"sort": ["year"], "search_after": ["x"]},
            "illegal_argument_exception",
            "Failed to parse search_after value",
        ),
        ({"search_after": [1]}, "illegal_argument_exception", "Sort must contain at least one field."),
        ({"collapse": {"field": "tag"}}, "illegal_argument_exception", "failed to collapse on field [tag]"),
        ({"script_fields": {"a": {}}}, "illegal_argument_exception", "a field of [script_fields] needs"),
        ({"script_fields": {str(n): {} for n in range(33)}}, "illegal_argument_exception", "Trying to retri"),
    ],
)
def test_refused(index: Index, body: dict[str, Any], kind: str, reason: str) -> None:
    with pytest.raises(SearchError) as error:
        index.search(body)
    assert error.value.kind == kind
    assert error.value.reason.startswith(reason)


def test_typed_keys(index: Index) -> None:
    body = {"size": 0, "aggs": {"a": {"terms": {"field": "tag"}, "aggs": {"m": {"max": {"field": "year"}}}}}}
    answer = index.search(body, SearchOptions(typed_keys=True))["aggregations"]
    assert list(answer) == ["sterms#a"]
    assert answer["sterms#a"]["buckets"][0]["max#m"] == {"value": 2005.0}


@pytest.mark.parametrize("fields", ["*", 1, True, ["title"], {"title": 1}])
def test_fields_to_highlight_are_objects(index: Index, fields: Any) -> None:
    with pytest.raises(SearchError, match="must be an object of objects") as caught:
        index.hits(query={"match": {"title": "quick"}}, highlight={"fields": fields})
    assert caught.value.status == 400


def test_highlight(index: Index) -> None:
    (hit,) = index.hits(query={"match": {"title": "quick"}}, highlight={"fields": {"title": {}}})
    assert hit["highlight"] == {"title": ["<em>quick</em> fox"]}
    query = {"nested": {"path": "authors", "query": {"term": {"authors.name": "Bob"}}}}
    query["nested"]["inner_hits"] = {"highlight": {"fields": {"authors.name": {}}}}
    (hit,) = index.hits(query=query)
    (inner,) = hit["inner_hits"]["authors"]["hits"]["hits"]
    assert inner["highlight"] == {"authors.name": ["<em>Bob</em>"]}
