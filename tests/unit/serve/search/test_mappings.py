"""What mappings offer over HTTP, with documents and searches."""

from typing import Any

import httpx

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
