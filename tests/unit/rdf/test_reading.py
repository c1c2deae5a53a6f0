"""Documents read: faults with their place, guards against hostile bytes, streaming."""

import io
from collections.abc import Callable
from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Quad

from graphdb.errors import InvalidParameter, RdfSyntaxError
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.guards import DEPTH_MAX, XML_DEPTH_MAX, JsonDepthGuard
from graphdb.rdf.reading import TRIPLE_TERM_DEPTH_MAX, read_quads

RDF_XML_OPEN = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
RDF_XML = RDF_XML_OPEN + b"<e:C><e:p>1</e:p></e:C></rdf:RDF>"
NT, TURTLE, TRIG = RdfSyntax.N_TRIPLES, RdfSyntax.TURTLE, RdfSyntax.TRIG
XML, JSON = RdfSyntax.RDF_XML, RdfSyntax.JSON_LD


def read(document: bytes, syntax: RdfSyntax, base_iri: str | None = None) -> list[Quad]:
    return list(read_quads(document, syntax, base_iri=base_iri))


@pytest.mark.parametrize(
    ("syntax", "document", "line", "column"),
    [
        (TURTLE, b"<http://e/a> <http://e/b> \n   e:c .", 2, 4),
        (NT, b'<http://e/a> <http://e/b> "x" .\n<http://e/a> <http://e/b> "\xff" .', 2, 28),
        (NT, "# ü\n# é\udcff".encode(errors="surrogateescape"), 2, 4),
        (NT, b'<http://e/a> <http://e/b> "x" . # \xc3', 1, 35),
        (TURTLE, b"<a> <http://e/b> 1 .", 1, 1),
        (TURTLE, b"<http://e/a b> <http://e/b> 1 .", 1, 1),
        (TURTLE, b'<http://e/a> <http://e/b> "\\uD800" .', 1, 28),
        (NT, b"\0", 1, 1),
        (TURTLE, "<http://e/a> <http://e/b> 1 .".encode("utf-16"), 1, 1),
        (JSON, b'{"http://e/p": "x"', 1, 19),
        (JSON, b'{"http://e/p": "\\ud800"}', 1, 16),
        (JSON, b"", 1, 1),
        (XML, b"", 1, 1),
        (XML, RDF_XML_OPEN + b"\n<e:C><e:p>\xff</e:p></e:C></rdf:RDF>", 2, 11),
        (XML, RDF_XML_OPEN + b"\n<e:C><e:p>1</e:p>", 2, 18),
        (XML, RDF_XML + b"\n" + RDF_XML, 2, 1),
        (XML, RDF_XML.replace(b"1", b"&#1;"), None, None),
        (XML, RDF_XML_OPEN + b'<e:C rdf:about="a"/></rdf:RDF>', None, None),
        (XML, RDF_XML.replace(b"xmlns:e", b"xmlns:f"), None, None),
        (JSON, b'{"@context": "http://schema.org/", "name": "x"}', None, None),
        (JSON, b'{"@context": {"@import": "http://schema.org/"}, "name": "x"}', None, None),
    ],
)
def test_faults_are_named_with_their_place(
    syntax: RdfSyntax, document: bytes, line: int | None, column: int | None
) -> None:
    with pytest.raises(RdfSyntaxError) as caught:
        read(document, syntax)
    assert "Parser error" not in caught.value.reason
    if line is not None:
        assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("length", range(len(RDF_XML)))
def test_rdf_xml_is_refused_wherever_it_is_cut(length: int) -> None:
    with pytest.raises(RdfSyntaxError):
        read(RDF_XML[:length], XML)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-7", "cp037", "latin-1"]
)
def test_a_doctype_is_refused_in_every_encoding(encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY e "zz">]>'
    with pytest.raises(RdfSyntaxError):
        read((head + RDF_XML.decode().replace("1", "&e;")).encode(encoding), XML)


def test_a_doctype_is_named_as_the_reason() -> None:
    with pytest.raises(RdfSyntaxError, match=r"at line 1, column 13: RDF/XML with a DOCTYPE is refused"):
        read(b'<!DOCTYPE x [<!ENTITY e "zz">]>' + RDF_XML, XML)


def test_remote_contexts_are_named_as_the_reason() -> None:
    with pytest.raises(RdfSyntaxError, match="remote JSON-LD contexts are not fetched"):
        read(b'{"@context": "http://schema.org/", "name": "x"}', JSON)


