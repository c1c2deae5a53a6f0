"""Requests that go on without their client: `_tasks`, rates and ends."""

import time
from typing import Any

import httpx
import pytest

from graphdb.access.principal import EVERYONE
from serve.search.frame.tasks import Tasks
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.asking import principal_of
from tests.unit.serve.search.conftest import SETTINGS, one_shard, reason_of

pytestmark = one_shard

ALL: dict[str, Any] = {"query": {"match_all": {}}}
SLOW = "wait_for_completion=false&scroll_size=5&requests_per_second=0.001"


@pytest.fixture(autouse=True)
def _documents(http: httpx.Client) -> None:
    lines = [f'{{"index":{{"_id":"{n}"}}}}\n{{"n":{n}}}\n' for n in range(20)]
    headers = {"Content-Type": "application/x-ndjson"}
    http.post("/books/_bulk?refresh=true", content="".join(lines), headers=headers).raise_for_status()


def begun(http: httpx.Client, path: str, body: Any = ALL) -> str:
    task = http.post(path, json=body).raise_for_status().json()["task"]
    assert isinstance(task, str)
    return task


def ended(http: httpx.Client, task: str) -> dict[str, Any]:
    answer: dict[str, Any] = http.get(f"/_tasks/{task}?wait_for_completion=true&timeout=5m").json()
    assert answer["completed"] is True
    return answer


def until_first_batch(http: httpx.Client, task: str) -> dict[str, Any]:
    """What is shown of a slow task once it waits."""
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        answer: dict[str, Any] = http.get(f"/_tasks/{task}").json()
        if answer["task"]["status"]["throttled_until_millis"]:
            return answer
    raise AssertionError(f"{task} has not come to its first pause")


def test_the_result_is_kept(http: httpx.Client) -> None:
    body = {"source": {"index": "books"}, "dest": {"index": "copies"}}
    answer = ended(http, begun(http, "/_reindex?wait_for_completion=false&refresh=true", body))
    assert (answer["response"]["total"], answer["response"]["created"]) == (20, 20)
    assert answer["task"]["action"] == "indices:data/write/reindex"
    assert answer["task"]["description"] == "reindex from [books] to [copies]"
    assert answer["task"]["status"]["created"] == 20
    assert http.get("/copies/_count").json()["count"] == 20


def test_a_failure_is_kept(http: httpx.Client) -> None:
    body: dict[str, Any] = {"query": {"nope": {}}}
    answer = ended(http, begun(http, "/books/_delete_by_query?wait_for_completion=false", body))
    assert answer["error"]["type"] == "parsing_exception"
    assert "response" not in answer


def test_a_slow_task_is_watched_sped_up_and_ends(http: httpx.Client) -> None:
    task = begun(http, f"/books/_update_by_query?{SLOW}")
    shown = until_first_batch(http, task)
    assert shown["completed"] is False
    status = shown["task"]["status"]
    assert (status["total"], status["updated"], status["batches"]) == (20, 5, 1)
    assert status["requests_per_second"] == 0.001
    node = task.partition(":")[0]
    listed = http.get("/_tasks?actions=*byquery&detailed").json()["nodes"][node]["tasks"]
    assert list(listed) == [task]
    assert listed[task]["description"] == "update-by-query [books]"
    assert "description" not in http.get("/_tasks?actions=*byquery").json()["nodes"][node]["tasks"][task]
    assert [one["id"] for one in http.get("/_tasks?group_by=none&actions=*byquery").json()["tasks"]] == [
        int(task.partition(":")[2])
    ]
    assert list(http.get("/_tasks?group_by=parents&actions=*byquery").json()["tasks"]) == [task]
    assert http.get("/_tasks?nodes=elsewhere").json() == {"nodes": {}}
    assert "indices:data/write/update/byquery" in http.get("/_cat/tasks").text
    sped = http.post(f"/_reindex/{task}/_rethrottle?requests_per_second=-1").json()
    assert list(sped["nodes"][node]["tasks"]) == [task]
    answer = ended(http, task)["response"]
    assert (answer["updated"], answer["batches"], answer["requests_per_second"]) == (20, 4, -1.0)
    assert answer["throttled_millis"] >= 0


