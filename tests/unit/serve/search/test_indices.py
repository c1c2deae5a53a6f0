"""Indexes over HTTP: bodies and names that are refused, names that mean several."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"setting": {}}, "parse_exception"),
        ({"settings": []}, "parse_exception"),
        ({"settings": {"number_of_shards": 0}}, "illegal_argument_exception"),
        ({"settings": {"colour": "red"}}, "illegal_argument_exception"),
        ({"mappings": {"properties": {"a": {"type": "colour"}}}}, "mapper_parsing_exception"),
        ({"aliases": {"a": {"filter": {"no": {}}}}}, "illegal_argument_exception"),
        ([], "parsing_exception"),
    ],
)
def test_bodies_that_make_no_index(http: httpx.Client, body: Any, kind: str) -> None:
    assert reason_of(http.put("/a", json=body))[:2] == (400, kind)
    assert http.head("/a").status_code == 404


def test_a_name_with_a_date(http: httpx.Client) -> None:
    made = http.put("/%3Clogs-%7Bnow%2Fd%7D%3E").json()
    assert made["index"] == "logs-2023.11.14"  # as the clock of the test's node has it
    assert http.head("/%3Clogs-%7Bnow%2Fd%7D%3E").status_code == 200


def test_names_of_several(http: httpx.Client) -> None:
    for name in ("logs-1", "logs-2", "books"):
        http.put(f"/{name}")
    http.put("/books/_alias/library")

    def found(names: str) -> set[str]:
        answer = http.get(f"/{names}/_settings")
        assert answer.status_code == 200
        return set(answer.json())

    assert found("_all") == found("*") == {"books", "logs-1", "logs-2"}
    assert found("logs-*") == {"logs-1", "logs-2"}
    assert found("*,-logs-1") == {"books", "logs-2"}
    assert found("library,logs-1") == {"books", "logs-1"}
    assert found("none*") == set()
    assert reason_of(http.get("/none/_settings"))[1] == "index_not_found_exception"
    assert http.get("/none,books/_settings?ignore_unavailable=true").json().keys() == {"books"}
    assert reason_of(http.get("/none*/_settings?allow_no_indices=false"))[1] == "index_not_found_exception"
    assert http.get("/_all/_settings?expand_wildcards=none").json() == {}
    assert reason_of(http.get("/*/_settings?expand_wildcards=none"))[1] == "index_not_found_exception"
    assert (http.head("/none*").status_code, http.head("/none").status_code) == (200, 404)
    assert reason_of(http.get("/*/_settings?expand_wildcards=some"))[1] == "illegal_argument_exception"


def test_what_is_shown_of_an_index(http: httpx.Client) -> None:
    http.put("/a", json={"settings": {"index": {"refresh_interval": "5s"}}, "aliases": {"b": {}}})
    assert http.get("/a?features=mappings").json() == {"a": {"mappings": {}}}
    assert reason_of(http.get("/a?features=weather"))[2] == "Invalid features specified [weather]"
    flat = http.get("/a?flat_settings=true&features=settings").json()["a"]["settings"]
    assert flat["index.refresh_interval"] == "5s"
    defaults = http.get("/a?include_defaults=true").json()["a"]["defaults"]["index"]
    assert defaults["max_result_window"] == "10000"
    assert http.get("/a/_settings/index.refresh*").json() == {
        "a": {"settings": {"index": {"refresh_interval": "5s"}}}
    }


@pytest.mark.parametrize("body", [{"settings": True}, {"settings": {}}, {}, {"index": {"uuid": "x"}}])
def test_settings_that_cannot_be_put(http: httpx.Client, body: Any) -> None:
    http.put("/a")
    assert reason_of(http.put("/a/_settings", json=body))[0] == 400


def test_upkeep_that_cannot_be(http: httpx.Client) -> None:
    http.put("/a")
    assert reason_of(http.post("/_forcemerge?max_num_segments=1&only_expunge_deletes=true"))[0] == 400
    assert reason_of(http.post("/_flush?force=true&wait_if_ongoing=false"))[0] == 400
    assert reason_of(http.put("/a/_block/colour"))[0] == 400
    assert reason_of(http.get("/_stats?level=planet"))[0] == 400
    assert reason_of(http.get("/_stats/weather"))[0] == 400


def test_a_merge_may_go_on_without_its_client(http: httpx.Client) -> None:
    for number in range(3):
        http.put(f"/a/_doc/{number}?refresh=true", json={"x": number})
    task = http.post("/a/_forcemerge?max_num_segments=1&wait_for_completion=false").json()["task"]
    told = http.get(f"/_tasks/{task}?wait_for_completion=true").json()
    assert told["completed"]
    assert told["response"]["_shards"]["failed"] == 0
    assert told["task"]["action"] == "indices:admin/forcemerge"
    described = "Force-merge indices [a], maxSegments[1], onlyExpungeDeletes[false]"
    assert told["task"]["description"] == described
    assert http.get("/_cat/segments/a?h=segment").text.count("\n") == 1


def test_a_block_keeps_documents_out(http: httpx.Client) -> None:
    http.put("/a")
    http.put("/a/_block/write")
    status, kind, _ = reason_of(http.post("/a/_doc", json={"x": 1}))
    assert (status, kind) == (403, "cluster_block_exception")


def test_aliases_of_a_template_are_shown_in_full(http: httpx.Client) -> None:
    aliases = {"a": {"routing": "r"}, "b": {}}
    http.put("/_index_template/t", json={"index_patterns": ["t-*"], "template": {"aliases": aliases}})
    (shown,) = http.get("/_index_template/t").json()["index_templates"]
    assert shown["index_template"]["template"]["aliases"] == {
        "a": {"index_routing": "r", "search_routing": "r"},
        "b": {},
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "reason"),
    [
        (
            "PUT",
            "/new",
            {"settings": {"soft_deletes.enabled": False}},
            "Creating indices with soft-deletes disabled",
        ),
        (
            "PUT",
            "/there/_mapping",
            {"_doc": {"properties": {}}},
            "Types cannot be provided in put mapping requests",
        ),
        ("GET", "/_cat/indices?health=blue", None, "unknown cluster health status [blue]"),
    ],
)
def test_what_is_not_any_more(http: httpx.Client, method: str, path: str, body: object, reason: str) -> None:
    http.put("/there")
    status, kind, said = reason_of(http.request(method, path, json=body))
    assert (status, kind) == (400, "illegal_argument_exception")
    assert said.startswith(reason)


def test_a_template_without_conditions_waits_to_be_named(http: httpx.Client) -> None:
    templates = [{"mine": {"mapping": {"type": "keyword"}}}]
    assert http.put("/there", json={"mappings": {"dynamic_templates": templates}}).status_code == 200
    http.put("/there/_doc/1", json={"mine": "x"})
    assert http.get("/there/_mapping").json()["there"]["mappings"]["properties"]["mine"]["type"] == "text"


def test_what_is_no_query_anywhere(http: httpx.Client) -> None:
    http.put("/there")
    body: dict[str, Any] = {"query": {"boool": {}}}
    assert http.post("/_validate/query", json=body).json() == {"valid": False}
    explained = http.post("/_validate/query?explain", json=body).json()
    error = "org.elasticsearch.common.ParsingException: unknown query [boool] did you mean [bool]?"
    assert explained == {"valid": False, "error": error}


def test_other_names_of_mappings_settings_and_aliases(http: httpx.Client) -> None:
    http.put("/there")
    for method, field in (("PUT", "a"), ("POST", "b")):
        body = {"properties": {field: {"type": "keyword"}}}
        assert http.request(method, "/there/_mappings", json=body).json() == {"acknowledged": True}
    shown = http.get("/there/_mapping").json()
    assert shown["there"]["mappings"]["properties"] == {"a": {"type": "keyword"}, "b": {"type": "keyword"}}
    assert http.get("/there/_mappings").json() == http.get("/_mappings").json() == shown
    one = "index.number_of_replicas"
    assert http.get(f"/there/_setting/{one}").json() == http.get(f"/there/_settings/{one}").json()
    places: list[tuple[str, dict[str, str]]] = [
        ("/_aliases/first", {"index": "there"}),
        ("/there/_alias", {"alias": "second"}),
        ("/there/_aliases", {"alias": "third"}),
        ("/_alias", {"index": "there", "alias": "fourth"}),
    ]
    for path, body_of_alias in places:
        assert http.put(path, json=body_of_alias).json()["acknowledged"] is True
    aliases: dict[str, dict[str, str]] = {"first": {}, "second": {}, "third": {}, "fourth": {}}
    assert http.get("/_aliases").json() == {"there": {"aliases": aliases}}
    assert http.head("/there/_alias").status_code == 200
    status, kind, said = reason_of(http.put("/there/_alias", json={}))
    assert (status, kind, said) == (400, "illegal_argument_exception", "[alias] can't be empty string")
