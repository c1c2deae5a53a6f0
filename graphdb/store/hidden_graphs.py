"""`HiddenGraphs`: named graphs that are empty for readers, and lose their quads in the engine only later.

The engine deletes a quad of one of several named graphs in six indexes, and lets nobody write meanwhile. So a
large graph is hidden at once, and its quads go a block at a time. Whoever reads the engine leaves out what is
hidden: `graphdb.store.seen_dataset` says it to the engine, the rest is told by the name of a quad's graph.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from threading import RLock
from typing import TypeVar

from pyoxigraph import BlankNode, NamedNode, Quad, Store

from graphdb.errors import LogUnavailable
from graphdb.model import ChangeSet, NamedGraph
from graphdb.rdf.quad_lines import ClearedLines, line_blocks
from graphdb.store.apply import is_cleared_at_once, remove_lines

__all__ = ["Hidden", "HiddenGraphs", "may_hide"]

T = TypeVar("T")

_BLOCK_BYTES = 512 << 10  # some 5,000 quads, which take the engine 50 ms

_HELD_S = 0.05
_QUADS_MIN = 20_000  # fewer are gone in some tenths of a second
_NAMES_MAX = 1_000  # of graphs, which each query has to name while one is hidden


@dataclass(frozen=True, eq=False, slots=True)
class Hidden:
    """What is hidden between two changes of that. dropped are those of the graphs whose names are, too."""

    graphs: frozenset[NamedNode] = frozenset()
    dropped: frozenset[NamedGraph] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.graphs)

    def seen(self, quads: Iterator[Quad]) -> Iterator[Quad]:
        """Without those of hidden graphs."""
        hidden = self.graphs
        return (quad for quad in quads if quad.graph_name not in hidden) if hidden else quads

    def concerns(self, change: ChangeSet) -> bool:
        """Whether a change has to wait until the quads are gone: it is about these graphs. So is one that
        names a graph by a blank node, which no dataset can.
        """
        if not self.graphs:
            return False
        names = (*change.created_graphs, *change.dropped_graphs)
        return any(isinstance(name, BlankNode) for name in names) or change.concerns(self.graphs)


def may_hide(store: Store, lines: ClearedLines) -> bool:
    """Whether the graphs of this change can be hidden first, and it is worth while."""
    if lines.added is not None or lines.count < _QUADS_MIN:
        return False
    if not all(isinstance(graph, NamedNode) for graph in lines.cleared_graphs):
        return False
    names = list(islice(store.named_graphs(), _NAMES_MAX + 1))
    # a dataset cannot name a graph by a blank node
    if len(names) > _NAMES_MAX or any(isinstance(name, BlankNode) for name in names):
        return False
    return not is_cleared_at_once(store, lines)


class HiddenGraphs:
    """Of one store, on any threads.

    The quads that go are in files of lines, which are there while this is open (`close`).
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._removal: _Removal | None = None
        self._lock = RLock()
        self._is_closed = False
        self.now = Hidden()  # another object after each change

    def read(self, read: Callable[[Hidden], T]) -> T:
        """What a read of the engine begins with, in one state, and what is hidden in that."""
        while True:
            hidden = self.now
            found = read(hidden)
            if hidden is self.now:
                return found

    @contextmanager
    def held(self) -> Iterator[Hidden]:
        """While nothing goes, and nothing more is hidden."""
        with self._lock:
            yield self.now

    def hide(self, lines: ClearedLines) -> None:
        """Make graphs empty for readers, at once; what was hidden before has to go first."""
        with self._lock:
            assert self._removal is None, "one removal at a time"
            graphs = frozenset(graph for graph in lines.cleared_graphs if isinstance(graph, NamedNode))
            assert len(graphs) == len(set(lines.cleared_graphs)), (
                "only what a dataset can leave out is hidden"
            )
            self._removal = _Removal(lines)
            self.now = Hidden(graphs, frozenset(lines.dropped_graphs))

    def remove_some(self) -> None:
        """Have the engine delete a block of the quads, unless it is `held` for longer than a moment; the last
        call makes an end. A call that fails is to be repeated. Raises LogUnavailable (once closed), OSError.
        """
        if not self._lock.acquire(timeout=_HELD_S):
            return
        try:
            if self._removal is None:
                return
            if self._is_closed:
                raise LogUnavailable("the node is starting or stopping")
            if not self._removal.go_on(self._store):
                self._removal = None
                self.now = Hidden()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Let go of the lines. What is hidden stays so."""
        with self._lock:
            self._is_closed = True
            if self._removal is not None:
                self._removal.close()


class _Removal:
    def __init__(self, lines: ClearedLines) -> None:
        self._graphs, self._dropped = lines.cleared_graphs, lines.dropped_graphs
        self._file = lines.path.open("rb")  # its maker deletes the name
        self._blocks = line_blocks(self._file, _BLOCK_BYTES)
        self._block = b""

    def go_on(self, store: Store) -> bool:
        """False after the last step."""
        self._block = self._block or next(self._blocks, b"")
        if self._block:
            remove_lines(store, self._block)
            self._block = b""
            return True
        for graph in self._graphs:  # with quads that come only later in the log, as in `ClearedLines`
            if graph in self._dropped:
                store.remove_graph(graph)
            else:
                store.clear_graph(graph)
        self.close()
        return False

    def close(self) -> None:
        self._file.close()
