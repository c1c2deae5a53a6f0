"""`View`: a state that the log's entries make. `LogViews`: which entries the views of a log still need."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

__all__ = ["QUADS", "SEARCH", "LogViews", "SnapshotView", "View", "ViewStatus", "views_of"]

QUADS, SEARCH = "quads", "search"  # the views for which a log keeps its entries

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
    """How a view fares."""

    name: str
    state: str  # starting, following, waiting (to try again), restarting (from a snapshot), failed
    index: int
    heard_index: int  # how far the source can be read, as far as is known
    error: str | None  # the last failure, None once the view goes on
    failures: int  # in all
    entries: int  # that it has followed; what a writer has applied itself does not count
    apply_s: float  # seconds that this took in all

    @property
    def entries_behind(self) -> int:
        """How many entries the view has still to apply, as far as is known."""
        return max(0, self.heard_index - self.index)


def views_of(*, search_enabled: bool) -> tuple[str, ...]:
    """The views for which the log of a node keeps its entries."""
    return (QUADS, SEARCH) if search_enabled else (QUADS,)


class LogViews:
    """A view that has not reported yet may need everything. What is not durable of it, it can read again."""

    def __init__(self, names: Iterable[str]) -> None:
        self._needed_from = dict.fromkeys(names, 0)

    def release(self, view: str, index: int) -> int:
        """A view needs no entries before index; the answer: the index before which no view needs any.

        Other names have no effect.
        """
        if view in self._needed_from:
            self._needed_from[view] = index
        return min(self._needed_from.values(), default=index)
