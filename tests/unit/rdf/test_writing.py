"""Quads written and read back in every syntax."""

from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.errors import NotAcceptable
from graphdb.rdf import writing
from graphdb.rdf.canonical import canonical_lines
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.rdf.writing import write_quads, write_triples
from tests.unit.rdf.random_quads import quads, xml_texts

A, P, G = NamedNode("http://e/a"), NamedNode("http://e/p"), NamedNode("http://e/g")
PREFIXES = {"e": "http://e/", "": "urn:x:"}


def written(items: list[Quad], syntax: RdfSyntax, prefixes: dict[str, str] | None = None) -> bytes:
    return b"".join(write_quads(items, syntax, prefixes=prefixes))


def reread(items: list[Quad], syntax: RdfSyntax, prefixes: dict[str, str] | None = None) -> list[str]:
    return canonical_lines(read_quads(written(items, syntax, prefixes), syntax))


def without_graphs(items: list[Quad]) -> list[Quad]:
    return [Quad(item.subject, item.predicate, item.object) for item in items]


@pytest.fixture(autouse=True, scope="module")
def small_batches() -> Iterator[None]:
    """So that a few quads are several batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_BATCH_QUADS", 3)
        yield


@settings(deadline=None)
@given(quads(), st.sampled_from([None, PREFIXES]))
def test_quads_survive_the_syntaxes_that_hold_everything(
    items: list[Quad], prefixes: dict[str, str] | None
) -> None:
    for syntax in (RdfSyntax.N_QUADS, RdfSyntax.TRIG):
        assert reread(items, syntax, prefixes) == canonical_lines(items)
    for syntax in (RdfSyntax.N_TRIPLES, RdfSyntax.N_TRIPLES_STAR, RdfSyntax.TURTLE):
        assert reread(items, syntax, prefixes) == canonical_lines(without_graphs(items))


@settings(deadline=None)
@given(quads(triple_terms=False))
def test_quads_without_triple_terms_survive_json_ld(items: list[Quad]) -> None:
    assert reread(items, RdfSyntax.JSON_LD) == canonical_lines(items)


@settings(deadline=None)
@given(quads(xml_texts, graphs=False), st.sampled_from([None, {"e": "http://e/"}]))
def test_triples_of_xml_characters_survive_rdf_xml(
    items: list[Quad], prefixes: dict[str, str] | None
) -> None:
    assert reread(items, RdfSyntax.RDF_XML, prefixes) == canonical_lines(items)


@given(quads(xml_texts, graphs=False))
def test_another_xml_parser_sees_the_same_characters(items: list[Quad]) -> None:
    document = ElementTree.fromstring(written(items, RdfSyntax.RDF_XML))
    seen = {element.text or "" for element in document.iter() if not len(element)}
    assert {item.object.value for item in items if isinstance(item.object, Literal)} <= seen


def test_labels_of_blank_nodes_are_xml_names() -> None:
    labels = ["0123456789abcdef0123456789abcdef", "_0", "a0", "_a"]
    p = NamedNode("http://x/p")
    items = [Quad(BlankNode(label), p, BlankNode(label)) for label in labels]
    document = b"".join(write_quads(items, RdfSyntax.RDF_XML))
    found = list(read_quads(document, RdfSyntax.RDF_XML))
    assert len({quad.subject for quad in found}) == len(labels)
    assert all(quad.subject == quad.object for quad in found)


def test_trig_has_the_word_graph() -> None:
    items = [Quad(A, P, Literal("1")), Quad(A, P, Literal("2"), G), Quad(A, P, A, BlankNode("b"))]
    assert written(items, RdfSyntax.TRIG, {"e": "http://e/"}) == (
        b"@prefix e: <http://e/> .\n"
        b'e:a e:p "1" .\n'
        b'GRAPH <http://e/g> {\ne:a e:p "2" .\n}\n'
        b"GRAPH _:b {\ne:a e:p e:a .\n}\n"
    )


@pytest.mark.parametrize("syntax", RdfSyntax)
def test_a_document_may_be_empty(syntax: RdfSyntax) -> None:
    chunks = list(write_quads([], syntax, prefixes=PREFIXES))
    assert len(chunks) == 1
    assert list(read_quads(chunks[0], syntax)) == []


@pytest.mark.parametrize("syntax", [syntax for syntax in RdfSyntax if syntax is not RdfSyntax.TRIG])
def test_triples_are_written_as_quads_of_the_default_graph(syntax: RdfSyntax) -> None:
    triples = [Triple(A, P, Literal(str(number))) for number in range(7)]
    as_quads = [Quad(triple.subject, triple.predicate, triple.object, DefaultGraph()) for triple in triples]
    assert b"".join(write_triples(triples, syntax)) == written(as_quads, syntax)


@pytest.mark.parametrize(
    ("syntax", "predicate", "value"),
    [
        (RdfSyntax.JSON_LD, P, Triple(A, P, A)),
        (RdfSyntax.RDF_XML, P, Literal("\x01")),
        (RdfSyntax.RDF_XML, P, Literal("\uffff")),
        (RdfSyntax.RDF_XML, NamedNode("http://e/1"), A),
        (RdfSyntax.RDF_XML, NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#li"), A),
    ],
)
def test_what_a_syntax_cannot_hold_is_refused(
    syntax: RdfSyntax, predicate: NamedNode, value: Literal
) -> None:
    with pytest.raises(NotAcceptable, match=syntax.media_type.replace("+", r"\+")):
        written([Quad(A, predicate, value)], syntax)


def test_quads_are_taken_only_as_they_are_written() -> None:
    taken = 0

    def source() -> Iterator[Quad]:
        nonlocal taken
        while True:
            taken += 1
            yield Quad(A, P, Literal(str(taken)))

    for syntax in RdfSyntax:
        before = taken
        assert len(list(zip(range(10), write_quads(source(), syntax), strict=False))) == 10
        assert taken - before <= 33
