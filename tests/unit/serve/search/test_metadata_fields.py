"""The fields that every index has: `_index` and others in queries, sorting, aggregations and hits."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import reason_of

NAMES = ("logs-a", "logs-b", "other")
MAPPING = {"n": {"type": "integer"}, "k": {"type": "keyword"}, "in": {"type": "nested"}}


@pytest.fixture
def ask(http: httpx.Client) -> Any:
    """ask(body, indexes): a search of three indexes with 1, 2 and 3 documents."""
    for many, name in enumerate(NAMES, 1):
        http.put(f"/{name}", json={"mappings": {"properties": MAPPING}}).raise_for_status()
        for number in range(many):
            body = {"n": number, "k": "x", "in": [{"a": 1}, {"a": 2}]}
            options = {"routing": f"r{number}", "refresh": "true"}
            http.put(f"/{name}/_doc/{number}", json=body, params=options).raise_for_status()
    http.put("/logs-b/_alias/mine").raise_for_status()
    http.put("/.hidden", json={"settings": {"hidden": True}}).raise_for_status()
    http.put("/.hidden/_doc/9?refresh=true", json={"n": 9}).raise_for_status()

    def search(body: Any, indexes: str = "_all") -> httpx.Response:
        return http.post(f"/{indexes}/_search", json={"size": 20, **body})

    return search


def found(answer: httpx.Response) -> dict[str, int]:
    """How many hits each index has."""
    counts: dict[str, int] = {}
    for hit in answer.raise_for_status().json()["hits"]["hits"]:
        counts[hit["_index"]] = counts.get(hit["_index"], 0) + 1
    return counts


LOGS = {"logs-a": 1, "logs-b": 2}
EVERY = {**LOGS, "other": 3}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"term": {"_index": "logs-a"}}, {"logs-a": 1}),
        ({"term": {"_index": {"value": "LOGS-A"}}}, {}),
        ({"term": {"_index": {"value": "LOGS-*", "case_insensitive": True}}}, LOGS),
        ({"term": {"_index": "logs-*"}}, LOGS),
        ({"term": {"_index": "mine"}}, {"logs-b": 2}),
        ({"terms": {"_index": ["m*", "other"]}}, {"logs-b": 2, "other": 3}),
        ({"prefix": {"_index": "logs"}}, LOGS),
        ({"prefix": {"_index": {"value": "OTH", "case_insensitive": True}}}, {"other": 3}),
        ({"prefix": {"_index": "ogs"}}, {}),
        ({"wildcard": {"_index": "*-b"}}, {"logs-b": 2}),
        ({"wildcard": {"_index": {"value": "logs-?"}}}, LOGS),
        ({"wildcard": {"_index": {"value": "L*", "case_insensitive": True}}}, LOGS),
        ({"wildcard": {"_index": "*"}}, EVERY),
        ({"match": {"_index": "logs-a"}}, {"logs-a": 1}),
        ({"match_bool_prefix": {"_index": "logs"}}, LOGS),
        ({"multi_match": {"query": "other", "fields": ["_index", "k"]}}, {"other": 3}),
        ({"query_string": {"query": "_index:logs*"}}, LOGS),
        ({"query_string": {"query": "_index:logs-? AND n:1"}}, {"logs-b": 1}),
        ({"query_string": {"query": "_index:(logs-a OR mine)"}}, LOGS),
        ({"query_string": {"query": "_exists_:_index"}}, EVERY),
        ({"query_string": {"query": "lo*", "fields": ["_index"]}}, LOGS),
        ({"simple_query_string": {"query": "lo*", "fields": ["_index"]}}, LOGS),
        ({"exists": {"field": "_index"}}, EVERY),
        ({"bool": {"must_not": {"prefix": {"_index": "logs"}}}}, {"other": 3}),
        ({"nested": {"path": "in", "query": {"prefix": {"_index": "logs"}}}}, LOGS),
        ({"term": {"_seq_no": 1}}, {"logs-b": 1, "other": 1}),
        ({"range": {"_seq_no": {"gt": 0}}}, {"logs-b": 1, "other": 2}),
        ({"exists": {"field": "_seq_no"}}, EVERY),
        ({"prefix": {"_routing": "r"}}, EVERY),
        ({"wildcard": {"_routing": "?2"}}, {"other": 1}),
        ({"exists": {"field": "_routing"}}, EVERY),
    ],
)
def test_queries(ask: Any, query: Any, expected: dict[str, int]) -> None:
    assert found(ask({"query": query})) == expected


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            {"range": {"_index": {"gte": "a"}}},
            "Field [_index] of type [_index] does not support range queries",
        ),
        (
            {"regexp": {"_index": "logs.*"}},
            "Can only use regexp queries on keyword, text and wildcard fields",
        ),
        ({"fuzzy": {"_index": "logs-c"}}, "Can only use fuzzy queries on keyword, text and wildcard fields"),
        ({"prefix": {"_id": "1"}}, "Can only use prefix queries on keyword, text and wildcard fields"),
        ({"wildcard": {"_id": "1*"}}, "Can only use wildcard queries on keyword, text and wildcard fields"),
        ({"range": {"_id": {"gte": "1"}}}, "Field [_id] of type [_id] does not support range queries"),
        ({"term": {"_version": 1}}, "[_version] is not searchable"),
        (
            {"match_phrase_prefix": {"_index": "logs"}},
            "Can only use phrase prefix queries on text fields - not on [_index] which is of type [_index]",
        ),
    ],
)
def test_queries_that_a_field_does_not_have(ask: Any, query: Any, words: str) -> None:
    answer = ask({"query": query}, "other")
    assert answer.status_code == 400
    [cause] = answer.json()["error"]["root_cause"]
    assert cause["type"] == "query_shard_exception"
    assert words in cause["reason"]


def test_hidden_names_are_meant_by_patterns_with_a_dot(ask: Any) -> None:
    for pattern, expected in (
        (".hid*", {".hidden": 1}),
        ("*", EVERY),
        ("*hidden", {}),
        (".hidden", {".hidden": 1}),
    ):
        assert found(ask({"query": {"term": {"_index": pattern}}}, "_all,.hidden")) == expected, pattern


def buckets(answer: httpx.Response, name: str = "a") -> list[tuple[Any, int]]:
    listed = answer.raise_for_status().json()["aggregations"][name]["buckets"]
    return [(one["key"], one["doc_count"]) for one in listed]


@pytest.mark.parametrize("indexes", ["_all", "logs-*,mine,other"])
def test_terms_of_index_names(ask: Any, indexes: str) -> None:
    terms = {"terms": {"field": "_index"}}
    assert buckets(ask({"aggs": {"a": terms}}, indexes)) == [("other", 3), ("logs-b", 2), ("logs-a", 1)]
    by_key = {"terms": {"field": "_index", "order": {"_key": "desc"}, "size": 2}}
    assert buckets(ask({"aggs": {"a": by_key}}, indexes)) == [("other", 3), ("logs-b", 2)]
    some = {"terms": {"field": "_index", "include": "logs-.*", "exclude": ["logs-a"]}}
    assert buckets(ask({"aggs": {"a": some}}, indexes)) == [("logs-b", 2)]
    empty = {"query": {"term": {"n": 2}}, "aggs": {"a": {"terms": {"field": "_index", "min_doc_count": 0}}}}
    assert buckets(ask(empty, indexes)) == [("other", 1), ("logs-a", 0), ("logs-b", 0)]
    by_sum = {"terms": {"field": "_index", "order": {"s": "asc"}}, "aggs": {"s": {"sum": {"field": "n"}}}}
    assert [key for key, _ in buckets(ask({"aggs": {"a": by_sum}}, indexes))] == ["logs-a", "logs-b", "other"]


def test_one_index_and_an_empty_one(ask: Any, http: httpx.Client) -> None:
    terms = {"aggs": {"a": {"terms": {"field": "_index"}}}}
    assert buckets(ask(terms, "mine")) == [("logs-b", 2)]
    http.put("/empty").raise_for_status()
    assert buckets(ask(terms, "empty")) == []
    assert buckets(ask(terms, "empty,other")) == [("other", 3)]


def test_other_aggregations_of_index_names(ask: Any) -> None:
    of_index = {"field": "_index"}
    body = {
        "aggs": {
            "different": {"cardinality": of_index},
            "many": {"value_count": of_index},
            "none": {"missing": of_index},
            "some": {"filter": {"prefix": {"_index": "logs"}}},
            "each": {"filters": {"filters": {"logs": {"wildcard": {"_index": "logs*"}}}}},
            "nested": {"nested": {"path": "in"}, "aggs": {"names": {"terms": of_index}}},
            "top": {"top_hits": {"size": 1, "sort": [{"_index": "desc"}, {"n": "desc"}], "_source": False}},
            "numbers": {"terms": {"field": "_seq_no"}},
            "most": {"max": {"field": "_version"}},
        }
    }
    shown = ask(body).raise_for_status().json()["aggregations"]
    assert shown["different"]["value"] == 3
    assert shown["many"]["value"] == 6
    assert shown["none"]["doc_count"] == 0
    assert shown["some"]["doc_count"] == shown["each"]["buckets"]["logs"]["doc_count"] == 3
    names = [(one["key"], one["doc_count"]) for one in shown["nested"]["names"]["buckets"]]
    assert names == [("other", 6), ("logs-b", 4), ("logs-a", 2)]
    assert shown["top"]["hits"]["hits"][0]["sort"] == ["other", 2]
    assert [(one["key"], one["doc_count"]) for one in shown["numbers"]["buckets"]] == [(0, 3), (1, 2), (2, 1)]
    assert shown["most"]["value"] == 1.0


def test_composite_pages_of_index_names(ask: Any) -> None:
    sources = [{"i": {"terms": {"field": "_index", "order": "desc"}}}, {"n": {"terms": {"field": "n"}}}]
    keys: list[Any] = []
    after: dict[str, Any] = {}
    while True:
        answer = ask({"aggs": {"a": {"composite": {"size": 2, "sources": sources, **after}}}})
        page = answer.raise_for_status().json()["aggregations"]["a"]
        keys += [(one["key"]["i"], one["key"]["n"]) for one in page["buckets"]]
        if "after_key" not in page:
            break
        after = {"after": page["after_key"]}
    assert keys == [
        ("other", 0), ("other", 1), ("other", 2), ("logs-b", 0), ("logs-b", 1), ("logs-a", 0),
    ]  # fmt: skip
    beyond = {"aggs": {"a": {"composite": {"sources": sources[:1], "after": {"i": "nowhere"}}}}}
    assert [one["key"]["i"] for one in ask(beyond).json()["aggregations"]["a"]["buckets"]] == [
        "logs-b",
        "logs-a",
    ]


def test_aggregations_that_a_field_does_not_have(ask: Any) -> None:
    for kind, field, words in (
        ("avg", "_index", "Field [_index] of type [_index] is not supported for aggregation [avg]"),
        ("terms", "_routing", "Fielddata is not supported on field [_routing] of type [_routing]"),
        ("terms", "_id", "Fielddata access on the _id field is disallowed"),
    ):
        answer = ask({"aggs": {"a": {kind: {"field": field}}}}, "other")
        assert answer.status_code == 400, field
        assert words in answer.json()["error"]["root_cause"][0]["reason"]


def test_sorting_by_index(ask: Any) -> None:
    for order, first in (("asc", "logs-a"), ("desc", "other")):
        by_index = [{"_index": {"order": order}}, {"n": "asc"}]
        hits = ask({"sort": by_index}).raise_for_status().json()["hits"]["hits"]
        names = [hit["_index"] for hit in hits]
        assert names == sorted(names, reverse=order == "desc")
        assert names[0] == first
        assert [hit["sort"][0] for hit in hits] == names
        rest = ask({"sort": by_index, "search_after": hits[2]["sort"]}).json()["hits"]["hits"]
        assert [hit["sort"] for hit in rest] == [hit["sort"] for hit in hits[3:]]
    assert len(ask({"sort": "_index", "search_after": ["logs-z"]}).json()["hits"]["hits"]) == 3
    by_number = ask({"sort": [{"_seq_no": "desc"}]}, "other").json()["hits"]["hits"]
    assert [hit["sort"] for hit in by_number] == [[2], [1], [0]]


def test_collapsing_by_index_is_refused(ask: Any) -> None:
    answer = ask({"collapse": {"field": "_index"}}, "other")
    assert answer.status_code == 400
    assert (
        "collapse is not supported for the field [_index]"
        in answer.json()["error"]["root_cause"][0]["reason"]
    )


def test_hits_show_the_index_as_a_field(ask: Any) -> None:
    body = {
        "docvalue_fields": ["_index", "_version", "k"],
        "fields": ["_index", "n"],
        "sort": ["_index", "n"],
    }
    hit = ask(body).raise_for_status().json()["hits"]["hits"][0]
    assert hit["fields"] == {"_index": ["logs-a"], "_version": [1], "k": ["x"], "n": [0]}
    every = ask({"docvalue_fields": ["*"], "fields": ["*"], "_source": False}, "logs-a").json()["hits"][
        "hits"
    ]
    assert set(every[0]["fields"]) == {"n", "k", "in"}


def test_an_unmapped_field_is_still_none(ask: Any) -> None:
    assert found(ask({"query": {"term": {"_tier": "data_hot"}}})) == {}
    assert reason_of(ask({"sort": "_nothing"}, "other"))[0] == 400
