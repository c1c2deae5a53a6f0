"""Answers to queries as bytes: every result format, and writing one answer in it, piece by piece.

The engine serialises natively; what it does not offer is made from its native output (`recasting`), so that
rows become Python objects only for CSV.
"""

import csv
from collections.abc import Mapping
from enum import Enum
from typing import IO, Self, TypeAlias, cast

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Triple,
)

from graphdb.errors import EvaluationFailed, NotAcceptable
from graphdb.rdf.binary import BINARY_RDF_TYPE, write_binary_quads
from graphdb.rdf.canonical import canonical_ntriples
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.pieces import CHUNK_BYTES, PieceWriter, Sink, UnwritableCharacter, XmlPieceWriter
from graphdb.rdf.thrift import THRIFT_TYPE, write_thrift_quads
from graphdb.rdf.writing import write_triples
from graphdb.sparql.binary_table import BINARY_TABLE_TYPE, write_binary_table
from graphdb.sparql.recasting import BindingLines, StringArray
from graphdb.sparql.text_tables import CellFormat, TextTable
from graphdb.sparql.thrift_table import THRIFT_TABLE_TYPE, write_thrift_table

__all__ = [
    "C14N_PROFILE",
    "CELL_FORMATS",
    "Answer",
    "ResultFormat",
    "csv_cells",
    "formats_for",
    "is_of_lines",
    "write_answer",
]

Answer: TypeAlias = QuerySolutions | QueryBoolean | QueryTriples

_ROWS = frozenset({"SELECT"})
_TABLE = frozenset({"SELECT", "ASK"})
_GRAPH = frozenset({"CONSTRUCT", "DESCRIBE"})
_NONE: Mapping[str, str] = {}
_LINE_END = "\r\n"  # of CSV
_UTF_8 = {"charset": "utf-8"}
C14N_PROFILE = "http://www.w3.org/ns/rdf-canon#c14n"


class ResultFormat(Enum):
    """A format that answers are written in. The value is its name, as the `format` parameter gives it.

    media_type is what an Accept header asks for, with the profile where there is one. Members stand in order
    of preference. The plain ones are the same bytes under the media types that older clients ask for.
    """

    media_type: str
    applies_to: frozenset[str]
    parameters: Mapping[str, str]  # of the answer's Content-Type

    def __new__(
        cls, name: str, media_type: str, applies_to: frozenset[str], parameters: Mapping[str, str] = _NONE
    ) -> Self:
        member = object.__new__(cls)
        member._value_ = name
        member.media_type, member.applies_to, member.parameters = media_type, applies_to, parameters
        return member

    JSON = "json", "application/sparql-results+json", _TABLE | _GRAPH
    PLAIN_JSON = "plain-json", "application/json", _TABLE | _GRAPH
    XML = "xml", "application/sparql-results+xml", _TABLE
    PLAIN_XML = "plain-xml", "application/xml", _TABLE
    CSV = "csv", "text/csv", _ROWS, _UTF_8
    TSV = "tsv", "text/tab-separated-values", _ROWS, _UTF_8
    NDJSON = "ndjson", "application/x-ndjson", _ROWS
    TURTLE = "turtle", "text/turtle", _GRAPH, _UTF_8
    N_TRIPLES = "ntriples", "application/n-triples", _GRAPH
    CANONICAL_N_TRIPLES = "ntriples-c14n", "application/n-triples", _GRAPH, {"profile": C14N_PROFILE}
    RDF_XML = "rdfxml", "application/rdf+xml", _GRAPH
    JSON_LD = "jsonld", "application/ld+json", _GRAPH
    TRIG = "trig", "application/trig", _GRAPH
    N_QUADS = "nquads", "application/n-quads", _GRAPH
    BINARY_TABLE = "binary-table", BINARY_TABLE_TYPE, _ROWS
    BINARY_RDF = "binary-rdf", BINARY_RDF_TYPE, _GRAPH
    THRIFT = "thrift", THRIFT_TABLE_TYPE, _ROWS
    RDF_THRIFT = "rdf-thrift", THRIFT_TYPE, _GRAPH

    @property
    def profile(self) -> str | None:
        """The profile by which an Accept header asks for this format and no other of its media type."""
        return self.parameters.get("profile")

    @property
    def content_type(self) -> str:
        """The Content-Type of an answer in this format."""
        quoted = (
            f'{name}="{value}"' if ":" in value else f"{name}={value}"
            for name, value in self.parameters.items()
        )
        return "; ".join((self.media_type, *quoted))


