"""What update planning promises beyond the effect on quads: freshness, failures, batches, other hosts."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from graphdb.errors import (
    AlreadyExists,
    EvaluationFailed,
    GraphDBError,
    HostNotAllowed,
    InvalidParameter,
    QueryCancelled,
    UnknownGraph,
)
from graphdb.model import ChangeSet
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.sparql.syntax import Load
from graphdb.store.overlay import BaseNotApplied, Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.updates.planner import UpdateContext, plan_update

A, B, C, G, H = (NamedNode(f"http://example.org/{name}") for name in "abcgh")
PREFIX = "PREFIX : <http://example.org/> "


def fresh_labels() -> Callable[[], BlankNode]:
    labels = count()
    return lambda: BlankNode(f"fresh{next(labels)}")


def store_with(*quads: Quad) -> QuadStore:
    store = Store()
    store.extend(quads)
    return QuadStore(store)


def plan(
    text: str, overlay: Overlay | None = None, using: Dataset | None = None, **allowed: object
) -> ChangeSet:
    context = UpdateContext(fresh_labels(), **allowed)  # type: ignore[arg-type]
    return plan_update(
        parse_update(PREFIX + text), overlay or Overlay(store_with()), using or Dataset(), context
    )


def test_a_cached_update_makes_new_blank_nodes_each_time() -> None:
    update = parse_update(PREFIX + "INSERT DATA { _:x :p _:x, [] }")
    context = UpdateContext(fresh_labels())
    first, second = (plan_update(update, Overlay(store_with()), Dataset(), context) for _ in range(2))
    assert [str(q) for q in first.added] == [
        "_:fresh0 <http://example.org/p> _:fresh0",
        "_:fresh0 <http://example.org/p> _:fresh1",
    ]
    assert [str(q) for q in second.added] == [
        "_:fresh2 <http://example.org/p> _:fresh2",
        "_:fresh2 <http://example.org/p> _:fresh3",
    ]


def test_a_blank_node_of_the_store_stays_that_node() -> None:
    store = store_with(Quad(BlankNode("stored"), A, B))
    change = plan("INSERT { ?s :c _:new } WHERE { ?s :a :b }", Overlay(store))
    assert change.added == (Quad(BlankNode("stored"), C, BlankNode("fresh0")),)


def test_a_template_blank_node_is_new_for_each_solution() -> None:
    store = store_with(Quad(A, A, B), Quad(A, A, C))
    change = plan("INSERT { _:n :c ?o . _:n :b ?o } WHERE { :a :a ?o }", Overlay(store))
    nodes = [(str(quad.subject), str(quad.object)) for quad in change.added]
    assert len(set(nodes)) == 2
    assert len({node for node, _ in nodes}) == 2


def test_a_template_without_variables_is_filled_once_a_solution() -> None:
    store = store_with(Quad(A, A, B), Quad(A, A, C))
    assert len(plan("INSERT { [] :c :c } WHERE { ?s ?p ?o }", Overlay(store)).added) == 2


def test_booleans_in_capitals() -> None:
    assert plan("INSERT { :a :b ?x } WHERE { BIND(TRUE AS ?x) FILTER(!FALSE) }").added == (
        Quad(A, B, Literal(True)),
    )


def test_the_clock_is_read_once() -> None:
    change = plan("INSERT { ?s :at ?now } WHERE { VALUES ?s { :a :b :c } BIND(NOW() AS ?now) }")
    assert len({quad.object for quad in change.added}) == 1


def test_operations_see_those_before_them() -> None:
    change = plan(
        """INSERT DATA { :a :b 1 } ; INSERT { :a :c ?v } WHERE { :a :b ?v } ;
           DELETE DATA { :a :b 1 } ; CREATE GRAPH :g"""
    )
    assert change == ChangeSet(added=(Quad(A, C, Literal(1)),), created_graphs=(G,))


def test_an_operation_that_fails_fails_the_request_and_leaves_the_overlay() -> None:
    overlay = Overlay(store_with())
    with pytest.raises(UnknownGraph):
        plan("INSERT DATA { :a :b :c } ; DROP GRAPH :g", overlay)
    assert not overlay.pending


FAILING = {
    "CLEAR GRAPH :g": UnknownGraph,
    "DROP GRAPH :g": UnknownGraph,
    "CREATE GRAPH :there": AlreadyExists,
    "COPY :g TO :there": UnknownGraph,
    "MOVE :g TO DEFAULT": UnknownGraph,
    "ADD :g TO :h": UnknownGraph,
    "LOAD <urn:example:doc>": HostNotAllowed,
}


@pytest.mark.parametrize(("text", "error"), FAILING.items(), ids=list(FAILING))
def test_what_fails_and_silent(text: str, error: type[GraphDBError]) -> None:
    store = store_with(Quad(A, B, C, NamedNode("http://example.org/there")))
    with pytest.raises(error):
        plan(text, Overlay(store))
    verb, _, rest = text.partition(" ")
    assert not plan(f"{verb} SILENT {rest}", Overlay(store)), "SILENT: nothing happens"


def test_numbers_written_otherwise_are_one_quad() -> None:
    assert plan("INSERT DATA { :a :b 1, 01, +1 }").affected_triples == 1


def test_what_is_taken_back_is_no_change() -> None:
    store = store_with(Quad(A, B, C))
    assert plan("DELETE DATA { :a :b :c } ; INSERT DATA { :a :b :c }", Overlay(store)) == ChangeSet()
    assert plan("DELETE { ?s ?p ?o } INSERT { ?s ?p ?o } WHERE { ?s ?p ?o }", Overlay(store)) == ChangeSet()


@pytest.mark.parametrize("text", ["DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "DELETE WHERE { ?s ?p ?o }"])
def test_it_ends_between_two_solutions_when_told_to(text: str) -> None:
    overlay = Overlay(store_with(*(Quad(A, B, Literal(number)) for number in range(9))))
    calls = count()

    def check() -> None:
        if next(calls) == 3:
            raise QueryCancelled("enough")

    with pytest.raises(QueryCancelled, match="enough"):
        plan(text, overlay, check=check)
    assert next(calls) == 4
    assert not overlay.pending


def test_the_protocols_dataset_is_read_and_the_default_graph_written() -> None:
    store = store_with(Quad(A, B, C, G), Quad(C, B, A))
    change = plan("INSERT { ?o :c ?s } WHERE { ?s :b ?o }", Overlay(store), Dataset((G,)))
    assert change.added == (Quad(C, C, A),)


@pytest.mark.parametrize(
    "clause", ["WITH :g INSERT { :a :b :c } WHERE {}", "INSERT { :a :b :c } USING :g WHERE {}"]
)
def test_the_protocols_dataset_excludes_one_in_the_text(clause: str) -> None:
    with pytest.raises(InvalidParameter):
        plan(clause, using=Dataset((G,)))


SERVICES = ["SERVICE <http://example.org/sparql> {}", "SERVICE SILENT ?endpoint {}"]


@pytest.mark.parametrize("service", SERVICES)
def test_service_is_refused(service: str) -> None:
    with pytest.raises(HostNotAllowed):
        plan(f"INSERT {{ :a :b :c }} WHERE {{ {service} }}")


@pytest.mark.parametrize("allowed", [{}, {"load": lambda _: []}])
def test_load_is_refused_before_anything_is_evaluated(allowed: dict[str, object]) -> None:
    """SILENT is for failures, and this is a rule."""
    for silent in ("", "SILENT"):
        text = f"DROP GRAPH :nowhere ; LOAD {silent} <http://example.org/doc>"
        with pytest.raises(HostNotAllowed):
            plan(text, Overlay(store_with()), Dataset(), **allowed)


def test_load_goes_where_it_is_told() -> None:
    def load(operation: Load) -> Iterator[Quad]:
        assert operation.source.value == "http://example.org/doc"
        yield Quad(A, B, C)

    def allowed(source: str) -> bool:
        return source == "http://example.org/doc"

    assert plan("LOAD :doc", load=load, load_allowed=allowed) == ChangeSet(added=(Quad(A, B, C),))
    assert plan("LOAD :doc INTO GRAPH :g", load=load, load_allowed=allowed) == ChangeSet(
        added=(Quad(A, B, C, G),), created_graphs=(G,)
    )
    with pytest.raises(EvaluationFailed):
        plan("LOAD :doc INTO GRAPH :g", load=lambda _: [Quad(A, B, C, H)], load_allowed=allowed)


ONE = Literal("1", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
STORED = [
    Quad(subject, predicate, object_, *graph)
    for graph in ((), (G,), (H,))
    for subject in (A, BlankNode("b"))
    for predicate in (A, B)
    for object_ in (A, BlankNode("b"), ONE, Literal("1"))
]


@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize(
    "pattern",
    [
        "?s ?p ?o",
        ":a :b ?o",
        "?s :b 01",
        '?s ?p "1"',
        "?s ?p :b",
        "?s ?s ?o",
        "GRAPH :g { ?s :a ?o }",
        "GRAPH :none { ?s ?p ?o }",
        "GRAPH ?g { :a ?p ?o }",
        "?s ?p <<( ?x :p :a )>>",
    ],
)
def test_delete_where_is_delete_of_what_the_where_matches(pattern: str, union: bool) -> None:
    """By one look into an index, or by solutions."""
    store = Store()
    store.extend(STORED)
    state = Overlay(QuadStore(store, union_default_graph=union))
    removed = plan(f"DELETE WHERE {{ {pattern} }}", state)
    expected = plan(f"DELETE {{ {pattern} }} WHERE {{ {pattern} }}", state)
    assert len(removed.removed) == len(set(removed.removed))
    assert set(removed.removed) == set(expected.removed)
    assert removed.affected_triples == expected.affected_triples


def test_delete_where_needs_no_copy_to_see_earlier_operations() -> None:
    state = Overlay(store_with(Quad(A, B, A), Quad(A, B, B), Quad(C, B, C)))
    state.push(ChangeSet((Quad(A, B, A),), (Quad(A, B, ONE),)))
    with state.request() as request:
        request.push(ChangeSet((Quad(C, B, C),), (Quad(C, B, ONE), Quad(C, C, ONE))))
        assert set(plan("DELETE WHERE { ?s :b ?o }", request).removed) == {
            Quad(A, B, B),
            Quad(A, B, ONE),
            Quad(C, B, ONE),
        }
        assert set(plan("DELETE WHERE { ?s ?p 001 }", request).removed) == {
            Quad(A, B, ONE),
            Quad(C, B, ONE),
            Quad(C, C, ONE),
        }


def test_a_query_over_earlier_requests_asks_for_them_to_be_applied() -> None:
    store = store_with()
    batch = Overlay(store)
    batch.push(plan("INSERT DATA { :a :b :c }", batch))
    assert not plan("INSERT DATA { :a :b :c }", batch), "answered without a query"
    question = "INSERT { ?o :b ?s } WHERE { ?s :b ?o }"
    for text in (question, f"INSERT DATA {{ :b :b :b }} ; {question}"):
        with pytest.raises(BaseNotApplied):
            plan(text, batch)
    store.apply(batch.pending)
    assert plan(question, Overlay(store)).added == (Quad(C, B, A),)
