"""What a node in a cluster says of itself: `/health`, `/cluster` and the metrics."""

from dataclasses import replace

from actors.raft.log_requests import ClusterView, ViewedMember
from graphdb.node import ClusterMember, ClusterReport, NodeStatus, PeerReport, worse_status

__all__ = ["cluster_report", "node_status"]


def node_status(own: NodeStatus, view: ClusterView | None) -> NodeStatus:
    """The health record. own: the store's, as if it stood alone; view: None while the log is silent."""
    if view is None:
        return replace(
            own,
            status=worse_status(own.status, "degraded"),
            role="follower",
            cluster_members=(),
            replication_lag=None,
            reason=own.reason or "the node's part in the cluster does not answer",
        )
    lag = max(0, view.committed_index - own.snapshot_index) if view.role != "leader" else None
    return replace(
        own,
        status=_status_word(own, view),
        role=_interface_role(view.role),
        current_term=view.term,
        cluster_members=tuple(_health_member(member, own.node_id, view) for member in view.members),
        replication_lag=lag,
        reason=own.reason or _reason(own, view),
    )


def cluster_report(own: NodeStatus, view: ClusterView | None) -> ClusterReport:
    """The report; it knows of nobody while the log does not answer."""
    view = view or ClusterView()
    return ClusterReport(
        node_id=own.node_id,
        role=_role_of(own.node_id, view),
        term=view.term,
        leader_id=view.leader_id,
        commit_index=view.committed_index,
        last_index=view.last_index,
        applied_index=own.snapshot_index,
        elections=view.elections,
        messages_dropped=view.messages_dropped,
        members=tuple(
            PeerReport(
                member.node_id,
                member.address,
                _member_role(member, own.node_id, view),
                member.reachable,
                member.matched_index if member.node_id != own.node_id else _own_match(view),
            )
            for member in view.members
        ),
    )


def _status_word(own: NodeStatus, view: ClusterView) -> str:
    if view.failure is not None:
        return "error"
    return own.status if _reason(own, view) is None else worse_status(own.status, "degraded")


def _reason(own: NodeStatus, view: ClusterView) -> str | None:
    """What is wrong, of several the worst; None where nothing is."""
    if view.failure is not None:
        return "the node's part in the cluster has failed: its log files say why"
    if view.leader_id is None:
        return "no leader of the cluster is known"
    if view.awaits_snapshot or (view.received is not None and view.received.index > own.snapshot_index):
        return "this node waits for a snapshot: the others no longer have all entries that it lacks"
    away = [str(member.node_id) for member in view.members if not member.reachable]
    return f"members that are not reached: {', '.join(away)}" if away else None


def _interface_role(role: str) -> str:
    """The interface knows leader, follower and candidate; who is in no cluster yet will be a follower."""
    return role if role in ("leader", "candidate") else "follower"


def _health_member(member: ViewedMember, own_id: int, view: ClusterView) -> ClusterMember:
    role = _interface_role(_member_role(member, own_id, view))
    return ClusterMember(member.node_id, member.address, role, member.reachable)


def _member_role(member: ViewedMember, own_id: int, view: ClusterView) -> str:
    if member.node_id == own_id and view.role == "candidate":
        return "candidate"
    if member.node_id == view.leader_id:
        return "leader"
    return "follower" if member.voting else "learner"


def _role_of(own_id: int, view: ClusterView) -> str:
    for member in view.members:
        if member.node_id == own_id:
            return _member_role(member, own_id, view)
    return view.role


def _own_match(view: ClusterView) -> int | None:
    return view.last_index if view.role == "leader" else None
