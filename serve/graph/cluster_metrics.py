"""What `/metrics` says of the cluster: one report, as gauges and counters that are of the same moment."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from graphdb.node import ClusterReport
from serve.backend import Admin
from serve.graph.cluster import report_of

__all__ = ["ClusterMetrics"]


class ClusterMetrics(Collector):
    """Reads the report whenever it is collected. A node that stands alone leads itself, in term 0."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def describe(self) -> list[Metric]:
        """Nothing: the registry would ask the node before it is there."""
        return []

    def collect(self) -> Iterator[Metric]:
        report = report_of(self._admin)
        leads = report.role in ("leader", "standalone")
        reachable = sum(member.reachable for member in report.members)
        yield _gauge("cluster_size", "Members of the cluster.", len(report.members))
        yield _gauge("cluster_members_reachable", "Members that this node reaches, itself too.", reachable)
        yield _gauge("is_leader", "1 where this node leads, else 0.", leads)
        yield _counter("leader_elections", "Leaders that this node has seen come.", report.elections)
        yield _gauge("raft_term", "Raft's term.", report.term)
        yield _gauge("raft_commit_index", "Log index up to which entries are committed.", report.commit_index)
        yield _gauge("raft_last_index", "Log index of the last entry on this node.", report.last_index)
        yield _gauge("raft_applied_index", "Log index that readers see.", report.applied_index)
        yield _counter("raft_messages_dropped", "Messages to peers that were slow.", report.messages_dropped)
        lag = self._admin.status().replication_lag
        if lag is not None:
            yield _gauge("replication_lag_entries", "Entries that this follower is behind.", lag)
        yield _matched(report)


def _matched(report: ClusterReport) -> Metric:
    family = GaugeMetricFamily(
        "service_service_raft_matched_index",
        "Log index up to which a member is known to have the leader's log; only where this node leads.",
        labels=["node_id"],
    )
    for member in report.members:
        if member.matched_index is not None:
            family.add_metric([str(member.node_id)], member.matched_index)
    return family


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"service_service_{name}", help_text, value=float(value))


def _counter(name: str, help_text: str, value: float) -> Metric:
    return CounterMetricFamily(f"service_service_{name}", help_text, value=value)
