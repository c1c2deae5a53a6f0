"""What `/metrics` says of views: one of each name, or all of one name together."""

from typing import Any

from prometheus_client import CollectorRegistry

from graphdb.log.views import ViewStatus
from serve.graph.view_metrics import ViewMetrics


class _Admin:
    def __init__(self, *statuses: ViewStatus) -> None:
        self.statuses = list(statuses)

    def view_statuses(self) -> list[ViewStatus]:
        return self.statuses


def sample(admin: Any, name: str, view: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(ViewMetrics(admin))
    return registry.get_sample_value(f"service_service_view_{name}", {"view": view})


def test_a_view_is_reported_as_it_fares() -> None:
    admin = _Admin(ViewStatus("quads", "waiting", 7, 9, "the disk is full", 3, 5, 0.25))
    names = ("index", "entries_behind", "waiting", "entries_total", "apply_seconds_total", "failures_total")
    assert [sample(admin, name, "quads") for name in names] == [7, 2, 1, 5, 0.25, 3]


def test_of_several_views_the_furthest_behind_is_reported_and_the_sums() -> None:
    admin = _Admin(
        ViewStatus("principals", "following", 9, 9, None, 1, 5, 0.5),
        ViewStatus("principals", "starting", 4, 9, None, 2, 6, 0.25),
    )
    names = ("index", "entries_behind", "waiting", "entries_total", "apply_seconds_total", "failures_total")
    assert [sample(admin, name, "principals") for name in names] == [4, 5, 0, 11, 0.75, 3]


def test_without_views_there_is_nothing() -> None:
    assert sample(_Admin(), "index", "quads") is None