def formats_for(form: str) -> tuple[ResultFormat, ...]:
    """What a query of this form (SELECT, ASK, CONSTRUCT, DESCRIBE) can be answered in, preferred first."""
    return _FORMATS[form]


def is_of_lines(fmt: ResultFormat) -> bool:
    """Whether triples are written as lines of N-Triples, which is Turtle, N-Quads and TriG too."""
    return not (fmt in _JSON or fmt in _BY_BATCHES or fmt in _OTHER_LINES)


def write_answer(
    answer: Answer | TextTable, fmt: ResultFormat, sink: Sink, chunk_bytes: int = CHUNK_BYTES
) -> None:
    """Evaluate the answer and hand it to sink in chunks of about chunk_bytes, a small one in a single call.

    Blocks, mostly in native code without the GIL. fmt must be one of formats_for the query's form. What sink
    raises comes out as it is. An error after the first chunk leaves what sink has got incomplete.
    Raises EvaluationFailed; NotAcceptable where the answer holds what the format cannot express;
    LimitExceeded where canonicalization takes too long.
    """
    pieces = XmlPieceWriter(sink, chunk_bytes) if fmt in _XML else PieceWriter(sink, chunk_bytes)
    try:
        if isinstance(answer, QueryBoolean):
            _write_boolean(answer, fmt, pieces)
        elif isinstance(answer, QuerySolutions):
            _write_solutions(answer, fmt, pieces)
        elif isinstance(answer, TextTable):
            _write_table(answer, fmt, pieces)
        else:
            _write_triples(answer, fmt, pieces)
    except UnwritableCharacter as error:
        raise NotAcceptable(f"{fmt.media_type} ({error})", (ResultFormat.JSON.media_type,)) from None
    except (OSError, ValueError, RuntimeError, SyntaxError) as error:
        if pieces.sink_failed:
            raise
        raise EvaluationFailed(str(error)) from error
    pieces.close()


def _write_boolean(answer: QueryBoolean, fmt: ResultFormat, pieces: PieceWriter) -> None:
    if fmt in _XML:
        answer.serialize(_file(pieces), QueryResultsFormat.XML)
    else:
        pieces.write(b'{"head":{},"boolean":true}' if answer else b'{"head":{},"boolean":false}')


def _write_solutions(answer: QuerySolutions, fmt: ResultFormat, pieces: PieceWriter) -> None:
    if fmt is ResultFormat.NDJSON:
        lines = BindingLines(pieces)
        answer.serialize(_file(lines), QueryResultsFormat.JSON)
        lines.close()
    elif fmt is ResultFormat.CSV:
        _write_csv(answer, pieces)
    elif fmt is ResultFormat.BINARY_TABLE:
        write_binary_table(answer, pieces)
    elif fmt is ResultFormat.THRIFT:
        write_thrift_table(answer, pieces)
    else:
        answer.serialize(_file(pieces), _NATIVE_RESULTS[fmt])


def _write_table(answer: TextTable, fmt: ResultFormat, pieces: PieceWriter) -> None:
    form = CELL_FORMATS.get(fmt)
    if form is None:
        _write_solutions(answer.solutions(), fmt, pieces)
    else:
        for piece in answer.written(form):
            pieces.write(piece)


