"""Data streams over HTTP: made by a template, added to, rolled over, searched, deleted."""

from typing import Any

import httpx
import orjson
import pytest

from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

FIRST = ".ds-logs-web-2023.11.14-000001"
SECOND = ".ds-logs-web-2023.11.15-000002"
TEMPLATE = {
    "index_patterns": ["logs-*"],
    "data_stream": {},
    "priority": 5,
    "_meta": {"by": "us"},
    "template": {"mappings": {"properties": {"level": {"type": "keyword"}}}},
}


@pytest.fixture
def logs(http: httpx.Client) -> httpx.Client:
    assert http.put("/_index_template/logs", json=TEMPLATE).status_code == 200
    return http


def add(http: httpx.Client, name: str = "logs-web", **document: Any) -> httpx.Response:
    return http.post(f"/{name}/_doc?refresh=true", json={"@timestamp": "2023-11-14T10:00:00Z", **document})


def stream(http: httpx.Client, name: str = "logs-web") -> Any:
    (found,) = http.get(f"/_data_stream/{name}").json()["data_streams"]
    return found


def test_a_document_makes_a_stream(logs: httpx.Client, node: MemorySearch) -> None:
    made = add(logs, level="info")
    assert (made.status_code, made.json()["_index"]) == (201, FIRST)
    shown = stream(logs)
    assert (shown["generation"], shown["template"], shown["_meta"]) == (1, "logs", {"by": "us"})
    assert [one["index_name"] for one in shown["indices"]] == [FIRST]
    index = logs.get("/logs-web").json()[FIRST]
    assert (index["data_stream"], index["aliases"]) == ("logs-web", {})
    assert index["settings"]["index"]["hidden"] == "true"
    assert index["mappings"]["properties"] == {"@timestamp": {"type": "date"}, "level": {"type": "keyword"}}
    for names in ("logs-web", "logs-*", "*", "_all", FIRST):
        assert logs.get(f"/{names}/_count").json()["count"] == 1, names
    assert logs.get("/_alias").json() == {FIRST: {"aliases": {}}}
    assert logs.get("/_cat/aliases").text == ""
    assert logs.get("/_resolve/index/logs-*").json()["data_streams"] == [
        {"name": "logs-web", "backing_indices": [FIRST], "timestamp_field": "@timestamp"}
    ]


def test_a_rollover(logs: httpx.Client, node: MemorySearch) -> None:
    assert logs.put("/_data_stream/logs-web").json() == {"acknowledged": True}
    add(logs, level="old")
    node.clock_ms += 24 * 3_600_000
    not_yet = logs.post("/logs-web/_rollover", json={"conditions": {"max_docs": 2}}).json()
    assert (not_yet["rolled_over"], not_yet["new_index"]) == (False, SECOND)
    answer = logs.post("/logs-web/_rollover", json={"conditions": {"max_docs": 1}}).json()
    assert (answer["rolled_over"], answer["old_index"], answer["new_index"]) == (True, FIRST, SECOND)
    assert add(logs, level="new").json()["_index"] == SECOND
    assert [one["index_name"] for one in stream(logs)["indices"]] == [FIRST, SECOND]
    assert stream(logs)["generation"] == 2
    found = logs.post("/logs-web/_search", json={"query": {"term": {"level": "old"}}}).json()
    assert [hit["_index"] for hit in found["hits"]["hits"]] == [FIRST]
    statistics = logs.get("/_data_stream/logs-*/_stats").json()
    assert (statistics["data_stream_count"], statistics["backing_indices"]) == (1, 2)
    assert statistics["data_streams"][0]["maximum_timestamp"] == 1_699_956_000_000
    refused = reason_of(logs.delete(f"/{SECOND}"))
    assert refused[1:] == (
        "illegal_argument_exception",
        f"index [{SECOND}] is the write index for data stream [logs-web] and cannot be deleted",
    )
    assert logs.delete(f"/{FIRST}").status_code == 200
    assert [one["index_name"] for one in stream(logs)["indices"]] == [SECOND]
    assert logs.post("/logs-web/_rollover", json={"settings": {}}).status_code == 400
    assert logs.post("/logs-web/_rollover/other").status_code == 400


