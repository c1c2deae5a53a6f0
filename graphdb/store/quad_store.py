"""`QuadStore`: the quads of one node in an opened pyoxigraph store, read as of now and changed by whole
ChangeSets.

Who opened the store owns it: this class neither opens nor locks, and knows nothing of the log.
"""

import copy
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Store,
    Triple,
)

from graphdb.errors import EvaluationFailed, StorageFull, UnknownGraph
from graphdb.geo.spatial_index import SpatialIndex
from graphdb.geometry.geosparql_names import GEOMETRY_PROPERTIES, SERIALIZATIONS
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.rdf.quad_lines import AddedLines, ClearedLines
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.store.apply import add_lines, apply_changes, clear_graphs, may_clear
from graphdb.store.engine_errors import storage_failures
from graphdb.store.engine_flushes import EngineFlushes
from graphdb.store.engine_query import engine_query
from graphdb.store.graph_watch import GraphWatch
from graphdb.store.hidden_graphs import Hidden, HiddenGraphs, may_hide
from graphdb.store.object_rows import ObjectRows
from graphdb.store.search_tables import Table, patterns_of
from graphdb.store.seen_dataset import seen_dataset
from graphdb.store.view import Subject, Term

if TYPE_CHECKING:
    from graphdb.geo.lookups import EngineText, Lookup
    from graphdb.geo.narrowing import Narrowed
    from graphdb.sparql.syntax import Query

__all__ = ["Answer", "ChangeListener", "QuadStore", "Term"]

_SERIALIZATIONS = tuple(map(NamedNode, SERIALIZATIONS))
_HAS_GEOMETRY = tuple(map(NamedNode, GEOMETRY_PROPERTIES))

Answer = QuerySolutions | QueryTriples | QueryBoolean


class ChangeListener(Protocol):
    """Is notified of every change of a store, by the store's one writer."""

    def applying(self, changes: Iterable[ChangeSet]) -> Iterable[ChangeSet]:
        """The parts of one change, of which nothing is visible yet, on their way to the store. They are
        handed on as they are; a tuple as a tuple, for the store applies that in fewer steps.
        """

    def applying_lines(self, lines: AddedLines | ClearedLines) -> None:
        """The same for a change of many quads, which are read only as far as a listener needs them. What a
        change adds to graphs that it clears is told after that.
        """

    def applied(self) -> None:
        """The change is visible. It is not called for one that has failed."""


class ChangeNoter(Protocol):
    """An index that is told of all changes before they are visible: see `SpatialIndex`."""

    def note(self, change: ChangeSet) -> None: ...
    def note_lines(self, lines: AddedLines | ClearedLines) -> None: ...
    def noted(self, changes: Iterable[ChangeSet]) -> Iterable[ChangeSet]: ...


