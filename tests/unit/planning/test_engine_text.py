"""How the engine's text is written, each change that the engine needs, and that nothing else is touched."""

import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store

from graphdb.errors import EvaluationFailed
from graphdb.planning.engine_text import engine_text, where_text
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.syntax import DeleteWhere, Modify
from graphdb.sparql.translation import pattern_of_group, pattern_of_quads
from graphdb.store.quad_store import QuadStore

AS_IT_IS = [
    "ASK WHERE { FILTER(true) }",
    'ASK WHERE { ?TRUE <x:TRUE> "TRUE" . }',
    "SELECT ?s WHERE { GRAPH ?g { ?s ?p ?g . OPTIONAL { ?s ?q ?o . } FILTER(?o > 1) } FILTER(?g = <x:1>) }",
    "SELECT ?s WHERE { GRAPH ?g { BIND(1 AS ?x) { ?s ?p ?x . } UNION { ?x ?p ?s . } MINUS { ?s ?p 2 . } } }",
    "SELECT ?s WHERE { ?s <x:p>* ?o . }",
    "SELECT ?s WHERE { <x:1> <x:p>* ?o . ?o <x:q> ?s . }",
    "SELECT ?s WHERE { <x:1> <x:p>+ ?s . }",
    "SELECT (COUNT(*) AS ?n) WHERE { GRAPH <x:g> { VALUES ?s { 1 } } }",
    "SELECT ?s WHERE { ?s ^(<x:p>/((<x:q>|!(<x:r>|^<x:s>))?)) ?o . }",
    "SELECT DISTINCT ?s (?o + 1 AS ?n) WHERE { ?s ?p ?o . } OFFSET 2 LIMIT 3",
    "SELECT ?k (SUM(DISTINCT ?o) * 2 AS ?n) WHERE { ?s ?p ?o . } GROUP BY ?k (STR(?s) AS ?t)"
    " HAVING (COUNT(*) > 1) ORDER BY DESC(COUNT(?o)) VALUES ?k { 1 UNDEF } ",
    "SELECT ?k (COUNT(*) AS ?n) WHERE { ?s ?p ?o . BIND(?o AS ?k) } GROUP BY ?k",
    "SELECT ?s WHERE { ?s ?p ?o . OPTIONAL { { ?o ?q ?x . FILTER(?x = ?s) } } }",
    "SELECT ?s WHERE { { ?s ?p ?o . FILTER(?o = 1) } ?s ?q ?x . }",
    "SELECT ?s WHERE { { SELECT ?s WHERE { ?s ?p ?o . } LIMIT 1 } ?s ?q ?x . }",
    "SELECT REDUCED ?s FROM <x:1> FROM NAMED <x:2> WHERE { ?s ?p ?o . }",
    "ASK WHERE { FILTER(!(?a + 1 * 2 - -3 > (?b + 1) / 2 || ?c IN (1, 2.5, 3e0)) && !!?d && -?e = -(1)) }",
    "CONSTRUCT { ?s ?p _:anon1 . } WHERE { ?s ?p _:anon2 . }",
    'DESCRIBE <x:1> ?s WHERE { ?s ?p <<( ?a <x:2> "q\\"\\\\\\n"@en )>> . }',
    "ASK WHERE { { SELECT ?s WHERE { ?s ?p ?o . } LIMIT 1 } }",
]

