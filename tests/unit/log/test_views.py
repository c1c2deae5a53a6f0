"""What views make of the health of their node."""

import pytest

from graphdb.log.views import ViewStatus, health


@pytest.mark.parametrize(
    ("state", "status", "is_stalled"),
    [
        ("following", "healthy", False),
        ("starting", "starting", False),
        ("waiting", "degraded", True),
        ("restarting", "degraded", True),
        ("failed", "error", True),
    ],
)
def test_what_a_state_makes_of_a_node(state: str, status: str, is_stalled: bool) -> None:
    for name in ("quads", "search"):
        assert health([ViewStatus(name, state)]) == status
    assert ViewStatus("quads", state).is_stalled is is_stalled


def test_the_worst_view_counts() -> None:
    assert health([]) == "healthy"
    states = ("following", "waiting", "starting", "failed")
    assert health([ViewStatus("quads", state) for state in states]) == "error"
    assert health([ViewStatus("quads", "waiting"), ViewStatus("search", "following")]) == "degraded"


@pytest.mark.parametrize("name", ["columns", "changes", "principals"])
def test_a_view_that_requests_do_without_changes_nothing(name: str) -> None:
    assert health([ViewStatus("quads", "following"), ViewStatus(name, "failed")]) == "healthy"
