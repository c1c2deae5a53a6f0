"""RDF documents to quads: pyoxigraph's parsers, with guards before them and one kind of error behind them."""

import codecs
import re
from collections.abc import Iterator
from io import BytesIO
from typing import IO, Protocol, cast

from pyoxigraph import Quad, QuadParser, Triple, parse

from graphdb.errors import InvalidParameter, RdfSyntaxError
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.guards import Guard, JsonDepthGuard, Utf8Guard, XmlGuard

__all__ = ["TRIPLE_TERM_DEPTH_MAX", "ByteSource", "GuardedBytes", "check_guards", "read_quads"]

TRIPLE_TERM_DEPTH_MAX = 100

_CHUNK_BYTES = 65_536
# The native parser overflows its stack at some 15,000 nested triple terms. As many openings as this without a
# quad coming out are refused before it sees them, even where they stand in one literal.
_OPENINGS_MAX = 2_000
# The native parser gives up on a longer one with a MemoryError of its own making.
_TOKEN_BYTES_MAX = 16_777_216
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PLACE = re.compile(r"^Parser error at line .*?columns? [\d and]*: |^Parser error.*?: ", re.DOTALL)


class ByteSource(Protocol):
    """What a document is read from: a file opened for bytes will do."""

    def read(self, size: int, /) -> bytes:
        """At most size bytes, none only at the end."""


def read_quads(
    source: ByteSource | bytes,
    syntax: RdfSyntax,
    *,
    base_iri: str | None = None,
    fresh_blank_nodes: bool = True,
) -> Iterator[Quad]:
    """The quads of a document, while it is read; memory stays constant but for JSON-LD.

    With fresh_blank_nodes each blank node gets a random label of 128 bits, one throughout the document and in
    no other; without it labels are those of the document. What source raises comes out as it is. The quads
    before an error have been handed out when it is met.
    Raises RdfSyntaxError, InvalidParameter for a base_iri that is no IRI.
    """
    guarded = GuardedBytes(BytesIO(source) if isinstance(source, bytes) else source, syntax)
    try:
        parser = _parser(guarded, syntax, base_iri, fresh_blank_nodes)
        for quad in parser:
            guarded.openings = 0
            if guarded.may_hold_triple_terms:
                _check_depth(quad)
            yield quad
        guarded.drain()
    except SyntaxError as error:
        raise _named(error) from None
    except MemoryError as error:
        if "buffer maximal size" not in str(error):
            raise
        raise RdfSyntaxError(f"a term or comment is longer than {_TOKEN_BYTES_MAX} bytes") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3 offers the class under no name
            raise
        raise RdfSyntaxError("the parser cannot cope with this document") from None


def check_guards(source: ByteSource, syntax: RdfSyntax) -> None:
    """Have the guards alone see a document, for a parser that is let crash. Raises RdfSyntaxError."""
    GuardedBytes(source, syntax).drain()


class GuardedBytes:
    """Hands a document to the native parser only after the guards of its syntax have seen it."""

    def __init__(
        self, source: ByteSource, syntax: RdfSyntax, guards: tuple[Guard, ...] | None = None
    ) -> None:
        """guards: in place of those of the syntax, at least as strict, and no triple term passes them."""
        self._source = source
        self._counts_openings = guards is None
        self._guards = tuple(guard() for guard in _GUARDS[syntax]) if guards is None else guards
        self._chunk = _beginning(source)
        self._place = 0
        self._see_chunk()
        self.openings = 0  # of triple terms, since the reader last set it to 0
        self.may_hold_triple_terms = syntax is RdfSyntax.RDF_XML

    def read(self, size: int) -> bytes:
        """The next bytes, at most size. Raises RdfSyntaxError, and whatever the source raises."""
        if self._place == len(self._chunk):
            self._next_chunk()
        piece = self._chunk[self._place : self._place + size]
        self._place += len(piece)
        if self._counts_openings and b"<<" in piece:
            self._count_openings(piece)
        return piece

    def drain(self) -> None:
        """Have the guards see what the parser did not care to read."""
        while self._chunk:
            self._next_chunk()

    def _next_chunk(self) -> None:
        if self._chunk:
            self._chunk, self._place = self._source.read(_CHUNK_BYTES), 0
            self._see_chunk()

    def _see_chunk(self) -> None:
        for guard in self._guards:
            if self._chunk:
                guard.check(self._chunk)
            else:
                guard.finish()

    def _count_openings(self, piece: bytes) -> None:
        self.may_hold_triple_terms = True
        self.openings += piece.count(b"<<")
        if self.openings > _OPENINGS_MAX:
            raise RdfSyntaxError(f"more than {_OPENINGS_MAX} nested triples")


def _beginning(source: ByteSource) -> bytes:
    """The first bytes behind the byte order mark, where there is one. Raises RdfSyntaxError for UTF-16."""
    start = b""
    while len(start) < len(codecs.BOM_UTF8) and (more := source.read(_CHUNK_BYTES)):
        start += more
    if start.startswith(_UTF_16):
        raise RdfSyntaxError("the document is in UTF-16, and has to be in UTF-8", 1, 1)
    return start.removeprefix(codecs.BOM_UTF8) or source.read(_CHUNK_BYTES)


def _parser(
    source: GuardedBytes, syntax: RdfSyntax, base_iri: str | None, fresh_blank_nodes: bool
) -> QuadParser:
    try:
        return parse(
            cast(IO[bytes], source),
            syntax.rdf_format,
            base_iri=base_iri,
            rename_blank_nodes=fresh_blank_nodes,
        )
    except ValueError as error:
        raise InvalidParameter("base IRI", str(error)) from None


def _check_depth(quad: Quad) -> None:
    """Raise RdfSyntaxError for a triple term that is nested deeper than TRIPLE_TERM_DEPTH_MAX."""
    depth, term = 0, quad.object
    while isinstance(term, Triple) and depth <= TRIPLE_TERM_DEPTH_MAX:
        depth, term = depth + 1, term.object  # copies the whole term: the bound keeps this cheap
    if depth > TRIPLE_TERM_DEPTH_MAX:
        raise RdfSyntaxError(f"triple terms nested more than {TRIPLE_TERM_DEPTH_MAX} levels deep")


def _named(error: SyntaxError) -> RdfSyntaxError:
    reason = _PLACE.sub("", error.msg)
    if "LoadDocumentCallback" in reason:
        reason = "remote JSON-LD contexts are not fetched; put the context into the document"
    return RdfSyntaxError(reason, error.lineno, error.offset if error.lineno is not None else None)


_GUARDS: dict[RdfSyntax, tuple[type[Guard], ...]] = {syntax: (Utf8Guard,) for syntax in RdfSyntax} | {
    RdfSyntax.RDF_XML: (XmlGuard,),
    RdfSyntax.JSON_LD: (Utf8Guard, JsonDepthGuard),
}
