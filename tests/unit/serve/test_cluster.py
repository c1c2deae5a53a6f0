"""/cluster, and what /health and /metrics say of a node in a cluster."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from graphdb.errors import NotLeader, UnavailableError
from graphdb.node import ClusterReport
from tests.support.cluster_reports import follower_report, leader_report
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_cluster import MemoryCluster
from tests.unit.serve.conftest import error_of, update


@pytest.fixture
def cluster(backend: MemoryBackend, client: httpx.Client) -> Iterator[MemoryCluster]:
    """The node leads a cluster of three."""
    backend.peers.report = leader_report()
    yield backend.peers
    backend.peers = MemoryCluster()


MEMBERS = [
    {"node_id": 1, "address": "127.0.0.1:7002", "role": "leader", "reachable": True, "matched_index": 18},
    {"node_id": 2, "address": "[fe80::1]:7012", "role": "follower", "reachable": True, "matched_index": 16},
    {"node_id": 3, "address": "127.0.0.1:7022", "role": "learner", "reachable": False, "matched_index": 9},
]


def ids(answer: httpx.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return [member["node_id"] for member in answer.json()["members"]]


# The report


def test_the_report(client: httpx.Client, cluster: MemoryCluster) -> None:
    answer = client.get("/cluster")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == {
        "node_id": 1,
        "role": "leader",
        "term": 4,
        "leader_id": 1,
        "commit_index": 17,
        "last_index": 18,
        "applied_index": 16,
        "elections": 2,
        "messages_dropped": 5,
        "members": MEMBERS,
    }


def test_the_report_of_a_node_that_stands_alone(client: httpx.Client, backend: MemoryBackend) -> None:
    index = backend.snapshot_index()
    assert client.get("/cluster").json() == {
        "node_id": 1,
        "role": "standalone",
        "term": 0,
        "leader_id": 1,
        "commit_index": index,
        "last_index": index,
        "applied_index": index,
        "elections": 0,
        "messages_dropped": 0,
        "members": [
            {
                "node_id": 1,
                "address": "127.0.0.1:7002",
                "role": "standalone",
                "reachable": True,
                "matched_index": index,
            }
        ],
    }


# Changes


def test_members_come_and_go(client: httpx.Client, cluster: MemoryCluster) -> None:
    answer = client.post("/cluster/members", json={"node_id": 4, "address": "db-4.example:7002"})
    assert ids(answer) == [1, 2, 3, 4]
    [*_, member] = answer.json()["members"]
    assert (member["address"], member["role"]) == ("db-4.example:7002", "learner")
    assert ids(client.post("/cluster/members", json={"node_id": 4, "address": "[::1]:7042"})) == [1, 2, 3, 4]
    assert ids(client.delete("/cluster/members/3")) == [1, 2, 4]
    assert ids(client.delete("/cluster/members/3")) == [1, 2, 4]


def test_leadership_is_handed_over(client: httpx.Client, cluster: MemoryCluster) -> None:
    report = client.post("/cluster/leader", json={"node_id": 2}).json()
    assert (report["leader_id"], report["role"], report["term"]) == (2, "follower", 5)


ADDRESS = "127.0.0.1:7042"
WRONG_MEMBERS: list[tuple[str, str]] = [
    ("", "body"),
    ("not JSON", "body"),
    ("[]", "body"),
    ("null", "body"),
    ('{"node_id": 4, "address": "\xff"}', "body"),
    ("{}", "node_id"),
    ('{"address": "h:1"}', "node_id"),
    ('{"node_id": 4}', "address"),
    ('{"node_id": 4, "address": "h:1", "voting": true}', "voting"),
    *(
        (f'{{"node_id": {value}, "address": "h:1"}}', "node_id")
        for value in ("0", "-1", "4294967296", "1.5", "4.0", '"4"', "true", "null", "[4]", "1e400")
    ),
    *(
        (f'{{"node_id": 4, "address": {value}}}', "address")
        for value in (
            *(
                "7002",
                "null",
                '""',
                '"h"',
                '"h:"',
                '":7002"',
                '"h:0"',
                '"h:65536"',
                '"h:7 002"',
                '"h h:7002"',
            ),
            *('"unix:/tmp/x:1"', '"dns:///h:1"', '"ipv4:1.2.3.4:1"', '"h/x:1"', '"::1:7002"', '"h\\n:1"'),
            '"' + "h" * 254 + ':7002"',
        )
    ),
]


@pytest.mark.parametrize(("body", "name"), WRONG_MEMBERS)
def test_a_member_that_cannot_be(client: httpx.Client, cluster: MemoryCluster, body: str, name: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/cluster/members", content=body.encode("latin-1"), headers=headers)
    assert answer.status_code == 400
    assert error_of(answer).startswith(f"{name}: ")
    assert cluster.report == leader_report()


@pytest.mark.parametrize("body", ["{}", '{"node_id": 0}', '{"node_id": "2"}', '{"node_id": 2, "term": 5}'])
def test_a_leader_that_cannot_be(client: httpx.Client, cluster: MemoryCluster, body: str) -> None:
    answer = client.post("/cluster/leader", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert error_of(answer)
    assert cluster.report == leader_report()


@pytest.mark.parametrize("node_id", ["0", "-1", "x", "1.0", "01", "4294967296", "9" * 30, "%31%20", "\u0663"])
def test_a_number_that_is_none(client: httpx.Client, cluster: MemoryCluster, node_id: str) -> None:
    answer = client.delete(f"/cluster/members/{node_id}")
    assert answer.status_code == 400
    assert error_of(answer).startswith("node_id: ")
    assert cluster.report == leader_report()


@pytest.mark.parametrize("path", ["/cluster/members", "/cluster/leader"])
def test_other_bodies(client: httpx.Client, cluster: MemoryCluster, path: str) -> None:
    fields = {"node_id": 2, "address": ADDRESS}
    for answer in (
        client.post(path, data=fields),
        client.post(path, content=b"{}"),
        client.post(path, content=b"{}", headers={"Content-Type": "text/plain"}),
        client.post(path, content=b"{}", headers={"Content-Type": "application/json; charset=latin-1"}),
    ):
        assert (answer.status_code, "application/json" in error_of(answer)) == (415, True)
    large = client.post(path, json={"node_id": 2, "address": "h" * 5000})
    assert large.status_code == 413
    assert cluster.report == leader_report()


def changes(client: httpx.Client) -> list[httpx.Response]:
    return [
        client.post("/cluster/members", json={"node_id": 4, "address": ADDRESS}),
        client.delete("/cluster/members/2"),
        client.post("/cluster/leader", json={"node_id": 2}),
    ]


def test_a_node_that_stands_alone_has_no_members_to_change(client: httpx.Client) -> None:
    for answer in changes(client):
        assert answer.status_code == 409
        assert error_of(answer) == "this node stands alone: [cluster] enabled is false"


@pytest.mark.parametrize(
    "error", [NotLeader("no node leads the cluster now", 2), UnavailableError("the last voter stays")]
)
def test_changes_that_cannot_be_made_now(
    client: httpx.Client, cluster: MemoryCluster, error: UnavailableError
) -> None:
    cluster.error = error
    for answer in changes(client):
        assert (answer.status_code, error_of(answer)) == (503, str(error))
        assert answer.headers["retry-after"] == str(error.retry_after_s)
    assert client.get("/cluster").status_code == 200


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/cluster", "GET, HEAD, OPTIONS"),
        ("/cluster/members", "POST, OPTIONS"),
        ("/cluster/members/4", "DELETE, OPTIONS"),
        ("/cluster/leader", "POST, OPTIONS"),
    ],
)
def test_methods(client: httpx.Client, path: str, allowed: str) -> None:
    answer = client.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


# Health


def test_the_health_of_a_leader(client: httpx.Client, cluster: MemoryCluster) -> None:
    record = client.get("/health").json()
    assert (record["role"], record["node_id"], record["current_term"]) == ("leader", 1, 4)
    assert record["replication_lag"] is None
    assert record["cluster_members"] == [
        {name: value for name, value in member.items() if name != "matched_index"} for member in MEMBERS
    ]


def test_the_health_of_a_follower(
    client: httpx.Client, backend: MemoryBackend, cluster: MemoryCluster
) -> None:
    cluster.report = follower_report()
    record = client.get("/health").json()
    assert (record["role"], record["node_id"]) == ("follower", 2)
    assert record["replication_lag"] == 17 - backend.snapshot_index()
    assert [member["node_id"] for member in record["cluster_members"]] == [1, 2, 3]


# Metrics


def metrics(client: httpx.Client) -> dict[str, Any]:
    """What is said of the cluster, without the product's words: by name, and node where there is one."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        sample.name.removeprefix("service_service_") + sample.labels.get("node_id", ""): sample.value
        for family in families
        for sample in family.samples
        if any(word in sample.name for word in ("cluster", "leader", "raft", "replication"))
    }


