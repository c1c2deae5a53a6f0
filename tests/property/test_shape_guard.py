"""Enforced shapes against the naive way: after each write, all of the data is validated."""

from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Store, parse

from actors.node.shape_guard import ShapeGuard
from graphdb.config.limits import GateLimits
from graphdb.errors import ShapesViolated
from graphdb.model import ChangeSet
from graphdb.shacl.change_check import check_report, first_refusing
from graphdb.shacl.shapes import Shapes, read_shapes
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

PREFIXES = "PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX x: <http://x/> "
SHAPES = (
    "x:S1 sh:targetClass x:A ; sh:property [ sh:path x:p ; sh:minCount 1 ] .",
    "x:S2 sh:targetSubjectsOf x:q ; sh:property [ sh:path x:q ; sh:class x:A ] .",
    "x:S3 sh:targetObjectsOf x:p ; sh:nodeKind sh:IRI .",
    "x:S4 sh:targetClass x:A ; sh:property [ sh:path ( x:p x:q ) ; sh:maxCount 1 ] .",
    "x:S5 sh:targetClass x:A ; sh:property [ sh:path [ sh:inversePath x:r ] ; sh:maxCount 1 ] .",
    "x:S6 sh:targetClass x:A ; sh:property [ sh:path [ sh:zeroOrMorePath x:r ] ; sh:nodeKind sh:IRI ] .",
    "x:S7 sh:targetNode x:n0 ; sh:property [ sh:path x:q ; sh:disjoint x:r ] .",
    "x:S8 sh:targetClass x:B ; sh:not [ sh:path x:q ; sh:minCount 2 ] .",
    "x:S9 sh:targetClass x:B ; sh:or ( [ sh:path x:p ; sh:minCount 1 ] [ sh:path x:q ; sh:class x:B ] ) .",
    "x:S10 sh:targetSubjectsOf x:r ; sh:closed true ; sh:property [ sh:path x:r ] , [ sh:path x:p ] .",
    "x:S11 sh:targetClass x:A ; sh:property [ sh:path x:p ; sh:node [ sh:property "
    "[ sh:path [ sh:alternativePath ( x:q [ sh:inversePath x:p ] ) ] ; sh:minCount 1 ] ] ] .",
    "x:S12 sh:targetClass x:A ; sh:property "
    "[ sh:path x:p ; sh:qualifiedValueShape [ sh:class x:B ] ; sh:qualifiedMaxCount 1 ] .",
    "x:S13 sh:targetSubjectsOf x:p ; sh:property [ sh:path x:q ; sh:lessThan x:r ] .",
    "x:S14 sh:targetClass x:B ; sh:xone ( [ sh:path [ sh:oneOrMorePath x:r ] ; sh:hasValue x:n1 ] "
    "[ sh:path x:p ; sh:hasValue x:n1 ] [ sh:path x:q ; sh:minCount 1 ] ) .",
    "x:S15 sh:targetObjectsOf x:r ; sh:property [ sh:path ([ sh:zeroOrOnePath x:p ] x:q) ; sh:maxCount 2 ] .",
    "x:S16 sh:targetNode x:n1 ; sh:property [ sh:path ( [ sh:inversePath x:p ] x:r ) ; sh:equals x:q ] .",
)
SHAPES_GRAPH = NamedNode("http://x/shapes")
NODES = [NamedNode(f"http://x/n{number}") for number in range(4)] + [BlankNode("n4")]
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SUBCLASS = NamedNode("http://www.w3.org/2000/01/rdf-schema#subClassOf")
CLASSES = [NamedNode(f"http://x/{name}") for name in "ABC"]

links = st.builds(
    Quad,
    st.sampled_from(NODES),
    st.sampled_from([NamedNode(f"http://x/{name}") for name in "pqr"]),
    st.sampled_from([*NODES, Literal(1), Literal(2), Literal("a")]),
)
types = st.builds(Quad, st.sampled_from(NODES), st.just(TYPE), st.sampled_from(CLASSES))
subclasses = st.builds(Quad, st.sampled_from(CLASSES), st.just(SUBCLASS), st.sampled_from(CLASSES))
quads = st.one_of(links, links, links, types, types, subclasses)
changes = st.tuples(st.sets(quads, min_size=1, max_size=4), st.integers(0, 2))


def conforms(store: QuadStore, shapes: Shapes) -> bool:
    """The naive twin: everything is looked at."""
    return first_refusing(check_report(store._store, None, shapes, None, monotonic)) is None


@settings(max_examples=100, deadline=None)
@given(st.sets(st.sampled_from(SHAPES), min_size=1, max_size=4), st.lists(changes, max_size=10))
def test_a_write_is_refused_if_and_only_if_something_violates_the_shapes_then(
    texts: set[str], writes: list[tuple[set[Quad], int]]
) -> None:
    triples = [quad.triple for quad in parse(PREFIXES + "\n".join(sorted(texts)), RdfFormat.TURTLE)]
    shapes = read_shapes(triples)
    store = QuadStore(Store())
    of_shapes = (Quad(each.subject, each.predicate, each.object, SHAPES_GRAPH) for each in triples)
    store.apply(ChangeSet(added=tuple(of_shapes)))
    guard = ShapeGuard(
        SHAPES_GRAPH, "default", GateLimits(), lambda *_: pytest.fail("so little is validated here")
    )
    for index, (touched, removed_of_three) in enumerate(writes):
        there = {quad for quad in touched if store.contains(quad)}
        added = touched - there if removed_of_three < 2 else set()
        change = ChangeSet(tuple(there), tuple(added))
        batch = Overlay(store)
        guard.begin(batch, index)
        try:
            guard.check(batch, change)
        except ShapesViolated:
            store.apply(change)
            assert not conforms(store, shapes)
            store.apply(ChangeSet(change.added, change.removed))
        else:
            store.apply(change)
            assert conforms(store, shapes)
        guard.note(change, index + 1)
