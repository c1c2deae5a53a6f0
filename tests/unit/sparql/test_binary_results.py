"""RDF4J's binary formats of answers: every term arrives, row by row."""

import struct
from typing import TypeAlias

import pytest
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Quad, Store, Triple

from graphdb.errors import NotAcceptable
from graphdb.rdf.binary import read_binary_quads
from graphdb.sparql.results import ResultFormat, write_answer

A, P = NamedNode("urn:a"), NamedNode("urn:p")
TERMS: list[NamedNode | Literal | Triple] = [
    A,
    Literal("plain é"),
    Literal("tagged", language="en"),
    Literal("5", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
    Triple(A, P, Literal("said")),
]
_Term: TypeAlias = NamedNode | BlankNode | Literal | Triple | None


class Table:
    """A reader of the binary table, as RDF4J's documentation describes it."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        assert self._take(4) == b"BRTR"
        assert self._number() == 4
        self.names = [self._text() for _ in range(self._number())]

    def rows(self) -> list[list[_Term]]:
        found: list[list[_Term]] = []
        row: list[_Term] = []
        while (kind := self._take(1)[0]) != 127:
            if kind == 9:
                found.append([])
                continue
            row.append(found[-1][len(row)] if kind == 1 else self._value(kind))
            if len(row) == len(self.names):
                found.append(row)
                row = []
        assert self._at == len(self._data)
        return found

    def _value(self, kind: int) -> _Term:
        match kind:
            case 0:
                return None
            case 4:
                return NamedNode(self._text())
            case 5:
                return BlankNode(self._text())
            case 6:
                return Literal(self._text())
            case 7:
                return Literal(self._text(), language=self._text())
            case 8:
                text, iri = self._text(), self._value(self._take(1)[0])
                assert isinstance(iri, NamedNode)
                return Literal(text, datatype=iri)
        assert kind == 10
        subject, predicate, object_ = (self._value(self._take(1)[0]) for _ in range(3))
        assert isinstance(subject, NamedNode | BlankNode)
        assert isinstance(predicate, NamedNode)
        assert object_ is not None
        return Triple(subject, predicate, object_)

    def _text(self) -> str:
        return self._take(self._number()).decode()

    def _number(self) -> int:
        number: int = struct.unpack(">I", self._take(4))[0]
        return number

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]


def written(quads: list[Quad], text: str, fmt: ResultFormat) -> bytes:
    store, pieces = Store(), list[bytes]()
    store.extend(quads)
    write_answer(store.query(text), fmt, pieces.append)
    return b"".join(pieces)


def test_rows_of_every_term() -> None:
    quads = [Quad(A, P, term) for term in TERMS]
    table = Table(written(quads, "SELECT ?s ?o ?none { ?s ?p ?o }", ResultFormat.BINARY_TABLE))
    assert table.names == ["s", "o", "none"]
    rows = table.rows()
    assert {str(row[1]) for row in rows} == set(map(str, TERMS))
    assert all(row[0] == A and row[2] is None for row in rows)


def test_rows_without_columns_and_no_rows() -> None:
    assert Table(written([], "SELECT * { }", ResultFormat.BINARY_TABLE)).rows() == [[]]
    assert Table(written([], "SELECT ?s { ?s ?p ?o }", ResultFormat.BINARY_TABLE)).rows() == []


def test_a_graph() -> None:
    quads = [Quad(A, P, term) for term in TERMS]
    document = written(quads, "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", ResultFormat.BINARY_RDF)
    assert set(read_binary_quads(document)) == set(quads)


def test_what_cannot_be_written() -> None:
    quads = [Quad(A, P, Literal("x", language="he", direction=BaseDirection.RTL))]
    with pytest.raises(NotAcceptable):
        written(quads, "SELECT ?o { ?s ?p ?o }", ResultFormat.BINARY_TABLE)
    with pytest.raises(NotAcceptable):
        written(quads, "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", ResultFormat.BINARY_RDF)
