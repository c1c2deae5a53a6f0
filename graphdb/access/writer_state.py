"""The state that a restricted writer plans on: what he sees, and what his write may not touch."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, Triple

from graphdb.access.annotations import (
    ALLOWED_SID,
    REIFIES,
    VisibleQuads,
    has_annotations,
    is_annotating,
)
from graphdb.access.visibility import Visibility
from graphdb.errors import Forbidden, UnknownGraph
from graphdb.live.changes import LoggedChange
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.sparql.syntax import (
    AddGraph,
    ClearGraph,
    CopyGraph,
    CreateGraph,
    DropGraph,
    GraphTarget,
    Load,
    MoveGraph,
    Operation,
    Update,
)
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import StoreView, Subject, Term

__all__ = [
    "Planned",
    "VisibleState",
    "WholeState",
    "check_graph",
    "check_targets",
    "forbidden",
    "has_hidden_quads",
    "planned_by",
    "seen_changes",
    "seen_touched",
]

# `VisibleState`: what a visibility shows of one state of the store, as a state of its own.


def has_hidden_quads(state: StoreView, graph: GraphName) -> bool:
    """Whether a graph holds anything that is not for everyone who sees the graph; one look into an index.

    Nothing is hidden in it but by annotations, and these are hidden themselves.
    """
    return next(iter(state.quads_matching(None, ALLOWED_SID, None, graph)), None) is not None


class VisibleState:
    """See `graphdb.store.view.StoreView`. It looks into the state at each call, and keeps nothing.

    A graph exists for whoever sees a quad in it; one that holds nothing at all, for whoever sees its name.
    """

    def __init__(self, visibility: Visibility, state: StoreView) -> None:
        self._visibility, self._state = visibility, state
        self._visible_quads = VisibleQuads(visibility, state)

    def contains(self, quad: Quad) -> bool:
        """Whether the quad is there, and seen."""
        return self._state.contains(quad) and self._visible_quads.sees(quad)

    def graph_exists(self, graph: NamedGraph) -> bool:
        """Whether there is such a graph for this visibility."""
        if not self._visibility.sees_graph(graph) or not self._state.graph_exists(graph):
            return False
        if not has_hidden_quads(self._state, graph):
            return True
        return any(map(self._visible_quads.sees, self._state.graph_quads(graph)))

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """What is seen of one graph; None is the default graph.

        Raises UnknownGraph, at the call.
        """
        if graph is None:
            seen = self._visibility.sees_graph(DefaultGraph())
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
        """The names of the graphs that exist for this visibility."""
        return filter(self.graph_exists, self._state.named_graphs())

    def _seen(self, quads: Iterator[Quad]) -> Iterator[Quad]:
        return filter(self._visible_quads.sees, quads)


# Which graphs a write names: where one is hidden from whoever writes, nothing is written.


def forbidden(reason: str) -> Forbidden:
    """What only an admin may write."""
    return Forbidden("whoever writes", "Admin", reason)


def check_graph(visibility: Visibility, graph: GraphName | None) -> None:
    """Raises Forbidden where a graph (None: the default graph) is hidden, whether it exists or not."""
    name = graph or DefaultGraph()
    if not visibility.sees_graph(name):
        text = "the default graph" if isinstance(name, DefaultGraph) else f"the graph {name}"
        raise forbidden(f"{text} is not visible to whoever writes")


def check_targets(visibility: Visibility, update: Update) -> None:
    """Raises Forbidden where an operation on whole graphs names a hidden one, SILENT or not.

    What other operations write to is known when they are planned.
    """
    if not visibility.has_all_graphs:
        for operation in update.operations:
            for graph in _named(operation):
                check_graph(visibility, graph)


def _named(operation: Operation) -> Iterator[NamedNode | None]:
    match operation:
        case Load(into=into) if into is not None:
            yield NamedNode(into.value)
        case CreateGraph(graph):
            yield NamedNode(graph.value)
        case ClearGraph(target) | DropGraph(target) if target.kind in ("graph", "default"):
            yield _graph(target)
        case CopyGraph(source, target) | MoveGraph(source, target) | AddGraph(source, target):
            yield _graph(source)
            yield _graph(target)


def _graph(target: GraphTarget) -> NamedNode | None:
    return NamedNode(target.graph.value) if target.graph is not None else None


# What a visibility showed of past changes, in the states that they were made in.


def seen_changes(
    visibility: Visibility,
    state: Overlay,
    changes: Sequence[LoggedChange],
    resources: Collection[tuple[Subject, GraphName]],
) -> Iterator[tuple[int, ChangeSet]]:
    """What each change has made of the statements of some resources in their graphs, as a visibility showed
    them: by what was annotated then. With the log index of each; those that changed nothing to it are passed
    over.

    changes: all that have led to the state, from some state on. The state must not change meanwhile.
    """
    past = Overlay(state)
    for one in reversed(changes):
        past.push(one.change.inverse)
    seen = VisibleState(visibility, past)
    graphs = {graph for _, graph in resources}

    def said() -> set[Quad]:
        return {
            quad for subject, graph in resources for quad in seen.quads_matching(subject, None, None, graph)
        }

    before, is_concerned = said(), False
    for one in changes:
        past.push(one.change)
        is_concerned |= any(
            quad.graph_name in graphs for quads in (one.change.removed, one.change.added) for quad in quads
        )
        if not (one.is_last and is_concerned):
            continue
        after, is_concerned = said(), False
        if after != before:
            yield one.index, ChangeSet(tuple(before - after), tuple(after - before))
        before = after


def seen_touched(
    visibility: Visibility,
    state: Overlay,
    changes: Sequence[LoggedChange],
    concerns: Callable[[Quad], bool],
    concerns_graph: Callable[[NamedGraph], bool],
) -> bool:
    """Whether any change has made something else of the quads, or the names of graphs, that are of concern,
    as a visibility showed them. A change of what is annotated, in a graph that is seen, always has.

    changes and state: see `seen_changes`.
    """
    past = Overlay(state)
    for one in reversed(changes):
        past.push(one.change.inverse)

    def shows_any(quads: Iterable[Quad], graphs: Iterable[NamedGraph]) -> bool:
        seen = VisibleState(visibility, past)
        return (
            any(_is_annotation(past, quad) and visibility.sees_graph(quad.graph_name) for quad in quads)
            or any(concerns(quad) and seen.contains(quad) for quad in quads)
            or any(concerns_graph(graph) and seen.graph_exists(graph) for graph in graphs)
        )

    for one in changes:
        change = one.change
        if shows_any(change.removed, change.dropped_graphs):
            return True
        past.push(change)
        if shows_any(change.added, change.created_graphs):
            return True
    return False


def _is_annotation(state: StoreView, quad: Quad) -> bool:
    if quad.predicate == ALLOWED_SID:
        return True
    return quad.predicate == REIFIES and is_annotating(state, quad.subject, quad.graph_name)


# What a write is planned on, and what its plan comes to, where whoever writes does not see everything.
#
# A write is planned on what its writer sees, as if nothing else was there. Then the planned change is made
# the real one: what is there already, hidden, is not added again; a graph stays while it holds what is
# hidden; and what is not the writer's to change is refused. So no quad that is hidden is ever removed,
# annotations come only with the triples that they protect, where a graph is copied, and nothing is hidden
# from others.

_Placed = tuple[Triple, GraphName]

_NO_SIDS = Visibility(default_graph=True, patterns=frozenset({"*"}))


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
    """A state as a visibility shows it, to plan a write on: see `graphdb.store.overlay.Base`, and `Planned`.

    To ask for a graph by its name is to mean to write to it, or to copy it: what is hidden is Forbidden.
    """

    def __init__(
        self,
        visibility: Visibility,
        state: Overlay,
        fresh_blank_node: Callable[[], BlankNode],
        store_of: Callable[[QuadStore], QuadStore],
    ) -> None:
        """store_of gives a store of what the visibility shows of a store, in its present state."""
        super().__init__(visibility, state)
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
        return self._visibility.sees_graph(DefaultGraph())

    @property
    def unapplied(self) -> ChangeSet:
        """See `Overlay.unapplied`."""
        change = self._below.unapplied
        if not change:
            return change
        before = Overlay(self._below)
        before.push(change.inverse)
        return ChangeSet(
            tuple(filter(VisibleQuads(self._visibility, before).sees, change.removed)),
            tuple(filter(self._visible_quads.sees, change.added)),
        )

    def contains(self, quad: Quad) -> bool:
        """Whether the quad is there, and seen. Raises Forbidden."""
        check_graph(self._visibility, quad.graph_name)
        return super().contains(quad)

    def graph_exists(self, graph: NamedGraph) -> bool:
        """Whether there is such a graph for the writer. Raises Forbidden."""
        check_graph(self._visibility, graph)
        return super().graph_exists(graph)

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """What the writer sees of one graph; None is the default graph.

        Raises UnknownGraph, Forbidden, at the call.
        """
        check_graph(self._visibility, graph)
        return super().graph_quads(graph)

    def named_graphs(self) -> Iterator[NamedGraph]:
        """The names of the graphs that exist for the writer."""
        return filter(super().graph_exists, self._below.named_graphs())

    def applied_store(self) -> QuadStore:
        """See `Overlay.applied_store`."""
        return self._store_of(self._below.applied_store())

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
        """See `Planned.real_change`. It changes nothing of what this visibility does not show."""
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
        """That nothing which was there becomes invisible to others because it is now said by a reifier of a
        protected triple, or about what such a one says.
        """
        below, removed = self._below, frozenset(real.removed)
        after: VisibleQuads | None = None
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
                after = VisibleQuads(_NO_SIDS, state)
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
        nothing is taken out of others' visibility.
        """
        asserted = Quad(triple.subject, triple.predicate, triple.object, graph)
        if self._below.contains(asserted):
            return True
        if graph not in self._said:
            said = self._below.quads_matching(None, None, None, graph)
            self._said[graph] = {inner for quad in said for inner in _triple_terms(quad.object)}
        return triple in self._said[graph]


def planned_by(
    visibility: Visibility,
    state: Overlay,
    fresh_blank_node: Callable[[], BlankNode],
    store_of: Callable[[QuadStore], QuadStore],
) -> Planned:
    """What somebody with this visibility plans a write on. For store_of see `WriterState`."""
    if visibility.is_whole:
        return WholeState(state)
    if visibility.has_all_graphs and not has_annotations(state):
        return _Unannotated(state)
    return WriterState(visibility, state, fresh_blank_node, store_of)


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
