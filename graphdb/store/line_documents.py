"""N-Triples and N-Quads documents read into a store by the engine's bulk loader, in native code alone."""

import codecs
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import IO, TypeAlias, cast

from pyoxigraph import NamedNode, Store

from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import ByteSource, GuardedBytes
from graphdb.store.line_rewriting import Unusual, is_of_lines

__all__ = ["Ahead", "add_document", "is_line_document"]

Ahead: TypeAlias = Callable[[ByteSource], AbstractContextManager[ByteSource]]
_READ_BYTES = 65_536


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
    ahead: Ahead = nullcontext,
) -> None:
    """Add a document, all or nothing; counted is told how many statements were read, on the way.

    ahead may read, and check, on another thread what the engine asks for next; then counted is called there.
    Raises Unusual for one that has to be read a quad at a time (`read_quads`), be it malformed or not,
    RdfSyntaxError, and what source raises.
    """
    with ahead(GuardedBytes(source, syntax, (_LineGuard(counted),))) as checked:
        try:
            store.bulk_load(cast(IO[bytes], checked), syntax.rdf_format, to_graph=graph)
            while checked.read(_READ_BYTES):
                pass
        except (SyntaxError, MemoryError) as error:
            raise Unusual(str(error)) from error


_OPENING = re.compile(rb"<<")  # which takes less than half the time of `in`


class _LineGuard:
    """Raises Unusual at what is not UTF-8 and at a triple term; counts statements: there is one a line."""

    def __init__(self, counted: Callable[[int], None]) -> None:
        self._counted = counted
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line = b""  # that is not ended yet

    def check(self, chunk: bytes) -> None:
        self._decode(chunk)
        lines = self._line + chunk
        if _OPENING.search(lines) is not None:  # they might nest too deep for the parser
            raise Unusual("triple terms")
        end = lines.rfind(b"\n") + 1
        self._counted(_statements(lines[:end]))
        self._line = lines[end:]

    def finish(self) -> None:
        self._decode(b"", final=True)
        self._counted(_statements(self._line))

    def _decode(self, chunk: bytes, final: bool = False) -> None:
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            raise Unusual("not UTF-8") from error


_OTHER_LINE = re.compile(rb"\n[^<_]")


def _statements(lines: bytes) -> int:
    is_plain = lines.endswith(b"\n") and lines[:1] in (b"<", b"_") and b"\r" not in lines
    if is_plain and _OTHER_LINE.search(lines) is None:
        return lines.count(b"\n")
    return sum(line.lstrip()[:1] in (b"<", b"_") for line in lines.splitlines())
