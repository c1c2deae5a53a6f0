"""Each change that the engine needs, alone, and that nothing else is touched."""

from itertools import pairwise

import pytest
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store

from graphdb.sparql.dataset import Dataset
from graphdb.sparql.engine_text import engine_pattern, engine_text
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.syntax import Modify
from graphdb.sparql.terms import Span
from graphdb.sparql.text_edits import TextEdits
from graphdb.store.quad_store import QuadStore

AS_IT_IS = [
    "ASK { FILTER(true) }",
    'ASK { ?TRUE <x:TRUE> "TRUE" } # TRUE',
    "SELECT ?s { GRAPH ?g { ?s ?p ?g OPTIONAL { ?s ?q ?o } FILTER(?o > 1) } FILTER(?g = <x:1>) }",
    "SELECT ?s { GRAPH ?g { BIND(1 AS ?x) { ?s ?p ?x } UNION { ?x ?p ?s } MINUS { ?s ?p 2 } } }",
    "SELECT ?s { ?s <x:p>* ?o }",
    "SELECT ?s { <x:1> <x:p>* ?o . ?o <x:q> ?s }",
    "SELECT ?s { <x:1> <x:p>+ ?s }",
    "SELECT (COUNT(*) AS ?n) { GRAPH <x:g> { VALUES ?s { 1 } } }",
]

CHANGED = {
    "ASK { FILTER(TRUE || False) }": "ASK { FILTER(true || false) }",
    "PREFIX TRUE: <x:> ASK { ?s TRUE:TRUE TRUE }": "PREFIX TRUE: <x:> ASK { ?s TRUE:TRUE true }",
    "ASK { BIND(COALESCE (?x, concat\n('a'), BNODE #(\n()) AS ?y) }": (
        "ASK { BIND(COALESCE(?x, concat('a'), BNODE()) AS ?y) }"
    ),
    "ASK { ?s (<x:p> # ]\n) [ # )\n], ( #\n) }": "ASK { ?s (<x:p> # ]\n) [], () }",
    "SELECT*{ ?b ?a ?c }": "SELECT ?b ?a ?c { ?b ?a ?c }",
    "SELECT DISTINCT * # ?c\nFROM <x:?c> { ?b <x:p> $a FILTER(?c < 1) MINUS { ?a ?d '?e' } } VALUES ?z {1}": (
        "SELECT DISTINCT  ?b ?a ?z  # ?c\n"
        "FROM <x:?c> { ?b <x:p> $a FILTER(?c < 1) MINUS { ?a ?d '?e' } } VALUES ?z {1}"
    ),
    "SELECT * {}": "SELECT * {}",
    "SELECT (GROUP_CONCAT(?o) AS ?all) { ?s ?p ?o } GROUP BY ?s HAVING Group_Concat(?p)": (
        "SELECT (STR(GROUP_CONCAT(?o)) AS ?all) { ?s ?p ?o } GROUP BY ?s HAVING STR(Group_Concat(?p))"
    ),
    "ASK { ?a ?b ?c MINUS { ?x ?y TRUE } ?c ?d ?e }": "ASK { ?a ?b ?c FILTER(true) ?c ?d ?e }",
    "ASK { <x:1> <x:p>? ?o }": (
        "ASK { { { <x:1> <x:p>? ?o } UNION { BIND(<x:1> AS ?o) FILTER NOT EXISTS { <x:1> <x:p>? ?o } } } }"
    ),
    "ASK { GRAPH ?g { ?s ?p ?o FILTER(BOUND(?g)) } }": "ASK { GRAPH ?g { ?s ?p ?o FILTER(BOUND(?graph0)) } }",
    "ASK { GRAPH ?g { ?s ?p ?o OPTIONAL { ?o ?p $g } } }": (
        "ASK { { SELECT ?g ?o ?p ?s { GRAPH ?g { ?s ?p ?o OPTIONAL { ?o ?p ?graph0 } }"
        " FILTER(!BOUND(?graph0) || SAMETERM(?graph0, ?g)) } } }"
    ),
    "ASK { GRAPH ?g {VALUES ?x { 1 }} }": "ASK { GRAPH ?g { GRAPH ?g {} VALUES ?x { 1 }} }",
    "ASK { GRAPH ?g {SELECT * { ?s ?p 1 }} }": "ASK { GRAPH ?g {SELECT  ?g ?p ?s  { ?s ?p 1 }} }",
    "ASK { GRAPH ?g {SELECT ?s { ?s ?p 1 } GROUP BY ?s LIMIT 1} }": (
        "ASK { GRAPH ?g {GRAPH ?g {} LATERAL { SELECT ?s ?g  { ?s ?p 1 } GROUP BY ?g ?s LIMIT 1 }} }"
    ),
    "ASK { GRAPH ?g {SELECT (COUNT(*) AS ?n) { ?s ?p 1 }} }": (
        "ASK { GRAPH ?g {{ SELECT (COUNT(*) AS ?n) ?g  { ?s ?p 1 } GROUP BY ?g  } UNION"
        " { GRAPH ?g {} FILTER NOT EXISTS { ?s ?p 1 }"
        " { SELECT (COUNT(*) AS ?n) { FILTER(false) }  } }} }"
    ),
}


