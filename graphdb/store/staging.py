"""Staging: whole RDF documents put into graphs, patches, and graphs deleted, as streams of ChangeSets.

A document is read to its end before anything is planned (it may turn out malformed in its last line) and
outside the writer's turn (it may come in slowly). It waits in memory while it is small, else in a store of
its own on disk, so that a document of any size costs Python little memory. In the writer's turn it is
compared with what is there.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Protocol

from pyoxigraph import DefaultGraph, NamedNode, Quad, Store

from graphdb.errors import InvalidParameter
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.rdf.patch import QuadPatch
from graphdb.store.engine_errors import storage_failures
from graphdb.store.stored_form import stored_form
from graphdb.store.view import StoreView

__all__ = ["QUADS_PER_PART", "StagedBody", "graph_deletion", "patch_parts"]

QUADS_PER_PART = 20_000  # about 5 MB encoded; also the largest document held in Python's memory


class StagedBody:
    """One document, ready to be put into the store. Closing it deletes what it keeps on disk."""

    def __init__(
        self,
        quads: Iterable[Quad],
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        directory: Path | None,
        quads_per_part: int = QUADS_PER_PART,
    ) -> None:
        """Read a document to its end. Its blank nodes are the store's own already.

        With whole_dataset its quads go to the graphs that it names itself, else all go to graph (None: the
        default graph). directory is where a large document is kept; None keeps it in native memory.
        Raises InvalidParameter for a named graph in a document that has a target, StorageFull, and whatever
        the iterable raises; then nothing is left behind.
        """
        self._targets = None if whole_dataset else (graph,)
        self._quads_per_part = quads_per_part
        incoming = iter(quads) if whole_dataset else _aimed(quads, graph)
        with ExitStack() as opened:
            self._quads = _gather(incoming, quads_per_part, directory, opened)
            self._opened = opened.pop_all()

    def __enter__(self) -> "StagedBody":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget the document."""
        self._quads = _InMemory(())
        self._opened.close()

    @property
    def targets(self) -> tuple[NamedGraph | None, ...]:
        """The graphs that it is to be put into; None for the default graph."""
        return self._quads.graphs() if self._targets is None else self._targets

    def parts(self, view: StoreView, *, replace: bool, clear: bool = False) -> Iterator[ChangeSet]:
        """The net effect of putting the document into this state, in pieces for `QuadStore.apply_many`.

        replace empties the target graphs of what the document does not have. A target graph exists
        afterwards, even if the document is empty. clear does so, and deletes all other graphs. view must not
        change meanwhile.
        """
        targets = self.targets
        created = frozenset(graph for graph in targets if graph is not None and not view.graph_exists(graph))
        old = [graph for graph in targets if graph not in created]
        dropped = tuple(graph for graph in view.named_graphs() if graph not in targets) if clear else ()
        emptied = [*old, *dropped, *((None,) if clear and None not in targets else ())]
        removed = (quad for graph in emptied for quad in view.graph_quads(graph) if quad not in self._quads)
        added = (quad for quad in self._quads if quad.graph_name in created or not view.contains(quad))
        return _parts(
            removed if replace or clear else iter(()),
            added,
            self._quads_per_part,
            created=tuple(created),
            dropped=dropped,
        )


def graph_deletion(
    view: StoreView, graph: NamedGraph | None, *, quads_per_part: int = QUADS_PER_PART
) -> Iterator[ChangeSet]:
    """Delete a named graph, or empty the default graph (None), in pieces for `QuadStore.apply_many`.

    Raises UnknownGraph, at the call.
    """
    dropped = () if graph is None else (graph,)
    return _parts(view.graph_quads(graph), iter(()), quads_per_part, dropped=dropped)


