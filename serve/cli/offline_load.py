"""Loading into the data directory of a stopped service."""

from collections.abc import Iterator
from pathlib import Path

from pyoxigraph import DefaultGraph, NamedNode, Quad

from graphdb.rdf.reading import read_quads
from serve.cli.console import CommandError, LoadProgress, UsageError
from serve.cli.node import load_in_bulk
from serve.cli.sources import Source

__all__ = ["load_offline"]

REPORT_QUADS = 10_000


def load_offline(data_dir: Path, sources: list[Source], graph: str | None, shown: LoadProgress) -> None:
    """Add all documents, or nothing where one of them is malformed. Raises CommandError and GraphDBError."""
    load_in_bulk(data_dir, _counted(_all_quads(sources, _graph_name(graph), shown), shown))


def _graph_name(graph: str | None) -> NamedNode | None:
    if graph is None:
        return None
    try:
        return NamedNode(graph)
    except ValueError as error:
        raise UsageError(f"--graph {graph}: {error}") from None


def _all_quads(sources: list[Source], graph: NamedNode | None, shown: LoadProgress) -> Iterator[Quad]:
    for source in sources:
        with source.open(shown.read) as stream:
            quads = read_quads(stream, source.syntax, base_iri=graph.value if graph else None)
            yield from quads if graph is None else _moved(quads, graph, source)


def _moved(quads: Iterator[Quad], graph: NamedNode, source: Source) -> Iterator[Quad]:
    """The quads of a document that has no graphs of its own, put into the graph."""
    for quad in quads:
        if not isinstance(quad.graph_name, DefaultGraph):
            raise CommandError(f"{source}: names the graph {quad.graph_name} itself, so --graph cannot apply")
        yield Quad(quad.subject, quad.predicate, quad.object, graph)


def _counted(quads: Iterator[Quad], shown: LoadProgress) -> Iterator[Quad]:
    """Report progress only now and then: reading a quad takes 2 µs, drawing the bar 1,000 µs."""
    waiting = 0
    for quad in quads:
        waiting += 1
        if waiting == REPORT_QUADS:
            shown.stored(waiting)
            waiting = 0
        yield quad
    shown.stored(waiting)
