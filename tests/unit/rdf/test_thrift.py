"""RDF Thrift: what is written is read, as Jena writes it too; and documents that are none."""

import contextlib
from collections.abc import Iterable
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.errors import NotAcceptable, RdfSyntaxError
from graphdb.rdf.canonical import canonical_ntriples
from graphdb.rdf.thrift import read_thrift_quads, varint, write_thrift_quads

A, P = NamedNode("urn:a"), NamedNode("urn:p")
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS: list[NamedNode | BlankNode | Literal | Triple] = [
    NamedNode("urn:é"),
    BlankNode("b1"),
    Literal("plain"),
    Literal("mot", language="fr"),
    Literal("1", datatype=NamedNode(XSD + "integer")),
    Literal("x" * 300),
    Triple(A, P, Triple(BlankNode("b1"), P, Literal("deep"))),
]


def read(document: bytes) -> list[Quad]:
    return list(read_thrift_quads(BytesIO(document)))


def lines(quads: Iterable[Quad]) -> bytes:
    return b"".join(canonical_ntriples([quad.triple for quad in quads]))


@pytest.mark.parametrize("graph", [DefaultGraph(), NamedNode("urn:g"), BlankNode("g")])
def test_what_is_written_is_read(graph: DefaultGraph | NamedNode | BlankNode) -> None:
    quads = [Quad(A, P, term, graph) for term in TERMS]
    found = read(b"".join(write_thrift_quads(quads)))
    assert lines(found) == lines(quads)
    assert {type(quad.graph_name) for quad in found} == {type(graph)}


def test_a_base_direction_cannot_be_written() -> None:
    quad = Quad(A, P, Literal("x", language="he", direction=BaseDirection.RTL))
    with pytest.raises(NotAcceptable):
        list(write_thrift_quads([quad]))


def text(number: int, value: str) -> bytes:
    return bytes([number << 4 | 8]) + varint(len(value)) + value.encode()


IRI_A = b"\x1c" + text(1, "urn:a") + b"\0\0"


def triple(object_: bytes) -> bytes:
    return b"\x2c\x1c" + IRI_A + b"\x1c" + IRI_A + b"\x1c" + object_ + b"\0\0"


@pytest.mark.parametrize(
    ("object_", "expected"),
    [
        (b"\xa6" + varint(84) + b"\0", Literal(42)),  # an integer by its value
        (b"\xa6" + varint(3) + b"\0", Literal(-2)),
        (b"\xb7" + b"\0" * 6 + b"\xf8\x3f\0", Literal("1.5", datatype=NamedNode(XSD + "double"))),
        (
            b"\xcc\x16" + varint(24) + b"\x15" + varint(2) + b"\0\0",
            Literal("1.2", datatype=NamedNode(XSD + "decimal")),
        ),
        (b"\x4c" + text(1, "x") + text(1, "name") + b"\0\0", NamedNode("urn:x#name")),
        (
            b"\x3c" + text(1, "1") + b"\x3c" + text(1, "x") + text(1, "kind") + b"\0\0\0",
            Literal("1", datatype=NamedNode("urn:x#kind")),
        ),
    ],
)
def test_other_forms_of_terms(object_: bytes, expected: object) -> None:
    prefix = b"\x1c" + text(1, "x") + text(1, "urn:x#") + b"\0\0"
    assert [quad.object for quad in read(prefix + triple(object_))] == [expected]


@pytest.mark.parametrize(
    "document",
    [
        b"\x2c",
        b"\x2c\0\0",
        b"\x2c\x1c" + IRI_A + b"\0\0",
        triple(b"\0"),
        triple(b"\x7c\0\0"),
        triple(b"\x1c" + text(1, "no iri") + b"\0\0"),
        triple(b"\x4c" + text(1, "x") + text(1, "name") + b"\0\0"),
        triple(IRI_A)[:-5],
        b"\x1c\x18" + b"\xff" * 9 + b"\x7f",  # a text of 2^69 bytes
        b"\x1c\x18" + b"\xff" * 20,
        b"\x1c\x18\x01\xff\x18\x01a\0\0",  # no UTF-8
        b"\x1c" * 100_000,
        b"\x2c\x1c" + b"\x9c\x1c" * 60 + IRI_A,
        b"\x1c" + b"\x11" * 100_000,
        b"\x1d\0",
        b"\xcc\x16" * 3,
    ],
)
def test_documents_that_are_none(document: bytes) -> None:
    with pytest.raises(RdfSyntaxError):
        read(document)


@given(st.binary(max_size=200))
def test_anything_is_read_or_refused(document: bytes) -> None:
    with contextlib.suppress(RdfSyntaxError):
        read(document)


@given(st.data())
def test_a_document_with_a_changed_byte_is_read_or_refused(data: st.DataObject) -> None:
    document = bytearray(b"".join(write_thrift_quads(Quad(A, P, term) for term in TERMS[:5])))
    place = data.draw(st.integers(0, len(document) - 1))
    document[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(RdfSyntaxError):
        read(bytes(document))