REWRITTEN = {
    "ASK { FILTER(TRUE || False) }": "ASK WHERE { FILTER(true || false) }",
    "PREFIX TRUE: <x:> ASK { ?s TRUE:TRUE TRUE }": "ASK WHERE { ?s <x:TRUE> true . }",
    "ASK { BIND(COALESCE (?x, concat\n('a'), BNODE #(\n()) AS ?y) }": (
        'ASK WHERE { BIND(COALESCE(?x, CONCAT("a"), BNODE()) AS ?y) }'
    ),
    "ASK { ?s (<x:p> # ]\n) [ # )\n], ( #\n) }": (
        "ASK WHERE { ?s <x:p> _:anon1 . ?s <x:p> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil> . }"
    ),
    "SELECT*{ ?b ?a ?c }": "SELECT ?b ?a ?c WHERE { ?b ?a ?c . }",
    "SELECT DISTINCT * # ?c\nFROM <x:?c> { ?b <x:p> $a FILTER(?c < 1) MINUS { ?a ?d '?e' } } VALUES ?z {1}": (
        "SELECT DISTINCT ?b ?a ?z FROM <x:?c>"
        ' WHERE { { ?b <x:p> ?a . MINUS { ?a ?d "?e" . } FILTER(?c < 1) } VALUES ?z { 1 } }'
    ),
    "SELECT * {}": "SELECT * WHERE { }",
    "ASK { ?s ^(<x:p>|<x:q>*) ?o }": "ASK WHERE { { ?o <x:p> ?s . } UNION { ?o <x:q>* ?s . } }",
    "ASK { ?s !(<x:p>|^<x:q>|^<x:r>) [] }": (
        "ASK WHERE { { ?s ?step0_1 ?end0_0 . FILTER(?step0_1 != <x:p>) } UNION"
        " { ?end0_0 ?step0_0 ?s . FILTER(?step0_0 NOT IN (<x:q>, <x:r>)) } }"
    ),
    "ASK { ?s <x:p>/(<x:q>|<x:r>) ?o }": (
        "ASK WHERE { ?s <x:p> ?step0_0 . { ?step0_0 <x:q> ?o . } UNION { ?step0_0 <x:r> ?o . } }"
    ),
    "SELECT (GROUP_CONCAT(?o) AS ?all) { ?s ?p ?o } GROUP BY ?s HAVING Group_Concat(?p; separator='-')": (
        "SELECT (GROUP_CONCAT(STR(?o)) AS ?all) WHERE { ?s ?p ?o . } GROUP BY ?s"
        ' HAVING (GROUP_CONCAT(STR(?p); SEPARATOR = "-"))'
    ),
    "SELECT ?k (COUNT(*) AS ?n) { ?s ?p ?o FILTER(?o) } GROUP BY (?o AS ?k)": (
        "SELECT ?k (COUNT(*) AS ?n) WHERE { { ?s ?p ?o . FILTER(?o) } BIND(?o AS ?k) } GROUP BY ?k"
    ),
    "ASK { ?a ?b ?c MINUS { ?x ?y TRUE } ?c ?d ?e }": "ASK WHERE { ?a ?b ?c . ?c ?d ?e . }",
    "ASK { ?a ?b ?c FILTER(?a) ?c ?d ?e FILTER(?e) {} }": (
        "ASK WHERE { ?a ?b ?c . ?c ?d ?e . FILTER(?a && ?e) }"
    ),
    "ASK { <x:1> <x:p>? ?o }": (
        "ASK WHERE { { <x:1> <x:p>? ?o . } UNION"
        " { BIND(<x:1> AS ?o) FILTER(NOT EXISTS { <x:1> <x:p>? ?o . }) } }"
    ),
    "ASK { GRAPH ?g { ?s ?p ?o FILTER(BOUND(?g)) } }": (
        "ASK WHERE { GRAPH ?g { ?s ?p ?o . FILTER(BOUND(?graph0)) } }"
    ),
    "ASK { GRAPH ?g { ?s ?p ?o OPTIONAL { ?o ?p $g } } }": (
        "ASK WHERE { SELECT ?g ?o ?p ?s WHERE { GRAPH ?g { ?s ?p ?o . OPTIONAL { ?o ?p ?graph0 . } }"
        " FILTER(!BOUND(?graph0) || SAMETERM(?graph0, ?g)) } }"
    ),
    "ASK { GRAPH ?g {VALUES ?x { 1 }} }": "ASK WHERE { GRAPH ?g { GRAPH ?g { } VALUES ?x { 1 } } }",
    "ASK { GRAPH ?g {SELECT * { ?s ?p 1 }} }": (
        "ASK WHERE { GRAPH ?g { SELECT ?p ?s ?g WHERE { ?s ?p 1 . } } }"
    ),
    "ASK { GRAPH ?g {SELECT ?s { ?s ?p 1 } GROUP BY ?s LIMIT 1} }": (
        "ASK WHERE { GRAPH ?g { GRAPH ?g { }"
        " LATERAL { SELECT ?s ?g WHERE { ?s ?p 1 . } GROUP BY ?g ?s LIMIT 1 } } }"
    ),
    "ASK { GRAPH ?g {SELECT (COUNT(*) AS ?n) { ?s ?p [] }} }": (
        "ASK WHERE { GRAPH ?g { { SELECT (COUNT(*) AS ?n) ?g WHERE { ?s ?p _:anon1 . } GROUP BY ?g } UNION"
        " { GRAPH ?g { } { SELECT (COUNT(*) AS ?n) WHERE { FILTER(false) } }"
        " FILTER(NOT EXISTS { ?s ?p ?node0_0 . }) } } }"
    ),
}


