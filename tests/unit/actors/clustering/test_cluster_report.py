"""What a node in a cluster says of itself, for each thing that its log may know."""

from dataclasses import replace

import pytest

from actors.clustering.cluster_report import cluster_report, node_status
from actors.raft.log_requests import ClusterView, ReceivedSnapshot, ViewedMember
from graphdb.node import ClusterMember, ClusterReport, NodeStatus, PeerReport

OWN = NodeStatus(
    status="healthy",
    role="standalone",
    node_id=1,
    snapshot_index=40,
    current_term=0,
    cluster_members=(ClusterMember(1, "host1:7002", "standalone", True),),
    replication_lag=None,
    index_loaded=True,
    uptime_seconds=5,
)
FOLLOWS = ClusterView(
    version=9,
    role="follower",
    term=4,
    leader_id=2,
    committed_index=45,
    last_index=47,
    elections=3,
    messages_dropped=6,
    snapshot_wanted=False,
    received=None,
    failure=None,
    members=(
        ViewedMember(1, "host1:7002", True, True, None),
        ViewedMember(2, "host2:7002", True, True, None),
        ViewedMember(3, "host3:7002", False, True, None),
    ),
)
LEADS = replace(
    FOLLOWS,
    role="leader",
    leader_id=1,
    members=(
        ViewedMember(1, "host1:7002", True, True, None),
        ViewedMember(2, "host2:7002", True, True, 46),
        ViewedMember(3, "host3:7002", False, False, 0),
    ),
)
CANDIDATE = replace(FOLLOWS, role="candidate", leader_id=None)
NEWCOMER = replace(FOLLOWS, role="newcomer", leader_id=None, term=0, members=())


def test_a_follower() -> None:
    assert node_status(OWN, FOLLOWS) == replace(
        OWN,
        role="follower",
        current_term=4,
        replication_lag=5,
        cluster_members=(
            ClusterMember(1, "host1:7002", "follower", True),
            ClusterMember(2, "host2:7002", "leader", True),
            ClusterMember(3, "host3:7002", "follower", True),
        ),
    )
    assert cluster_report(OWN, FOLLOWS) == ClusterReport(
        node_id=1,
        role="follower",
        term=4,
        leader_id=2,
        commit_index=45,
        last_index=47,
        applied_index=40,
        elections=3,
        messages_dropped=6,
        members=(
            PeerReport(1, "host1:7002", "follower", True, None),
            PeerReport(2, "host2:7002", "leader", True, None),
            PeerReport(3, "host3:7002", "learner", True, None),
        ),
    )


def test_a_leader() -> None:
    status = node_status(OWN, LEADS)
    assert (status.status, status.role, status.replication_lag) == ("degraded", "leader", None)
    assert [member.role for member in status.cluster_members] == ["leader", "follower", "follower"]
    assert [member.reachable for member in status.cluster_members] == [True, True, False]
    report = cluster_report(OWN, LEADS)
    assert (report.role, report.leader_id) == ("leader", 1)
    assert report.members == (
        PeerReport(1, "host1:7002", "leader", True, 47),
        PeerReport(2, "host2:7002", "follower", True, 46),
        PeerReport(3, "host3:7002", "learner", False, 0),
    )


@pytest.mark.parametrize(
    "waiting",
    [replace(FOLLOWS, awaits_snapshot=True), replace(FOLLOWS, received=ReceivedSnapshot(45, "tree"))],
)
def test_a_follower_that_waits_for_a_snapshot(waiting: ClusterView) -> None:
    """Of the leader, or for its store to become one that has come."""
    status = node_status(OWN, waiting)
    assert (status.status, status.role) == ("degraded", "follower")
    assert status.reason is not None
    assert "waits for a snapshot" in status.reason
    assert (
        node_status(replace(OWN, snapshot_index=45), replace(waiting, awaits_snapshot=False)).reason is None
    )


def test_what_is_told_first_is_what_the_node_itself_lacks() -> None:
    assert node_status(replace(OWN, status="degraded", reason="the disk is full"), CANDIDATE).reason == (
        "the disk is full"
    )


def test_a_candidate() -> None:
    status = node_status(OWN, CANDIDATE)
    assert (status.status, status.role) == ("degraded", "candidate")
    assert status.reason == "no leader of the cluster is known"
    assert [member.role for member in status.cluster_members] == ["candidate", "follower", "follower"]
    report = cluster_report(OWN, CANDIDATE)
    assert (report.role, report.leader_id) == ("candidate", None)
    assert [member.role for member in report.members] == ["candidate", "follower", "learner"]


def test_a_newcomer_is_a_follower_to_the_interface() -> None:
    status = node_status(replace(OWN, status="starting"), NEWCOMER)
    assert (status.status, status.role, status.cluster_members) == ("starting", "follower", ())
    report = cluster_report(OWN, NEWCOMER)
    assert (report.role, report.members) == ("newcomer", ())


def test_a_learner() -> None:
    own = replace(OWN, node_id=3)
    assert node_status(own, FOLLOWS).role == "follower"
    assert cluster_report(own, FOLLOWS).role == "learner"


def test_while_the_log_is_silent() -> None:
    reason = "the node's part in the cluster does not answer"
    expected = replace(OWN, status="degraded", role="follower", cluster_members=(), reason=reason)
    assert node_status(OWN, None) == expected
    assert cluster_report(OWN, None) == ClusterReport(1, "follower", 0, None, 0, 0, 40, 0, 0, ())


def test_a_store_that_is_ahead_of_a_restarted_log_has_no_lag() -> None:
    assert node_status(OWN, replace(FOLLOWS, committed_index=0)).replication_lag == 0


@pytest.mark.parametrize(
    ("own", "view", "word"),
    [
        ("healthy", FOLLOWS, "healthy"),
        ("healthy", replace(FOLLOWS, leader_id=None), "degraded"),
        ("healthy", LEADS, "degraded"),
        ("degraded", FOLLOWS, "degraded"),
        ("starting", LEADS, "starting"),
        ("error", LEADS, "error"),
        ("starting", None, "starting"),
        ("error", None, "error"),
        ("healthy", None, "degraded"),
        ("healthy", replace(FOLLOWS, failure="the journal is damaged"), "error"),
        ("starting", replace(FOLLOWS, failure="the journal is damaged"), "error"),
    ],
)
def test_the_word_for_it(own: str, view: ClusterView | None, word: str) -> None:
    assert node_status(replace(OWN, status=own), view).status == word
