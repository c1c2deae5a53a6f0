"""`View`: a state that the log's entries make; `ViewStatus` and `health`: how well views follow the log.
`LogViews`: which entries the views of a log still need.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

__all__ = ["QUADS", "SEARCH", "LogViews", "SnapshotView", "View", "ViewStatus", "health", "views_of"]

QUADS, SEARCH = "quads", "search"  # the views for which a log keeps its entries

# The states of a view, the best one first, and what each makes of its node (`NodeStatus.status`).
_HEALTH = {
    "following": "healthy",
    "waiting": "degraded",  # to try again
    "restarting": "degraded",  # from a snapshot
    "starting": "starting",
    "failed": "error",
}

E_contra = TypeVar("E_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class View(Protocol[E_contra, R_co]):
    """A state that the log's entries make, one after the other: the same entries always make the same state.

    It does no waiting and no reading of the log: a runner (`actors.log.view_runner`) brings it the entries,
    and calls it on whichever thread may change the state, one call at a time.
    """

    @property
    def index(self) -> int:
        """The log index of the last entry that has taken effect; the next one to apply follows it.

        Any thread.
        """
        ...

    def apply(self, entries: Sequence[E_contra]) -> R_co:
        """Let entries take effect, in their order; the first one follows `index`.

        What is returned goes to the owner of the view. A call that raises has applied the entries up to
        `index` and nothing else; the entries after it come again. Raises UnavailableError, CorruptionError.
        """
        ...

    def check(self) -> None:
        """Called after each `apply`. Raises UnavailableError where the view could not take all entries now,
        and should be given the others again later; CorruptionError where it cannot go on.
        """
        ...


class SnapshotView(View[E_contra, R_co], Protocol[E_contra, R_co]):
    """A view that can begin again at a later place, without the entries up to there."""

    def adopt_snapshot(self, log_index: int, tree: Path | None) -> None:
        """Become the state at log_index, whatever there is now. tree: a directory with that state, for a view
        that needs one.

        A call that raises may leave no usable state; another snapshot is adopted then. Raises as `apply`.
        """
        ...


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """How well a view follows the log."""

    name: str
    state: str  # following, waiting (to try again), restarting (from a snapshot), starting, failed
    index: int = 0
    heard_index: int = 0  # how far the source can be read, as far as is known
    error: str | None = None  # the last failure, None once the view goes on
    failures: int = 0  # in all
    entries: int = 0  # that it has followed; what a writer has applied itself does not count
    apply_s: float = 0.0  # seconds that this took in all

    @property
    def entries_behind(self) -> int:
        """How many entries the view has still to apply, as far as is known."""
        return max(0, self.heard_index - self.index)

    @property
    def is_stalled(self) -> bool:
        """Whether the view cannot follow the log now."""
        return self.state not in ("starting", "following")


def health(statuses: Iterable[ViewStatus]) -> str:
    """The status of a node as its views determine it (`NodeStatus.status`): the worst of them counts.

    Only the views count for which a log keeps its entries. Requests do without the others: a reader answers
    in place of the columns, and a principal's view is made anew.
    """
    states = [status.state for status in statuses if status.name in (QUADS, SEARCH)]
    return _HEALTH[max(states, key=list(_HEALTH).index, default="following")]


def views_of(*, search_enabled: bool) -> tuple[str, ...]:
    """The views for which the log of a node keeps its entries."""
    return (QUADS, SEARCH) if search_enabled else (QUADS,)


class LogViews:
    """A view that has not reported yet may need everything. What is not durable of it, it can read again."""

    def __init__(self, names: Iterable[str]) -> None:
        self._needed_from = dict.fromkeys(names, 0)

    @property
    def needed_from(self) -> int | None:
        """The first entry that some view may need; None without views."""
        return min(self._needed_from.values(), default=None)

    def release(self, view: str, index: int) -> int:
        """A view needs no entries before index; the answer: the index before which no view needs any.

        Other names have no effect.
        """
        if view in self._needed_from:
            self._needed_from[view] = index
        return min(self._needed_from.values(), default=index)
