"""Lifecycles of indexes over HTTP, and what they do with time."""

from itertools import count
from typing import Any

import httpx
import pytest

from graphdb.search.catalog.catalog_commands import DeleteIndices, PutSettings, RollOver
from graphdb.search.catalog.lifecycles import due_commands
from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

HOUR, DAY = 3_600_000, 86_400_000
HOT = {"actions": {"rollover": {"max_age": "1d", "max_docs": 3}, "set_priority": {"priority": 100}}}
PHASES = {
    "hot": HOT,
    "warm": {"min_age": "1h", "actions": {"readonly": {}, "forcemerge": {"max_num_segments": 1}}},
    "delete": {"min_age": "2d", "actions": {"delete": {}}},
}


@pytest.fixture
def logs(http: httpx.Client) -> httpx.Client:
    """A policy, which data streams and the indexes `old-...` have."""
    put = http.put("/_ilm/policy/p", json={"policy": {"phases": PHASES, "_meta": {"by": "us"}}})
    assert put.json() == {"acknowledged": True}
    template = {"settings": {"index.lifecycle.name": "p"}}
    body = {"index_patterns": ["logs-*"], "data_stream": {}, "template": template}
    http.put("/_index_template/t", json=body).raise_for_status()
    return http


def act(node: MemorySearch) -> list[str]:
    """Do what is due, as the node that leads does; what was done."""
    numbers, now_ms, done = count(1), node.clock_ms, []
    for command in due_commands(node.catalog.state, now_ms, lambda: f"{now_ms}-{next(numbers)}"):
        node.catalog.check(command)
        node._apply(command)
        done.append(type(command).__name__)
    return done


def explained(http: httpx.Client, name: str) -> Any:
    return http.get(f"/{name}/_ilm/explain").json()["indices"]


def test_the_life_of_a_data_stream(logs: httpx.Client, node: MemorySearch) -> None:
    first, second = ".ds-logs-a-2023.11.14-000001", ".ds-logs-a-2023.11.16-000002"
    logs.put("/_data_stream/logs-a")
    node.clock_ms += 2 * DAY
    assert act(node) == []  # an empty one is not rolled over
    logs.post("/logs-a/_doc?refresh=true", json={"@timestamp": 1})
    assert explained(logs, "logs-a")[first] | {"x": 0} == explained(logs, "logs-a")[first] | {
        "x": 0,
        "managed": True,
        "policy": "p",
        "phase": "hot",
        "action": "rollover",
        "step": "check-rollover-ready",
        "age": "2d",
    }
    assert act(node) == [RollOver.__name__]
    assert logs.post("/logs-a/_doc", json={"@timestamp": 1}).json()["_index"] == second
    assert act(node) == []
    assert explained(logs, "logs-a")[first]["age"] == "0ms"  # since the rollover
    node.clock_ms += HOUR
    assert act(node) == [PutSettings.__name__]
    assert logs.get(f"/{first}").json()[first]["settings"]["index"]["blocks"] == {"write": "true"}
    assert explained(logs, first)[first]["phase"] == "warm"
    assert act(node) == []
    node.clock_ms += 2 * DAY
    assert act(node) == [DeleteIndices.__name__]  # the second is empty as far as a search finds
    (stream,) = logs.get("/_data_stream/logs-a").json()["data_streams"]
    assert [one["index_name"] for one in stream["indices"]] == [second]


def test_the_life_of_an_alias(logs: httpx.Client, node: MemorySearch) -> None:
    settings = {"index.lifecycle.name": "p", "index.lifecycle.rollover_alias": "old"}
    logs.put("/_template/old", json={"index_patterns": ["old-*"], "settings": settings})
    logs.put("/old-000001", json={"aliases": {"old": {"is_write_index": True}}})
    for number in range(3):
        logs.put(f"/old/_doc/{number}?refresh=true", json={})
    assert act(node) == [RollOver.__name__]
    assert logs.put("/old/_doc/3", json={}).json()["_index"] == "old-000002"
    node.clock_ms += 2 * DAY
    logs.post("/old/_refresh")
    assert act(node) == [DeleteIndices.__name__, RollOver.__name__]
    assert logs.get("/_alias/old").json().keys() == {"old-000002", "old-000003"}


