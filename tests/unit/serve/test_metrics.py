"""/health and /metrics, and the list of endpoints at the root."""

import contextlib
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from graphdb.config import Settings
from graphdb.errors import (
    EvaluationFailed,
    NotAcceptable,
    Overloaded,
    QueryCancelled,
    QueryMemoryExceeded,
    QueryTimeout,
)
from graphdb.log.views import ViewStatus
from graphdb.node import RunningQuery
from serve.graph.metrics import HostMetrics, ViewMetrics
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.leaving_client import leave
from tests.support.memory_backend import MemoryBackend
from tests.support.scripted_backend import HANG, ScriptedBackend, ScriptedStream, Step
from tests.support.timing import HANG_S

OUTCOMES_TOTAL = "service_service_query_outcomes_total"
KILLED_TOTAL = "service_service_queries_killed_total"


def test_health_record(client: httpx.Client) -> None:
    answer = client.get("/health")
    assert answer.status_code == 200
    record = answer.json()
    index = record.pop("snapshot_index")
    assert isinstance(index, int)
    assert record == {
        "status": "healthy",
        "role": "standalone",
        "node_id": 1,
        "current_term": 0,
        "cluster_members": [
            {"node_id": 1, "address": "127.0.0.1:7002", "role": "standalone", "reachable": True}
        ],
        "replication_lag": None,
        "index_loaded": True,
        "uptime_seconds": 0,
        "embedded_store": {
            "url": "embedded:live",
            "namespace": "graphdb",
            "database": "default",
            "ready": True,
            "projection_bootstrapped": True,
            "last_projected_log_index": index,
            "active_listener_count": 0,
            "listener_role": "standalone",
        },
        "views": {"quads": "following"},
    }


@pytest.mark.parametrize(("word", "status"), [("degraded", 200), ("starting", 503), ("error", 503)])
def test_health_status(client: httpx.Client, backend: MemoryBackend, word: str, status: int) -> None:
    backend.status_word = word
    try:
        answer = client.get("/health")
    finally:
        backend.status_word = "healthy"
    assert (answer.status_code, answer.json()["status"]) == (status, word)
    assert ("retry-after" in answer.headers) == (status == 503)


@pytest.mark.parametrize(
    ("graph", "search", "node"),
    [
        ("healthy", "healthy", "healthy"),
        ("healthy", "starting", "starting"),
        ("healthy", "degraded", "degraded"),
        ("degraded", "healthy", "degraded"),
        ("degraded", "starting", "starting"),
        ("starting", "healthy", "starting"),
        ("starting", "degraded", "starting"),
        ("error", "starting", "error"),
    ],
)
def test_health_is_of_both_ports(graph: str, search: str, node: str) -> None:
    backend = MemoryBackend()
    backend.status_word = graph
    app = build_app(backend, Settings(), search_word=lambda: search)
    with serving(app) as url, httpx.Client(base_url=url, trust_env=False) as client:
        answer = client.get("/health")
    assert answer.json()["status"] == node
    assert answer.status_code == (200 if node in ("healthy", "degraded") else 503)


def samples(client: httpx.Client) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.text)
    return {
        sample.name: sample.value for family in families for sample in family.samples if not sample.labels
    }


def test_queries_are_counted(client: httpx.Client) -> None:
    before = samples(client)
    for query in ("ASK {}", "SELECT * { ?s ?p ?o . ?o ?q ?r }", "SELECT (1/0 AS ?x) {}"):
        assert client.get("/sparql", params={"query": query}).status_code == 200
    client.get("/sparql", params={"query": "not a query"})
    after = samples(client)
    for name in ("service_service_queries_total", "service_service_query_duration_seconds_count"):
        assert after[name] - before[name] == 3
    assert (
        after["service_service_query_duration_seconds_sum"]
        > before["service_service_query_duration_seconds_sum"]
    )


def test_a_query_that_moves_to_a_worker_is_counted_once(client: httpx.Client) -> None:
    rows = " , ".join(f'"{number:01000}"' for number in range(200))
    headers = {"Content-Type": "application/sparql-update"}
    client.post("/update", content=f"INSERT DATA {{ <urn:long> <urn:p> {rows} }}", headers=headers)
    before = samples(client)
    answer = client.get("/sparql", params={"query": "SELECT ?o { <urn:long> <urn:p> ?o }"})
    assert len(answer.json()["results"]["bindings"]) == 200
    assert samples(client)["service_service_queries_total"] - before["service_service_queries_total"] == 1