def test_a_cancelled_task_ends_after_its_batch(http: httpx.Client) -> None:
    task = begun(http, f"/books/_delete_by_query?{SLOW}")
    until_first_batch(http, task)
    cancelled = http.post(f"/_tasks/{task}/_cancel?wait_for_completion=true").json()
    assert next(iter(cancelled["nodes"].values()))["tasks"][task]["cancelled"] is True
    answer = ended(http, task)["response"]
    assert (answer["deleted"], answer["canceled"]) == (5, "by user request")
    assert http.post("/_tasks/_cancel?actions=nothing").json() == {"nodes": {}}
    gone = http.post(f"/_tasks/{task}/_cancel").json()
    assert gone["node_failures"][0]["caused_by"]["type"] == "resource_not_found_exception"


def test_a_rate_holds_for_those_who_wait(http: httpx.Client) -> None:
    answer = http.post("/books/_update_by_query?scroll_size=10&requests_per_second=100").json()
    assert (answer["updated"], answer["requests_per_second"]) == (20, 100.0)
    assert answer["took"] >= 99  # 10 documents, then a pause, then 10


def test_what_is_refused(http: httpx.Client) -> None:
    assert reason_of(http.get("/_tasks/cat"))[:2] == (400, "illegal_argument_exception")
    assert reason_of(http.get("/_tasks/other:1"))[:2] == (404, "resource_not_found_exception")
    here = next(iter(http.get("/_tasks").json()["nodes"]))
    assert reason_of(http.get(f"/_tasks/{here}:999999"))[:2] == (404, "resource_not_found_exception")
    assert reason_of(http.get("/_tasks?group_by=cat"))[0] == 400
    assert reason_of(http.post(f"/_reindex/{here}:1/_rethrottle"))[0] == 400
    answer = http.post("/_reindex/test:007/_rethrottle?requests_per_second=2").json()
    assert answer["node_failures"][0]["caused_by"]["type"] == "no_such_node_exception"
    slow = f"/books/_update_by_query?{SLOW}&conflicts=proceed"
    running = [begun(http, slow) for _ in range(100)]
    assert reason_of(http.post(slow, json=ALL))[0] == 429
    with_rate = "/books/_update_by_query?requests_per_second=0.001"
    assert reason_of(http.post(with_rate, json=ALL))[0] == 429
    http.post("/_tasks/_cancel?wait_for_completion=true").raise_for_status()
    ended(http, running[-1])


def test_a_task_is_its_authors() -> None:
    tasks = Tasks(1)
    anna, berta = principal_of("anna"), principal_of("berta")
    task = tasks.begin("a", "secret", anna, 0, {})
    with tasks.shown(task):
        assert tasks.running(anna) == tasks.running(EVERYONE) == [task]
        assert tasks.running(berta) == []
        assert tasks.find(task.number, berta) is None
    assert tasks.running(anna) == []


def test_a_task_that_ended_with_its_node_is_told_from_one_that_never_was(
    node: MemorySearch, http: httpx.Client
) -> None:
    """Its copy may be half of what was asked for."""
    body = {"source": {"index": "books"}, "dest": {"index": "copies"}}
    task = begun(http, f"/_reindex?{SLOW}", body)
    until_first_batch(http, task)
    here, _, number = task.partition(":")
    status, _, reason = reason_of(http.get(f"/_tasks/{here}:{int(number) + 1_000}"))
    assert (status, "started again" in reason) == (404, False)
    node.clock_ms += 10_000
    with (
        serving(build_search_app(node, SETTINGS)) as url,  # as after another start
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as later,
    ):
        assert begun(later, "/_reindex?wait_for_completion=false", body) != task
        status, kind, reason = reason_of(later.get(f"/_tasks/{task}"))
    assert (status, kind) == (404, "resource_not_found_exception")
    assert "its node has been started again since" in reason
    http.post(f"/_tasks/{task}/_cancel?wait_for_completion=true").raise_for_status()