@pytest.mark.parametrize("text", AS_IT_IS)
def test_what_needs_no_change_is_written_as_it_is(text: str) -> None:
    assert engine_text(parse_query(text)).text == text


@pytest.mark.parametrize(("text", "expected"), REWRITTEN.items(), ids=list(REWRITTEN))
def test_what_is_rewritten(text: str, expected: str) -> None:
    assert engine_text(parse_query(text)).text == expected


def test_updates_have_their_pattern_changed() -> None:
    update = parse_update(
        "CLEAR ALL; INSERT { ?s <x:p> 1 } WHERE { GRAPH ?g { ?s ?p ?o FILTER(?g = TRUE) } }"
    )
    operation = update.operations[1]
    assert isinstance(operation, Modify)
    text, _ = where_text(pattern_of_group(operation.pattern), ["s"], operation.prologue)
    assert text == "SELECT ?s WHERE { GRAPH ?g { ?s ?p ?o . FILTER(?graph0 = true) } }"


def test_delete_where_is_a_pattern() -> None:
    operation = parse_update("DELETE WHERE { ?s <x:p> 1, ?o . GRAPH ?g { ?s ?p ?o } }").operations[0]
    assert isinstance(operation, DeleteWhere)
    text, _ = where_text(pattern_of_quads(operation.pattern), ["s"], operation.prologue, is_stated=True)
    assert text == "SELECT ?s WHERE { ?s <x:p> 1 . ?s <x:p> ?o . GRAPH ?g { ?s ?p ?o . } }"


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
    assert answers("SELECT ?q { GRAPH <x:2> { <x:9> <x:p>? ?q . ?s <x:p> <x:1> } }") == [["<x:9>"]]
    assert answers("SELECT ?q { <x:9> <x:p>? ?q . <x:9> <x:p>* ?q }") == [["<x:9>"]]
    assert answers("SELECT * { GRAPH ?g { <x:9> <x:p>? ?o } }") == [["<x:1>", "<x:9>"], ["<x:2>", "<x:9>"]]


WIDE = "\U00010000"  # a letter that the engine does not read in names


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"SELECT ?s {{ ?s <x:p> _:{WIDE} }}", [["<x:1>"]]),
        (f"SELECT (COUNT(?{WIDE}) AS ?n) {{ ?s <x:p> ?{WIDE} FILTER(isIRI(?{WIDE})) }}", [[str(Literal(1))]]),
        (
            f"SELECT ?s {{ {{ SELECT ?s (?o AS ?{WIDE}) {{ ?s <x:p> ?o }} }} ?name0_0 ?{WIDE}a ?{WIDE} }}",
            [["<x:1>"]],
        ),
        (
            f"SELECT ?s {{ VALUES ?{WIDE} {{ <x:2> 3 }} ?s ?p ?{WIDE} MINUS {{ ?{WIDE} ?q ?s }} }}",
            [["<x:1>"]],
        ),
    ],
)
def test_names_with_any_letters(text: str, rows: list[list[str]]) -> None:
    store = Store()
    store.add(Quad(NamedNode("x:1"), NamedNode("x:p"), NamedNode("x:2"), DefaultGraph()))
    solutions = QuadStore(store).query(parse_query(text), Dataset())
    assert isinstance(solutions, QuerySolutions)
    assert [[str(term) for term in row] for row in solutions] == rows


def test_columns_with_any_letters_are_refused() -> None:
    with pytest.raises(EvaluationFailed):
        QuadStore(Store()).query(parse_query(f"SELECT ?{WIDE} {{ ?{WIDE} <x:p> ?o }}"), Dataset())
