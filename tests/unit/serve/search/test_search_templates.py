"""Search templates over HTTP: inline, stored, several at once, only rendered."""

from typing import Any

import httpx
import orjson
import pytest

from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

SOURCE = '{"query":{"terms":{"tag":{{#toJson}}tags{{/toJson}}}},"size":{{size}}{{^size}}10{{/size}}}'


@pytest.fixture(autouse=True)
def _stored(http: httpx.Client) -> None:
    for number, tag in enumerate("abca"):
        http.put(f"/books/_doc/{number}", json={"tag": tag})
    http.post("/books/_refresh")
    made = http.put("/_scripts/tagged", json={"script": {"lang": "mustache", "source": SOURCE}})
    assert made.status_code == 200


def ids(answer: Any) -> list[str]:
    return sorted(hit["_id"] for hit in answer["hits"]["hits"])


def test_searches_from_templates(http: httpx.Client) -> None:
    found = http.post("/books/_search/template", json={"id": "tagged", "params": {"tags": ["a", "c"]}}).json()
    assert ids(found) == ["0", "2", "3"]
    inline = {"source": {"query": {"match": {"tag": "{{tag}}"}}}, "params": {"tag": "b"}, "explain": True}
    found = http.request("GET", "/_search/template", json=inline).json()
    assert ids(found) == ["1"]
    assert found["hits"]["hits"][0]["_explanation"]["value"] > 0
    scrolled = http.post(
        "/_search/template?scroll=1m", json={"id": "tagged", "params": {"tags": ["a"]}}
    ).json()
    assert "_scroll_id" in scrolled
    assert http.get("/_scripts/tagged").json()["script"] == {"lang": "mustache", "source": SOURCE}


def test_templates_rendered(http: httpx.Client) -> None:
    body = {"params": {"tags": ["x"], "size": 3}}
    expected = {"template_output": {"query": {"terms": {"tag": ["x"]}}, "size": 3}}
    assert http.post("/_render/template/tagged", json=body).json() == expected
    assert http.post("/_render/template", json={"id": "tagged", **body}).json() == expected
    assert http.post("/_render/template", json={"source": "{}"}).json() == {"template_output": {}}


def test_several_at_once(http: httpx.Client) -> None:
    lines: list[dict[str, Any]] = [
        {"index": "books"},
        {"id": "tagged", "params": {"tags": ["a"]}},
        {},
        {"source": '{"size": {{x}}'},
        {"index": "none"},
        {"source": "{}"},
    ]
    content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    headers = {"content-type": "application/x-ndjson"}
    first, second, third = http.post("/_msearch/template", content=content, headers=headers).json()[
        "responses"
    ]
    assert (first["status"], ids(first)) == (200, ["0", "3"])
    assert (second["status"], second["error"]["type"]) == (400, "parsing_exception")
    assert third["status"] == 404


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({}, 400, "action_request_validation_exception"),
        ({"id": "none"}, 404, "resource_not_found_exception"),
        ({"id": "painless"}, 400, "illegal_argument_exception"),
        ({"source": "{{#a}}"}, 400, "script_exception"),
        ({"source": "[1]"}, 400, "illegal_argument_exception"),
        ({"source": '{"a": }'}, 400, "parsing_exception"),
        ({"source": "{}", "nonsense": 1}, 400, "x_content_parse_exception"),
        ({"source": "{}", "params": [1]}, 400, "illegal_argument_exception"),
        ({"source": '{"query": {"nonsense": {}}}'}, 400, "parsing_exception"),
    ],
)
def test_what_cannot_be(http: httpx.Client, body: dict[str, Any], status: int, kind: str) -> None:
    http.put("/_scripts/painless", json={"script": {"lang": "painless", "source": "1"}})
    assert reason_of(http.post("/_search/template", json=body))[:2] == (status, kind)


def test_templates_that_are_not_stored(http: httpx.Client) -> None:
    for script in (
        {"source": "{{#a}}"},
        {"source": "{}", "options": {"content_type": "text/html"}},
        {"source": ""},
    ):
        assert http.put("/_scripts/bad", json={"script": {"lang": "mustache", **script}}).status_code == 400
    assert http.get("/_scripts/bad").status_code == 404