def test_without_rollover_the_creation_counts(http: httpx.Client, node: MemorySearch) -> None:
    delete = {"delete": {"min_age": "1d", "actions": {"delete": {}}}}
    http.put("/_ilm/policy/short", json={"policy": {"phases": delete}})
    for name, origin in (("a", -1), ("b", node.clock_ms + DAY)):
        settings = {"index.lifecycle.name": "short", "index.lifecycle.origination_date": origin}
        http.put(f"/{name}", json={"settings": settings})
    http.put("/c", json={"settings": {"index.lifecycle.name": "none"}})
    http.put("/d")
    node.clock_ms += DAY
    assert act(node) == [DeleteIndices.__name__]
    assert http.head("/a").status_code == 404
    shown = explained(http, "*")
    assert [(name, one["managed"], one.get("step")) for name, one in sorted(shown.items())] == [
        ("b", True, "complete"),
        ("c", True, "ERROR"),
        ("d", False, None),
    ]
    assert explained(http, "*?only_managed&only_errors".partition("?")[0]).keys() == {"b", "c", "d"}
    assert http.get("/*/_ilm/explain?only_errors").json()["indices"].keys() == {"c"}
    assert http.post("/b/_ilm/remove").json() == {"has_failures": False, "failed_indexes": []}
    assert explained(http, "b")["b"] == {"index": "b", "managed": False}


def move(http: httpx.Client, index: str, current: str, following: str) -> httpx.Response:
    """Both as phase/action/name."""
    names = ("phase", "action", "name")
    steps = [dict(zip(names, step.split("/"), strict=False)) for step in (current, following)]
    return http.post(f"/_ilm/move/{index}", json={"current_step": steps[0], "next_step": steps[1]})


def test_an_index_is_moved_to_a_phase(logs: httpx.Client, node: MemorySearch) -> None:
    logs.put("/a", json={"settings": {"index.lifecycle.name": "p"}})
    assert move(logs, "a", "hot/complete/complete", "delete").json() == {"acknowledged": True}
    assert explained(logs, "a")["a"]["phase"] == "delete"
    assert act(node) == [DeleteIndices.__name__]
    logs.put("/b", json={"settings": {"index.lifecycle.name": "p"}})
    assert move(logs, "b", "hot/complete/complete", "warm/readonly/readonly").status_code == 200
    assert act(node) == [PutSettings.__name__]
    assert explained(logs, "b")["b"]["phase"] == "warm"
    logs.put("/_ilm/policy/q", json={"policy": {"phases": {"warm": {"min_age": "1h"}}}})
    logs.put("/b/_settings", json={"index.lifecycle.name": "q"})
    assert explained(logs, "b")["b"]["phase"] == "new"  # that phase was one of the other policy
    assert reason_of(logs.put("/b/_settings", json={"index.lifecycle.moved_to": "warm"}))[0] == 400


def test_a_copy_of_an_index_that_was_moved_begins_its_own_lifecycle(logs: httpx.Client) -> None:
    logs.put("/a", json={"settings": {"index.lifecycle.name": "p"}})
    move(logs, "a", "hot/complete/complete", "warm").raise_for_status()
    logs.put("/a/_settings", json={"index.blocks.write": True})
    logs.post("/a/_clone/b").raise_for_status()
    shown = explained(logs, "a,b")
    assert (shown["a"]["phase"], shown["b"]["phase"]) == ("warm", "hot")


def test_a_move_leaves_a_rollover_behind(logs: httpx.Client, node: MemorySearch) -> None:
    logs.post("/logs-a/_doc?refresh=true", json={"@timestamp": 1})
    (first,) = explained(logs, "logs-a")
    assert move(logs, first, "hot/rollover/check-rollover-ready", "delete").status_code == 200
    assert act(node) == []  # what a data stream writes to is never deleted
    logs.post("/logs-a/_rollover")
    assert act(node) == [DeleteIndices.__name__]


@pytest.mark.parametrize(
    ("index", "current", "following", "reason"),
    [
        (
            "a",
            "warm/forcemerge/forcemerge",
            "warm",
            'index [a] is not on current step [{"phase":"warm","action":"forcemerge","name":"forcemerge"}], '
            'currently: [{"phase":"hot","action":"complete","name":"complete"}]',
        ),
        (
            "a",
            "hot/complete/complete",
            "invalid/invalid/invalid",
            'step [{"phase":"invalid","action":"invalid","name":"invalid"}] for index [a] with policy [p] '
            "does not exist",
        ),
        ("a", "hot/complete/complete", "warm/shrink", "does not exist"),
        ("b", "hot/x/after", "warm", "index [b] is not associated with an Index Lifecycle Policy"),
        ("c", "hot/x/after", "warm", "index [c] does not exist"),
        ("a", "hot", "warm", "[current_step] needs [phase], [action] and [name]"),
    ],
)
def test_moves_that_cannot_be(
    logs: httpx.Client, index: str, current: str, following: str, reason: str
) -> None:
    logs.put("/a", json={"settings": {"index.lifecycle.name": "p"}})
    logs.put("/b")
    status, kind, said = reason_of(move(logs, index, current, following))
    assert (status, kind) == (400, "illegal_argument_exception")
    assert reason in said
    assert explained(logs, "a")["a"]["phase"] == "hot"