def nest(before: bytes, opening: bytes, core: bytes, closing: bytes, after: bytes) -> Callable[[int], bytes]:
    return lambda depth: before + opening * depth + core + closing * depth + after


SUBJECT = b"<http://e/a> <http://e/b> "
DEEP = {
    "JSON objects": (JSON, nest(b"", b'{"http://e/p":', b"1", b"}", b""), DEPTH_MAX),
    "JSON arrays": (JSON, nest(b'{"http://e/p":', b"[", b"1", b"]", b"}"), DEPTH_MAX - 1),
    "XML elements": (
        XML,
        nest(RDF_XML_OPEN, b"<e:C><e:p>", b"", b"</e:p></e:C>", b"</rdf:RDF>"),
        XML_DEPTH_MAX // 2 - 1,
    ),
    "Turtle triple terms": (
        TURTLE,
        nest(SUBJECT, b"<<(" + SUBJECT, b"1", b")>>", b"."),
        TRIPLE_TERM_DEPTH_MAX,
    ),
    "N-Triples triple terms": (
        NT,
        nest(SUBJECT, b"<<( " + SUBJECT, b'"1"', b" )>>", b"."),
        TRIPLE_TERM_DEPTH_MAX,
    ),
}


@pytest.mark.parametrize(("syntax", "document", "depth"), DEEP.values(), ids=DEEP)
def test_nesting_is_bounded(syntax: RdfSyntax, document: Callable[[int], bytes], depth: int) -> None:
    assert read(document(depth), syntax)
    for too_deep in (depth + 1, 10_000, 100_000):
        with pytest.raises(RdfSyntaxError, match=r"nested|levels"):
            read(document(too_deep), syntax)


@pytest.mark.parametrize(
    "document",
    [
        nest(SUBJECT, b"(", b"1", b")", b"."),
        nest(SUBJECT, b"[<http://e/b> ", b"1", b"]", b"."),
        nest(SUBJECT + b"1", b"{| <http://e/b> 1 ", b"", b"|}", b"."),
    ],
)
def test_other_turtle_may_nest_as_it_likes(document: Callable[[int], bytes]) -> None:
    assert len(read(document(20_000), TURTLE)) > 20_000


def test_many_triple_terms_side_by_side_are_no_nesting() -> None:
    line = SUBJECT + b"<<( " + SUBJECT + b'"<<( <<(" )>> .\n'
    assert len(read(line * 5_000, NT)) == 5_000


json_values = st.recursive(
    st.booleans() | st.text('[]{}"\\x', max_size=5), lambda inner: st.lists(inner, max_size=3)
)


@settings(max_examples=40, deadline=None)
@given(json_values, st.data())
def test_the_depth_of_json_is_counted_outside_of_strings_however_it_is_cut(
    value: object, data: st.DataObject
) -> None:
    def depth(node: object) -> int:
        return 1 + max(map(depth, node), default=0) if isinstance(node, list) else 0

    document = orjson.dumps(value)
    room = DEPTH_MAX - depth(value)
    for opened, fits in ((room, True), (room + 1, False)):
        guard = JsonDepthGuard()
        pieces = data.draw(st.lists(st.integers(0, len(document)), max_size=4).map(sorted))
        refused = False
        try:
            guard.check(b"[" * opened)
            for start, end in pairwise([0, *pieces, len(document)]):
                guard.check(document[start:end])
        except RdfSyntaxError:
            refused = True
        assert refused is not fits


def test_a_base_that_is_no_iri_is_an_invalid_parameter() -> None:
    with pytest.raises(InvalidParameter):
        read(b"", TURTLE, base_iri="no iri")


def test_relative_iris_are_resolved_against_the_base() -> None:
    (quad,) = read(b"<a> <b> <#c> .", TURTLE, base_iri="http://e/d/f")
    assert str(quad) == "<http://e/d/a> <http://e/d/b> <http://e/d/f#c>"


