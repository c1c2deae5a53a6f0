"""`graphdb cluster`."""

import json

import pytest

from graphdb.errors import NotLeader
from tests.support.cluster_reports import follower_report, leader_report
from tests.support.memory_backend import MemoryBackend
from tests.unit.cli.conftest import Run


def lines(out: str) -> list[list[str]]:
    """The cells of the table's lines, without the rule below its head, and the summary as one cell."""
    return [
        [cell.strip() for cell in line.replace("┃", "│").split("│")]
        for line in out.splitlines()
        if "━" not in line
    ]


HEAD = ["node", "address", "role", "reachable", "log index", "behind"]


def test_status_by_the_leader(graphdb: Run, endpoint: str, backend: MemoryBackend) -> None:
    backend.peers.report = leader_report()
    done = graphdb("cluster", "status")
    assert (done.exit_code, done.err) == (0, "")
    assert lines(done.out) == [
        HEAD,
        ["1", "127.0.0.1:7002", "leader", "yes", "18", "0"],
        ["2", "[fe80::1]:7012", "follower", "yes", "16", "1"],
        ["3", "127.0.0.1:7022", "learner", "no", "9", "8"],
        ["node 1 leads in term 4, index 17 is committed; node 1: index 16 applied, elections seen: 2"],
    ]


def test_status_by_a_follower(graphdb: Run, endpoint: str, backend: MemoryBackend) -> None:
    backend.peers.report = follower_report()
    assert lines(graphdb("cluster", "status").out) == [
        HEAD,
        ["1", "127.0.0.1:7002", "leader", "yes", "-", "-"],
        ["2", "[fe80::1]:7012", "follower", "yes", "17", "0"],
        ["3", "127.0.0.1:7022", "follower", "no", "-", "-"],
        ["node 1 leads in term 4, index 17 is committed; node 2: index 14 applied, elections seen: 1"],
    ]


def test_status_of_a_node_that_stands_alone(graphdb: Run, endpoint: str) -> None:
    done = graphdb("cluster", "status")
    assert done.exit_code == 0
    assert lines(done.out)[1] == ["1", "127.0.0.1:7002", "standalone", "yes", "0", "0"]


def test_status_as_it_is(graphdb: Run, endpoint: str, backend: MemoryBackend) -> None:
    backend.peers.report = leader_report()
    report = json.loads(graphdb("cluster", "status", "--format", "json").out)
    assert report["members"][2] == {
        "node_id": 3,
        "address": "127.0.0.1:7022",
        "role": "learner",
        "reachable": False,
        "matched_index": 9,
    }


def test_health_shows_addresses_as_they_are(graphdb: Run, endpoint: str, backend: MemoryBackend) -> None:
    backend.peers.report = leader_report()
    assert "address: [fe80::1]:7012, role: follower" in graphdb("health").out


def members(backend: MemoryBackend) -> list[tuple[int, str]]:
    assert backend.peers.report is not None
    return [(member.node_id, member.address) for member in backend.peers.report.members]


def test_changes(graphdb: Run, endpoint: str, backend: MemoryBackend) -> None:
    backend.peers.report = leader_report()
    done = graphdb("cluster", "add", "4@db-4.example:7002")
    assert (done.exit_code, done.err) == (0, "")
    assert done.out == "node 4 at db-4.example:7002 may come; it votes when it has caught up\n"
    assert members(backend)[3:] == [(4, "db-4.example:7002")]
    assert graphdb("cluster", "add", "4@[::1]:7042").out.startswith("node 4 at [::1]:7042 may come")
    assert members(backend)[3:] == [(4, "[::1]:7042")]
    assert graphdb("cluster", "remove", 3).out == "node 3 is no member now\n"
    assert [node_id for node_id, _ in members(backend)] == [1, 2, 4]
    assert graphdb("cluster", "lead", 2).out == "node 2 leads\n"
    assert backend.peers.report is not None
    assert backend.peers.report.leader_id == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "db-4:7002"),
        ("add", "0@db-4:7002"),
        ("add", "4@"),
        ("add", "4"),
        ("add",),
        ("remove", "x"),
        ("remove", "0"),
        ("lead",),
    ],
)
def test_calls_that_mean_nothing(
    graphdb: Run, endpoint: str, backend: MemoryBackend, arguments: tuple[str, ...]
) -> None:
    backend.peers.report = leader_report()
    done = graphdb("cluster", *arguments)
    assert (done.exit_code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert backend.peers.report == leader_report()


@pytest.mark.parametrize("arguments", [("add", "4@h:7002"), ("remove", 2), ("lead", 2)])
def test_what_the_service_refuses(
    graphdb: Run, endpoint: str, backend: MemoryBackend, arguments: tuple[object, ...]
) -> None:
    done = graphdb("cluster", *arguments)
    assert (done.exit_code, done.err) == (
        1,
        "graphdb: the service answered 409: this node stands alone: [cluster] enabled is false\n",
    )
    backend.peers.report = leader_report()
    backend.peers.error = NotLeader("no node leads the cluster now")
    done = graphdb("cluster", *arguments)
    assert (done.exit_code, done.err) == (
        1,
        "graphdb: the service answered 503: no node leads the cluster now\n",
    )


def test_an_address_that_the_service_refuses(graphdb: Run, endpoint: str, backend: MemoryBackend) -> None:
    backend.peers.report = leader_report()
    done = graphdb("cluster", "add", "4@unix:/tmp/x:1")
    assert done.exit_code == 1
    assert done.err.startswith("graphdb: the service answered 400: address: ")


def test_nobody_there(graphdb: Run) -> None:
    done = graphdb("cluster", "status", "--endpoint", "http://127.0.0.1:9")
    assert (done.exit_code, done.err) == (
        1,
        "graphdb: nothing answers at http://127.0.0.1:9; is the service running?\n",
    )
