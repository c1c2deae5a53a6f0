"""What a Ray task does of a distributed load: a piece of a document becomes lines of canonical N-Quads.

A task is done again where its worker is lost, so it gives the same each time: labels of blank nodes follow
from the document's, or from the order in which nodes come.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO

from pyoxigraph import NamedNode, Quad

from actors.loading.documents import Document
from graphdb.content_coding import DAMAGES, CountedReads, decompressed
from graphdb.errors import InvalidParameter, RdfSyntaxError
from graphdb.rdf.quad_lines import line_blocks
from graphdb.rdf.reading import read_quads
from graphdb.store.line_rewriting import (
    Block,
    Labels,
    Unusual,
    is_of_lines,
    numbered_labels,
    rewritten_block,
    salted_labels,
    written_quads,
)

__all__ = ["PIECE_BYTES", "Parsed", "Piece", "cut", "parse_piece"]

PIECE_BYTES = 16 << 20
_TAIL_BYTES = 64 << 10
_LINE_END = re.compile(rb"[\n\r]")
_LINE_BYTES_MAX = 32 << 20  # the parser takes terms of half of this
_QUADS = 50_000  # of a document that is not of lines, at once


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a document: the lines that begin in bytes [start, end); end None: the whole document.

    salt is the document's (`salted_labels`), and graph where its triples go; base_iri is that of its own.
    """

    document: Document
    start: int
    end: int | None
    salt: bytes
    graph: str | None
    base_iri: str | None


@dataclass(frozen=True, slots=True)
class Parsed:
    """Lines, how many, and how many bytes of the document were read for them."""

    lines: bytes
    count: int
    read_bytes: int


def cut(whole: Piece, size_bytes: int, is_compressed: bool) -> Iterator[Piece]:
    """The pieces of a document, of which whole is all."""
    if is_compressed or not is_of_lines(whole.document.syntax):
        yield whole
        return
    for start in range(0, size_bytes, PIECE_BYTES):
        yield replace(whole, start=start, end=min(start + PIECE_BYTES, size_bytes))


def parse_piece(piece: Piece) -> Iterator[Parsed]:
    """The task. Raises RdfSyntaxError with the place in the whole document, OSError, InvalidParameter,
    UnavailableError.
    """
    labels, graph = salted_labels(piece.salt), NamedNode(piece.graph) if piece.graph else None
    with piece.document.open() as file:
        if piece.end is not None:
            yield from _parse_range(piece, piece.end, file, graph, labels)
            return
        read: list[int] = []
        try:
            with decompressed(CountedReads(file, read.append)) as document:
                for block in _whole(piece, document, graph, labels):
                    yield Parsed(block.lines, block.lines.count(b"\n"), sum(read))
                    read.clear()
        except DAMAGES as error:
            raise InvalidParameter("file", f"damaged: {error}") from error


def _parse_range(
    piece: Piece, end: int, file: IO[bytes], graph: NamedNode | None, labels: Labels
) -> Iterator[Parsed]:
    first = _line_start(file, piece.start)
    last = _line_start(file, end)
    file.seek(first)
    lines = b"".join(_parts(file, max(0, last - first)))
    try:
        block = _rewritten(lines, piece, graph, labels)
    except RdfSyntaxError as error:
        raise _moved(error, _lines_before(file, first)) from None
    yield Parsed(block.lines, block.lines.count(b"\n"), end - piece.start)


def _line_start(file: IO[bytes], place: int) -> int:
    """Where the first line begins that does not begin before place; the end of the file where none does."""
    if place == 0:
        return 0
    searched = place - 1
    file.seek(searched)
    while tail := file.read(_TAIL_BYTES):
        if end := _LINE_END.search(tail):
            return searched + end.end()
        searched += len(tail)
        if searched - place > _LINE_BYTES_MAX:
            raise RdfSyntaxError(f"a line is longer than {_LINE_BYTES_MAX} bytes")
    return searched


def _lines_before(file: IO[bytes], place: int) -> int:
    """How many lines end before a place, for an error: the document is read again up to there."""
    file.seek(0)
    return sum(part.count(b"\n") for part in _parts(file, place))


def _parts(file: IO[bytes], size: int) -> Iterator[bytes]:
    """So many bytes, fewer only at the end of the file."""
    while size and (part := file.read(min(size, PIECE_BYTES))):
        yield part
        size -= len(part)


def _whole(piece: Piece, document: IO[bytes], graph: NamedNode | None, labels: Labels) -> Iterator[Block]:
    if not is_of_lines(piece.document.syntax):
        quads = read_quads(document, piece.document.syntax, base_iri=piece.base_iri, fresh_blank_nodes=False)
        numbered = numbered_labels(labels)
        while some := [*islice(quads, _QUADS)]:
            yield _written(some, graph, numbered)
        return
    lines_before = 0
    for lines in line_blocks(document, PIECE_BYTES):
        try:
            yield _rewritten(lines, piece, graph, labels)
        except RdfSyntaxError as error:
            raise _moved(error, lines_before) from None
        lines_before += lines.count(b"\n")


def _rewritten(lines: bytes, piece: Piece, graph: NamedNode | None, labels: Labels) -> Block:
    """Raises RdfSyntaxError with the place in the lines."""
    syntax = piece.document.syntax
    try:
        return rewritten_block(lines, syntax, graph=graph, labels=labels)
    except Unusual:  # which may also be malformed: then this says what is wrong
        return _written([*read_quads(lines, syntax, fresh_blank_nodes=False)], graph, labels)


def _written(quads: list[Quad], graph: NamedNode | None, labels: Labels) -> Block:
    try:
        return written_quads(quads, graph=graph, labels=labels)
    except Unusual:
        raise InvalidParameter("graph", "the document names graphs itself") from None


def _moved(error: RdfSyntaxError, lines: int) -> RdfSyntaxError:
    line = None if error.line is None else error.line + lines
    return RdfSyntaxError(error.reason, line, error.column)
