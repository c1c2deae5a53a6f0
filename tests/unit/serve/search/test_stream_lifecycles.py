"""Lifecycles of data streams over HTTP; indexes that come into data streams, and leave them."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from actors.search.lifecycle_keeper import LifecycleKeeper
from graphdb.errors import UnavailableError
from graphdb.search.catalog.catalog_commands import Command, ModifyDataStreams
from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

DAY_MS = 86_400_000


def with_template(http: httpx.Client, **template: Any) -> None:
    body = {"index_patterns": ["logs*"], "data_stream": {}, "template": template}
    assert http.put("/_index_template/logs", json=body).status_code == 200


@pytest.fixture
def logs(http: httpx.Client) -> httpx.Client:
    with_template(http, lifecycle={"data_retention": "10d"})
    http.put("/_data_stream/logs")
    return http


def lifecycle(http: httpx.Client, name: str = "logs", options: str = "") -> Any:
    (found,) = http.get(f"/_data_stream/{name}/_lifecycle{options}").json()["data_streams"]
    return found.get("lifecycle")


def add(http: httpx.Client) -> None:
    document = {"@timestamp": "2023-11-14T10:00:00Z"}
    assert http.post("/logs/_doc?refresh=true", json=document).status_code == 201


TEN_DAYS = {
    "enabled": True,
    "data_retention": "10d",
    "effective_retention": "10d",
    "retention_determined_by": "data_stream_configuration",
}


def test_a_template_says_how_long_documents_are_kept(logs: httpx.Client) -> None:
    assert lifecycle(logs) == TEN_DAYS
    (shown,) = logs.get("/_data_stream/logs").json()["data_streams"]
    assert (shown["lifecycle"], shown["next_generation_managed_by"]) == (TEN_DAYS, "Data stream lifecycle")
    assert shown["indices"][0]["managed_by"] == "Data stream lifecycle"
    template = logs.get("/_index_template/logs").json()["index_templates"][0]["index_template"]
    assert template["template"]["lifecycle"] == {"enabled": True, "data_retention": "10d"}
    assert lifecycle(logs, options="?include_defaults=true")["rollover"]["max_age"] == "1d"


def test_components_say_it_too_and_what_is_above_counts(http: httpx.Client) -> None:
    component = {"template": {"lifecycle": {"data_retention": "10d", "enabled": False}}}
    http.put("/_component_template/c", json=component)
    body = {"index_patterns": ["logs*"], "data_stream": {}, "composed_of": ["c"],
            "template": {"lifecycle": {"enabled": True}}}  # fmt: skip
    http.put("/_index_template/logs", json=body)
    http.put("/_data_stream/logs")
    assert lifecycle(http) == TEN_DAYS


def test_it_is_changed_and_taken_away(logs: httpx.Client) -> None:
    logs.put("/_data_stream/logs2")
    assert logs.put("/_data_stream/*/_lifecycle", json={"data_retention": "1h", "enabled": False}).json() == {
        "acknowledged": True
    }
    assert lifecycle(logs, "logs2")["data_retention"] == "1h"
    assert logs.get("/_lifecycle/stats").json() == {"data_stream_count": 0, "data_streams": []}
    assert logs.put("/_data_stream/logs/_lifecycle", json={}).status_code == 200
    assert lifecycle(logs) == {"enabled": True}
    assert logs.delete("/_data_stream/logs/_lifecycle").json() == {"acknowledged": True}
    assert (lifecycle(logs), lifecycle(logs, "logs2")["enabled"]) == (None, False)
    assert reason_of(logs.put("/_data_stream/none/_lifecycle", json={}))[:2] == (
        404,
        "index_not_found_exception",
    )


@pytest.mark.parametrize(
    "body",
    [
        {"retention": "1d"},
        {"data_retention": "1"},
        {"data_retention": "0s"},
        {"enabled": "yes"},
        {"downsampling": [{"after": "1d", "fixed_interval": "1h"}]},
    ],
)
def test_lifecycles_that_cannot_be(logs: httpx.Client, body: dict[str, Any]) -> None:
    assert reason_of(logs.put("/_data_stream/logs/_lifecycle", json=body))[0] == 400
    template = {"index_patterns": ["x"], "data_stream": {}, "template": {"lifecycle": body}}
    assert logs.put("/_index_template/x", json=template).status_code == 400
    assert lifecycle(logs) == TEN_DAYS


def test_only_templates_of_data_streams_have_one(http: httpx.Client) -> None:
    body = {"index_patterns": ["x"], "template": {"lifecycle": {}}}
    assert "data stream" in reason_of(http.put("/_index_template/x", json=body))[2]


def look(node: MemorySearch, later_ms: int) -> None:
    node.clock_ms += later_ms
    asyncio.run(LifecycleKeeper(node.perform, node.now_ms, 30).look(node.catalog.state))


def test_documents_go_when_their_time_has_come(logs: httpx.Client, node: MemorySearch) -> None:
    look(node, 2 * DAY_MS)
    assert logs.get("/_data_stream/logs").json()["data_streams"][0]["generation"] == 1  # it is empty
    add(logs)
    look(node, 2 * DAY_MS)
    names = [one["index_name"] for one in logs.get("/_data_stream/logs").json()["data_streams"][0]["indices"]]
    assert len(names) == 2
    explained = logs.get("/logs/_lifecycle/explain").json()["indices"]
    assert (explained[names[0]]["time_since_rollover"], explained[names[0]]["lifecycle"]) == ("0ms", TEN_DAYS)
    assert "rollover_date_millis" not in explained[names[1]]
    assert logs.get("/_lifecycle/stats").json()["data_streams"][0]["backing_indices_in_total"] == 2
    look(node, 9 * DAY_MS)
    assert len(logs.get("/_data_stream/logs").json()["data_streams"][0]["indices"]) == 2
    look(node, 2 * DAY_MS)
    left = [one["index_name"] for one in logs.get("/_data_stream/logs").json()["data_streams"][0]["indices"]]
    assert left == names[1:]


def test_an_index_that_names_a_policy_is_the_policys(logs: httpx.Client, node: MemorySearch) -> None:
    logs.put("/_ilm/policy/p", json={"policy": {"phases": {}}})
    logs.put("/logs/_settings", json={"index.lifecycle.name": "p"})
    add(logs)
    look(node, 2 * DAY_MS)
    (shown,) = logs.get("/_data_stream/logs").json()["data_streams"]
    (index,) = shown["indices"]
    assert (index["managed_by"], index["ilm_policy"]) == ("Index Lifecycle Management", "p")
    assert logs.get("/logs/_lifecycle/explain").json()["indices"][index["index_name"]] == {
        "index": index["index_name"], "managed_by_lifecycle": False
    }  # fmt: skip
    logs.put("/logs/_settings", json={"index.lifecycle.prefer_ilm": False})
    look(node, 0)
    assert logs.get("/_data_stream/logs").json()["data_streams"][0]["generation"] == 2


TIMED = {"mappings": {"properties": {"@timestamp": {"type": "date"}}}}


def modify(http: httpx.Client, kind: str, index: str, stream: str = "logs") -> httpx.Response:
    action = {f"{kind}_backing_index": {"data_stream": stream, "index": index}}
    return http.post("/_data_stream/_modify", json={"actions": [action]})


def indexes_of(http: httpx.Client, stream: str = "logs") -> list[str]:
    (shown,) = http.get(f"/_data_stream/{stream}").json()["data_streams"]
    return [one["index_name"] for one in shown["indices"]]


def test_indexes_come_into_a_data_stream_and_leave_it(logs: httpx.Client) -> None:
    logs.post("/logs/_rollover")
    first, written = indexes_of(logs)
    logs.put("/old", json=TIMED)
    logs.put("/old/_doc/1?refresh=true", json={"@timestamp": "2009-11-15T14:12:12"})
    assert modify(logs, "add", "old").json() == {"acknowledged": True}
    assert indexes_of(logs) == ["old", first, written]
    assert logs.get("/logs/_count").json()["count"] == 1
    assert logs.get("/_data_stream/logs").json()["data_streams"][0]["generation"] == 3
    assert logs.get("/old/_settings").json()["old"]["settings"]["index"]["hidden"] == "true"
    assert "it is the write index" in reason_of(modify(logs, "remove", written))[2]
    assert modify(logs, "remove", "old").json() == {"acknowledged": True}
    assert indexes_of(logs) == [first, written]
    assert (logs.get("/logs/_count").json()["count"], logs.get("/old/_count").json()["count"]) == (0, 1)
    logs.post("/logs/_rollover")
    assert len(indexes_of(logs)) == 3


def is_hidden(http: httpx.Client, index: str) -> bool:
    settings = http.get(f"/{index}/_settings").json()[index]["settings"]["index"]
    return bool(settings.get("hidden") == "true")


def test_a_stop_after_any_entry_of_the_log_leaves_nothing_half_done(
    logs: httpx.Client, node: MemorySearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request is one entry: none is left to be written when a node stops after the first."""

    def stop_after_one(patched: pytest.MonkeyPatch) -> None:
        performed, entries = node.perform, iter([1])

        async def perform(command: Command) -> Any:
            if next(entries, None) is None:
                raise UnavailableError("the node has stopped")
            return await performed(command)

        patched.setattr(node, "perform", perform)

    logs.put("/old", json=TIMED)
    logs.put("/one", json={**TIMED, "aliases": {"logs-m": {"is_write_index": True}}})
    changes: list[Callable[[], httpx.Response]] = [
        lambda: modify(logs, "add", "old"),
        lambda: modify(logs, "remove", "old"),
        lambda: logs.post("/_data_stream/_migrate/logs-m"),
        lambda: logs.put("/old/_settings?reopen=true", json={"index.similarity.default.type": "boolean"}),
    ]
    for change in changes:
        with monkeypatch.context() as patched:
            stop_after_one(patched)
            assert change().json() == {"acknowledged": True}
    assert (is_hidden(logs, "old"), is_hidden(logs, "one")) == (False, True)


