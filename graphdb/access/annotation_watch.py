"""`AnnotationWatch`: tells when a store may have come to hold annotations."""

from collections.abc import Iterable, Iterator

from graphdb.access.visibility import ALLOWED_SID
from graphdb.model import ChangeSet

__all__ = ["AnnotationWatch"]


class AnnotationWatch:
    """Hears every change of a store before it is visible. Written by one thread, read by any.

    Whoever finds no annotation in the store, having taken `count` before, and takes the same count after
    reading, has read of states without any.
    """

    def __init__(self) -> None:
        self.count = 0  # of the changes that have brought annotations

    def note(self, change: ChangeSet) -> None:
        """A change is about to be visible."""
        if any(quad.predicate == ALLOWED_SID for quad in change.added):
            self.count += 1

    def noted(self, changes: Iterable[ChangeSet]) -> Iterable[ChangeSet]:
        """The parts of one change, on their way to the store that shows them at their end."""
        if isinstance(changes, tuple):  # one that is whole may be applied by a shorter road
            for change in changes:
                self.note(change)
            return changes
        return self._passing(changes)

    def _passing(self, changes: Iterable[ChangeSet]) -> Iterator[ChangeSet]:
        for change in changes:
            self.note(change)
            yield change
