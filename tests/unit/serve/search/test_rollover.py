"""`_rollover`: which conditions count, and what becomes of the alias."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


def filled(http: httpx.Client, aliases: dict[str, Any]) -> None:
    http.put("/logs-1", json={"aliases": aliases})
    http.post("/logs-1/_doc?refresh=true", json={"x": 1})


def test_an_alias_is_moved(http: httpx.Client) -> None:
    filled(http, {"logs": {}})
    answer = http.post(
        "/logs/_rollover", json={"settings": {"refresh_interval": "9s"}, "aliases": {"all": {}}}
    )
    assert answer.json() == {
        "acknowledged": True, "shards_acknowledged": True, "old_index": "logs-1", "new_index": "logs-000002",
        "rolled_over": True, "dry_run": False, "lazy": False, "conditions": {},
    }  # fmt: skip
    assert http.get("/_alias").json() == {
        "logs-1": {"aliases": {}}, "logs-000002": {"aliases": {"logs": {}, "all": {}}}
    }  # fmt: skip
    assert http.post("/logs/_doc", json={"x": 2}).json()["_index"] == "logs-000002"


def test_an_alias_that_says_what_is_written_to_keeps_both(http: httpx.Client) -> None:
    filled(http, {"logs": {"is_write_index": True}})
    assert http.post("/logs/_rollover/next").json()["new_index"] == "next"
    assert http.get("/_alias/logs").json() == {
        "logs-1": {"aliases": {"logs": {"is_write_index": False}}},
        "next": {"aliases": {"logs": {"is_write_index": True}}},
    }
    assert http.post("/logs/_count").json()["count"] == 1


@pytest.mark.parametrize(
    ("conditions", "rolls"),
    [
        ({"max_docs": 1}, True),
        ({"max_docs": 2}, False),
        ({"max_docs": 2, "max_age": "0ms"}, True),
        ({"max_docs": 1, "min_docs": 2}, False),
        ({"max_docs": 1, "min_docs": 1}, True),
        ({"max_primary_shard_docs": 1, "max_size": "9gb"}, True),
        ({"max_primary_shard_size": "0b"}, True),
    ],
)
def test_conditions(http: httpx.Client, conditions: dict[str, Any], rolls: bool) -> None:
    filled(http, {"logs": {}})
    dry = http.post("/logs/_rollover?dry_run=true", json={"conditions": conditions}).json()
    assert (dry["rolled_over"], dry["acknowledged"], dry["dry_run"]) == (False, False, True)
    answer = http.post("/logs/_rollover", json={"conditions": conditions}).json()
    assert answer["conditions"] == dry["conditions"]
    assert answer["conditions"].keys() == {f"[{name}: {value}]" for name, value in conditions.items()}
    assert answer["rolled_over"] is rolls
    assert (http.head("/logs-000002").status_code == 200) is rolls


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/logs-1/_rollover", {}, "rollover target is a [concrete index]"),
        ("/both/_rollover", {}, "does not point to a write index"),
        ("/odd/_rollover", {}, "index name [other] does not match pattern"),
        ("/logs/_rollover/logs-1", {}, "already exists"),
        ("/logs/_rollover", {"condition": {}}, "[rollover] unknown field [condition]"),
        ("/logs/_rollover", {"conditions": {"max_weight": 1}}, "failed to parse field [conditions]"),
        ("/logs/_rollover", {"conditions": {"max_docs": "many"}}, "failed to parse [max_docs]"),
        ("/logs/_rollover", {"conditions": {"max_size": "9"}}, "unit is missing"),
        ("/logs/_rollover", {"conditions": {"max_age": "9"}}, "unit is missing"),
        ("/logs/_rollover", {"conditions": []}, "must be an object"),
        ("/logs/_rollover", {"conditions": {"min_docs": 1}}, "at least one max_* rollover condition"),
    ],
)
def test_refused(http: httpx.Client, path: str, body: dict[str, Any], reason: str) -> None:
    filled(http, {"logs": {}, "both": {}})
    http.put("/other", json={"aliases": {"both": {}, "odd": {}}})
    status, _, given = reason_of(http.post(path, json=body))
    assert status == 400
    assert reason in given
    assert http.get("/_alias/logs").json() == {"logs-1": {"aliases": {"logs": {}}}}


def test_a_target_that_is_not_there(http: httpx.Client) -> None:
    assert reason_of(http.post("/none/_rollover")) == (
        404, "resource_not_found_exception", "rollover target [none] does not exist"
    )  # fmt: skip


def test_what_a_template_would_make(http: httpx.Client) -> None:
    http.put("/_component_template/c", json={"template": {"settings": {"number_of_shards": 2}}})
    low = {"index_patterns": ["a*"], "priority": 1, "template": {"aliases": {"x": {}}}}
    http.put("/_index_template/low", json=low)
    high: dict[str, Any] = {
        "index_patterns": ["ab*"],
        "priority": 2,
        "composed_of": ["c"],
        "template": {"mappings": {"properties": {"n": {"type": "long"}}}},
    }
    expected = {
        "template": {
            "settings": {"index": {"number_of_shards": "2"}},
            "mappings": {"properties": {"n": {"type": "long"}}},
            "aliases": {},
        },
        "overlapping": [{"name": "low", "index_patterns": ["a*"]}],
    }
    assert http.post("/_index_template/_simulate", json=high).json() == expected
    assert http.post("/_index_template/_simulate_index/abc", json=high).json() == expected
    assert http.get("/_index_template/high").status_code == 404  # nothing was stored
    assert http.post("/_index_template/_simulate_index/abc").json()["template"]["aliases"] == {"x": {}}
    assert http.post("/_index_template/_simulate_index/b").json() == {}
    http.put("/_index_template/high", json=high)
    assert http.post("/_index_template/_simulate/high").json() == expected
    assert http.post("/_index_template/_simulate/none").status_code == 400
    assert http.post("/_index_template/_simulate").status_code == 400
