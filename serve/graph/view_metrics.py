"""What `/metrics` says of the views that follow the log, such as the quads: each kind of view by its name."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from graphdb.log.views import ViewStatus
from serve.backend import Admin

__all__ = ["ViewMetrics"]


class ViewMetrics(Collector):
    """Reads the statuses whenever it is collected. Of several views of one name it reports the worst index,
    and the sums of all.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def describe(self) -> list[Metric]:
        """Nothing: the registry would ask the node before it is there."""
        return []

    def collect(self) -> Iterator[Metric]:
        named: dict[str, list[ViewStatus]] = {}
        for status in self._admin.view_statuses():
            named.setdefault(status.name, []).append(status)
        index = _gauge("index", "Log index of the last entry that has taken effect.")
        behind = _gauge("entries_behind", "Log entries that have not taken effect, as far as is known.")
        waiting = _gauge("waiting", "Views that cannot follow the log now.")
        entries = _counter("entries", "Log entries that were followed.")
        seconds = _counter("apply_seconds", "Seconds that applying them took.")
        failures = _counter("failures", "Failed attempts to follow the log.")
        for name, statuses in named.items():
            label = [name]
            index.add_metric(label, min(one.index for one in statuses))
            behind.add_metric(label, max(one.entries_behind for one in statuses))
            waiting.add_metric(label, sum(one.is_stalled for one in statuses))
            entries.add_metric(label, sum(one.entries for one in statuses))
            seconds.add_metric(label, sum(one.apply_s for one in statuses))
            failures.add_metric(label, sum(one.failures for one in statuses))
        yield from (index, behind, waiting, entries, seconds, failures)


def _gauge(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"service_service_view_{name}", help_text, labels=["view"])


def _counter(name: str, help_text: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"service_service_view_{name}", help_text, labels=["view"])