@pytest.mark.parametrize("text", AS_IT_IS)
def test_most_texts_stay(text: str) -> None:
    assert engine_text(parse_query(text)).text == text


@pytest.mark.parametrize(("text", "expected"), CHANGED.items(), ids=list(CHANGED))
def test_what_changes(text: str, expected: str) -> None:
    assert engine_text(parse_query(text)).text.split() == expected.split()


def test_updates_have_their_pattern_changed() -> None:
    update = parse_update(
        "CLEAR ALL; INSERT { ?s <x:p> 1 } WHERE { GRAPH ?g { ?s ?p ?o FILTER(?g = TRUE) } }"
    )
    operation = update.operations[1]
    assert isinstance(operation, Modify)
    changed, _ = engine_pattern(update.text, operation.where, operation.pattern)
    assert changed == "{ GRAPH ?g { ?s ?p ?o FILTER(?graph0 = true) } }"


def answers(text: str, dataset: Dataset | None = None) -> list[list[str | None]]:
    """The rows of a query over two graphs x:1 and x:2, each with a triple that names both."""
    store = Store()
    one, two, p = NamedNode("x:1"), NamedNode("x:2"), NamedNode("x:p")
    store.extend(
        [Quad(one, p, two, one), Quad(two, p, one, two), Quad(two, p, Literal("x", language="en"), two)]
    )
    solutions = QuadStore(store).query(parse_query(text), dataset or Dataset())
    assert isinstance(solutions, QuerySolutions)
    return sorted([[None if term is None else str(term) for term in row] for row in solutions], key=str)


def test_graphs_within_graphs() -> None:
    text = "SELECT * { GRAPH ?g { GRAPH ?h { ?g <x:p> ?o FILTER(!BOUND(?g) || !BOUND(?h)) } } }"
    assert answers(text) == [["<x:1>", "<x:1>", "<x:2>"]] + [
        ["<x:2>", "<x:2>", object_] for object_ in ('"x"@en', "<x:1>")
    ]


def test_the_dataset_says_which_graphs_there_are() -> None:
    text = "SELECT * { GRAPH ?g { VALUES ?x { <x:1> } } }"
    assert answers(text) == [["<x:1>", "<x:1>"], ["<x:2>", "<x:1>"]]
    assert answers(text, Dataset((), (NamedNode("x:2"),))) == [["<x:2>", "<x:1>"]]


def test_a_path_of_length_zero_needs_no_data() -> None:
    assert answers("SELECT * { <x:9> <x:p>* ?o }") == [["<x:9>"]]
    assert answers("SELECT * { <x:9> <x:p>* <x:9> }") == [[]]
    assert answers("SELECT * { GRAPH <x:1> { ?s <x:p>? <x:2> } }") == [["<x:1>"], ["<x:2>"]]
    assert answers("SELECT * { GRAPH ?g { <x:9> <x:p>? ?o } }") == [["<x:1>", "<x:9>"], ["<x:2>", "<x:9>"]]


def test_edits_may_come_in_any_order_of_places() -> None:
    edits = TextEdits("0123456789")
    edits.replace(Span(6, 8), "x")
    edits.around(Span(2, 4), "(", ")")
    edits.around(Span(2, 4), "[", "]")
    edits.before(4, "<")
    assert edits.written(Span(0, 10)) == "01[(23)]<45x89"
    assert [edits.written(Span(*ends)) for ends in pairwise((0, 2, 4, 10))] == ["01", "[(23)]", "<45x89"]
