"""The cluster that a `MemoryBackend` says it is in: whatever a test has said, changed as it is asked to."""

from dataclasses import replace

from graphdb.errors import NotClustered
from graphdb.node import ClusterReport, Consistency, PeerReport

__all__ = ["MemoryCluster"]


class MemoryCluster:
    """No cluster, until a test sets `report`. Whatever is in `error` is raised in place of answers."""

    def __init__(self) -> None:
        self.report: ClusterReport | None = None
        self.error: Exception | None = None
        self.reached: list[tuple[Consistency, float]] = []  # what readers have asked for, and their time left

    def reach(self, consistency: Consistency, timeout_s: float) -> None:
        self.reached.append((consistency, timeout_s))
        if self.error is not None:
            raise self.error

    def add_member(self, node_id: int, address: str) -> None:
        others = [member for member in self._present().members if member.node_id != node_id]
        self._set([*others, PeerReport(node_id, address, "learner", True, 0)])

    def remove_member(self, node_id: int) -> None:
        self._set([member for member in self._present().members if member.node_id != node_id])

    def hand_over(self, node_id: int) -> None:
        def role(peer: PeerReport) -> str:
            if peer.node_id == node_id:
                return "leader"
            return "follower" if peer.role == "leader" else peer.role

        report = self._present()
        self._set([replace(peer, role=role(peer)) for peer in report.members])
        own_role = "leader" if node_id == report.node_id else "follower"
        self.report = replace(
            self._present(),
            role=own_role,
            leader_id=node_id,
            term=report.term + 1,
            elections=report.elections + 1,
        )

    def _present(self) -> ClusterReport:
        if self.report is None:
            raise NotClustered
        if self.error is not None:
            raise self.error
        return self.report

    def _set(self, members: list[PeerReport]) -> None:
        in_order = tuple(sorted(members, key=lambda member: member.node_id))
        self.report = replace(self._present(), members=in_order)