def test_lifecycles_rest(logs: httpx.Client, node: MemorySearch) -> None:
    logs.put("/a", json={"settings": {"index.lifecycle.name": "p"}})
    assert logs.post("/_ilm/stop").json() == {"acknowledged": True}
    assert logs.get("/_ilm/status").json() == {"operation_mode": "STOPPED"}
    node.clock_ms += 3 * DAY
    assert act(node) == []
    logs.post("/_ilm/start")
    assert logs.get("/_ilm/status").json() == {"operation_mode": "RUNNING"}
    assert act(node) == [DeleteIndices.__name__]


def test_a_step_in_whose_way_something_is(logs: httpx.Client, node: MemorySearch) -> None:
    settings = {"index.lifecycle.name": "p", "index.lifecycle.rollover_alias": "old"}
    logs.put("/old-1", json={"settings": settings, "aliases": {"old": {"is_write_index": True}}})
    logs.put("/old-000002")
    logs.put("/other", json={"settings": {"index.lifecycle.name": "p"}})
    for number in range(3):
        logs.put(f"/old-1/_doc/{number}?refresh=true", json={})
    shown = explained(logs, "old-1")["old-1"]
    assert shown["phase_execution"] == {
        "policy": "p",
        "phase_definition": HOT,
        "version": 1,
        "modified_date_in_millis": node.clock_ms,
    }
    assert (shown["phase"], shown["action"], shown["step"], shown["failed_step"]) == (
        "hot",
        "rollover",
        "ERROR",
        "attempt-rollover",
    )
    assert shown["step_info"]["type"] == "resource_already_exists_exception"
    assert logs.get("/*/_ilm/explain?only_errors").json()["indices"].keys() == {"old-1"}
    assert logs.post("/old-1/_ilm/retry").json() == {"acknowledged": True}
    assert explained(logs, "old-1")["old-1"]["step"] == "ERROR"
    logs.delete("/old-000002")
    assert explained(logs, "old-1")["old-1"]["step"] == "check-rollover-ready"
    for name, reason in (
        ("old-1", "cannot retry an action for an index [old-1] that has not encountered an error"),
        ("other", "cannot retry an action for an index [other]"),
        ("none", "index [none] does not exist"),
    ):
        assert reason in reason_of(logs.post(f"/{name}/_ilm/retry"))[2]


def test_policies(logs: httpx.Client) -> None:
    logs.post("/logs-a/_doc", json={"@timestamp": 1})
    shown = logs.get("/_ilm/policy/p").json()["p"]
    assert (shown["version"], shown["policy"]["phases"]) == (1, PHASES)
    assert shown["in_use_by"] == {
        "indices": [".ds-logs-a-2023.11.14-000001"],
        "data_streams": ["logs-a"],
        "composable_templates": ["t"],
    }
    logs.put("/_ilm/policy/p", json={"policy": {"phases": {}}})
    assert logs.get("/_ilm/policy").json()["p"]["version"] == 2
    assert reason_of(logs.delete("/_ilm/policy/p"))[1] == "illegal_argument_exception"
    logs.delete("/_data_stream/logs-a")
    assert logs.delete("/_ilm/policy/p").json() == {"acknowledged": True}
    for answer in (logs.get("/_ilm/policy/p"), logs.delete("/_ilm/policy/p")):
        assert reason_of(answer)[:2] == (404, "resource_not_found_exception")
    assert logs.get("/_ilm/policy").json() == {}
    assert logs.get("/_ilm/status").json() == {"operation_mode": "RUNNING"}


@pytest.mark.parametrize(
    "policy",
    [
        None,
        {},
        {"phases": []},
        {"phases": {"lukewarm": {}}},
        {"phases": {"hot": 1}},
        {"phases": {"hot": {"min_age": "soon"}}},
        {"phases": {"hot": {"actions": {"rollover": {}}}}},
        {"phases": {"hot": {"actions": {"rollover": {"max_age": "soon"}}}}},
        {"phases": {"hot": {"actions": {"rollover": {"max_colour": 1}}}}},
        {"phases": {"warm": {"actions": {"rollover": {"max_docs": 1}}}}},
        {"phases": {"hot": {"actions": {"delete": {}}}}},
        {"phases": {"hot": {"actions": {"dance": {}}}}},
        {"phases": {"cold": {"actions": {"searchable_snapshot": {}}}}},
        {"phases": {}, "colour": 1},
    ],
)
def test_policies_that_cannot_be(http: httpx.Client, policy: Any) -> None:
    assert http.put("/_ilm/policy/bad", json={"policy": policy}).status_code == 400
    assert http.get("/_ilm/policy").json() == {}
