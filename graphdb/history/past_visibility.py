"""What a reader may see of past changes: what shows now and did then.

Annotations (`graphdb.access.annotations`) change too. Going back from the present, the statements that
annotate are undone one change after the other, so that each quad is judged by those of its time. Statements
of other kinds are taken to be there whenever that hides more.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pyoxigraph import NamedNode, Quad, Store

from graphdb.access.annotations import ALLOWED_SID, REIFIES, Statements, VisibleQuads
from graphdb.access.visibility import Visibility
from graphdb.errors import LimitExceeded
from graphdb.history.past_log import PastChange
from graphdb.model import ChangeSet, GraphName
from graphdb.store.view import Subject, Term

__all__ = ["ANNOTATING", "PastAnnotations", "annotating_changes", "annotating_quads"]

ANNOTATING = (ALLOWED_SID, REIFIES)  # predicates
_QUADS_MAX = 100_000  # that annotate, now or in what is undone; about 50 MB


def annotating_quads(state: Statements) -> tuple[Quad, ...]:
    """All that annotates in a state, and what it may come to annotate. Raises LimitExceeded."""
    quads = (quad for name in ANNOTATING for quad in state.quads_matching(None, name, None, None))
    found = tuple(islice(quads, _QUADS_MAX + 1))
    if len(found) > _QUADS_MAX:
        raise LimitExceeded("statements that annotate", len(found), _QUADS_MAX)
    return found


def annotating_changes(changes: Iterable[PastChange]) -> tuple[PastChange, ...]:
    """Those that change what annotates, each without the rest of it. Raises LimitExceeded."""
    found, count = [], 0
    for one in changes:
        removed, added = (
            tuple(quad for quad in quads if quad.predicate in ANNOTATING)
            for quads in (one.change.removed, one.change.added)
        )
        count += len(removed) + len(added)
        if count > _QUADS_MAX:
            raise LimitExceeded("changes of what annotates", count, _QUADS_MAX)
        if removed or added:
            found.append(one._replace(change=ChangeSet(removed, added)))
    return tuple(found)


class PastAnnotations:
    """Which quads of past changes show, for one visibility. The changes come the newest first."""

    def __init__(
        self, visibility: Visibility, present: Sequence[Quad], undoable: Sequence[PastChange]
    ) -> None:
        """present annotates now; undoable changes that, the newest first."""
        self._visibility = visibility
        self._now, self._after, self._before = (_Annotations(present, undoable) for _ in range(3))
        states = (self._now, self._after, self._before)
        self._judges = [VisibleQuads(visibility, state).sees for state in states]

    def shown(self, change: PastChange) -> ChangeSet:
        """What shows of a change: now, after it and before it."""
        return self.shown_between(change.log_index - 1, change.log_index, change.change)

    def shown_between(self, first: int, last: int, change: ChangeSet) -> ChangeSet:
        """The same of what leads from the state at one index to that at a later one."""
        self._after.undo(last)
        self._before.undo(first)
        return change.part(self._shows, self._visibility.sees_graph)

    def _shows(self, quad: Quad) -> bool:
        return all(sees(quad) for sees in self._judges)


class _Annotations:
    """The part of a `StoreView` that judges: what annotates; everything else is taken to be there."""

    def __init__(self, present: Sequence[Quad], undoable: Sequence[PastChange]) -> None:
        self._store = Store()
        self._store.extend(present)
        self._undoable, self._undone = undoable, 0

    def undo(self, index: int) -> None:
        """Go back to the state at index."""
        while self._undone < len(self._undoable) and self._undoable[self._undone].log_index > index:
            change = self._undoable[self._undone].change
            for quad in change.added:
                self._store.remove(quad)
            self._store.extend(change.removed)
            self._undone += 1

    def contains(self, quad: Quad) -> bool:
        return True

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        return self._store.quads_for_pattern(subject, predicate, object_, graph)
