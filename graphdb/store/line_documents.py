"""N-Triples and N-Quads documents read into a store by the engine's bulk loader, in native code alone."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from pyoxigraph import NamedNode, Store

from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import ByteSource, GuardedBytes
from graphdb.store.line_rewriting import Unusual, is_of_lines

__all__ = ["Load", "Sharing", "add_document", "is_line_document"]

Load: TypeAlias = Callable[[Path], None]
"""Adds a document, or a share of one, that is read from a file or a pipe: all or nothing."""

Sharing: TypeAlias = Callable[[Iterator[bytes], Load], None]
"""Has each piece of whole lines loaded once. All that have `_:` in them belong into one share: a blank
node's label means one node within one share only. Raises what the pieces raise, and what a load does.
"""

_READ_BYTES = 65_536
_LINE_BYTES_MAX = 16_777_216


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
    sharing: Sharing,
) -> None:
    """Add a document; counted is told how many statements were read, on the way.

    All or nothing, if sharing makes one share of it. Of several, some may be added where another is not.
    Raises Unusual for one that has to be read a quad at a time (`read_quads`), be it malformed or not,
    RdfSyntaxError, and what source raises.
    """

    def load(share: Path) -> None:
        store.bulk_load(path=share, format=syntax.rdf_format, to_graph=graph)

    try:
        sharing(_checked_pieces(source, syntax, counted), load)
    except (SyntaxError, MemoryError) as error:
        raise Unusual(str(error)) from error


def _checked_pieces(source: ByteSource, syntax: RdfSyntax, counted: Callable[[int], None]) -> Iterator[bytes]:
    """The document in pieces of whole lines; the last line may lack its end. Raises Unusual."""
    document = GuardedBytes(source, syntax, ())
    begun = b""  # of a line
    while chunk := document.read(_READ_BYTES):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield _checked(begun + chunk[:end], counted)
            begun = b""
        begun += chunk[end:]
        if len(begun) > _LINE_BYTES_MAX:
            raise Unusual("a long line")
    if begun:
        yield _checked(begun, counted)


_OPENING = re.compile(rb"<<")  # which takes less than half the time of `in`


def _checked(lines: bytes, counted: Callable[[int], None]) -> bytes:
    """Raises Unusual at what is not UTF-8 and at a triple term; counts statements: there is one a line."""
    try:
        lines.decode()
    except UnicodeDecodeError as error:
        raise Unusual("not UTF-8") from error
    if _OPENING.search(lines) is not None:  # they might nest too deep for the parser
        raise Unusual("triple terms")
    counted(_statements(lines))
    return lines


_OTHER_LINE = re.compile(rb"\n[^<_]")


def _statements(lines: bytes) -> int:
    is_plain = lines.endswith(b"\n") and lines[:1] in (b"<", b"_") and b"\r" not in lines
    if is_plain and _OTHER_LINE.search(lines) is None:
        return lines.count(b"\n")
    return sum(line.lstrip()[:1] in (b"<", b"_") for line in lines.splitlines())
