"""What mappings offer over HTTP, with documents and searches."""

from typing import Any

import httpx
import pytest

from graphdb.search.segments.shard_view import array_segment
from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import reason_of

LONG, KEYWORD = {"type": "long"}, {"type": "keyword"}


def made(http: httpx.Client, mappings: Any, *documents: Any, index: str = "i", settings: Any = None) -> None:
    """An index with documents, whose ids are their places, from 1."""
    body = {"mappings": mappings, "settings": settings or {}}
    http.put(f"/{index}", json=body).raise_for_status()
    for number, document in enumerate(documents, 1):
        path = f"/{index}/_doc/{number}"
        http.put(path, json=document, params={"refresh": "true"}).raise_for_status()


def hits(http: httpx.Client, index: str = "i", **body: Any) -> dict[str, Any]:
    """By id."""
    answer = http.post(f"/{index}/_search", json=body).raise_for_status().json()
    return {hit["_id"]: hit for hit in answer["hits"]["hits"]}


def mapping(http: httpx.Client, index: str = "i") -> Any:
    return http.get(f"/{index}/_mapping").raise_for_status().json()[index]["mappings"]


def test_fields_with_dots_side_by_side(http: httpx.Client) -> None:
    fields = {"time": LONG, "time.max": LONG, "host.name": {"type": "text", "fields": {"raw": KEYWORD}}}
    mappings = {"properties": {"m": {"subobjects": False, "properties": fields}}}
    documents: list[Any] = [{"m": {"time": {"max": 6}}}, {"m.time": 1}, {"m": {"host": {"name": "A b"}}}]
    made(http, mappings, *documents)
    assert mapping(http) == mappings
    found = hits(http, fields=["*"])
    assert [found[number]["_source"] for number in "123"] == documents
    assert [found[number]["fields"] for number in "123"] == [
        {"m.time.max": [6]},
        {"m.time": [1]},
        {"m.host.name": ["A b"], "m.host.name.raw": ["A b"]},
    ]
    assert set(hits(http, query={"exists": {"field": "m.time"}})) == {"2"}
    assert set(hits(http, query={"exists": {"field": "m"}})) == {"1", "2", "3"}
    assert set(hits(http, query={"exists": {"field": "m.host"}})) == {"3"}
    shown = hits(http, query={"match": {"m.host.name": "b"}}, highlight={"fields": {"m.*": {}}})
    assert shown["3"]["highlight"] == {"m.host.name": ["A <em>b</em>"]}
    caps = http.get("/i/_field_caps?fields=*&filters=-metadata").json()["fields"]
    assert {name: list(types) for name, types in caps.items()} == {
        "m": ["object"],
        "m.host": ["object"],
        "m.host.name": ["text"],
        "m.host.name.raw": ["keyword"],
        "m.time": ["long"],
        "m.time.max": ["long"],
    }
    only = http.get("/i/_field_caps?fields=*&filters=-metadata,-multifield,-parent").json()["fields"]
    assert sorted(only) == ["m.host.name", "m.time", "m.time.max"]


def test_templates_keep_them_apart(http: httpx.Client) -> None:
    template = {"mappings": {"subobjects": False, "properties": {"a.b": LONG}}}
    http.put("/_component_template/c", json={"template": template}).raise_for_status()
    body = {
        "index_patterns": ["i*"],
        "composed_of": ["c"],
        "template": {"mappings": {"properties": {"a": KEYWORD}}},
    }
    http.put("/_index_template/t", json=body).raise_for_status()
    made(http, {"properties": {"a.b.c": LONG}}, {"a": "x", "a.b": {"c": 1}})
    fields = {"a": KEYWORD, "a.b": LONG, "a.b.c": LONG}
    assert mapping(http) == {"subobjects": False, "properties": fields}


def test_dynamic_runtime_fields_are_searched_like_others(http: httpx.Client) -> None:
    document = {"s": "x", "o": {"p": "q", "n": [1, 2]}, "at": "2020-01-01", "f": 1.5, "b": True}
    made(http, {"dynamic": "runtime"}, document, {"s": 5, "o": {"n": "no number"}})
    kinds = {"s": "keyword", "o.p": "keyword", "o.n": "long", "at": "date", "f": "double", "b": "boolean"}
    runtime = {name: {"type": kind} for name, kind in sorted(kinds.items())}
    assert mapping(http) == {"dynamic": "runtime", "runtime": runtime}
    found = hits(http, query={"exists": {"field": "o"}}, fields=["*"])
    assert found.keys() == {"1"}
    assert found["1"]["fields"] == {
        "s": ["x"],
        "o.p": ["q"],
        "o.n": [1, 2],
        "at": ["2020-01-01T00:00:00.000Z"],
        "f": [1.5],
        "b": [True],
    }
    assert hits(http, query={"term": {"s": "5"}}).keys() == {"2"}


