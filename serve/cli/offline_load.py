"""Loading into the data directory of a stopped service."""

import gc
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from pyoxigraph import DefaultGraph, NamedNode, Quad, Store

from graphdb.rdf.reading import read_quads
from graphdb.store.line_documents import add_document, is_line_document
from graphdb.store.line_rewriting import Unusual
from serve.cli.console import CommandError, LoadProgress, UsageError
from serve.cli.node import fill_in_bulk
from serve.cli.shares import LOADERS, shared_out
from serve.cli.sources import Source

__all__ = ["load_offline"]

REPORT_QUADS = 10_000


def load_offline(data_dir: Path, sources: list[Source], graph: str | None, shown: LoadProgress) -> None:
    """Add all documents, or nothing where one of them is malformed. Raises CommandError and GraphDBError."""
    add = partial(_add_all, sources, _graph_name(graph), shown)
    with suppress(_Halved):
        fill_in_bulk(data_dir, partial(add, LOADERS))
        return
    gc.collect()  # the traceback knew the store, which stays open for as long
    shown.begin_again()
    fill_in_bulk(data_dir, partial(add, 1))


class _Halved(Exception):
    """A document turned out to be unusual when a share of it may have been added already."""


def _graph_name(graph: str | None) -> NamedNode | None:
    if graph is None:
        return None
    try:
        return NamedNode(graph)
    except ValueError as error:
        raise UsageError(f"--graph {graph}: {error}") from None


def _add_all(
    sources: list[Source], graph: NamedNode | None, shown: LoadProgress, loaders: int, store: Store
) -> None:
    """Documents of lines by themselves in native code, the others together, a quad at a time."""
    others = [source for source in sources if not _add_lines(source, graph, shown, loaders, store)]
    if others:
        store.bulk_extend(_counted(_all_quads(others, graph, shown), shown))


def _add_lines(
    source: Source, graph: NamedNode | None, shown: LoadProgress, loaders: int, store: Store
) -> bool:
    """Whether it is added; standard input can be read only once."""
    if source.path is None or not is_line_document(source.syntax, graph):
        return False
    read, sharing = _Read(), partial(shared_out, loaders=loaders)
    with source.open(shown.read) as stream:
        try:
            add_document(store, stream, source.syntax, graph=graph, counted=read.count, sharing=sharing)
        except Unusual:
            if loaders > 1:
                raise _Halved from None
            return False
    shown.stored(read.quads)
    return True


class _Read:
    quads = 0

    def count(self, more: int) -> None:
        self.quads += more


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