ALWAYS = {
    "cluster_size": 3,
    "cluster_members_reachable": 2,
    "raft_term": 4,
    "raft_commit_index": 17,
}


def test_the_metrics_of_a_leader(client: httpx.Client, cluster: MemoryCluster) -> None:
    assert metrics(client) == ALWAYS | {
        "is_leader": 1,
        "leader_elections_total": 2,
        "raft_last_index": 18,
        "raft_applied_index": 16,
        "raft_messages_dropped_total": 5,
        "raft_matched_index1": 18,
        "raft_matched_index2": 16,
        "raft_matched_index3": 9,
    }


def test_the_metrics_of_a_follower(
    client: httpx.Client, backend: MemoryBackend, cluster: MemoryCluster
) -> None:
    cluster.report = follower_report()
    assert metrics(client) == ALWAYS | {
        "is_leader": 0,
        "leader_elections_total": 1,
        "raft_last_index": 17,
        "raft_applied_index": 14,
        "raft_messages_dropped_total": 0,
        "replication_lag_entries": 17 - backend.snapshot_index(),
    }


def test_the_metrics_of_a_node_that_stands_alone(client: httpx.Client, backend: MemoryBackend) -> None:
    update(client, "INSERT DATA { <http://x/s> <http://x/p> 1 }")
    index = backend.snapshot_index()
    assert metrics(client) == {
        "cluster_size": 1,
        "cluster_members_reachable": 1,
        "is_leader": 1,
        "leader_elections_total": 0,
        "raft_term": 0,
        "raft_commit_index": index,
        "raft_last_index": index,
        "raft_applied_index": index,
        "raft_messages_dropped_total": 0,
        "raft_matched_index1": index,
    }


def test_metrics_are_of_one_moment(
    client: httpx.Client,
    backend: MemoryBackend,
    cluster: MemoryCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[ClusterReport | None] = []

    def report() -> ClusterReport | None:
        asked.append(cluster.report)
        return cluster.report

    monkeypatch.setattr(backend, "cluster", report)
    metrics(client)
    assert asked == [leader_report()]
