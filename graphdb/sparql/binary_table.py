"""The solutions of a query as RDF4J's binary table, `application/x-binary-rdf-results-table`.

A table is "BRTR", a version and the number of columns (4 bytes each, big-endian), the names of the columns,
and records row by row: nothing (0), the value above (1), an IRI (4), a blank node (5), a literal (6; 7 with a
language, 8 with a datatype, which is an IRI's record), a row without columns (9), a triple (10), the end
(127). Texts are UTF-8, with their length in 4 bytes.

Source: RDF4J 5.1, `BinaryQueryResultConstants`.
"""

import struct

from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Triple

from graphdb.errors import NotAcceptable
from graphdb.rdf.pieces import PieceWriter

__all__ = ["BINARY_TABLE_TYPE", "write_binary_table"]

BINARY_TABLE_TYPE = "application/x-binary-rdf-results-table"

_MARK, _VERSION = b"BRTR", 4
_NOTHING, _SAME, _EMPTY_ROW, _END = b"\x00", b"\x01", b"\x09", b"\x7f"
_IRI, _BLANK_NODE, _PLAIN, _TAGGED, _TYPED, _TRIPLE = b"\x04", b"\x05", b"\x06", b"\x07", b"\x08", b"\x0a"
_NUMBER = struct.Struct(">I")
_XSD_STRING = NamedNode("http://www.w3.org/2001/XMLSchema#string")


def write_binary_table(solutions: QuerySolutions, pieces: PieceWriter) -> None:
    """Write all rows. Raises NotAcceptable for a text with a base direction, and what the engine raises."""
    names = [variable.value for variable in solutions.variables]
    pieces.write(_MARK + _NUMBER.pack(_VERSION) + _NUMBER.pack(len(names)) + b"".join(map(_text, names)))
    above: list[NamedNode | BlankNode | Literal | Triple | None] = [None] * len(names)
    for solution in solutions:
        row = list(solution)
        pieces.write(
            b"".join(
                _NOTHING if term is None else _SAME if term == last else _value(term)
                for term, last in zip(row, above, strict=True)
            )
            or _EMPTY_ROW
        )
        above = row
    pieces.write(_END)


def _value(term: NamedNode | BlankNode | Literal | Triple) -> bytes:
    match term:
        case NamedNode(value=value):
            return _IRI + _text(value)
        case BlankNode(value=value):
            return _BLANK_NODE + _text(value)
        case Triple(subject=subject, predicate=predicate, object=object_):
            return _TRIPLE + _value(subject) + _value(predicate) + _value(object_)
    if term.direction is not None:
        raise NotAcceptable(
            f"{BINARY_TABLE_TYPE} (a text has a base direction)", ("application/sparql-results+json",)
        )
    if term.language is not None:
        return _TAGGED + _text(term.value) + _text(term.language)
    if term.datatype == _XSD_STRING:
        return _PLAIN + _text(term.value)
    return _TYPED + _text(term.value) + _value(term.datatype)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _NUMBER.pack(len(encoded)) + encoded
