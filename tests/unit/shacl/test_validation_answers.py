"""From the words of a request to the bytes of a report."""

import itertools
import json

import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store

from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter, RdfSyntaxError, UnknownGraph
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.pieces import CHUNK_BYTES
from graphdb.shacl.data_graph import UNION_GRAPH
from graphdb.shacl.report import report_json
from graphdb.shacl.shapes import read_shapes
from graphdb.shacl.validation import (
    answer_validation,
    check_known,
    data_graph_named,
    shapes_in_document,
    shapes_in_graph,
    validate,
)

P, G = NamedNode("http://x/p"), NamedNode("http://x/g")
SHAPES = b"""PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX x: <http://x/>
x:S sh:targetSubjectsOf x:p ; sh:property x:P . x:P sh:path x:p ; sh:nodeKind sh:IRI ; sh:message "bad" ."""


def store_of(count: int) -> Store:
    store = Store()
    store.extend(Quad(NamedNode(f"http://x/n{number}"), P, Literal(number)) for number in range(count))
    return store


def answer(store: Store, syntax: RdfSyntax | None) -> list[bytes]:
    pieces: list[bytes] = []
    clock = itertools.count(5.0, 0.25).__next__
    shapes = shapes_in_document(SHAPES, RdfSyntax.TURTLE)
    answer_validation(store, None, shapes, syntax, pieces.append, clock, GateLimits())
    return pieces


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 2500])
def test_the_pieces_are_the_report_in_json(count: int) -> None:
    store = store_of(count)
    pieces = answer(store, None)
    shapes = read_shapes(shapes_in_document(SHAPES, RdfSyntax.TURTLE))
    assert json.loads(b"".join(pieces)) == report_json(validate(store, None, shapes), 250)
    assert all(0 < len(piece) < 2 * CHUNK_BYTES for piece in pieces)
    assert (len(pieces) > 1) == (count > 300)


def test_the_report_in_rdf() -> None:
    pieces = answer(store_of(1), RdfSyntax.TURTLE)
    document = b"".join(pieces)
    assert b"@prefix sh: <http://www.w3.org/ns/shacl#> ." in document
    found = Store()
    found.load(document, format=RdfFormat.TURTLE)
    conforms = NamedNode("http://www.w3.org/ns/shacl#conforms")
    assert [quad.object for quad in found.quads_for_pattern(None, conforms, None, None)] == [Literal(False)]


def test_names_of_graphs() -> None:
    store = Store()
    store.add(Quad(NamedNode("http://x/n"), P, Literal(1), G))
    assert [data_graph_named(name) for name in ("default", "union", G.value)] == [None, UNION_GRAPH, G]
    for known in (None, UNION_GRAPH, G):
        check_known(known, store)
    with pytest.raises(UnknownGraph, match="http://x/none"):
        check_known(NamedNode("http://x/none"), store)
    with pytest.raises(UnknownGraph):
        shapes_in_graph("http://x/none", store)
    assert len(list(shapes_in_graph(G.value, store))) == 1


def test_documents() -> None:
    with pytest.raises(RdfSyntaxError):
        list(shapes_in_document(b"<a", RdfSyntax.TURTLE))
    with pytest.raises(InvalidParameter, match="named graph of the document, <urn:g>"):
        list(shapes_in_document(b"<urn:a> <urn:b> <urn:c> <urn:g> .", RdfSyntax.N_QUADS))
    assert len(list(shapes_in_document(b"<urn:a> <urn:b> <urn:c> .", RdfSyntax.N_QUADS))) == 1
