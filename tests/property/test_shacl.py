"""SHACL: queries made from shapes against pySHACL, and parts of a validation against the whole."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

from graphdb.model import ChangeSet
from graphdb.shacl.affected import ALL, Neighbourhood, affected, is_local
from graphdb.shacl.data_graph import UNION_GRAPH
from graphdb.shacl.shacl_names import Term
from graphdb.shacl.shapes import Shapes, read_shapes
from graphdb.shacl.validation import validate
from graphdb.store.quad_store import QuadStore
from graphdb.store.stored_form import stored_form
from tests.property.shacl_texts import data_quads, shapes_texts
from tests.support.shacl_reference import Found, found, pyshacl_found

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
GRAPHS = [NamedNode("http://example.org/g1"), NamedNode("http://example.org/g2")]


def shapes_of(text: str) -> Shapes:
    return read_shapes(
        quad.triple for quad in parse(text.encode(), RdfFormat.TURTLE, rename_blank_nodes=False)
    )


def store_of(quads: list[Quad]) -> Store:
    store = Store()
    store.extend(quads)
    return store


def nodes_of(store: Store) -> list[Term]:
    """Everything that can be a focus node."""
    return list(dict.fromkeys(term for quad in store for term in (quad.subject, quad.object)))


@few
@given(data_quads(), shapes_texts())
def test_the_engines_report_the_same(quads: list[Quad], text: str) -> None:
    shapes, store = shapes_of(text), store_of(quads)
    compiled = validate(store, None, shapes, engine="compiled")
    reference = validate(store, None, shapes, engine="pyshacl")
    assert found(compiled) == found(reference)
    assert compiled.focus_nodes_validated == reference.focus_nodes_validated
    assert compiled.constraints_checked == reference.constraints_checked


@few
@given(data_quads(), shapes_texts())
def test_reading_whole_indexes_finds_the_same(quads: list[Quad], text: str) -> None:
    """As it is done where there is much, which is never so here."""
    shapes, store = shapes_of(text), store_of(quads)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("graphdb.shacl.value_queries._FEW", 0)
        patched.setattr("graphdb.shacl.value_queries._PER_LOOKUP", 1000)
        patched.setattr("graphdb.shacl.compiled_engine._FEW", 0)
        patched.setattr("graphdb.shacl.compiled_engine._INSTANCES_PER_VALUE", 1000)
        by_index = found(validate(store, None, shapes))
    assert by_index == found(validate(store, None, shapes))


@few
@given(data_quads(), shapes_texts())
def test_pyshacl_finds_the_same_in_the_part_that_it_needs(quads: list[Quad], text: str) -> None:
    # a datatype that the store does not keep is one that only our rewriting of the shapes knows of
    for kept in ("byte", "nonNegativeInteger"):
        text = text.replace(f"sh:datatype xsd:{kept}", "sh:datatype xsd:integer")
    shapes, store = shapes_of(text), store_of(quads)
    assert found(validate(store, None, shapes, engine="pyshacl")) == pyshacl_found(store, shapes.triples)


@few
@given(data_quads(), shapes_texts())
def test_focus_nodes_one_by_one_add_up_to_the_whole(quads: list[Quad], text: str) -> None:
    shapes, store = shapes_of(text), store_of(quads)
    named = [target for shape in shapes.targeted for target in shape.targets if hasattr(target, "node")]
    nodes = dict.fromkeys([*nodes_of(store), *(target.node for target in named)])
    parts = sum((found(validate(store, None, shapes, focus=[node])) for node in nodes), Counter())
    assert parts == found(validate(store, None, shapes))


@few
@given(data_quads(), st.lists(st.sampled_from([0, 1, 2]), min_size=20, max_size=20), shapes_texts())
def test_the_union_of_graphs_is_as_one_graph(quads: list[Quad], places: list[int], text: str) -> None:
    shapes = shapes_of(text)
    spread = [
        Quad(quad.subject, quad.predicate, quad.object, graph)
        for quad, place in zip(quads, places, strict=False)
        for graph in (GRAPHS[:1], GRAPHS[1:], GRAPHS)[place]
    ]
    whole = found(validate(store_of(quads), None, shapes))
    assert found(validate(store_of(spread), UNION_GRAPH, shapes)) == whole
    in_one = store_of([Quad(quad.subject, quad.predicate, quad.object, GRAPHS[0]) for quad in quads])
    assert found(validate(in_one, GRAPHS[0], shapes)) == whole


@few
@given(data_quads(), data_quads(), st.integers(0, 14), shapes_texts())
def test_what_a_change_affects_is_found(
    before: list[Quad], added: list[Quad], removed: int, text: str
) -> None:
    shapes, store = shapes_of(text), store_of(before)
    present = list(store)
    change = ChangeSet(
        tuple(present[:removed]),
        tuple(quad for quad in dict.fromkeys(stored_form(added)) if quad not in store),
    )
    after = store_of([quad for quad in present if quad not in change.removed] + [*change.added])
    suspects = affected(shapes, change, QuadStore(store))
    assert suspects == affected(shapes, change, QuadStore(after)) or suspects == ALL
    if suspects == ALL:
        return
    for node in dict.fromkeys([*nodes_of(store), *nodes_of(after)]):
        if node not in suspects:
            assert judged(store, shapes, node) == judged(after, shapes, node)


def judged(store: Store, shapes: Shapes, node: Term) -> Found:
    return found(validate(store, None, shapes, focus=[node]))


@few
@given(data_quads(), shapes_texts())
def test_the_neighbourhood_of_nodes_is_all_that_they_need(quads: list[Quad], text: str) -> None:
    shapes, store = shapes_of(text), store_of(quads)
    if not is_local(shapes.by_node.values()):
        return
    for node in nodes_of(store)[:3]:
        around = Neighbourhood(shapes, QuadStore(store), None)
        for shape in shapes.targeted:
            around.add_targets(shape, [node])
            around.add(shape, [node])
        assert judged(store_of(list(around.quads)), shapes, node) == judged(store, shapes, node)