def test_documents_are_only_added(logs: httpx.Client) -> None:
    add(logs)
    only = "only write ops with an op_type of create are allowed in data streams"
    document = {"@timestamp": 0}
    for refused in (
        logs.put("/logs-web/_doc/1", json=document),
        logs.delete("/logs-web/_doc/1"),
        logs.post("/logs-web/_update/1", json={"doc": document}),
    ):
        assert reason_of(refused) == (400, "illegal_argument_exception", only)
    assert logs.put("/logs-web/_create/1", json=document).status_code == 201
    for missing in ({}, {"@timestamp": None}, {"@timestamp": [1, 2]}, {"@timestamp": "no time"}):
        assert reason_of(logs.post("/logs-web/_doc", json=missing))[1] == "document_parsing_exception"
    lines: list[Any] = [{"create": {}}, document, {"index": {}}, document, {"create": {}}, {"a": 1}]
    content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    headers = {"content-type": "application/x-ndjson"}
    items = logs.post("/logs-web/_bulk?refresh=true", content=content, headers=headers).json()["items"]
    assert [next(iter(item.values()))["status"] for item in items] == [201, 400, 400]
    # by query, through the indexes behind it
    body = {"query": {"ids": {"values": ["1"]}}}
    assert logs.post("/logs-web/_delete_by_query", json=body).json()["deleted"] == 1


def test_deletion(logs: httpx.Client) -> None:
    for name in ("logs-a", "logs-b", "logs-c"):
        add(logs, name)
    assert reason_of(logs.delete("/logs-a"))[1] == "illegal_argument_exception"
    assert reason_of(logs.delete("/_index_template/logs"))[1] == "illegal_argument_exception"
    assert logs.delete("/_data_stream/logs-a").json() == {"acknowledged": True}
    assert logs.get("/logs-a/_count").status_code == 404
    assert reason_of(logs.delete("/_data_stream/logs-a"))[:2] == (404, "index_not_found_exception")
    assert logs.delete("/_data_stream/logs-*").status_code == 200
    assert logs.get("/_data_stream").json() == {"data_streams": []}
    assert logs.get("/_count").json()["count"] == 0
    assert logs.delete("/_index_template/logs").status_code == 200


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/_data_stream/logs-there", "resource_already_exists_exception"),
        ("/_data_stream/other", "illegal_argument_exception"),  # no template
        ("/_data_stream/Logs-x", "invalid_index_name_exception"),
        ("/_data_stream/.ds-logs", "illegal_argument_exception"),
        ("/logs-index", "illegal_argument_exception"),  # the template is for data streams
        ("/plain/_alias/logs-there", "illegal_argument_exception"),
    ],
)
def test_what_cannot_be(logs: httpx.Client, path: str, kind: str) -> None:
    add(logs, "logs-there")
    logs.put("/plain")
    assert reason_of(logs.put(path))[1] == kind
    assert logs.get("/_data_stream").json()["data_streams"][0]["name"] == "logs-there"


def test_the_timestamp_is_a_date(http: httpx.Client) -> None:
    keyword = {"mappings": {"properties": {"@timestamp": {"type": "keyword"}}}}
    refused = http.put("/_index_template/t", json={**TEMPLATE, "template": keyword})
    assert reason_of(refused)[:2] == (400, "illegal_argument_exception")
    cause = refused.json()["error"]["caused_by"]["caused_by"]["reason"]
    assert cause == (
        "data stream timestamp field [@timestamp] is of type [keyword], but [date,date_nanos] is expected"
    )


@pytest.mark.parametrize("options", [1, {"hidden": 1}, {"colour": True}])
def test_templates_that_cannot_be(http: httpx.Client, options: Any) -> None:
    body = {"index_patterns": ["a"], "data_stream": options}
    assert http.put("/_index_template/t", json=body).status_code == 400


def test_a_hidden_stream(http: httpx.Client) -> None:
    http.put("/_index_template/logs", json={**TEMPLATE, "data_stream": {"hidden": True}})
    add(http)
    assert http.get("/_data_stream").json() == {"data_streams": []}
    assert http.get("/_data_stream?expand_wildcards=all").json()["data_streams"][0]["hidden"]
    assert stream(http)["name"] == "logs-web"
    assert http.get("/logs-*/_count").json()["count"] == 0
    assert http.get("/logs-web/_count").json()["count"] == 1


def test_streams_are_made_only_where_indexes_are(logs: httpx.Client) -> None:
    logs.put("/_cluster/settings", json={"persistent": {"action.auto_create_index": "-logs-*,+*"}})
    assert reason_of(add(logs))[:2] == (404, "index_not_found_exception")
    logs.put("/_index_template/logs", json={**TEMPLATE, "allow_auto_create": True})
    assert add(logs).status_code == 201
    logs.put("/_index_template/logs", json={**TEMPLATE, "allow_auto_create": False})
    assert reason_of(add(logs, "logs-other"))[:2] == (404, "index_not_found_exception")
    assert add(logs).status_code == 201
