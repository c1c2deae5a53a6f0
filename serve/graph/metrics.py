"""`/metrics`: counters of the graph port and its process, and reports of the node, for Prometheus.

The collectors read the node's reports at each scrape, so the values of one report are of one moment.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import psutil  # type: ignore[import-untyped]
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import UnavailableError
from graphdb.log.views import ViewStatus
from graphdb.node import ClusterReport
from serve.access.access_backend import AccessBackend
from serve.backend import Admin, Changes, Purges, RunningQueries, Transactions
from serve.graph.administration import report_of
from serve.graph.caching import ResultCache
from serve.graph.changes import ChangesEndpoint
from serve.graph.live_outbox import SocketCounts

__all__ = [
    "AccessMetrics",
    "HostMetrics",
    "LiveMetrics",
    "Metrics",
    "MetricsEndpoint",
    "Outcome",
    "PurgeMetrics",
    "TransactionMetrics",
    "ViewMetrics",
]

Outcome: TypeAlias = Literal[
    "ok",
    "cached",
    "not_modified",
    "rejected",  # refused before evaluation: invalid or not allowed
    "failed",  # an error of the query or the service
    "timeout",
    "memory",
    "cancelled",
    "disconnected",
    "overloaded",
    "broken",  # failed after the head of the answer was sent
]
VALIDATION_OUTCOMES = tuple(
    outcome for outcome in get_args(Outcome) if outcome not in ("cached", "not_modified")
)
_GOOD = ("ok", "cached", "not_modified")
KILLS = ("timeout", "memory", "cancelled", "disconnected")
_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60)


class Metrics:
    """The counters of one application, in their own registry, so that a process may have several."""

    def __init__(self, running: RunningQueries, admin: Admin, cache: ResultCache) -> None:
        self.registry = CollectorRegistry()
        self._queries = Counter("service_service_queries", "Queries executed.", registry=self.registry)
        self._durations = Histogram(
            "service_service_query_duration_seconds",
            "Seconds from the start of evaluation to the last byte of the answer.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        outcomes = Counter(
            "service_service_query_outcomes", "What became of queries.", ["outcome"], registry=self.registry
        )
        # looked up once: that costs more than counting
        self._outcomes = {outcome: outcomes.labels(outcome) for outcome in get_args(Outcome)}
        kills = Counter(
            "service_service_queries_killed",
            "Queries ended while a reader was at them.",
            ["reason"],
            registry=self.registry,
        )
        self._kills = {reason: kills.labels(reason) for reason in KILLS}
        self._cache_hits = Counter(
            "service_service_query_cache_hits", "Queries answered from the cache.", registry=self.registry
        )
        self._cache_misses = Counter(
            "service_service_query_cache_misses", "Queries looked for in vain.", registry=self.registry
        )
        self._validation_seconds = Histogram(
            "service_service_shacl_validation_duration_seconds",
            "Seconds from a request for a validation to the last byte of its report.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        validations = Counter(
            "service_service_shacl_validations",
            "What became of SHACL validations.",
            ["outcome"],
            registry=self.registry,
        )
        self._validations = {outcome: validations.labels(outcome) for outcome in VALIDATION_OUTCOMES}
        self._watch_queries(running)
        self._watch_cache(cache)
        self.registry.register(ClusterMetrics(admin))
        self.registry.register(ViewMetrics(admin))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def _watch_queries(self, running: RunningQueries) -> None:
        def queries(state: str) -> Callable[[], float]:
            return lambda: sum(query.state == state for query in running.running_queries())

        self._gauge("queries_running", "Queries that readers are at.", queries("running"))
        self._gauge("queries_queued", "Queries that wait for a reader.", queries("queued"))

    def _watch_cache(self, cache: ResultCache) -> None:
        self._gauge("query_cache_bytes", "Memory that kept answers take.", lambda: cache.size)
        self._gauge("query_cache_entries", "Answers that are kept.", lambda: len(cache))

    def _gauge(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        Gauge(f"service_service_{name}", help_text, registry=self.registry).set_function(read)

    def count_outcome(self, outcome: Outcome) -> None:
        """Count a query by its outcome."""
        self._outcomes[outcome].inc()

    def query_counts(self) -> tuple[int, int]:
        """Queries that were answered, and those that were not."""
        counts = {outcome: self._count_of(outcome) for outcome in self._outcomes}
        good = sum(count for outcome, count in counts.items() if outcome in _GOOD)
        return good, sum(counts.values()) - good

    def _count_of(self, outcome: str) -> int:
        name = "service_service_query_outcomes_total"
        return int(self.registry.get_sample_value(name, {"outcome": outcome}) or 0)

    def count_query(self, seconds: float) -> None:
        """Count a query that was evaluated, and its duration."""
        self._queries.inc()
        self._durations.observe(seconds)

    def count_validation(self, outcome: Outcome, seconds: float | None = None) -> None:
        """Count a validation by its outcome; seconds is None if it was refused before it began."""
        self._validations[outcome].inc()
        if seconds is not None:
            self._validation_seconds.observe(seconds)

    def count_kill(self, reason: Outcome) -> None:
        """Count a query that was killed while a reader evaluated it; ignores other outcomes."""
        if reason in self._kills:
            self._kills[reason].inc()

    def count_lookup(self, found: bool) -> None:
        """Count a lookup in the result cache."""
        (self._cache_hits if found else self._cache_misses).inc()


class MetricsEndpoint:
    """GET /metrics, in the Prometheus text format, or OpenMetrics if Accept names it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def get(self, request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(
            encode(self._metrics.registry), headers={"Content-Type": content_type, "Vary": "Accept"}
        )


class ClusterMetrics(Collector):
    """The cluster report. A standalone node is its own leader, in term 0."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def describe(self) -> list[Metric]:
        """Nothing, because the registry asks before the node has started."""
        return []

    def collect(self) -> Iterator[Metric]:
        report = report_of(self._admin)
        leads = report.role in ("leader", "standalone")
        reachable = sum(member.reachable for member in report.members)
        yield _gauge("cluster_size", "Members of the cluster.", len(report.members))
        yield _gauge("cluster_members_reachable", "Members that this node reaches, itself too.", reachable)
        yield _gauge("is_leader", "1 where this node leads, else 0.", leads)
        yield _counter("leader_elections", "Leaders elected since this node started.", report.elections)
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


class ViewMetrics(Collector):
    """Reads the statuses whenever it is collected. Of several views of one name it reports the worst index,
    and the sums of all.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def describe(self) -> list[Metric]:
        """Nothing, because the registry asks before the node has started."""
        return []

    def collect(self) -> Iterator[Metric]:
        named: dict[str, list[ViewStatus]] = {}
        for status in self._admin.view_statuses():
            named.setdefault(status.name, []).append(status)
        index = _view_gauge("index", "Log index of the last entry that has taken effect.")
        behind = _view_gauge("entries_behind", "Log entries that have not taken effect, as far as is known.")
        waiting = _view_gauge("waiting", "Views that cannot follow the log now.")
        entries = _view_counter("entries", "Log entries that were followed.")
        seconds = _view_counter("apply_seconds", "Seconds that applying them took.")
        failures = _view_counter("failures", "Failed attempts to follow the log.")
        for name, statuses in named.items():
            label = [name]
            index.add_metric(label, min(one.index for one in statuses))
            behind.add_metric(label, max(one.entries_behind for one in statuses))
            waiting.add_metric(label, sum(one.is_stalled for one in statuses))
            entries.add_metric(label, sum(one.entries for one in statuses))
            seconds.add_metric(label, sum(one.apply_s for one in statuses))
            failures.add_metric(label, sum(one.failures for one in statuses))
        yield from (index, behind, waiting, entries, seconds, failures)


def _view_gauge(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"service_service_view_{name}", help_text, labels=["view"])


def _view_counter(name: str, help_text: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"service_service_view_{name}", help_text, labels=["view"])


class LiveMetrics(Collector):
    """Reads the report whenever it is collected."""

    def __init__(self, changes: Changes, sockets: SocketCounts, streams: ChangesEndpoint) -> None:
        self._changes, self._sockets, self._streams = changes, sockets, streams

    def describe(self) -> list[Metric]:
        """Nothing, because the registry asks before the node has started."""
        return []

    def collect(self) -> Iterator[Metric]:
        report = self._changes.live_report()
        yield _live_gauge("sockets", "Open WebSockets.", self._sockets.open)
        yield _live_gauge("subscriptions", "Live queries that are open.", report.subscriptions)
        yield _live_gauge("queries", "Different ones among them.", report.queries)
        reevaluated = report.reevaluated_queries
        yield _live_gauge("reevaluated_queries", "Those of them that are evaluated anew.", reevaluated)
        yield _live_gauge(
            "lag_entries", "Log entries that the last to be told is behind.", report.lag_entries
        )
        yield _live_gauge("change_streams", "Open streams of changes.", self._streams.open_count)
        yield _live_counter("notifications", "Told, each to one subscription.", report.notifications)
        yield _live_counter("slow_readers", "Sockets cut off for reading too slowly.", self._sockets.cut_off)


class TransactionMetrics(Collector):
    """How many transactions over several requests are open."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def collect(self) -> Iterator[Metric]:
        """See `Collector.collect`."""
        count = self._transactions.open_count
        yield _gauge_of("transactions", "Transactions over several requests that are open.", count)


class PurgeMetrics(Collector):
    """Whether purges get on. What is not known while the node starts is not reported."""

    def __init__(self, purges: Purges) -> None:
        self._purges = purges

    def collect(self) -> Iterator[Metric]:
        """See `Collector.collect`."""
        told = "1 while this node cannot get on with a purge, else 0."
        yield _gauge_of("purge_failing", told, int(self._purges.error() is not None))
        try:
            waiting = sum(not record.is_done for record in self._purges.list())
        except UnavailableError:
            return
        yield _gauge_of("purges_open", "Purges that some node has not finished.", waiting)


def _live_gauge(name: str, help_text: str, value: float) -> Metric:
    return _gauge_of(f"live_{name}", help_text, value)


def _live_counter(name: str, help_text: str, value: float) -> Metric:
    return CounterMetricFamily(f"service_service_live_{name}", help_text, value=value)


class AccessMetrics(Collector):
    """Authentication and audit at the graph port; only what is configured is reported."""

    def __init__(self, access: AccessBackend) -> None:
        self._access = access

    def collect(self) -> Iterator[Metric]:
        """See `Collector.collect`."""
        if (shared := self._access.shared_failures) is not None:
            told = "1 while failed attempts are counted with the other nodes in Redis, 0 while alone."
            yield GaugeMetricFamily("service_service_lockout_shared", told, int(shared.is_reached))
        if (audit := self._access.audit) is not None:
            told = "Lines that there was no room for in the audit log."
            yield CounterMetricFamily("service_service_audit_lines_dropped", told, audit.dropped)


class HostMetrics(Collector):
    """The memory of the host, and the disk of the data directory. What cannot be read is not reported."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def collect(self) -> Iterator[Metric]:
        """See `Collector.collect`."""
        memory = psutil.virtual_memory()
        yield _gauge_of("host_memory_bytes", "Memory of the host.", memory.total)
        yield _gauge_of("host_memory_available_bytes", "Of it, what processes can have.", memory.available)
        try:
            disk = psutil.disk_usage(str(self._data_dir))
        except OSError:
            return
        yield _gauge_of("disk_bytes", "Size of the disk of the data directory.", disk.total)
        yield _gauge_of("disk_free_bytes", "Of it, what the service can have.", disk.free)


def _gauge_of(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"service_service_{name}", help_text, value=float(value))
