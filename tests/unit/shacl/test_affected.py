"""From changed quads back to focus nodes; tests/property holds it to the whole."""

import pytest
from pyoxigraph import NamedNode, Quad, Store

from graphdb.model import ChangeSet
from graphdb.shacl import affected as module
from graphdb.shacl.affected import ALL, affected
from graphdb.store.quad_store import QuadStore
from tests.unit.shacl.texts import EX, data, shapes, triples


def quads(turtle: str) -> tuple[Quad, ...]:
    return tuple(Quad(*triple) for triple in triples(turtle))


def touched(store: Store, shape: str, *, added: str = "", removed: str = "") -> set[str] | str:
    """The local names of the nodes that a change affects."""
    nodes = affected(shapes(shape), ChangeSet(quads(removed), quads(added)), QuadStore(store))
    return nodes if isinstance(nodes, str) else {str(node).replace(EX, "").strip("<>") for node in nodes}


NODE = ":S sh:targetClass :A ; sh:property [ sh:path :p ; sh:minCount 1 ] ."
GRAPH = ":a a :A ; :p :b . :b :q :c . :c :r :d ."


def test_a_change_that_no_shape_looks_at() -> None:
    assert touched(data(GRAPH), NODE, added=":a :z 1 .") == set()
    assert touched(data(GRAPH), NODE) == set()


def test_a_property() -> None:
    assert touched(data(GRAPH), NODE, removed=":a :p :b .") == {"a"}


def test_a_type() -> None:
    assert touched(data(GRAPH), NODE, added=":n a :Sub .") == {"n"}


def test_a_subclass_concerns_its_instances() -> None:
    store = data(":a a :Sub . :b a :SubSub . :SubSub rdfs:subClassOf :Sub . :c a :Other .")
    assert touched(store, NODE, added=":Sub rdfs:subClassOf :A .") == {"a", "b"}


def test_along_a_path_and_through_shapes() -> None:
    shape = """:S sh:targetClass :A ; sh:property [ sh:path ( :p :q ) ; sh:node :T ] .
        :T sh:property [ sh:path [ sh:inversePath [ sh:inversePath :r ] ] ; sh:class :B ] ."""
    assert touched(data(GRAPH), shape, added=":b :q :x .") == {"a"}
    assert touched(data(GRAPH), shape, removed=":c :r :d .") == {"a"}
    assert touched(data(GRAPH), shape, added=":d a :B .") == {"a", "d"}
    assert touched(data(GRAPH), shape, added=":d :z :y .") == set()


def test_recursive_shapes_are_followed_once_around() -> None:
    shape = ":S sh:targetClass :A ; sh:property [ sh:path :p ; sh:node :S ; sh:maxCount 1 ], [ sh:path :n ] ."
    store = data(":a :p :b . :b :p :c . :c :p :d .")
    assert touched(store, shape, added=":c :p :e .") == {"a", "b", "c"} - {"a"}
    assert touched(store, shape, added=":c :n 1 .") == set()


def test_closed_shapes() -> None:
    assert touched(data(GRAPH), ":S sh:targetClass :A ; sh:closed true .", added=":a :z 1 .") == {"a"}


def test_another_graph() -> None:
    quad = Quad(NamedNode(EX + "a"), NamedNode(EX + "p"), NamedNode(EX + "b"), NamedNode(EX + "g"))
    change = ChangeSet((), (quad,))
    assert affected(shapes(NODE), change, QuadStore(Store())) == frozenset()
    found = affected(shapes(NODE), change, QuadStore(Store()), NamedNode(EX + "g"))
    assert found == frozenset({NamedNode(EX + "a")})


def test_sparql_reads_any_graph() -> None:
    shape = ':S sh:targetNode :a ; sh:sparql [ sh:select "SELECT $this { ?x ?y 7 }" ] .'
    assert touched(data(""), shape, added=":n :p 1 .") == ALL


def test_too_much_to_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOKUPS_MAX", 5)
    chain = " ".join(f":n{number} :p :n{number + 1} ." for number in range(20))
    shape = ":S sh:targetClass :A ; sh:property [ sh:path [ sh:zeroOrMorePath :p ] ; sh:maxCount 30 ] ."
    assert touched(data(chain), shape, added=":n20 :p :n21 .") == ALL
