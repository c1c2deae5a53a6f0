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


def test_fields_show_what_is_copied_to_them(http: httpx.Client) -> None:
    copied = {"type": "keyword", "copy_to": ["all", "new", "o.new"]}
    inner = {"type": "nested", "properties": {"a": {"type": "keyword", "copy_to": ["all", "n.b"]}}}
    stored = {"type": "text", "store": True, "fields": {"raw": KEYWORD}}
    number = {"type": "long", "copy_to": "all"}
    properties = {"k": copied, "m": number, "n": inner, "all": stored}
    document = {"k": ["Red", "Fox"], "m": 5, "n": [{"a": "x"}, {"a": "y"}], "all": "own"}
    made(http, {"properties": properties}, document, {"m": None})
    every = ["own", "Red", "Fox", "5", "x", "y"]
    found = hits(http, fields=["all*", "new", "o.new", "n.a", "n.b"], stored_fields=["all"])
    assert found["1"]["fields"] == {
        "all": every,
        "all.raw": every,
        "new": ["Red", "Fox"],
        "o.new": ["Red", "Fox"],
        "n": [{"a": ["x"], "b": ["x"]}, {"a": ["y"], "b": ["y"]}],
    }
    assert "fields" not in found["2"]
    shown = hits(http, query={"match": {"all": "fox"}}, highlight={"fields": {"all": {}}})
    assert shown["1"]["highlight"]["all"] == ["<em>Fox</em>"]
    got = http.get("/i/_doc/1?stored_fields=all").json()
    assert got["fields"] == {"all": every}
    vectors = http.get("/i/_termvectors/1?fields=all").json()["term_vectors"]["all"]["terms"]
    assert sorted(vectors) == ["5", "fox", "own", "red", "x", "y"]


def test_an_alias_takes_no_copies(http: httpx.Client) -> None:
    alias = {"type": "alias", "path": "x"}
    made(http, {"properties": {"k": {"type": "keyword", "copy_to": "al"}, "x": KEYWORD, "al": alias}})
    refused = reason_of(http.put("/i/_doc/1", json={"k": "v"}))
    assert refused == (400, "document_parsing_exception", "Cannot copy to a field alias [al].")


def test_what_a_mapping_leaves_out_of_the_source(http: httpx.Client) -> None:
    shown = {"includes": ["a", "o.*", "s"], "excludes": ["o.y", "s"]}
    fields = {"s": {"type": "keyword", "store": True}}
    document = {"a": 1, "b": 2, "o": {"x": 1, "y": 2}, "s": "secret"}
    made(http, {"_source": shown, "properties": fields}, document)
    kept = {"a": 1, "o": {"x": 1}}
    assert hits(http)["1"]["_source"] == kept
    assert hits(http, _source=["o.*", "b"])["1"]["_source"] == {"o": {"x": 1}}
    assert hits(http, fields=["*"], stored_fields=["_source", "s"])["1"]["fields"] == {
        "a": [1],
        "o.x": [1],
        "s": ["secret"],
    }
    assert http.get("/i/_doc/1").json()["_source"] == kept
    assert http.get("/i/_source/1").json() == kept
    assert http.post("/i/_mget", json={"ids": ["1"]}).json()["docs"][0]["_source"] == kept
    assert hits(http, query={"term": {"s": "secret"}}).keys() == {"1"}
    other = {"_source": {"includes": ["a"]}}
    assert reason_of(http.put("/i/_mapping", json=other))[2] == (
        "Mapper for [_source] conflicts with existing mapper:\n"
        "\tCannot update parameter [includes] from [[a, o.*, s]] to [[a]]\n"
        "\tCannot update parameter [excludes] from [[o.y, s]] to [[]]"
    )
    http.put("/i/_mapping", json={"_source": shown}).raise_for_status()


@pytest.mark.parametrize(
    ("mode", "mappings", "is_shown"),
    [
        ("stored", {}, True),
        ("synthetic", {}, True),
        ("disabled", {}, False),
        ("DISABLED", {}, False),
        ("disabled", {"_source": {"mode": "stored"}}, True),
        ("disabled", {"_source": {"enabled": True}}, True),
        (None, {"_source": {"mode": "disabled"}}, False),
    ],
)
def test_source_modes(http: httpx.Client, mode: str | None, mappings: Any, is_shown: bool) -> None:
    settings = {} if mode is None else {"index.mapping.source.mode": mode}
    made(http, mappings, {"a": 1}, settings=settings)
    assert ("_source" in hits(http)["1"]) == is_shown
    assert ("_source" in http.get("/i/_doc/1").json()) == is_shown
    assert http.get("/i/_source/1").status_code == (200 if is_shown else 404)


def test_a_source_mode_that_is_none(http: httpx.Client) -> None:
    refused = reason_of(http.put("/i", json={"settings": {"index.mapping.source.mode": "x"}}))
    assert (refused[0], refused[2]) == (
        400,
        "[index.mapping.source.mode] must be one of [disabled, stored, synthetic], got [x]",
    )


def test_an_index_says_what_is_too_long_for_keywords(http: httpx.Client) -> None:
    fields = {"k": KEYWORD, "own": {"type": "keyword", "ignore_above": 9}, "w": {"type": "wildcard"}}
    settings = {"index.mapping.ignore_above": 4}
    made(http, {"properties": fields}, {"k": "abcde", "own": "abcde", "w": "abcde"}, settings=settings)
    assert sorted(hits(http)["1"]["_ignored"]) == ["k", "w"]
    assert mapping(http)["properties"] == fields


def test_dimensions_are_counted(http: httpx.Client) -> None:
    dimension = {"type": "keyword", "time_series_dimension": True}
    body = {
        "settings": {"index.mapping.dimension_fields.limit": 1},
        "mappings": {"properties": {"a": dimension, "b": dimension}},
    }
    refused = reason_of(http.put("/i", json=body))
    assert refused == (
        400,
        "illegal_argument_exception",
        "Limit of total dimension fields [1] has been exceeded",
    )


@pytest.mark.parametrize(
    ("settings", "document", "reason"),
    [
        (
            {"index.mapping.total_fields.limit": 2},
            {"a": 1, "b": 1, "o": {"c": "x"}},
            "Limit of total fields [2] has been exceeded while adding new fields [5]",
        ),
        (
            {"index.mapping.depth.limit": 2},
            {"a": {"b": {"c": 1}}},
            "Limit of mapping depth [2] has been exceeded due to object field [a.b]",
        ),
    ],
)
def test_documents_past_a_limit(http: httpx.Client, settings: Any, document: Any, reason: str) -> None:
    made(http, {}, settings=settings)
    refused = reason_of(http.put("/i/_doc/1", json=document))
    assert refused == (400, "document_parsing_exception", f"failed to parse: {reason}")
    assert mapping(http) == {}


def test_no_stored_fields_and_some(http: httpx.Client) -> None:
    made(http, {}, {"a": 1})
    refused = reason_of(http.post("/i/_search", json={"stored_fields": ["_none_", "a"]}))
    assert refused[0] == 400
