"""Shapes among data: what belongs to them is found in all graphs, and nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyoxigraph import Quad, RdfFormat, Store, parse

from graphdb.errors import LimitExceeded
from graphdb.shacl import scattered_shapes as module
from graphdb.shacl.scattered_shapes import scattered_shapes
from graphdb.shacl.shacl_names import sh
from graphdb.shacl.shapes import read_shapes

PREFIXES = """
PREFIX : <http://x/> PREFIX sh: <http://www.w3.org/ns/shacl#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX owl: <http://www.w3.org/2002/07/owl#>
"""


def store_of(trig: str) -> Store:
    store = Store()
    store.extend(parse((PREFIXES + trig).encode(), RdfFormat.TRIG))
    return store


def found(store: Store) -> module.ScatteredShapes:
    def matching(*pattern: Any) -> Iterator[Quad]:
        return store.quads_for_pattern(*pattern)

    return scattered_shapes(matching)


def test_parts_are_gathered_from_all_graphs_without_the_data_around() -> None:
    store = store_of(
        """
        :a a :Person ; :name "Ada" ; :knows :b . :Person rdfs:label "person" . :b a :Person .
        :S sh:targetClass :Person ; sh:property :Name ; sh:targetNode :a .
        GRAPH :g { :Name sh:path ( :knows :name ) ; sh:minCount 1 ; sh:in ( :a "x" ) ; :note "private" }
        GRAPH :h { :Name sh:or ( [ sh:minLength 2 ] [ sh:hasValue :a ] ) }
        """
    )
    made = found(store)
    assert made.is_plain
    shapes = read_shapes(made.triples)
    assert [str(one.node) for one in shapes.targeted] == ["<http://x/S>"]
    assert len(shapes.by_node) == 4
    texts = {str(triple.object) for triple in made.triples}
    assert {'"Ada"', '"person"', '"private"'}.isdisjoint(texts)


def test_a_shape_that_is_a_class_targets_its_instances() -> None:
    store = store_of(
        ":Kind rdfs:subClassOf owl:Class . :P a :Kind ; sh:property [ sh:path :n ; sh:maxCount 1 ] ."
    )
    [shape] = read_shapes(found(store).triples).targeted
    assert str(shape.node) == "<http://x/P>"


def test_components_of_their_own_bring_what_they_need() -> None:
    store = store_of(
        """
        :Component a sh:ConstraintComponent ; sh:parameter [ sh:path :limit ] ;
            sh:validator [ a sh:SPARQLAskValidator ; sh:ask "ASK { FILTER(?value < ?limit) }" ] .
        GRAPH :g { :S sh:targetSubjectsOf :age ; sh:property :Age . :Age sh:path :age . }
        GRAPH :h { :Age :limit 5 }
        """
    )
    made = found(store)
    assert not made.is_plain
    shapes = read_shapes(made.triples)
    [age] = [one for one in shapes.by_node.values() if str(one.node) == "<http://x/Age>"]
    assert len(age.constraints) == 1


def test_no_shapes() -> None:
    assert found(store_of(":a :b :c .")) == module.ScatteredShapes((), is_plain=True)


def test_there_may_not_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TRIPLES_MAX", 3)
    store = store_of(":S sh:targetNode :a , :b , :c , :d .")
    assert {quad.predicate for quad in store} == {sh("targetNode")}
    with pytest.raises(LimitExceeded):
        found(store)