def test_entries_of_before_hide_nothing_by_themselves(logs: httpx.Client, node: MemorySearch) -> None:
    logs.put("/old", json=TIMED)
    old = node.catalog.find("old")
    assert old is not None
    node.catalog.apply(ModifyDataStreams((("add", "logs", old.uuid),)), 1_000, 0).get()
    assert (indexes_of(logs)[0], is_hidden(logs, "old")) == ("old", False)


def test_what_cannot_come_in_or_leave(logs: httpx.Client) -> None:
    logs.put("/plain")
    logs.put("/named", json={**TIMED, "aliases": {"a": {}}})
    (written,) = indexes_of(logs)
    problems = {
        "plain": "is of type [null]",
        "named": "until its alias [a] is removed",
        "none": "index [none] not found",
        written: "already a backing index",
    }
    for index, reason in problems.items():
        status, kind, said = reason_of(modify(logs, "add", index))
        assert (status, kind) == (400, "illegal_argument_exception")
        assert reason in said
    assert "is not part of" in reason_of(modify(logs, "remove", "plain"))[2]
    assert "not found" in reason_of(modify(logs, "add", "named", "none"))[2]
    bodies: list[Any] = [None, {}, {"actions": []}, {"actions": [{"move": {}}]}, {"actions": [1]}]
    for body in bodies:
        assert logs.post("/_data_stream/_modify", json=body).status_code == 400
    assert indexes_of(logs) == [written]


