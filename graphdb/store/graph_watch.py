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
            self.is_touched = not isinstance(changes, tuple) or any(map(self._concerns, changes))

    def _concerns(self, change: ChangeSet) -> bool:
        names = {*change.created_graphs, *change.dropped_graphs}
        return not names.isdisjoint(self._graphs) or any(
            quad.graph_name in self._graphs for part in (change.added, change.removed) for quad in part
        )
