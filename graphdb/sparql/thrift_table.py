"""The solutions of a query as Apache Jena's `application/sparql-results+thrift`: a row of variables, and rows
of terms, in the compact protocol of `graphdb.rdf.thrift`.

Source: Jena 5, `BinaryRDF.thrift`: RDF_VarTuple, RDF_DataTuple.
"""

from collections.abc import Iterable

from pyoxigraph import QuerySolutions

from graphdb.rdf.pieces import PieceWriter
from graphdb.rdf.thrift import varint, written_term

__all__ = ["THRIFT_TABLE_TYPE", "write_thrift_table"]

THRIFT_TABLE_TYPE = "application/sparql-results+thrift"

_LIST, _STRUCT, _STOP = b"\x19", 0x0C, b"\x00"
_UNDEFINED = b"\x7c\x00\x00"
_NAME = b"\x18"


def write_thrift_table(solutions: QuerySolutions, pieces: PieceWriter) -> None:
    """Write all rows. Raises NotAcceptable for a text with a base direction, and what the engine raises."""
    names = [variable.value.encode() for variable in solutions.variables]
    pieces.write(_row([_NAME + varint(len(name)) + name + _STOP for name in names]))
    for solution in solutions:
        pieces.write(_row([_UNDEFINED if term is None else written_term(term) for term in solution]))


def _row(structures: Iterable[bytes]) -> bytes:
    members = list(structures)
    size = len(members)
    head = bytes([size << 4 | _STRUCT]) if size < 15 else bytes([0xF0 | _STRUCT]) + varint(size)
    return b"".join([_LIST, head, *members, _STOP])
