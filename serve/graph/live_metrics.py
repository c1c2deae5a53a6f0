"""What `/metrics` says of live queries and of streams of changes: one report, all of the same moment."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from serve.backend import Changes
from serve.graph.changes import ChangesEndpoint
from serve.graph.live_outbox import SocketCounts

__all__ = ["LiveMetrics"]


class LiveMetrics(Collector):
    """Reads the report whenever it is collected."""

    def __init__(self, changes: Changes, sockets: SocketCounts, streams: ChangesEndpoint) -> None:
        self._changes, self._sockets, self._streams = changes, sockets, streams

    def describe(self) -> list[Metric]:
        """Nothing: the registry would ask the node before it is there."""
        return []

    def collect(self) -> Iterator[Metric]:
        report = self._changes.live_report()
        yield _gauge("sockets", "Open WebSockets.", self._sockets.open)
        yield _gauge("subscriptions", "Live queries that are open.", report.subscriptions)
        yield _gauge("queries", "Different ones among them.", report.queries)
        reevaluated = report.reevaluated_queries
        yield _gauge("reevaluated_queries", "Those of them that are evaluated anew.", reevaluated)
        yield _gauge("lag_entries", "Log entries that the last to be told is behind.", report.lag_entries)
        yield _gauge("change_streams", "Open streams of changes.", self._streams.open_count)
        yield _counter("notifications", "Told, each to one subscription.", report.notifications)
        yield _counter("slow_readers", "Sockets cut off for reading too slowly.", self._sockets.cut_off)


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"service_service_live_{name}", help_text, value=float(value))


def _counter(name: str, help_text: str, value: float) -> Metric:
    return CounterMetricFamily(f"service_service_live_{name}", help_text, value=value)