def labelled(client: httpx.Client, name: str) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        next(iter(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def growth(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after if after[name] != before[name]}


OUTCOMES: dict[str, list[Step]] = {
    "ok": [b"abc"],
    "overloaded": [Overloaded("too much")],
    "failed": [EvaluationFailed("no")],
    "timeout": [b"abc", QueryTimeout("late")],
    "memory": [QueryMemoryExceeded("much")],
    "cancelled": [b"a", b"b", QueryCancelled("no")],
    "broken": [b"a", b"b", EvaluationFailed("no")],
    "rejected": [NotAcceptable("text/csv", ())],
    "disconnected": [HANG],
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_outcomes_and_kills(outcome: str) -> None:
    backend = ScriptedBackend()
    stream = ScriptedStream(*OUTCOMES[outcome])
    backend.answer_with(stream)
    with (
        serving(build_app(backend, Settings())) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        before = [labelled(client, name) for name in (OUTCOMES_TOTAL, KILLED_TOTAL)]
        query = "SELECT * { ?s ?p ?o . ?o ?q ?r }"
        if outcome == "disconnected":
            leave(f"{url}/sparql", lambda: stream.hangs_since, query=query)
        else:
            with contextlib.suppress(httpx.RemoteProtocolError):
                client.get("/sparql", params={"query": query}, timeout=HANG_S)
        deadline = time.monotonic() + HANG_S
        while not (grown := growth(before[0], labelled(client, OUTCOMES_TOTAL))):
            assert time.monotonic() < deadline
        assert grown == {outcome: 1}
        killed = {outcome: 1} if outcome in ("timeout", "memory", "cancelled", "disconnected") else {}
        assert growth(before[1], labelled(client, KILLED_TOTAL)) == killed
        assert samples(client)["service_service_queries_total"] == 1


def test_refusals_before_evaluation_are_no_queries(client: httpx.Client) -> None:
    before, queries = labelled(client, OUTCOMES_TOTAL), samples(client)["service_service_queries_total"]
    client.get("/sparql", params={"query": "not a query"})
    client.get("/sparql", params={"query": "ASK {}", "timeout": "x"})
    client.post("/sparql", content="ASK {}")
    assert growth(before, labelled(client, OUTCOMES_TOTAL)) == {"rejected": 3}
    assert samples(client)["service_service_queries_total"] == queries


def test_the_cache_is_counted(client: httpx.Client) -> None:
    query = {"query": "SELECT * { ?s ?p ?o . ?o ?q ?r } # for the cache"}
    before, outcomes = samples(client), labelled(client, OUTCOMES_TOTAL)
    for headers in ({}, {}, {}, {"Cache-Control": "no-cache"}, {"If-None-Match": "*"}):
        client.get("/sparql", params=query, headers=headers)
    after = samples(client)
    name = "service_service_query_cache"
    assert after[f"{name}_hits_total"] - before[f"{name}_hits_total"] == 2
    assert after[f"{name}_misses_total"] - before[f"{name}_misses_total"] == 1
    assert after[f"{name}_entries"] >= 1
    assert after[f"{name}_bytes"] > len(query["query"])
    assert growth(outcomes, labelled(client, OUTCOMES_TOTAL)) == {"ok": 2, "cached": 2, "not_modified": 1}
    assert after["service_service_queries_total"] - before["service_service_queries_total"] == 5


def test_running_and_queued_queries() -> None:
    class Busy(ScriptedBackend):
        def running_queries(self) -> list[RunningQuery]:
            states = ["running", "queued", "queued"]
            return [RunningQuery("", "", "SELECT", state, None, "", 0.0, None) for state in states]

    with serving(build_app(Busy(), Settings())) as url, httpx.Client(base_url=url, trust_env=False) as client:
        found = samples(client)
    assert found["service_service_queries_running"] == 1
    assert found["service_service_queries_queued"] == 2


def test_every_metric_of_the_interface_and_the_process(client: httpx.Client) -> None:
    text = client.get("/metrics").text
    assert 'service_service_query_duration_seconds_bucket{le="+Inf"}' in text
    found = samples(client)
    assert found["service_service_cluster_size"] == 1
    assert found["service_service_is_leader"] == 1
    assert found["service_service_leader_elections_total"] == 0
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
        assert found[name] > 0


def test_open_metrics_where_asked_for(client: httpx.Client) -> None:
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_the_root_lists_what_is_there(client: httpx.Client) -> None:
    for path in client.get("/").json()["endpoints"]:
        assert client.options(path).status_code == 204


class _Admin:
    def __init__(self, *statuses: ViewStatus) -> None:
        self.statuses = list(statuses)

    def view_statuses(self) -> list[ViewStatus]:
        return self.statuses


def sample(admin: Any, name: str, view: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(ViewMetrics(admin))
    return registry.get_sample_value(f"service_service_view_{name}", {"view": view})


def test_a_view_is_reported_as_it_fares() -> None:
    admin = _Admin(ViewStatus("quads", "waiting", 7, 9, "the disk is full", 3, 5, 0.25))
    names = ("index", "entries_behind", "waiting", "entries_total", "apply_seconds_total", "failures_total")
    assert [sample(admin, name, "quads") for name in names] == [7, 2, 1, 5, 0.25, 3]


def test_of_several_views_the_furthest_behind_is_reported_and_the_sums() -> None:
    admin = _Admin(
        ViewStatus("principals", "following", 9, 9, None, 1, 5, 0.5),
        ViewStatus("principals", "starting", 4, 9, None, 2, 6, 0.25),
    )
    names = ("index", "entries_behind", "waiting", "entries_total", "apply_seconds_total", "failures_total")
    assert [sample(admin, name, "principals") for name in names] == [4, 5, 0, 11, 0.75, 3]


def test_without_views_there_is_nothing() -> None:
    assert sample(_Admin(), "index", "quads") is None


def test_the_host(tmp_path: Path) -> None:
    found = {metric.name: metric.samples[0].value for metric in HostMetrics(tmp_path).collect()}
    assert (
        0 < found["service_service_host_memory_available_bytes"] < found["service_service_host_memory_bytes"]
    )
    assert 0 < found["service_service_disk_free_bytes"] < found["service_service_disk_bytes"]


def test_a_disk_that_cannot_be_read_is_not_reported(tmp_path: Path) -> None:
    names = [metric.name for metric in HostMetrics(tmp_path / "missing").collect()]
    assert names == ["service_service_host_memory_bytes", "service_service_host_memory_available_bytes"]
