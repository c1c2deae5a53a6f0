"""`Overlay`: the store as it will be once the changes that are planned but not applied have been applied."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from types import TracebackType
from typing import Protocol

from pyoxigraph import DefaultGraph, NamedNode, Quad

from graphdb.errors import UnknownGraph
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.store.net_change import NetChange, compose
from graphdb.store.quad_index import QuadIndex
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import StoreView, Subject, Term

__all__ = ["Base", "BaseNotApplied", "GraphsInRemoval", "Overlay", "RequestOverlay"]


class BaseNotApplied(Exception):
    """A request must query a state that holds earlier requests' changes: apply those, then plan it again."""


class GraphsInRemoval(Exception):
    """A request would have to wait until hidden graphs are gone: plan it then, and others meanwhile."""


class Base(StoreView, Protocol):
    """What an overlay may lie on, beside a store: another, or the visible part of one; see `Overlay`."""

    @property
    def underlying(self) -> "Overlay": ...
    @property
    def has_default_graph(self) -> bool: ...
    @property
    def unapplied(self) -> ChangeSet: ...
    def applied_store(self) -> QuadStore: ...
    def note_copied(self, source: NamedGraph | None, change: ChangeSet) -> None: ...


class Overlay:
    """A store with a pending change laid over it; readers of the store see nothing of it.

    The writer makes one `Overlay(store)` a batch: it plans a request against it, then pushes the ChangeSet
    that came of it and plans the next. Quads and graph names are answered here; a query is answered only
    while nothing is pending, else BaseNotApplied. For one thread; the store must not change while something
    is pending.
    """

    def __init__(self, base: QuadStore | Base, *, is_whole: bool = False) -> None:
        """is_whole: it shows all that there is, as it does on a store."""
        self._base = base
        self._is_whole = is_whole or isinstance(base, QuadStore)
        self._pending = NetChange()
        self._added: QuadIndex | None = None  # of the pending change, once it is looked into by terms

    @property
    def pending(self) -> ChangeSet:
        """The net effect of all that was pushed."""
        return self._pending.to_change_set()

    @property
    def underlying(self) -> "Overlay":
        """The state that a request begins with, with all that is hidden from the principal: this one, where
        nothing is.
        """
        return self if isinstance(self._base, QuadStore) or self._is_whole else self._base.underlying

    @property
    def has_default_graph(self) -> bool:
        """Whether the principal may know of the default graph."""
        return isinstance(self._base, QuadStore) or self._is_whole or self._base.has_default_graph

    @property
    def unapplied(self) -> ChangeSet:
        """What is pending here and below, as far as it is visible."""
        if isinstance(self._base, QuadStore):
            return self.pending
        return compose(self._base.unapplied, self.pending)

    def note_copied(self, source: NamedGraph | None, change: ChangeSet) -> None:
        """A change about to be pushed copies a graph (None: the default graph): what protects the triples
        there is to protect them where they come.
        """
        if not isinstance(self._base, QuadStore):
            self._base.note_copied(source, change)

    def rest_on(self, store: QuadStore) -> None:
        """What lay below is applied: from now on this lies on the store itself."""
        self._base = store

    def push(self, change: ChangeSet) -> None:
        """Lay a change over this state, of which it must be a real change."""
        self._pending.push(change)
        if self._added is not None:
            for quad in change.removed:
                self._added.discard(quad)
            for quad in change.added:
                if quad in self._pending.added:  # and not only back again
                    self._added.add(quad)

    def push_quad(self, quad: Quad, *, removes: bool) -> None:
        """`push` for a change of one quad, without graphs."""
        self._pending.push_quad(quad, removes=removes)
        if self._added is not None:
            if removes:
                self._added.discard(quad)
            elif quad in self._pending.added:  # and not only back again
                self._added.add(quad)

    def request(self) -> "RequestOverlay":
        """A layer for the operations of one request. The caller closes it; this state stays as it is."""
        return RequestOverlay(self)

    def applied_store(self) -> QuadStore:
        """A store that is in this very state, to query it on behalf of a request.

        Raises BaseNotApplied, StorageFull.
        """
        if self._pending:
            raise BaseNotApplied
        return self._base if isinstance(self._base, QuadStore) else self._base.applied_store()

    def contains(self, quad: Quad) -> bool:
        """Whether the quad is there."""
        pending = self._pending  # mostly nothing, or only what is added: a hash of a quad less
        if pending.added and quad in pending.added:
            return True
        return not (pending.removed and quad in pending.removed) and self._base.contains(quad)

    def graph_exists(self, graph: NamedGraph) -> bool:
        """True also for a graph that was created empty."""
        if graph in self._pending.created_graphs:
            return True
        return graph not in self._pending.dropped_graphs and self._base.graph_exists(graph)

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """The quads of one graph (None: the default graph).

        Raises UnknownGraph, at the call.
        """
        if graph is None:
            return self._laid_over(self._base.graph_quads(None), None)
        if not self.graph_exists(graph):
            raise UnknownGraph(graph.value)
        below = self._base.graph_quads(graph) if self._base.graph_exists(graph) else iter(())
        return self._laid_over(below, graph)

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `StoreView.quads_matching`."""
        below = self._base.quads_matching(subject, predicate, object_, graph)
        if not self._pending:
            return below
        if self._added is None:
            self._added = QuadIndex(self._pending.added)
        removed = self._pending.removed
        return chain(
            (quad for quad in below if quad not in removed),
            self._added.matching(subject, predicate, object_, graph),
        )

    def dataset_quads(self) -> Iterator[Quad]:
        """The quads of all graphs."""
        removed = self._pending.removed
        return chain((q for q in self._base.dataset_quads() if q not in removed), self._pending.added)

    def named_graphs(self) -> Iterator[NamedGraph]:
        """The names of the graphs that exist, the empty ones too."""
        dropped = self._pending.dropped_graphs
        return chain((g for g in self._base.named_graphs() if g not in dropped), self._pending.created_graphs)

    def _laid_over(self, below: Iterator[Quad], graph: NamedGraph | None) -> Iterator[Quad]:
        name = graph or DefaultGraph()
        removed = self._pending.removed
        return chain(
            (quad for quad in below if quad not in removed),
            (quad for quad in self._pending.added if quad.graph_name == name),
        )


class RequestOverlay(Overlay):
    """The changes of one request's earlier operations, over the state that the request began with.

    A query that has to see them is answered from a scratch copy of the store, made when it is first needed
    and deleted at the end.
    """

    def __init__(self, base: Overlay) -> None:
        super().__init__(base)
        self._scratch: QuadStore | None = None
        self._opened = ExitStack()

    def __enter__(self) -> "RequestOverlay":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch = None
        self._opened.close()

    def push(self, change: ChangeSet) -> None:
        """Lay a change over this state, of which it must be a real change."""
        super().push(change)
        if self._scratch is not None:
            self._scratch.apply(change)

    def applied_store(self) -> QuadStore:
        """See `Overlay.applied_store`."""
        if not self._pending:
            return super().applied_store()
        if self._scratch is None:
            assert not isinstance(self._base, QuadStore)
            self._scratch = self._opened.enter_context(self._base.applied_store().scratch())
            self._scratch.apply(self.pending)
        return self._scratch
