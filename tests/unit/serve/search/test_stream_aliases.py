"""Aliases of data streams, over HTTP: put, shown, searched, written to, rolled over with their stream."""

from typing import Any

import httpx
import pytest

from graphdb.search.catalog.catalog_commands import AliasAction, UpdateAliases
from graphdb.search.catalog.command_codec import decode_command, encode_command
from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

ERRORS: dict[str, Any] = {"filter": {"term": {"level": "error"}}}


@pytest.fixture
def logs(http: httpx.Client) -> httpx.Client:
    """Two data streams, and an index."""
    keyword = {"mappings": {"properties": {"level": {"type": "keyword"}}}}
    template = {"index_patterns": ["logs-*"], "data_stream": {}, "priority": 5, "template": keyword}
    http.put("/_index_template/logs", json=template).raise_for_status()
    for name in ("logs-a", "logs-b"):
        http.put(f"/_data_stream/{name}").raise_for_status()
    http.put("/plain").raise_for_status()
    return http


def act(http: httpx.Client, kind: str, index: str, alias: str = "all", **options: Any) -> httpx.Response:
    return http.post("/_aliases", json={"actions": [{kind: {"index": index, "alias": alias, **options}}]})


def add(http: httpx.Client, name: str, level: str) -> httpx.Response:
    document = {"@timestamp": "2023-11-14T10:00:00Z", "level": level}
    return http.post(f"/{name}/_doc?refresh=true", json=document)


def levels(http: httpx.Client, name: str) -> list[str]:
    hits = http.post(f"/{name}/_search", json={"size": 100}).raise_for_status().json()["hits"]["hits"]
    return sorted(hit["_source"]["level"] for hit in hits)


def shown(http: httpx.Client, path: str = "/_alias/*") -> dict[str, Any]:
    return {name: one["aliases"] for name, one in http.get(path).json().items()}


def test_an_alias_goes_on_after_a_rollover(logs: httpx.Client) -> None:
    assert act(logs, "add", "logs-a", is_write_index=True).json()["acknowledged"]
    assert act(logs, "add", "logs-*", "errors", **ERRORS).json()["acknowledged"]
    assert shown(logs) == {
        "logs-a": {"all": {"is_write_index": True}, "errors": ERRORS},
        "logs-b": {"errors": ERRORS},
    }
    first = add(logs, "all", "error").json()["_index"]
    for level in ("error", "info"):
        add(logs, "logs-b", level)
    logs.post("/logs-a/_rollover").raise_for_status()
    second = add(logs, "all", "warn").json()["_index"]
    assert (first[-6:], second[-6:]) == ("000001", "000002")
    assert levels(logs, "all") == ["error", "warn"]
    assert levels(logs, "errors") == ["error", "error"]
    assert shown(logs)["logs-a"] == {"all": {"is_write_index": True}, "errors": ERRORS}
    logs.delete(f"/{first}").raise_for_status()
    assert (levels(logs, "all"), levels(logs, "errors")) == (["warn"], ["error"])


def test_one_data_stream_is_written_to_at_most(logs: httpx.Client) -> None:
    act(logs, "add", "logs-a")
    assert reason_of(add(logs, "all", "info"))[1] == "illegal_argument_exception"  # nobody has said so
    for name in ("logs-a", "logs-b"):
        act(logs, "add", name, is_write_index=True).raise_for_status()
        assert f"-{name}-" in add(logs, "all", "info").json()["_index"]
    assert shown(logs) == {"logs-a": {"all": {}}, "logs-b": {"all": {"is_write_index": True}}}
    act(logs, "add", "logs-b", **ERRORS).raise_for_status()  # what it does not say stays
    assert shown(logs)["logs-b"] == {"all": {"is_write_index": True, **ERRORS}}
    act(logs, "add", "logs-b", is_write_index=False).raise_for_status()
    assert shown(logs)["logs-b"] == {"all": ERRORS}
    assert add(logs, "all", "info").status_code == 400
    refused = logs.put("/all/_doc/1", json={"@timestamp": 0})
    assert reason_of(refused)[0] == 400


