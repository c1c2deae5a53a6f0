"""/health and /metrics, and the list of endpoints at the root."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.memory_backend import MemoryBackend


def test_health_record(client: httpx.Client) -> None:
    answer = client.get("/health")
    assert answer.status_code == 200
    record = answer.json()
    assert isinstance(record.pop("snapshot_index"), int)
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
            "url": "",
            "namespace": "",
            "database": "",
            "ready": False,
            "projection_bootstrapped": False,
            "last_projected_log_index": 0,
            "active_listener_count": 0,
            "listener_role": "none",
        },
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
