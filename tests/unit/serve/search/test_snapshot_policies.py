"""`_slm`: policies that make snapshots by a schedule, and delete old ones."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from graphdb.search.catalog.cron import Schedule
from graphdb.search.catalog.snapshot_policies import MadeSnapshot, expired
from graphdb.search.errors import SearchError
from serve.search.administration.policy_runs import PolicyRuns
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S, wait_until
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard
DAY = 86_400_000
POLICY: dict[str, Any] = {
    "name": "<nightly-{now/d}>",
    "schedule": "0 30 1 * * ?",
    "repository": "backups",
    "config": {"indices": "books", "metadata": {"by": "us"}},
    "retention": {"expire_after": "3d", "min_count": 1, "max_count": 2},
}


@pytest.fixture
def http(node: MemorySearch, tmp_path: Path) -> Iterator[httpx.Client]:
    settings = Settings.model_validate({"search": {"snapshot_paths": [str(tmp_path)]}})
    with (
        serving(build_search_app(node, settings)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        client.put("/books/_doc/1?refresh=true", json={"title": "Emma"}).raise_for_status()
        body = {"type": "fs", "settings": {"location": "a"}}
        client.put("/_snapshot/backups", json=body).raise_for_status()
        client.put("/_slm/policy/nightly", json=POLICY).raise_for_status()
        yield client


def shown(http: httpx.Client) -> Any:
    return http.get("/_slm/policy/nightly").raise_for_status().json()["nightly"]


def taken(http: httpx.Client) -> int:
    count: int = shown(http)["stats"]["snapshots_taken"]
    return count


def test_a_policy_makes_snapshots_and_keeps_the_last(http: httpx.Client, node: MemorySearch) -> None:
    assert shown(http)["policy"] == POLICY
    names = []
    for day in range(3):
        names.append(http.put("/_slm/policy/nightly/_execute").raise_for_status().json()["snapshot_name"])
        wait_until(lambda day=day: taken(http) == day + 1)  # type: ignore[misc]
        node.clock_ms += DAY
    assert names[0].startswith("nightly-2023.11.14-")
    found = http.get("/_snapshot/backups/*").json()["snapshots"]
    assert [one["metadata"] for one in found] == [{"by": "us", "policy": "nightly"}] * 3
    assert shown(http)["last_success"]["snapshot_name"] == names[-1]
    assert http.post("/_slm/_execute_retention").json() == {"acknowledged": True}
    left = {one["snapshot"] for one in http.get("/_snapshot/backups/*").json()["snapshots"]}
    assert left == set(names[1:])
    stats = http.get("/_slm/stats").json()
    assert (stats["retention_runs"], stats["total_snapshots_deleted"]) == (1, 1)
    assert http.delete("/_slm/policy/nightly").json() == {"acknowledged": True}
    assert reason_of(http.get("/_slm/policy/nightly"))[:2] == (404, "resource_not_found_exception")


def test_what_is_due_is_done_where_nothing_rests(
    http: httpx.Client, node: MemorySearch, tmp_path: Path
) -> None:
    settings = Settings.model_validate({"search": {"snapshot_paths": [str(tmp_path)]}})

    async def run() -> None:
        runs = PolicyRuns(build_search_app(node, settings))
        await runs.run(node.catalog.state, node.clock_ms)
        await asyncio.to_thread(wait_until, lambda: not node.catalog.state.snapshot_work)

    asyncio.run(run())
    assert taken(http) == 0  # the night has not come
    assert http.post("/_slm/stop").json() == {"acknowledged": True}
    node.clock_ms = shown(http)["next_execution_millis"]
    asyncio.run(run())
    assert (http.get("/_slm/status").json(), taken(http)) == ({"operation_mode": "STOPPED"}, 0)
    http.post("/_slm/start")
    asyncio.run(run())
    wait_until(lambda: taken(http) == 1)
    asyncio.run(run())
    assert taken(http) == 1
    assert http.get("/_slm/stats").json()["retention_runs"] == 1


def test_a_failure_is_noted(http: httpx.Client) -> None:
    http.delete("/books")
    assert http.put("/_slm/policy/nightly/_execute").status_code == 404
    noted = shown(http)
    assert noted["stats"]["snapshots_failed"] == 1
    assert noted["last_failure"]["details"].startswith("index_not_found_exception")


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"schedule": "* * * * *"}, "action_request_validation_exception"),
        ({"schedule": "0 * * * * ?"}, "illegal_argument_exception"),
        ({"repository": "none"}, "illegal_argument_exception"),
        ({"repository": None}, "illegal_argument_exception"),
        ({"name": "A B"}, "action_request_validation_exception"),
        ({"retention": {"min_count": 3, "max_count": 2}}, "action_request_validation_exception"),
        ({"retention": {"expire_after": "-1d"}}, "action_request_validation_exception"),
        ({"config": {"metadata": {"policy": 1}}}, "action_request_validation_exception"),
        ({"nonsense": 1}, "x_content_parse_exception"),
    ],
)
def test_policies_that_cannot_be(http: httpx.Client, changes: Any, kind: str) -> None:
    assert reason_of(http.put("/_slm/policy/other", json={**POLICY, **changes}))[:2] == (400, kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 30 1 * * ?", "2026-11-30T01:30"),
        ("0 0/15 * * * ?", "2026-11-29T13:30"),
        ("0 0 12 ? * MON-FRI", "2026-11-30T12:00"),
        ("0 0 0 L * ?", "2026-11-30T00:00"),
        ("0 0 0 15W * ?", "2026-12-15T00:00"),
        ("0 0 0 ? * 6#3", "2026-12-18T00:00"),
        ("0 0 0 ? * FRIL", "2026-12-25T00:00"),
        ("0 0 0 29 2 ?", "2028-02-29T00:00"),
        ("0 0 9 ? * FRI-MON", "2026-11-30T09:00"),
        ("0 5 9 1 JAN ? 2027", "2027-01-01T09:05"),
        ("30m", "2026-11-29T13:50"),
        ("0 0 0 1 1 ? 2020", None),
    ],
)
def test_schedules(text: str, expected: str | None) -> None:
    def ms(moment: str) -> int:
        return int(datetime.fromisoformat(f"{moment}:00+00:00").timestamp() * 1000)

    assert Schedule.of(text).next_ms(ms("2026-11-29T13:20")) == (None if expected is None else ms(expected))


@pytest.mark.parametrize(
    "text", ["", "* * * * *", "60 0 0 * * ?", "0 0 0 1 * 2", "0 0 0 32 * ?", "0 0 0 ? * 8"]
)
def test_schedules_that_cannot_be(text: str) -> None:
    with pytest.raises(SearchError):
        Schedule.of(text)


def test_what_a_retention_keeps() -> None:
    made = [MadeSnapshot(name, day * DAY) for day, name in enumerate("abcde")]
    now = 5 * DAY
    assert expired({"expire_after": "2d"}, made, now) == ["a", "b", "c"]
    assert expired({"expire_after": "2d", "min_count": 4}, made, now) == ["a"]
    assert expired({"max_count": 2}, made, now) == ["a", "b", "c"]
    assert expired({"expire_after": "30d", "min_count": 1}, made, now) == []