WORDS = """
def at = doc['message'].value.indexOf(' ');
emit(['verb': doc['message'].value.substring(0, at), 'size': doc['message'].value.substring(at + 1)]);
if (at > 3) { emit('long', true) }
"""


def test_a_composite_is_several_fields_of_one_script(http: httpx.Client) -> None:
    fields = {"verb": KEYWORD, "size": LONG, "long": {"type": "boolean"}}
    composite = {"type": "composite", "script": {"source": WORDS}, "fields": fields}
    documents = ({"message": "get 12"}, {"message": "post 7"}, {"message": "post some"})
    made(http, {"properties": {"message": KEYWORD}, "runtime": {"http": composite}}, *documents)
    assert mapping(http)["runtime"] == {"http": composite}
    found = hits(http, fields=["http.*"], sort=[{"http.size": "desc"}], _source=False)
    assert {number: hit["fields"] for number, hit in found.items()} == {
        "1": {"http.verb": ["get"], "http.size": [12]},
        "2": {"http.verb": ["post"], "http.size": [7], "http.long": [True]},
        "3": {"http.verb": ["post"], "http.long": [True]},
    }
    assert list(found) == ["1", "2", "3"]
    assert hits(http, query={"range": {"http.size": {"lt": 10}}}).keys() == {"2"}
    body = {"size": 0, "aggs": {"v": {"terms": {"field": "http.verb"}}}}
    counts = http.post("/i/_search", json=body).json()["aggregations"]["v"]["buckets"]
    assert [(one["key"], one["doc_count"]) for one in counts] == [("post", 2), ("get", 1)]
    caps = http.get("/i/_field_caps?fields=http*").json()["fields"]
    assert {name: list(kinds) for name, kinds in caps.items()} == {
        "http": ["object"],
        "http.long": ["boolean"],
        "http.size": ["long"],
        "http.verb": ["keyword"],
    }


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"fields": {"a": LONG}}, "composite runtime field [c] must declare a [script]"),
        ({"script": "emit([:])"}, "composite runtime field [c] must declare its [fields]"),
        ({"script": "emit([:])", "fields": {}}, "composite runtime field [c] must declare its [fields]"),
        (
            {"script": "emit([:])", "fields": {"a": {"type": "long", "script": "emit(1)"}}},
            "Cannot use [script] parameter on sub-field [a] of composite field [c]",
        ),
        (
            {"script": "", "fields": {}, "x": 1},
            "unknown parameter [x] on runtime field [c] of type [composite]",
        ),
    ],
)
def test_composites_that_cannot_be(http: httpx.Client, members: Any, reason: str) -> None:
    body = {"mappings": {"runtime": {"c": {"type": "composite", **members}}}}
    refused = reason_of(http.put("/i", json=body))
    assert refused == (400, "mapper_parsing_exception", f"Failed to parse mapping: {reason}")


LOOKUP = {
    "type": "lookup",
    "target_index": "people",
    "input_field": "who",
    "target_field": "key",
    "fetch_fields": [{"field": "name"}, {"field": "born", "format": "yyyy"}],
}


@pytest.fixture
def people(http: httpx.Client) -> None:
    """The index of the targets, and `i`, whose documents name them."""
    ada = {"key": "a", "name": "Ada", "born": "1815-12-10"}
    properties = {"key": KEYWORD, "name": KEYWORD, "born": {"type": "date"}}
    made(http, {"properties": properties}, ada, {"key": "b", "name": ["Bo", "B."]}, index="people")
    documents = ({"who": "a"}, {"who": ["b", "a"]}, {"who": "none"}, {"other": 1})
    made(http, {"properties": {"who": KEYWORD}, "runtime": {"by": LOOKUP}}, *documents)


ADA, BO = {"name": ["Ada"], "born": ["1815"]}, {"name": ["Bo", "B."]}


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("name", ["by", "b*"])
def test_a_lookup_shows_fields_of_another_index(http: httpx.Client, name: str) -> None:
    assert mapping(http)["runtime"] == {"by": LOOKUP}
    for _ in range(2):  # an answer that is kept stays as it is
        found = hits(http, fields=[name], _source=False)
        assert [found[number].get("fields") for number in "1234"] == [
            {"by": [ADA]},
            {"by": [BO, ADA]},
            None,
            None,
        ]
    assert hits(http, fields=["who", name], query={"term": {"who": "b"}})["2"]["fields"] == {
        "who": ["b", "a"],
        "by": [BO, ADA],
    }
    assert "fields" not in hits(http, fields=["by.name"])["1"]
    assert hits(http, query={"exists": {"field": "by"}}) == {}
    assert reason_of(http.post("/i/_search", json={"sort": ["by"]}))[0] == 400