class Pieces(io.BytesIO):
    """A document of which each read gives so many bytes."""

    def __init__(self, document: bytes, piece_bytes: int) -> None:
        super().__init__(document)
        self._piece_bytes = piece_bytes

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._piece_bytes)


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 1000])
@pytest.mark.parametrize("syntax", RdfSyntax)
def test_a_byte_order_mark_is_passed_over(syntax: RdfSyntax, piece_bytes: int) -> None:
    document = {XML: RDF_XML, JSON: b'{"@type": "http://e/C"}'}.get(
        syntax, b'<http://e/a> <http://e/b> "1" .'
    )
    source = Pieces(b"\xef\xbb\xbf" + document, piece_bytes)
    assert len(list(read_quads(source, syntax))) == len(read(document, syntax))
    if syntax not in (XML, JSON):
        assert list(read_quads(Pieces(b"\xef\xbb\xbf", piece_bytes), syntax)) == []


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("syntax", RdfSyntax)
def test_utf_16_is_refused_by_name(syntax: RdfSyntax, order: str) -> None:
    document = f"\ufeff{RDF_XML.decode()}".encode(f"utf-16-{order}")
    for piece_bytes in (1, 1000):
        with pytest.raises(RdfSyntaxError, match="UTF-16"):
            list(read_quads(Pieces(document, piece_bytes), syntax))


def test_blank_nodes_are_fresh_in_each_document_and_the_same_within_it() -> None:
    document = b"_:a <http://e/p> _:b . _:b <http://e/p> _:a ."
    (first, second), (other, _) = read(document, TURTLE), read(document, TURTLE)
    assert (first.subject, first.object) == (second.object, second.subject)
    assert {first.subject, first.object}.isdisjoint(
        {other.subject, other.object, BlankNode("a"), BlankNode("b")}
    )
    (kept, _) = read_quads(document, TURTLE, fresh_blank_nodes=False)
    assert (kept.subject, kept.object) == (BlankNode("a"), BlankNode("b"))


class Endless:
    """A document without an end, which counts how much of it was taken."""

    def __init__(self, line: bytes) -> None:
        self.line, self.taken = line, 0

    def read(self, size: int) -> bytes:
        self.taken += size
        return self.line * (size // len(self.line))


@pytest.mark.parametrize("syntax", [NT, TURTLE, TRIG, RdfSyntax.N_QUADS])
def test_quads_come_while_the_document_is_read(syntax: RdfSyntax) -> None:
    source = Endless(b'<http://e/a> <http://e/b> "1" .\n')
    quads = read_quads(source, syntax)
    assert all(next(quads) for _ in range(1_000))
    assert source.taken <= 131_072


class Failing(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise ConnectionError("gone")


@pytest.mark.parametrize("syntax", RdfSyntax)
def test_what_the_source_raises_comes_out_as_it_is(syntax: RdfSyntax) -> None:
    with pytest.raises(ConnectionError, match="gone"):
        list(read_quads(Failing(), syntax))


SEEDS = [
    RDF_XML,
    b'@prefix e: <http://e/> . e:a e:b <<( e:c e:d "x"@en--ltr )>> , [ e:p ( 1 2 ) ] {| e:q 1 |} .',
    b'GRAPH <http://e/g> { <http://e/a> a """x""" } # end',
    b'{"@context": {"p": {"@id": "http://e/p", "@container": "@list"}}, "p": ["x", {"@id": "_:b"}]}',
]


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=60)
    | st.builds(
        lambda seed, place, size, junk: seed[: place % len(seed)] + junk + seed[place % len(seed) + size :],
        st.sampled_from(SEEDS),
        st.integers(0, 200),
        st.integers(0, 5),
        st.binary(max_size=5)
        | st.sampled_from([b"<<(", b"\\u", b'"', b"&#0;", b"{", b"]", b"<", b"@base <x> ."]),
    )
)
def test_hostile_bytes_give_quads_or_an_rdf_syntax_error(document: bytes) -> None:
    for syntax in RdfSyntax:
        fault = None
        try:
            assert all(isinstance(quad, Quad) for quad in read_quads(document, syntax))
        except RdfSyntaxError as error:
            fault = error
        if fault is not None:
            assert fault.reason
            assert fault.line is None or (fault.line >= 1 and fault.column is not None and fault.column >= 1)


@pytest.mark.parametrize("document", [b"#" * 17_000_000, b'<a:a> <a:b> "' + b"x" * 17_000_000 + b'" .'])
def test_an_endless_token_is_refused(document: bytes) -> None:
    with pytest.raises(RdfSyntaxError, match="longer than 16777216 bytes"):
        list(read_quads(document, RdfSyntax.TURTLE))
