"""Binary RDF: what is written is read again, RDF4J's own bytes are understood, and damage is refused."""

import struct
import tracemalloc
from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Quad, Triple

from graphdb.errors import NotAcceptable, RdfSyntaxError
from graphdb.rdf.binary import DECLARED_MAX, TEXT_BYTES_MAX, read_binary_quads, write_binary_quads
from tests.unit.rdf.random_quads import quads as random_quads

A, P, G = NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:g")
NESTED = Triple(A, P, Triple(BlankNode("b"), P, Literal("in it", language="en")))
QUADS = [
    Quad(A, P, Literal("plain é\n\x00")),
    Quad(A, P, Literal("tagged", language="de-at"), G),
    Quad(BlankNode("b"), P, Literal("5", datatype=NamedNode("urn:t")), BlankNode("g")),
    Quad(A, P, NESTED, G),
    Quad(A, P, BlankNode("b")),
    Quad(A, P, Literal("long" * 100)),
]
HEAD = b"BRDF\x00\x00\x00\x02\x05UTF-8"


def written(quads: list[Quad]) -> bytes:
    return b"".join(write_binary_quads(quads))


def read(document: bytes) -> list[Quad]:
    return list(read_binary_quads(document, fresh_blank_nodes=False))


def test_what_is_written_is_read_again() -> None:
    assert read(written(QUADS)) == QUADS
    assert read(written([])) == []
    assert read(written(QUADS) + b"what follows is ignored") == QUADS


def test_documents_of_many_chunks() -> None:
    quads = [Quad(NamedNode(f"urn:{n % 9_000}"), P, Literal(n), G) for n in range(20_000)]
    chunks = list(write_binary_quads(quads))
    assert len(chunks) > 5
    assert max(map(len, chunks)) < 70_000
    assert read(b"".join(chunks)) == quads


@given(random_quads())
def test_random_quads(quads: list[Quad]) -> None:
    try:
        document = written(quads)
    except NotAcceptable:
        assert any("--" in str(quad) for quad in quads)  # a base direction
    else:
        assert read(document) == quads


def test_blank_nodes_are_fresh_and_the_same_throughout_a_document() -> None:
    document = written([Quad(BlankNode("x"), P, BlankNode("x")), Quad(BlankNode("y"), P, A)])
    first, second = (list(read_binary_quads(document)) for _ in range(2))
    assert first[0].subject == first[0].object != first[1].subject
    assert {first[0].subject, first[1].subject}.isdisjoint({second[0].subject, second[1].subject})


def test_a_document_of_version_1() -> None:
    def text(value: str) -> bytes:
        return struct.pack(">I", len(value)) + value.encode("utf-16-be")

    document = (
        b"BRDF\x00\x00\x00\x01"
        + (b"\x02" + text("a comment") + b"\x00" + text("p") + text("urn:p:"))
        + (b"\x03" + struct.pack(">I", 3) + b"\x01" + text("urn:a"))
        + (b"\x01\x06" + struct.pack(">I", 3) + b"\x01" + text("urn:p"))
        + (b"\x03" + text("é") + b"\x00\x7f")
    )
    assert read(document) == [Quad(A, P, Literal("é"))]


