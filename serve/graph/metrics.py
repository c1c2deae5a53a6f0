"""`/metrics`: what the port counts and how its process does, for Prometheus."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

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

from serve.backend import Backend

__all__ = ["Metrics", "MetricsEndpoint"]

_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60)


class Metrics:
    """One application's counters, in a registry of their own, so that several can live in one process."""

    def __init__(self, backend: Backend) -> None:
        self.registry = CollectorRegistry()
        self._queries = Counter("service_service_queries", "Queries executed.", registry=self.registry)
        self._durations = Histogram(
            "service_service_query_duration_seconds",
            "Seconds from the start of evaluation to the last byte of the answer.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        # Counted by whoever holds elections; a node that stands alone never does.
        self.leader_elections = Counter(
            "service_service_leader_elections", "Leader elections.", registry=self.registry
        )
        self._gauge("service_service_cluster_size", "Members of the cluster.").set_function(
            lambda: len(backend.status().cluster_members)
        )
        self._gauge("service_service_is_leader", "1 where this node leads, else 0.").set_function(
            lambda: backend.status().role in ("leader", "standalone")
        )
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def _gauge(self, name: str, help_text: str) -> Gauge:
        return Gauge(name, help_text, registry=self.registry)

    @contextmanager
    def query(self) -> Iterator[None]:
        """Count what happens inside as one query, also where it fails."""
        started = perf_counter()
        try:
            yield
        finally:
            self.count_query(started)

    def count_query(self, started: float) -> None:
        """Count a query that began at this perf_counter() and is over."""
        self._queries.inc()
        self._durations.observe(perf_counter() - started)


class MetricsEndpoint:
    """GET /metrics, in the Prometheus text format or, where asked for, OpenMetrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def get(self, request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(
            encode(self._metrics.registry), headers={"Content-Type": content_type, "Vary": "Accept"}
        )
