"""N-Triples and N-Quads documents read into a store by the engine's bulk loader, in native code alone."""

import re
from collections.abc import Callable
from typing import IO, cast

from pyoxigraph import NamedNode, Store

from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import ByteSource, GuardedBytes
from graphdb.store.line_rewriting import Unusual, is_of_lines

__all__ = ["add_document", "is_line_document"]


def is_line_document(syntax: RdfSyntax, graph: NamedNode | None) -> bool:
    """Whether add_document takes such documents, whose own default graph is graph, if one is given."""
    return is_of_lines(syntax) and not (syntax.carries_graphs and graph)


def add_document(
    store: Store,
    source: ByteSource,
    syntax: RdfSyntax,
    *,
    graph: NamedNode | None,
    counted: Callable[[int], None],
) -> None:
    """Add a document, all or nothing; counted is told how many statements were read, on the way.

    Raises Unusual for one that has to be read a quad at a time (`read_quads`), be it malformed or not,
    RdfSyntaxError, and what source raises.
    """
    guarded = GuardedBytes(_Statements(source, counted), syntax)
    try:
        store.bulk_load(cast(IO[bytes], guarded), syntax.rdf_format, to_graph=graph)
        guarded.drain()
    except (SyntaxError, MemoryError) as error:
        raise Unusual(str(error)) from error


class _Statements:
    """Counts statements on their way: there is one a line. Raises Unusual at a triple term."""

    def __init__(self, source: ByteSource, counted: Callable[[int], None]) -> None:
        self._source, self._counted = source, counted
        self._line = b""  # that is not ended yet

    def read(self, size: int, /) -> bytes:
        piece = self._source.read(size)
        lines = self._line + piece
        if b"<<" in lines:  # they might nest too deep for the parser
            raise Unusual("triple terms")
        end = lines.rfind(b"\n") + 1 if piece else len(lines)
        self._counted(_statements(lines[:end]))
        self._line = lines[end:]
        return piece


_OTHER_LINE = re.compile(rb"\n[^<_]")


def _statements(lines: bytes) -> int:
    is_plain = lines.endswith(b"\n") and lines[:1] in (b"<", b"_") and b"\r" not in lines
    if is_plain and _OTHER_LINE.search(lines) is None:
        return lines.count(b"\n")
    return sum(line.lstrip()[:1] in (b"<", b"_") for line in lines.splitlines())