class QuadStore:
    """Quads over a pyoxigraph Store, in memory or on disk.

    Reading may happen on any thread at any time and sees one consistent state; changes come from one writer
    at a time. A change that fails leaves the store as it was.
    """

    def __init__(
        self,
        store: Store,
        listeners: Iterable[ChangeListener] = (),
        *,
        scratch_directory: Path | None = None,
        union_default_graph: bool = False,
    ) -> None:
        """Take an opened store. The listeners are notified of its changes, not of those of scratch copies.

        scratch_directory exists, is on the store's own file system and is where scratch copies are made; None
        for a store in memory. union_default_graph makes the default graph of queries without a dataset of
        their own the union of all graphs.
        """
        self._store = store
        self._hidden = HiddenGraphs(store)
        # large graphs that are emptied are hidden; whoever sets this calls `remove_some`
        self.hides_cleared = False
        self._flushes = EngineFlushes(store.flush)
        self._scratch_directory = scratch_directory
        self._union_default_graph = union_default_graph
        self.spatial_index: SpatialIndex | None = None  # where there is one, it follows all changes
        self.text_index: ChangeNoter | None = None  # likewise
        self._listeners = tuple(listeners)
        self._watches: set[GraphWatch] = set()
        # entered around what has the engine write all that it holds in memory; may make room on the disk
        self.flushing: Callable[[], AbstractContextManager[None]] = nullcontext
        # called now and then while many quads are handed to the engine, whose call gives other threads no
        # turn at the interpreter; may give them one
        self.pause: Callable[[], None] = lambda: None
        # the disk was too full for the engine once: it may take nothing more until it is opened again
        self.is_starved = False

    @property
    def unites_graphs(self) -> bool:
        """Whether the default graph of queries is the union of all graphs."""
        return self._union_default_graph

    def uniting_graphs(self) -> "QuadStore":
        """The same store, for reading alone, with the union of all graphs as default graph of queries."""
        other = copy.copy(self)
        other._union_default_graph = True
        return other

    def query(self, query: "Query", dataset: Dataset, tables: Mapping[str, Table] | None = None) -> Answer:
        """Start evaluating a query on the present state; rows are computed as they are taken.

        A dataset that names graphs overrides the FROM clauses of the query. tables are what its searches
        found, by their names.
        Raises EvaluationFailed. Taking rows may raise pyoxigraph's own errors: see `request_failures`.
        """
        # Here, for what only loads data reads no query; importing this takes 0.1 s.
        from graphdb.planning.engine_text import engine_text

        made = engine_text(query)
        if made.searches:
            if tables is None:
                raise EvaluationFailed("searches are not evaluated here")
            made = made.with_tables(patterns_of(tables))
        return self.query_text(
            self.narrowed(made).text,
            dataset or own_dataset(query),
            base_iri=query.base_iri,
            calls_geometry=made.calls_geometry,
        )

    def query_text(
        self,
        text: str,
        dataset: Dataset,
        *,
        default_graph: NamedNode | None = None,
        base_iri: str | None = None,
        calls_geometry: bool = False,
    ) -> Answer:
        """`query` for text whose own FROM clauses, if any, do not count.

        default_graph stands in for the store's default graph, beside all named graphs, where the dataset
        names none. calls_geometry: see `engine_query`.
        """
        given = dataset.default_graphs if dataset else default_graph
        named = dataset.named_graphs if dataset else None
        union = self._union_default_graph

        def ask(hidden: Hidden) -> Answer:
            default_graphs, named_graphs = seen_dataset(
                self._store, hidden.graphs, given, named, union_default_graph=union
            )
            return engine_query(
                self._store,
                text,
                base_iri=base_iri,
                default_graph=default_graphs,
                named_graphs=named_graphs,
                union_default_graph=union,
                calls_geometry=calls_geometry,
            )

        return self._hidden.read(ask)

    def narrowed(self, made: "EngineText", at: int | None = None, *, is_present: bool = True) -> "Narrowed":
        """A query's text with what the spatial index finds for it in the present state, or that of a log
        index; is_present says whether that is the present one all the same.
        """
        from graphdb.geo.narrowing import Narrowed, narrowed

        if self.spatial_index is None or not (made.lookups or made.nearest):
            return Narrowed(made.text)
        return narrowed(made, self.spatial_index, at, self._geometries_of if is_present else None)

    def _geometries_of(self, iri: str) -> Iterator[Term]:
        """The geometries of a resource, itself one or a feature, in any graph, as they are written."""
        resource = NamedNode(iri)
        own = chain.from_iterable(self.quads_matching(resource, has, None, None) for has in _HAS_GEOMETRY)
        for node in (resource, *(quad.object for quad in own)):
            if isinstance(node, NamedNode | BlankNode):
                for serialization in _SERIALIZATIONS:
                    quads = self.quads_matching(node, serialization, None, None)
                    yield from (quad.object for quad in quads)

    def candidates(self, lookup: "Lookup") -> list[Term] | None:
        """All values that the spatial index finds in the present state; None where it is of no use."""
        from graphdb.geo.narrowing import NotUsed, candidates

        if self.spatial_index is None:
            return None
        try:
            return candidates(lookup, self.spatial_index)
        except NotUsed:
            return None

    def contains(self, quad: Quad) -> bool:
        """Whether the quad is there."""
        hidden = self._hidden.now
        if not hidden.graphs:  # mostly; the same as below, without its two calls
            found = quad in self._store
            if hidden is self._hidden.now:
                return found
        return self._hidden.read(lambda hidden: quad in self._store and quad.graph_name not in hidden.graphs)

    def matching(
        self, subject: Term | None, predicate: Term | None, object_: Term | None, graph: NamedNode | None
    ) -> Iterator[Quad]:
        """The quads with these terms, None standing for any, as of the call.

        They are of the graph, None standing for what queries without a dataset see as the default graph.
        """
        if isinstance(subject, Literal | Triple) or not isinstance(predicate, NamedNode | None):
            return iter(())
        default = None if self._union_default_graph else DefaultGraph()
        return self.quads_matching(subject, predicate, object_, graph or default)

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `StoreView.quads_matching`; as of the call."""
        hidden = self._hidden.now
        found = self._store.quads_for_pattern(subject, predicate, object_, graph)
        if hidden is self._hidden.now and not hidden.graphs:  # mostly, and this is called very often
            return found

        def find(hidden: Hidden) -> Iterator[Quad]:
            if graph in hidden.graphs:
                return iter(())
            found = self._store.quads_for_pattern(subject, predicate, object_, graph)
            return hidden.seen(found) if graph is None else found

        return self._hidden.read(find)

    def objects_of(self, predicate: NamedNode) -> Iterator[Term]:
        """The objects of all quads with a predicate, as of the call; each as often as it stands there."""
        return (quad.object for quad in self.quads_of(predicate))

    def quads_of(self, predicate: NamedNode | None) -> Iterator[Quad]:
        """The quads with a predicate (None: all), as of the call."""
        return self.quads_matching(None, predicate, None, None)

    def object_rows(self, predicate: NamedNode, graph: GraphName) -> ObjectRows:
        """The subjects and objects of a predicate in a graph, in the present state or a later one."""

        def ask(text: str) -> Answer:
            def of_graph(hidden: Hidden) -> Answer:
                return self._store.query(text, default_graph=[] if graph in hidden.graphs else graph)

            return self._hidden.read(of_graph)

        return ObjectRows(ask, predicate)

    def graph_exists(self, graph: NamedGraph) -> bool:
        """True also for a graph that was created empty."""
        return self._hidden.read(
            lambda hidden: graph not in hidden.dropped and self._store.contains_named_graph(graph)
        )

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """The quads of one graph (None: the default graph) as it is at the call.

        Raises UnknownGraph, at the call.
        """
        if graph is not None and not self.graph_exists(graph):
            raise UnknownGraph(graph.value)
        return self.quads_matching(None, None, None, graph or DefaultGraph())

    def dump_graph(self, graph: NamedGraph | None, path: Path) -> None:
        """Write the triples of one graph (None: the default graph), as it is at the call, as N-Triples.

        Raises StorageFull, CorruptionError.
        """

        def dump(hidden: Hidden) -> None:
            if graph in hidden.graphs:
                path.touch()
            else:
                self._store.dump(path, RdfFormat.N_TRIPLES, from_graph=graph or DefaultGraph())

        with storage_failures():
            self._hidden.read(dump)

    def dataset_quads(self) -> Iterator[Quad]:
        """Every quad, as the dataset is at the call."""
        return self.quads_matching(None, None, None, None)

    def named_graphs(self) -> Iterator[NamedGraph]:
        """The names of the graphs that exist, the empty ones too."""

        def names(hidden: Hidden) -> Iterator[NamedGraph]:
            found = self._store.named_graphs()
            return (graph for graph in found if graph not in hidden.dropped) if hidden else found

        return self._hidden.read(names)

    def apply(self, change: ChangeSet) -> None:
        """Make one change visible, all at once. Applying it again changes nothing.

        Raises StorageFull, CorruptionError.
        """
        if self.hides(change):
            self.remove_hidden()
        if self.spatial_index is not None:
            self.spatial_index.note(change)
        if self.text_index is not None:
            self.text_index.note(change)
        self._apply((change,))

    def apply_many(self, changes: Iterable[ChangeSet]) -> None:
        """Make the parts of one change visible, all at once, holding one part at a time in Python's memory.

        The parts together are net: no quad stands in two of them. Parts that remove come before parts that
        only add (so a stream that begins without removals can take the faster road), and graphs created or
        dropped stand in the first part; those named later come and go by themselves just after the quads.
        `AddedLines` and `ClearedLines` take the fastest road. What readers do not see any more may be taken
        away only later: see `hides_cleared`.
        Raises StorageFull, CorruptionError.
        """
        if self.is_removing and not (isinstance(changes, tuple) and not any(map(self.hides, changes))):
            self.remove_hidden()
        if isinstance(changes, AddedLines) or (isinstance(changes, ClearedLines) and may_clear(changes)):
            self._apply_lines(changes)
            return
        for index in self._noters():
            changes = index.noted(changes)
        self._apply(changes)

    @property
    def is_removing(self) -> bool:
        """Whether the engine has quads of graphs that are empty for readers."""
        return bool(self._hidden.now)

    def hides(self, change: ChangeSet) -> bool:
        """Whether a change is about such graphs: applying it takes as long as their removal."""
        hidden = self._hidden.now
        return bool(hidden.graphs) and hidden.concerns(change)

    def remove_some(self) -> None:
        """Take some of these quads away, in a tenth of a second or so; nothing while the store is copied.

        On any thread, beside reading and changes. Raises StorageFull, CorruptionError, LogUnavailable (after
        `let_go`).
        """
        with self._watching_room(), storage_failures():
            self._hidden.remove_some()

    def remove_hidden(self) -> None:
        """The same for all of them."""
        while self.is_removing:
            self.remove_some()

    def let_go(self) -> None:
        """Nothing is taken away any more: what is hidden is so until the store is opened again, and the
        change that emptied it is to be applied again.
        """
        self._hidden.close()

    def _is_hidden_first(self, lines: ClearedLines) -> bool:
        return self.hides_cleared and not self._union_default_graph and may_hide(self._store, lines)

    def _noters(self) -> Iterator[ChangeNoter]:
        if self.spatial_index is not None:
            yield self.spatial_index
        if self.text_index is not None:
            yield self.text_index

    @contextmanager
    def watching(self, graphs: Iterable[NamedGraph | None]) -> Iterator[GraphWatch]:
        """Whether these graphs (None: the default graph) stay as they are."""
        watch = GraphWatch(frozenset(graph or DefaultGraph() for graph in graphs))
        self._watches.add(watch)
        try:
            yield watch
        finally:
            self._watches.discard(watch)

    def _apply(self, changes: Iterable[ChangeSet]) -> None:
        for watch in tuple(self._watches):
            watch.note(changes)
        for listener in self._listeners:
            changes = listener.applying(changes)
        try:
            apply_changes(self._store, changes, self._flushes.watched)
        except StorageFull:
            self.is_starved = True
            raise
        for listener in self._listeners:
            listener.applied()

    def _apply_lines(self, lines: AddedLines | ClearedLines) -> None:
        for watch in tuple(self._watches):
            watch.note(lines)
        more = lines.added if isinstance(lines, ClearedLines) else None
        for some in (lines, more) if more is not None else (lines,):
            for index in self._noters():
                index.note_lines(some)
            for listener in self._listeners:
                listener.applying_lines(some)
        with self._watching_room():
            if isinstance(lines, ClearedLines) and self._is_hidden_first(lines):
                self._hidden.hide(lines)
            elif isinstance(lines, ClearedLines):
                clear_graphs(self._store, lines)
            else:
                add_lines(self._store, lines, self._flushes.watched, self.pause)
        for listener in self._listeners:
            listener.applied()

    def checkpoint(self, path: Path) -> None:
        """Write a copy of the present state to a directory that does not exist yet: hard links where
        possible. What is hidden is removed first.

        Raises StorageFull, CorruptionError. The store must be on disk.
        """
        while True:
            self.remove_hidden()
            with self._hidden.held() as hidden:
                if not hidden:
                    self._back_up(path)
                    return

    def checkpoint_hiding(self, path: Path) -> frozenset[NamedNode]:
        """The same without delay. The copy has quads of these graphs, of which none are in its state."""
        with self._hidden.held() as hidden:
            self._back_up(path)
            return hidden.graphs

    def _back_up(self, path: Path) -> None:
        with self._flushes.one_at_a_time(), self._watching_room(), self.flushing(), storage_failures():
            self._store.backup(path)

    def flush(self) -> None:
        """Return once everything applied so far is on disk.

        Raises StorageFull, CorruptionError.
        """
        with self._flushes.one_at_a_time(), self._watching_room(), self.flushing(), storage_failures():
            self._store.flush()

    @contextmanager
    def _watching_room(self) -> Iterator[None]:
        try:
            yield
        except StorageFull:
            self.is_starved = True
            raise

    @contextmanager
    def scratch(self) -> Iterator["QuadStore"]:
        """An independent copy of the present state, to change and throw away."""
        if self._scratch_directory is None:
            copy = Store()
            copy.bulk_extend(self.dataset_quads())
            for graph in self.named_graphs():
                copy.add_graph(graph)
            yield self._like(copy)
            return
        directory = Path(tempfile.mkdtemp(dir=self._scratch_directory))
        try:
            self.checkpoint(directory / "store")
            yield self._like(Store(directory / "store"))
        finally:
            _remove(directory)

    def _like(self, store: Store) -> "QuadStore":
        return QuadStore(store, union_default_graph=self._union_default_graph)


def _remove(directory: Path) -> None:
    """Delete the directory of a store that may not have been closed yet.

    The engine's threads may make a file while the others are being deleted. What is left after some attempts
    goes when the owner of the scratch directory next empties it.
    """
    for _ in range(10):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