def patch_parts(
    view: StoreView, patch: QuadPatch, *, quads_per_part: int = QUADS_PER_PART
) -> Iterator[ChangeSet]:
    """The net effect of a patch, in pieces for `QuadStore.apply_many`. view must not change meanwhile."""
    wanted = dict.fromkeys(stored_form(patch.added))
    named = dict.fromkeys(_named(quad.graph_name) for quad in wanted)
    created = tuple(graph for graph in named if graph is not None and not view.graph_exists(graph))
    dropped: tuple[NamedGraph, ...] = ()
    unwanted: Iterable[Quad]
    if patch.replaces_all:
        unwanted = view.dataset_quads()
        dropped = tuple(graph for graph in view.named_graphs() if graph not in named)
    else:
        unwanted = (quad for quad in dict.fromkeys(stored_form(patch.removed)) if view.contains(quad))
    removed = (quad for quad in unwanted if quad not in wanted)
    added = (quad for quad in wanted if not view.contains(quad))
    return _parts(removed, added, quads_per_part, created=created, dropped=dropped)


class _Quads(Protocol):
    """A document's quads, each once."""

    def __iter__(self) -> Iterator[Quad]: ...

    def __contains__(self, quad: Quad) -> bool: ...

    def graphs(self) -> tuple[NamedGraph | None, ...]:
        """The graphs that have a quad; None for the default graph."""


class _InMemory(dict[Quad, None]):
    """A small document, in its own order; its quads are in the store's form."""

    def __init__(self, quads: Iterable[Quad]) -> None:
        super().__init__(dict.fromkeys(quads))

    def graphs(self) -> tuple[NamedGraph | None, ...]:
        return tuple(dict.fromkeys(_named(quad.graph_name) for quad in self))


class _InStore:
    """A large document, in a store of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __iter__(self) -> Iterator[Quad]:
        return self._store.quads_for_pattern(None, None, None, None)

    def __contains__(self, quad: Quad) -> bool:
        return quad in self._store

    def graphs(self) -> tuple[NamedGraph | None, ...]:
        default = self._store.quads_for_pattern(None, None, None, DefaultGraph())
        return (*((None,) if next(default, None) else ()), *self._store.named_graphs())


def _gather(quads: Iterator[Quad], quads_in_memory: int, directory: Path | None, opened: ExitStack) -> _Quads:
    """Read to the end; what is opened for it is entered into opened."""
    first = list(islice(quads, quads_in_memory + 1))
    if len(first) <= quads_in_memory:
        return _InMemory(stored_form(first))
    with storage_failures():
        if directory is None:
            store = Store()
        else:
            store = Store(opened.enter_context(tempfile.TemporaryDirectory(dir=directory)))
        store.bulk_extend(chain(first, quads))
    return _InStore(store)


def _aimed(quads: Iterable[Quad], graph: NamedNode | None) -> Iterator[Quad]:
    """The quads of a document that must have none but its default graph, as quads of the target graph."""
    for quad in quads:
        if not isinstance(quad.graph_name, DefaultGraph):
            raise InvalidParameter("graph", f"the body has a named graph of its own, {quad.graph_name}")
        yield quad if graph is None else Quad(quad.subject, quad.predicate, quad.object, graph)


def _named(graph: GraphName) -> NamedGraph | None:
    return None if isinstance(graph, DefaultGraph) else graph


def _parts(
    removed: Iterator[Quad],
    added: Iterator[Quad],
    quads_per_part: int,
    *,
    created: tuple[NamedGraph, ...] = (),
    dropped: tuple[NamedGraph, ...] = (),
) -> Iterator[ChangeSet]:
    """Removals, then additions, a full part at a time; the graph names stand in the first."""
    while gone := tuple(islice(removed, quads_per_part)):
        new = tuple(islice(added, quads_per_part - len(gone)))
        yield ChangeSet(gone, new, dropped, created)
        created = dropped = ()
    while new := tuple(islice(added, quads_per_part)):
        yield ChangeSet((), new, dropped, created)
        created = dropped = ()
    if created or dropped:
        yield ChangeSet((), (), dropped, created)
