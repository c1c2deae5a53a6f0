"""`GraphWatch`: whether some graphs have stayed as they were."""

from collections.abc import Iterable

from graphdb.model import ChangeSet, GraphName

__all__ = ["GraphWatch"]


class GraphWatch:
    """Noted by a store before a change is visible; on any threads."""

    def __init__(self, graphs: frozenset[GraphName]) -> None:
        self._graphs = graphs
        self.is_touched = False

    def note(self, changes: Iterable[ChangeSet]) -> None:
        """The parts of a change. A large one, of which the parts are not at hand, may concern any graph."""
        if not self.is_touched:
            is_small = isinstance(changes, tuple)
            self.is_touched = not is_small or any(change.concerns(self._graphs) for change in changes)