def test_a_number_may_be_declared_again() -> None:
    document = HEAD + b"\x03\x00\x01\x05urn:a\x03\x00\x01\x05urn:p\x01\x06\x00\x06\x00\x06\x00\x00\x7f"
    assert read(document) == [Quad(P, P, P)]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"BRTR\x00\x00\x00\x04", id="a table"),
        pytest.param(b"BRDF\x00\x00\x00\x03", id="another version"),
        pytest.param(b"BRDF\x00\x00\x00\x02\x06UTF-16", id="another charset"),
        pytest.param(HEAD + b"\x09", id="an unknown record"),
        pytest.param(HEAD + b"\x01\x09", id="an unknown value"),
        pytest.param(HEAD + b"\x01\x06\x00", id="a value that is not declared"),
        pytest.param(HEAD + b"\x01\x03\x01a\x01\x05urn:p\x01\x05urn:a\x00\x7f", id="a literal as subject"),
        pytest.param(HEAD + b"\x01\x01\x05urn:a\x02\x01b\x01\x05urn:a\x00\x7f", id="a blank predicate"),
        pytest.param(HEAD + b"\x01\x01\x05urn:a\x01\x05urn:p\x00\x00\x7f", id="no object"),
        pytest.param(
            HEAD + b"\x01\x01\x05urn:a\x01\x05urn:p\x01\x05urn:a\x03\x01g\x7f", id="a literal graph"
        ),
        pytest.param(HEAD + b"\x01\x01\x03rel\x01\x05urn:p\x01\x05urn:a\x00\x7f", id="a relative IRI"),
        pytest.param(HEAD + b"\x02\xff\xff\xff\xff\x07", id="a text of 2 GB"),
        pytest.param(HEAD + b"\x02\x80\x80\x80\x80\x80\x80\x01", id="a number without end"),
        pytest.param(HEAD + b"\x02\x02\xff\xff", id="not UTF-8"),
        pytest.param(HEAD + b"\x01" + b"\x07" * 5_000, id="triples as subjects, nested"),
        pytest.param(HEAD + b"\x03\xff\xff\xff\x7f\x01\x05urn:a\x7f", id="a number beyond what is declared"),
        pytest.param(
            HEAD + b"\x01\x07\x01\x05urn:a\x01\x05urn:p\x01\x05urn:a\x01\x05urn:p\x01\x05urn:a\x00",
            id="a triple as subject",
        ),
    ],
)
def test_what_is_refused(document: bytes) -> None:
    with pytest.raises(RdfSyntaxError):
        read(document)


def test_nested_triples_have_a_limit() -> None:
    step = b"\x07\x01\x05urn:a\x01\x05urn:p"
    with pytest.raises(RdfSyntaxError, match="nested"):
        read(HEAD + b"\x01\x01\x05urn:a\x01\x05urn:p" + step * 101 + b"\x01\x05urn:a\x00\x7f")
    declared = b"\x03\x00" + step + b"\x01\x05urn:a"
    with pytest.raises(RdfSyntaxError, match="within a triple"):  # they would grow at each step
        read(HEAD + declared + b"\x03\x01" + step + b"\x06\x00")


def test_every_truncation_is_refused() -> None:
    document = written(QUADS)
    for end in range(len(document)):
        with pytest.raises(RdfSyntaxError):
            read(document[:end])


@given(st.binary(max_size=200), st.integers(0, 200))
def test_nothing_but_syntax_errors(noise: bytes, place: int) -> None:
    document = written(QUADS)
    for one in (HEAD + noise, document[:place] + noise + document[place + 1 :]):
        with suppress(RdfSyntaxError):
            read(one)


def test_what_a_document_claims_takes_no_memory() -> None:
    claims = HEAD + b"\x02" + b"\xff\xff\xff\x07"  # 16 MB, and nothing follows
    tracemalloc.start()
    try:
        with pytest.raises(RdfSyntaxError):
            read(claims)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_declarations_have_a_limit() -> None:
    def varying(number: int) -> bytes:
        return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14))

    iri = b"\x01" + varying(60_000) + b"urn:" + b"a" * 59_996
    with pytest.raises(RdfSyntaxError, match="declared"):
        read(HEAD + b"".join(b"\x03" + varying(number) + iri for number in range(1_200)))
    again = HEAD + (b"\x03\x01" + iri) * 1_200 + b"\x7f"
    assert read(again) == []
    assert DECLARED_MAX < 1 << 20
    assert TEXT_BYTES_MAX < 1 << 25


def test_a_source_that_fails() -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(read_binary_quads(Broken()))


def test_what_cannot_be_written() -> None:
    with pytest.raises(NotAcceptable):
        written([Quad(A, P, Literal("x", language="he", direction=BaseDirection.RTL))])
