"""`AccessMetrics`: what the door counts, and what it depends on."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from serve.access.access_backend import AccessBackend

__all__ = ["AccessMetrics"]


class AccessMetrics(Collector):
    """Of the graph port's door; what is not configured is not there."""

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
