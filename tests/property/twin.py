"""The naive twin of a store: a set of quads and a set of graph names, changed in the plainest way."""

from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Quad, Store

from graphdb.model import ChangeSet, NamedGraph
from graphdb.store.quad_store import QuadStore
from graphdb.store.stored_form import stored_form
from graphdb.store.view import StoreView
from tests.property.strategies import GRAPHS, datasets, quads

__all__ = ["Twin", "changes", "named_graph_of", "store_of", "twin_of", "twins"]


@dataclass(frozen=True)
class Twin:
    """One state of a dataset."""

    quads: frozenset[Quad]
    graphs: frozenset[NamedGraph]

    def after(self, change: ChangeSet) -> "Twin":
        """The state after a change."""
        return Twin(
            (self.quads - set(change.removed)) | set(change.added),
            (self.graphs - set(change.dropped_graphs)) | set(change.created_graphs),
        )

    def change_to(self, other: "Twin") -> ChangeSet:
        """The one change that leads from here to there."""
        return ChangeSet(
            tuple(self.quads - other.quads),
            tuple(other.quads - self.quads),
            tuple(self.graphs - other.graphs),
            tuple(other.graphs - self.graphs),
        )


def named_graph_of(quad: Quad) -> NamedGraph | None:
    """The graph of a quad; None for the default graph."""
    return None if isinstance(quad.graph_name, DefaultGraph) else quad.graph_name


def twin_of(view: StoreView) -> Twin:
    """What a store or overlay holds; nothing may come twice."""
    quads, graphs = list(view.dataset_quads()), list(view.named_graphs())
    assert len(quads) == len(set(quads))
    assert len(graphs) == len(set(graphs))
    return Twin(frozenset(quads), frozenset(graphs))


def twin(quads: Iterable[Quad], empty_graphs: Iterable[NamedGraph] = ()) -> Twin:
    """A state that holds these quads, and these graphs even if they have none."""
    kept = frozenset(stored_form(quads))
    names = (named_graph_of(quad) for quad in kept)
    return Twin(kept, frozenset(empty_graphs) | {name for name in names if name is not None})


def store_of(state: Twin) -> QuadStore:
    """A store in memory in this state."""
    store = Store()
    store.extend(state.quads)
    for graph in state.graphs:
        store.add_graph(graph)
    return QuadStore(store)


twins = st.builds(twin, datasets, st.sets(st.sampled_from(GRAPHS)))


@st.composite
def changes(draw: st.DrawFn, state: Twin) -> ChangeSet:
    """A real change of a state, which keeps some of what is there."""
    kept = draw(st.sets(st.sampled_from(sorted(state.quads, key=str)))) if state.quads else set()
    added = draw(st.lists(quads, max_size=6))
    return state.change_to(twin([*kept, *added], draw(st.sets(st.sampled_from(GRAPHS)))))
