"""`VisibleState`: what a sight sees of one state of the store, as a state of its own."""

from collections.abc import Iterator

from pyoxigraph import DefaultGraph, NamedNode, Quad

from graphdb.access.sight import Sight
from graphdb.access.visibility import ALLOWED_SID, Visibility
from graphdb.errors import UnknownGraph
from graphdb.model import GraphName, NamedGraph
from graphdb.store.view import StoreView, Subject, Term

__all__ = ["VisibleState", "has_hidden_quads"]


def has_hidden_quads(state: StoreView, graph: GraphName) -> bool:
    """Whether a graph holds anything that is not for everyone who sees the graph; one look into an index.

    Nothing is hidden in it but by annotations, and these are hidden themselves.
    """
    return next(iter(state.quads_matching(None, ALLOWED_SID, None, graph)), None) is not None


class VisibleState:
    """See `graphdb.store.view.StoreView`. It looks into the state at each call, and keeps nothing.

    A graph exists for whoever sees a quad in it; one that holds nothing at all, for whoever sees its name.
    """

    def __init__(self, sight: Sight, state: StoreView) -> None:
        self._sight, self._state = sight, state
        self._visibility = Visibility(sight, state)

    def contains(self, quad: Quad) -> bool:
        """Whether the quad is there, and seen."""
        return self._state.contains(quad) and self._visibility.sees(quad)

    def graph_exists(self, graph: NamedGraph) -> bool:
        """Whether there is such a graph for this sight."""
        if not self._sight.sees_graph(graph) or not self._state.graph_exists(graph):
            return False
        if not has_hidden_quads(self._state, graph):
            return True
        return any(map(self._visibility.sees, self._state.graph_quads(graph)))

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """What is seen of one graph; None is the default graph.

        Raises UnknownGraph, at the call.
        """
        if graph is None:
            seen = self._sight.sees_graph(DefaultGraph())
            return self._seen(self._state.graph_quads(None)) if seen else iter(())
        if not self.graph_exists(graph):
            raise UnknownGraph(graph.value)
        return self._seen(self._state.graph_quads(graph))

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `StoreView.quads_matching`."""
        return self._seen(self._state.quads_matching(subject, predicate, object_, graph))

    def dataset_quads(self) -> Iterator[Quad]:
        """What is seen of all graphs."""
        return self._seen(self._state.dataset_quads())

    def named_graphs(self) -> Iterator[NamedGraph]:
        """The names of the graphs that exist for this sight."""
        return filter(self.graph_exists, self._state.named_graphs())

    def _seen(self, quads: Iterator[Quad]) -> Iterator[Quad]:
        return filter(self._visibility.sees, quads)
