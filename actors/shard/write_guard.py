"""`WriteGuard`: what may refuse a write once its effect is known, before it is logged."""

from collections.abc import Callable, Iterator
from typing import Protocol

from graphdb.model import ChangeSet
from graphdb.store.overlay import Overlay

__all__ = ["WriteGuard"]


class WriteGuard(Protocol):
    """Owned by a `ShardWriter`; used on its thread, by one batch after the other."""

    def begin(self, state: Overlay, index: int) -> None:
        """A batch is planned: nothing of it is laid over the state yet, which is that of this log index."""

    def check(self, state: Overlay, change: ChangeSet) -> None:
        """Return where the change, of one write on this state, may be stored.

        Raises why not, or BaseNotApplied.
        """

    def check_parts(self, state: Overlay, plan: Callable[[], Iterator[ChangeSet]]) -> None:
        """The same for a large change; each call of plan gives its parts anew."""

    def note(self, change: ChangeSet, index: int) -> None:
        """The batch is applied, and the store at this log index; nobody else has written meanwhile."""
