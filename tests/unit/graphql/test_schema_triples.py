"""What of a store a schema is made of, and when a change has touched it."""

import pytest
from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat, Store, parse

from graphdb.errors import LimitExceeded
from graphdb.graphql.modelling import model_of
from graphdb.graphql.schema_sources import read_ontology, read_shapes
from graphdb.graphql.schema_triples import SchemaWatch, schema_triples
from graphdb.model import ChangeSet
from graphdb.shacl.shapes_graph import ShapesGraph
from tests.support.graphql_graph import PREFIXES

TURTLE = """
:Person a :Kind ; rdfs:subClassOf :Agent ; rdfs:comment "Somebody." . :Kind rdfs:subClassOf owl:Class .
:name a owl:FunctionalProperty ; rdfs:domain [ owl:unionOf ( :Person :Group ) ] ; rdfs:comment "Called." .
:Group a rdfs:Class .
:Shape a sh:NodeShape ; sh:targetClass :Person ; sh:property [
    sh:path :state ; sh:in ( "on" "off" ) ; sh:maxCount 1 ; sh:minCount 1 ; sh:name "status" ;
    sh:description "How it is." ; sh:order 2 ] , [ sh:path [ sh:inversePath :name ] ; sh:nodeKind sh:IRI ] .
"""
DATA = ':a a :Person ; :name "A" ; rdfs:comment "no class" ; :list ( 1 2 3 ) ; :state "on" .'


def quads(turtle: str) -> list[Quad]:
    return list(parse(PREFIXES + turtle, format=RdfFormat.TURTLE))


def store_of(turtle: str, graph: str | None = None) -> Store:
    store = Store()
    name = NamedNode(graph) if graph else DefaultGraph()
    store.extend(Quad(quad.subject, quad.predicate, quad.object, name) for quad in quads(turtle))
    return store


@pytest.mark.parametrize("graph", [None, "http://e/ontology"])
def test_it_is_all_that_the_sources_read_and_no_data(graph: str | None) -> None:
    store = store_of(TURTLE + DATA, graph)
    found = schema_triples(store.quads_for_pattern)
    assert len(found) == len(set(found))
    assert not any(triple.subject == NamedNode("http://e/a") for triple in found)
    whole, part = ShapesGraph(quad.triple for quad in store), ShapesGraph(found)
    assert model_of(read_ontology(part)) == model_of(read_ontology(whole))
    assert model_of(read_shapes(part)) == model_of(read_shapes(whole))


def test_it_is_bounded() -> None:
    with pytest.raises(LimitExceeded, match="ontology and shapes"):
        schema_triples(store_of(TURTLE).quads_for_pattern, triples_max=10)


# an instance of a class of one's own, which is a class because that one is, is noticed with the next change
NOTICED = [quad for quad in quads(TURTLE) if quad.object != NamedNode("http://e/Kind")]


def tell(watch: SchemaWatch, changes: tuple[ChangeSet, ...]) -> None:
    """That a whole change has been applied."""
    assert watch.applying(changes) is changes
    watch.applied()


@pytest.mark.parametrize("quad", NOTICED, ids=lambda quad: quad.predicate.value)
def test_every_triple_of_a_schema_touches_it(quad: Quad) -> None:
    for change in (ChangeSet(added=(quad,)), ChangeSet(removed=(quad,))):
        watch = SchemaWatch()
        before = watch.state
        tell(watch, (change,))
        assert watch.state is not before


def test_data_do_not() -> None:
    watch = SchemaWatch()
    before = watch.state
    tell(watch, (ChangeSet(added=tuple(quads(':a a :Person ; :name "A" ; :knows :b .'))),))
    assert watch.state is before


@pytest.mark.parametrize("kind", [iter, tuple])
def test_it_changes_only_when_the_change_is_visible(kind: type) -> None:
    watch = SchemaWatch()
    before = watch.state
    parts = [ChangeSet(added=tuple(quads(":a :p 1 ."))), ChangeSet(added=tuple(quads(":A a owl:Class .")))]
    assert list(watch.applying(kind(parts))) == parts
    assert watch.state is before
    watch.applied()
    assert watch.state is not before


def test_a_large_change_is_not_looked_through() -> None:
    watch = SchemaWatch()
    before = watch.state
    large = "".join(f":a :p {number} . " for number in range(10_001))
    tell(watch, (ChangeSet(added=tuple(quads(large))),))
    assert watch.state is not before


def test_a_state_taken_in_the_middle_of_a_change_is_another_after_it() -> None:
    watch = SchemaWatch()
    watched = iter(watch.applying(iter([ChangeSet(added=tuple(quads(":A a owl:Class ."))), ChangeSet()])))
    next(watched)
    before = watch.state
    assert list(watched) == [ChangeSet()]
    watch.applied()
    assert watch.state is not before
