"""Reports of a cluster of three, as tests put them behind the edges."""

from graphdb.node import ClusterReport, PeerReport

__all__ = ["follower_report", "leader_report"]


def leader_report() -> ClusterReport:
    """Node 1 leads; 2 has everything but one entry, 3 cannot be reached."""
    return ClusterReport(
        node_id=1,
        role="leader",
        term=4,
        leader_id=1,
        commit_index=17,
        last_index=18,
        applied_index=16,
        elections=2,
        messages_dropped=5,
        members=(
            PeerReport(1, "127.0.0.1:7002", "leader", True, 18),
            PeerReport(2, "[fe80::1]:7012", "follower", True, 16),
            PeerReport(3, "127.0.0.1:7022", "learner", False, 9),
        ),
    )


def follower_report() -> ClusterReport:
    """Node 2 follows node 1, three entries behind, and has never heard of 3."""
    return ClusterReport(
        node_id=2,
        role="follower",
        term=4,
        leader_id=1,
        commit_index=17,
        last_index=17,
        applied_index=14,
        elections=1,
        messages_dropped=0,
        members=(
            PeerReport(1, "127.0.0.1:7002", "leader", True, None),
            PeerReport(2, "[fe80::1]:7012", "follower", True, None),
            PeerReport(3, "127.0.0.1:7022", "follower", False, None),
        ),
    )
