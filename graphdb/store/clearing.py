"""Clearing whole graphs: their quads as lines (`graphdb.rdf.quad_lines`), which the engine writes in native
code. A quad at a time costs ten times as much, and the interpreter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from pyoxigraph import BlankNode, DefaultGraph

from graphdb.model import NamedGraph
from graphdb.rdf.quad_lines import LineChange, line_blocks
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import StoreView

__all__ = ["CLEARED_QUADS_MIN", "Emptied", "clear_lines", "is_worth_lines"]

CLEARED_QUADS_MIN = 10_000  # fewer are planned as ChangeSets: they are not worth a file
_GRAPHS_MAX = 1_000  # each is written by a call of its own, and named in the entry that ends the change
_LINE_END = b" .\n"  # what is within a literal is escaped, so only ends of lines look so


@dataclass(frozen=True, slots=True)
class Emptied:
    """graphs lose all their quads (None: the default graph), and dropped, some of these, their names."""

    graphs: Sequence[NamedGraph | None]
    dropped: Sequence[NamedGraph] = ()


def is_worth_lines(view: StoreView, emptied: Emptied) -> bool:
    """Whether `clear_lines` is of use: there are many quads, and text can name the graphs, all of which
    exist.
    """
    graphs = emptied.graphs
    if len(graphs) > _GRAPHS_MAX:
        return False
    if any(isinstance(graph, BlankNode) or (graph and not view.graph_exists(graph)) for graph in graphs):
        return False
    quads = chain.from_iterable(view.graph_quads(graph) for graph in graphs)
    return sum(1 for _ in islice(quads, CLEARED_QUADS_MIN)) == CLEARED_QUADS_MIN


def clear_lines(store: QuadStore, emptied: Emptied, lines: Path) -> LineChange:
    """The change that empties graphs which exist; its quads are written to the file lines.

    Raises StorageFull, OSError; then files may be left beside it.
    """
    triples = lines.with_suffix(".triples")
    with lines.open("wb") as file:
        for graph in emptied.graphs:
            store.dump_graph(graph, triples)
            file.writelines(_quad_lines(triples, graph))
    triples.unlink(missing_ok=True)
    return LineChange(
        None,
        lines,
        dropped_graphs=tuple(emptied.dropped),
        cleared_graphs=tuple(graph or DefaultGraph() for graph in emptied.graphs),
    )


def _quad_lines(triples: Path, graph: NamedGraph | None) -> Iterator[bytes]:
    """N-Triples as N-Quads of a graph, in blocks."""
    end = _LINE_END if graph is None else b" %s%s" % (str(graph).encode(), _LINE_END)
    with triples.open("rb") as file:
        for block in line_blocks(file):
            yield block.replace(_LINE_END, end)