@pytest.mark.usefixtures("people")
def test_a_lookup_of_a_request(http: httpx.Client) -> None:
    own = {**LOOKUP, "fetch_fields": ["name", "unknown"]}
    found = hits(http, fields=["own"], runtime_mappings={"own": own})
    assert found["1"]["fields"] == {"own": [{"name": ["Ada"]}]}
    found = hits(http, fields=["by"], runtime_mappings={"by": {"type": "long", "script": "emit(1)"}})
    assert found["1"]["fields"] == {"by": [1]}
    body = {"fields": ["own"], "runtime_mappings": {"own": {**LOOKUP, "target_index": "nowhere"}}}
    answer = http.post("/i/_search", json=body)
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["reason"] == "failed to fetch lookup fields"
    assert error["caused_by"]["reason"] == "no such index [nowhere]"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"target_index": ""}, "[target_index] parameter must be specified"),
        ({"input_field": None}, "[input_field] parameter must be specified"),
        ({"target_field": None}, "[target_field] parameter must be specified"),
        ({"fetch_fields": []}, "[fetch_fields] parameter must not be empty"),
        ({"fetch_fields": [{"format": "x"}]}, "[field] parameter of [fetch_fields] must be provided"),
        ({"script": "emit(1)"}, "unknown parameter [script] on runtime field [by] of type [lookup]"),
    ],
)
def test_lookups_that_cannot_be(http: httpx.Client, members: Any, reason: str) -> None:
    refused = reason_of(http.put("/i", json={"mappings": {"runtime": {"by": {**LOOKUP, **members}}}}))
    assert refused == (400, "mapper_parsing_exception", f"Failed to parse mapping: {reason}")


def test_what_each_field_takes(http: httpx.Client, node: MemorySearch) -> None:
    searched = {"type": "long", "doc_values": False}
    properties = {"t": {"type": "text"}, "k": KEYWORD, "n": LONG, "s": searched}
    properties["v"] = {"type": "dense_vector", "dims": 3}
    documents = [{"t": f"word {n}", "k": f"k{n}", "n": n, "s": n, "v": [n + 1, 1, 1]} for n in range(3)]
    made(http, {"properties": properties}, *documents)
    answer = http.post("/i/_disk_usage?run_expensive_tasks=true").raise_for_status().json()
    assert answer["_shards"]["failed"] == 0
    found = answer["i"]
    taken = {
        name: {use for use, size in uses_of(one).items() if size} for name, one in found["fields"].items()
    }
    assert taken == {
        "_id": {"stored_fields", "inverted_index"},
        "_source": {"stored_fields"},
        "_seq_no": {"doc_values"},
        "_version": {"doc_values"},
        "t": {"inverted_index", "norms"},
        "k": {"inverted_index", "doc_values"},
        "n": {"doc_values"},
        "s": {"points"},
        "v": {"knn_vectors"},
    }
    assert found["fields"]["n"]["doc_values_in_bytes"] == 3 * 8
    assert found["fields"]["v"]["knn_vectors_in_bytes"] >= 3 * 3 * 4
    everything = sum(one["total_in_bytes"] for one in found["fields"].values())
    assert everything == found["all_fields"]["total_in_bytes"] == found["store_size_in_bytes"]
    index = node.catalog.find("i")
    assert index is not None
    segments = [array_segment(leaf) for leaf in index.shards.leaves()]
    assert everything == sum(segment.size_bytes for segment in segments)


def uses_of(one: Any) -> dict[str, int]:
    plain = {name.removesuffix("_in_bytes"): size for name, size in one.items() if name.endswith("_in_bytes")}
    plain["inverted_index"] = one["inverted_index"]["total_in_bytes"]
    assert sum(plain.values()) == 2 * plain.pop("total")
    return plain


def test_disk_usage_has_to_be_wanted(http: httpx.Client) -> None:
    made(http, {})
    status, kind, reason = reason_of(http.post("/i/_disk_usage"))
    assert (status, kind) == (400, "illegal_argument_exception")
    assert "the parameter [run_expensive_tasks] must be set to [true]" in reason
    assert reason_of(http.post("/no/_disk_usage?run_expensive_tasks=true"))[0] == 404
