"""`/metrics`: what the port counts and how its process does, for Prometheus."""

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response

from serve.backend import Admin, RunningQueries
from serve.graph.cluster_metrics import ClusterMetrics
from serve.graph.result_cache import ResultCache
from serve.graph.view_metrics import ViewMetrics

__all__ = ["Metrics", "MetricsEndpoint", "Outcome"]

Outcome: TypeAlias = Literal[
    "ok",
    "cached",
    "not_modified",
    "rejected",  # never begun: the request was wrong, or asked for what is not allowed
    "failed",  # an error that the query or the service met
    "timeout",
    "memory",
    "cancelled",
    "disconnected",
    "overloaded",
    "broken",  # failed when the head of the answer was sent already
]
VALIDATION_OUTCOMES = tuple(
    outcome for outcome in get_args(Outcome) if outcome not in ("cached", "not_modified")
)
KILLS = ("timeout", "memory", "cancelled", "disconnected")
_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60)


class Metrics:
    """One application's counters, in a registry of their own, so that several can live in one process."""

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
        # bound once: looking a label up costs more than counting
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
        """Count a request for a query that is over."""
        self._outcomes[outcome].inc()

    def count_query(self, seconds: float) -> None:
        """Count a query that was not refused before it began, and how long it took."""
        self._queries.inc()
        self._durations.observe(seconds)

    def count_validation(self, outcome: Outcome, seconds: float | None = None) -> None:
        """Count a validation that is over; seconds is None where it was refused before it began."""
        self._validations[outcome].inc()
        if seconds is not None:
            self._validation_seconds.observe(seconds)

    def count_kill(self, reason: Outcome) -> None:
        """Count a query that was ended while a reader was at it; other outcomes are no kills."""
        if reason in self._kills:
            self._kills[reason].inc()

    def count_lookup(self, found: bool) -> None:
        """Count a query that was looked for in the cache."""
        (self._cache_hits if found else self._cache_misses).inc()


class MetricsEndpoint:
    """GET /metrics, in the Prometheus text format or, where asked for, OpenMetrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def get(self, request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(
            encode(self._metrics.registry), headers={"Content-Type": content_type, "Vary": "Accept"}
        )
