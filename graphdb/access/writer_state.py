"""What a write is planned on, and what its plan comes to, where whoever writes does not see everything.

A write is planned on what its writer sees, as if nothing else was there. Then the planned change is made the
real one: what is there already, hidden, is not added again; a graph stays while it holds what is hidden; and
what is not the writer's to change is refused. So no quad that is hidden is ever removed, annotations come
only with the triples that they protect, where a graph is copied, and nothing is hidden from others.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Protocol

from pyoxigraph import BlankNode, DefaultGraph, Quad, Triple

from graphdb.access.sight import Sight
from graphdb.access.visibility import (
    ALLOWED_SID,
    REIFIES,
    Visibility,
    has_annotations,
    is_annotating,
)
from graphdb.access.visible_state import VisibleState, has_hidden_quads
from graphdb.access.write_targets import check_graph, forbidden
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import StoreView, Term

__all__ = ["Planned", "WholeState", "WriterState", "planned_by"]

_Placed = tuple[Triple, GraphName]

_NO_SIDS = Sight(default_graph=True, patterns=frozenset({"*"}))


class Planned(Protocol):
    """The state that one write is planned on, once."""

    @property
    def state(self) -> Overlay:
        """As whoever writes sees it."""

    def real_change(self, change: ChangeSet) -> ChangeSet:
        """What a change that was planned, or a part of it, really does. Raises Forbidden."""


class WholeState:
    """For whoever sees everything."""

    def __init__(self, state: Overlay) -> None:
        self.state = state

    def real_change(self, change: ChangeSet) -> ChangeSet:
        """See `Planned.real_change`."""
        return change


class _Unannotated(WholeState):
    """For whoever sees everything because nothing is annotated."""

    def real_change(self, change: ChangeSet) -> ChangeSet:
        """See `Planned.real_change`."""
        _check_annotations(self.state, change.added)
        return change


class WriterState(VisibleState):
    """A state as a sight sees it, to plan a write on: see `graphdb.store.overlay.Base`, and `Planned`.

    To ask for a graph by its name is to mean to write to it, or to copy it: what is hidden is Forbidden.
    """

    def __init__(
        self,
        sight: Sight,
        state: Overlay,
        fresh_blank_node: Callable[[], BlankNode],
        store_of: Callable[[QuadStore], QuadStore],
    ) -> None:
        """store_of gives a store of what the sight sees of a store, in its present state."""
        super().__init__(sight, state)
        self.state = Overlay(self)
        self._below, self._fresh, self._store_of = state, fresh_blank_node, store_of
        self._said: dict[GraphName, set[Triple]] = {}  # the triple terms of a graph
        self._copied: dict[_Placed, dict[Term, None]] = {}  # the SIDs that are to see what was copied

    @property
    def underlying(self) -> Overlay:
        """See `Overlay.underlying`."""
        return self._below

    @property
    def has_default_graph(self) -> bool:
        """See `Overlay.has_default_graph`."""
        return self._sight.sees_graph(DefaultGraph())

    @property
    def unapplied(self) -> ChangeSet:
        """See `Overlay.unapplied`."""
        change = self._below.unapplied
        if not change:
            return change
        before = Overlay(self._below)
        before.push(change.inverse)
        return ChangeSet(
            tuple(filter(Visibility(self._sight, before).sees, change.removed)),
            tuple(filter(self._visibility.sees, change.added)),
        )

    def contains(self, quad: Quad) -> bool:
        """Whether the quad is there, and seen. Raises Forbidden."""
        check_graph(self._sight, quad.graph_name)
        return super().contains(quad)

    def graph_exists(self, graph: NamedGraph) -> bool:
        """Whether there is such a graph for the writer. Raises Forbidden."""
        check_graph(self._sight, graph)
        return super().graph_exists(graph)

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """What the writer sees of one graph; None is the default graph.

        Raises UnknownGraph, Forbidden, at the call.
        """
        check_graph(self._sight, graph)
        return super().graph_quads(graph)

    def named_graphs(self) -> Iterator[NamedGraph]:
        """The names of the graphs that exist for the writer."""
        return filter(super().graph_exists, self._below.named_graphs())

    def applied_store(self) -> QuadStore:
        """See `Overlay.applied_store`."""
        return self._store_of(self._below.applied_store())

    def schema_state(self) -> object:
        """See `Overlay.schema_state`."""
        return self._below.schema_state()

    def note_copied(self, source: NamedGraph | None, change: ChangeSet) -> None:
        """See `Overlay.note_copied`."""
        origin = source or DefaultGraph()
        for quad in change.added:
            for triple in _triples(quad):
                if sids := self._sids(triple, origin):
                    self._copied.setdefault((triple, quad.graph_name), {}).update(sids)

    def _sids(self, triple: Triple, graph: GraphName) -> dict[Term, None]:
        sids = dict(self._copied.get((triple, graph), {}))
        for reifying in self._below.quads_matching(None, REIFIES, triple, graph):
            for allowing in self._below.quads_matching(reifying.subject, ALLOWED_SID, None, graph):
                sids[allowing.object] = None
        return sids

    def real_change(self, change: ChangeSet) -> ChangeSet:
        """See `Planned.real_change`. It changes nothing of what this sight does not see."""
        below = self._below
        _check_annotations(below, change.added)
        added = tuple(quad for quad in change.added if not below.contains(quad))
        real = ChangeSet(
            change.removed,
            (*added, *self._annotations(added)),
            tuple(graph for graph in change.dropped_graphs if not has_hidden_quads(below, graph)),
            tuple(graph for graph in change.created_graphs if not below.graph_exists(graph)),
        )
        self._check_others(added, real)
        return real

    def _check_others(self, added: Iterable[Quad], real: ChangeSet) -> None:
        """That nothing which was there goes out of others' sight because it is now said by a reifier of a
        protected triple, or about what such a one says.
        """
        below, removed = self._below, frozenset(real.removed)
        after: Visibility | None = None
        for quad in added:
            graph = quad.graph_name
            there = below.quads_matching(None, None, quad.triple, graph)
            if quad.predicate == REIFIES:
                there = chain(there, below.quads_matching(quad.subject, None, None, graph))
            if all(other in removed for other in there):
                continue
            if after is None:
                state = Overlay(below)
                state.push(real)
                after = Visibility(_NO_SIDS, state)
            if not after.sees_statements_of(quad.subject, graph):
                raise forbidden(f"only an admin may have {quad.subject} protected with what it is about")

    def _annotations(self, added: Iterable[Quad]) -> Iterator[Quad]:
        """Those of copied triples, each with a reifier of its own: one that is there may reify others too."""
        for placed in dict.fromkeys((triple, quad.graph_name) for quad in added for triple in _triples(quad)):
            if placed in self._copied and not self._is_known(*placed):
                triple, graph = placed
                reifier = self._fresh()
                yield Quad(reifier, REIFIES, triple, graph)
                for sid in self._copied[placed]:
                    yield Quad(reifier, ALLOWED_SID, sid, graph)

    def _is_known(self, triple: Triple, graph: GraphName) -> bool:
        """Whether the graph has said a triple before, or of it: then its own annotations hold, or none, and
        nothing is taken out of others' sight.
        """
        asserted = Quad(triple.subject, triple.predicate, triple.object, graph)
        if self._below.contains(asserted):
            return True
        if graph not in self._said:
            said = self._below.quads_matching(None, None, None, graph)
            self._said[graph] = {inner for quad in said for inner in _triple_terms(quad.object)}
        return triple in self._said[graph]


def planned_by(
    sight: Sight,
    state: Overlay,
    fresh_blank_node: Callable[[], BlankNode],
    store_of: Callable[[QuadStore], QuadStore],
) -> Planned:
    """What somebody with this sight plans a write on. For store_of see `WriterState`."""
    if sight.is_whole:
        return WholeState(state)
    if sight.has_all_graphs and not has_annotations(state):
        return _Unannotated(state)
    return WriterState(sight, state, fresh_blank_node, store_of)


def _check_annotations(state: StoreView, added: Iterable[Quad]) -> None:
    for quad in added:
        if quad.predicate == ALLOWED_SID:
            raise forbidden("only an admin may say who sees a triple")
        if is_annotating(state, quad.subject, quad.graph_name):
            raise forbidden(f"only an admin may write statements of {quad.subject} in its graph")


def _triples(quad: Quad) -> Iterator[Triple]:
    """The triple of a quad, and the triple terms in it."""
    yield quad.triple
    yield from _triple_terms(quad.object)


def _triple_terms(term: Term) -> Iterator[Triple]:
    """A term and what is in it, at any depth."""
    while isinstance(term, Triple):
        yield term
        term = term.object