def test_only_additions_go_through_it(logs: httpx.Client) -> None:
    act(logs, "add", "logs-a", is_write_index=True)
    refused = reason_of(logs.put("/all/_doc/1", json={"@timestamp": 0}))
    assert refused[2] == "only write ops with an op_type of create are allowed in data streams"
    assert reason_of(logs.post("/all/_doc", json={"level": "x"}))[1] == "document_parsing_exception"
    assert logs.put("/all/_create/1", json={"@timestamp": 0}).status_code == 201


def test_removal(logs: httpx.Client) -> None:
    act(logs, "add", "logs-*").raise_for_status()
    act(logs, "remove", "logs-a").raise_for_status()
    assert shown(logs) == {"logs-b": {"all": {}}}
    assert reason_of(act(logs, "remove", "logs-a"))[:2] == (404, "aliases_not_found_exception")
    logs.delete("/_data_stream/logs-b").raise_for_status()
    assert logs.get("/_alias/all").status_code == 404
    assert reason_of(logs.get("/all/_count"))[0] == 404


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            {"index": "logs-a", "routing": "r"},
            "aliases that point to data streams don't support index_routing",
        ),
        (
            {"index": "logs-a", "is_hidden": True},
            "aliases that point to data streams don't support is_hidden",
        ),
        (
            {"indices": ["logs-a", "plain"]},
            "expressions [logs-a,plain] that match with both data streams and regular indices are disallowed",
        ),
        (
            {"index": "logs-a", "alias": "mine"},
            "data stream alias and indices alias have the same name (mine)",
        ),
        (
            {"index": ".ds-logs-a-2023.11.14-000001"},
            "The provided expressions [.ds-logs-a-2023.11.14-000001] match a backing index belonging to data "
            "stream [logs-a]. Data stream backing indices don't support aliases.",
        ),
        ({"index": "logs-a", "filter": {"no": {}}}, "failed to parse filter for alias [all]"),
    ],
)
def test_what_cannot_be(logs: httpx.Client, entry: dict[str, Any], reason: str) -> None:
    logs.put("/plain/_alias/mine").raise_for_status()
    before = shown(logs)
    answer = logs.post("/_aliases", json={"actions": [{"add": {"alias": "all", **entry}}]})
    assert reason_of(answer) == (400, "illegal_argument_exception", reason)
    assert shown(logs) == before


def test_a_data_stream_keeps_its_index(logs: httpx.Client) -> None:
    act(logs, "add", "logs-a", is_write_index=True).raise_for_status()
    refused = reason_of(logs.post("/all/_rollover"))
    assert refused[2].startswith("Aliases to data streams cannot be rolled over.")
    backing = ".ds-logs-a-2023.11.14-000001"
    removal = {"actions": [{"remove_index": {"index": backing}}]}
    assert "is the write index for data stream [logs-a]" in reason_of(logs.post("/_aliases", json=removal))[2]
    assert add(logs, "all", "info").json()["_index"] == backing


def test_where_else_they_are_listed(logs: httpx.Client) -> None:
    act(logs, "add", "logs-*", **ERRORS)
    rows = logs.get("/_cat/aliases?format=json&h=alias,index,filter").json()
    assert rows == [{"alias": "all", "index": name, "filter": "*"} for name in ("logs-a", "logs-b")]
    (found,) = logs.get("/_resolve/index/all").json()["aliases"]
    assert [name[4:10] for name in found["indices"]] == ["logs-a", "logs-b"]
    assert shown(logs, "/logs-b/_alias/all") == {"logs-b": {"all": ERRORS}}


def test_the_command_is_read_as_it_was_written(logs: httpx.Client, node: MemorySearch) -> None:
    action = AliasAction("add_to_stream", "logs-a", "all", {"is_write_index": True})
    assert decode_command(encode_command(UpdateAliases((action,)))) == UpdateAliases((action,))
    assert node.catalog.state.aliases != {}