def test_an_alias_becomes_a_data_stream(http: httpx.Client) -> None:
    with_template(http)
    http.put("/one", json={**TIMED, "aliases": {"logs": {"is_write_index": True}}})
    http.put("/two", json={**TIMED, "aliases": {"logs": {}}})
    for name in ("one", "two"):
        http.put(f"/{name}/_doc/1?refresh=true", json={"@timestamp": "2009-11-15T14:12:12"})
    assert http.post("/_data_stream/_migrate/logs").json() == {"acknowledged": True}
    assert indexes_of(http) == ["two", "one"]
    found = http.get("/_resolve/index/*?expand_wildcards=all").json()
    assert [(one["name"], one["data_stream"]) for one in found["indices"]] == [
        ("one", "logs"),
        ("two", "logs"),
    ]
    assert (found["aliases"], found["data_streams"][0]["backing_indices"]) == ([], ["two", "one"])
    add(http)
    assert http.get("/logs/_count").json()["count"] == 3
    http.post("/logs/_rollover")
    assert len(indexes_of(http)) == 3
    assert http.delete("/_data_stream/logs").json() == {"acknowledged": True}
    assert http.get("/_cat/indices?expand_wildcards=all&h=index").text == ""


def test_aliases_that_become_none(http: httpx.Client) -> None:
    assert "does not exist" in reason_of(http.post("/_data_stream/_migrate/none"))[2]
    http.put("/one", json={**TIMED, "aliases": {"logs": {}, "logs-f": {"filter": {"match_all": {}}}}})
    assert "no matching index template" in reason_of(http.post("/_data_stream/_migrate/logs"))[2]
    with_template(http)
    assert "other aliases" in reason_of(http.post("/_data_stream/_migrate/logs"))[2]
    assert "custom filtering" in reason_of(http.post("/_data_stream/_migrate/logs-f"))[2]
    http.put("/two", json={**TIMED, "aliases": {"logs-w": {}}})
    http.put("/three", json={**TIMED, "aliases": {"logs-w": {}}})
    assert "must specify a write index" in reason_of(http.post("/_data_stream/_migrate/logs-w"))[2]
    assert http.get("/_data_stream").json() == {"data_streams": []}