def _write_triples(answer: QueryTriples, fmt: ResultFormat, pieces: PieceWriter) -> None:
    if fmt is ResultFormat.CANONICAL_N_TRIPLES:
        for chunk in canonical_ntriples(answer):
            pieces.write(chunk)
    elif fmt in _BINARY:
        for chunk in _BINARY[fmt](Quad(*triple) for triple in answer):
            pieces.write(chunk)
    elif fmt in _JSON:
        array = StringArray(pieces)
        answer.serialize(_file(array), RdfFormat.N_TRIPLES)
        array.close()
    elif fmt in _BY_BATCHES:
        for chunk in write_triples(answer, _BY_BATCHES[fmt]):
            pieces.write(chunk)
    else:
        # The interface asks for one triple a line in N-Triples form, which is Turtle, N-Quads and TriG too.
        answer.serialize(_file(pieces), RdfFormat.N_TRIPLES)


def _file(writer: PieceWriter | BindingLines | StringArray) -> IO[bytes]:
    """All that pyoxigraph calls of a file is write and flush."""
    return cast(IO[bytes], writer)


def csv_cells(answer: QuerySolutions) -> list[str]:
    """The cells of the first column as CSV has them in rows of several, without its name."""
    lines = _Lines()
    table = csv.writer(lines, lineterminator=_LINE_END)
    # An empty cell that is alone in its row would be written with quotes.
    table.writerows((_csv_field(solution[0]), "") for solution in answer)
    return [line.removesuffix(_LINE_END)[:-1] for line in lines.written]


class _Lines:
    """What the csv module writes, line by line."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, text: str) -> None:
        self.written.append(text)


def _write_csv(answer: QuerySolutions, pieces: PieceWriter) -> None:
    """SPARQL 1.2 CSV, which the engine writes malformed where a triple term holds a quoted literal."""
    table = csv.writer(_Utf8(pieces), lineterminator=_LINE_END)
    table.writerow([variable.value for variable in answer.variables])
    table.writerows([_csv_field(term) for term in solution] for solution in answer)


class _Utf8:
    """The text side of a PieceWriter, for the csv module."""

    def __init__(self, pieces: PieceWriter) -> None:
        self._pieces = pieces

    def write(self, text: str) -> int:
        return self._pieces.write(text.encode())


def _csv_field(term: NamedNode | BlankNode | Literal | Triple | None) -> str:
    if term is None:
        return ""
    if isinstance(term, BlankNode):
        return f"_:{term.value}"
    if isinstance(term, Triple):
        object_ = _csv_field(term.object)
        if isinstance(term.object, Literal):
            object_ = '"' + object_.replace('"', '""') + '"'
        return f"<< {_csv_field(term.subject)} {_csv_field(term.predicate)} {object_} >>"
    return term.value


_XML = frozenset({ResultFormat.XML, ResultFormat.PLAIN_XML})
_JSON = frozenset({ResultFormat.JSON, ResultFormat.PLAIN_JSON})
_NATIVE_RESULTS = {
    ResultFormat.JSON: QueryResultsFormat.JSON,
    ResultFormat.PLAIN_JSON: QueryResultsFormat.JSON,
    ResultFormat.XML: QueryResultsFormat.XML,
    ResultFormat.PLAIN_XML: QueryResultsFormat.XML,
    ResultFormat.TSV: QueryResultsFormat.TSV,
}
_BINARY = {ResultFormat.BINARY_RDF: write_binary_quads, ResultFormat.RDF_THRIFT: write_thrift_quads}
_OTHER_LINES = frozenset({ResultFormat.CANONICAL_N_TRIPLES, *_BINARY})
CELL_FORMATS: Mapping[ResultFormat, CellFormat] = {
    ResultFormat.JSON: CellFormat.JSON,
    ResultFormat.PLAIN_JSON: CellFormat.JSON,
    ResultFormat.TSV: CellFormat.TSV,
}
_BY_BATCHES = {ResultFormat.RDF_XML: RdfSyntax.RDF_XML, ResultFormat.JSON_LD: RdfSyntax.JSON_LD}
_FORMATS = {
    form: tuple(fmt for fmt in ResultFormat if form in fmt.applies_to) for form in sorted(_TABLE | _GRAPH)
}
