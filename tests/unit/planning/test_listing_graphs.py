"""Whether a query may tell that a graph without quads is there, beside what the engine finds of one."""

import pytest
from pyoxigraph import NamedNode, QuerySolutions, Store

from graphdb.planning.engine_text import engine_text_and_services
from graphdb.planning.graph_variables import may_list_graphs
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import nodes_of

LISTING = [
    "GRAPH ?g {}",
    "GRAPH ?g { OPTIONAL { ?s ?p ?o } }",
    "GRAPH ?g { VALUES ?x { 1 } }",
    "GRAPH ?g { BIND(1 AS ?x) }",
    "GRAPH ?g { MINUS { ?s ?p ?o } }",
    "GRAPH ?g { { ?s ?p ?o } UNION { BIND(1 AS ?x) } }",
    "GRAPH ?g { FILTER NOT EXISTS { ?s ?p ?o } }",
    "GRAPH ?g { <urn:a> <urn:p>* <urn:a> }",
    "GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } }",
    "GRAPH ?g { GRAPH ?h {} }",
    "{ GRAPH ?g { SELECT * {} } } UNION { ?s ?p ?o }",
    "FILTER EXISTS { GRAPH ?g {} }",
    "OPTIONAL { GRAPH ?g {} } FILTER(BOUND(?g))",
]
OTHERS = [
    "?s ?p ?o",
    "GRAPH <urn:g> { ?s ?p ?o }",
    "GRAPH ?g { ?s ?p ?o }",
    "GRAPH ?g { ?s ?p ?o OPTIONAL { ?o ?q ?x } FILTER(?o > 1) BIND(1 AS ?y) }",
    "GRAPH ?g { VALUES ?s { 1 } ?s ?p ?o }",
    "GRAPH ?g { { ?s ?p ?o } UNION { ?o ?q ?s } }",
    "GRAPH ?g { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s LIMIT 3 }",
    "GRAPH ?g { SELECT DISTINCT ?s { ?s ?p ?o } }",
    "GRAPH ?g { ?s ?p ?o MINUS { ?s ?p 1 } }",
]


def rows(text: str) -> int:
    """That the engine finds in a store with one graph, which is empty."""
    store = Store()
    store.add_graph(NamedNode("urn:g"))
    made, _ = engine_text_and_services(parse_query(text), "0" * 32)
    answer = store.query(made.text)
    assert isinstance(answer, QuerySolutions)
    return len(list(answer))


@pytest.mark.parametrize(
    ("pattern", "may"), [(each, True) for each in LISTING] + [(each, False) for each in OTHERS]
)
def test_what_may_list_graphs(pattern: str, may: bool) -> None:
    text = f"SELECT * {{ {pattern} }}"
    assert may_list_graphs(nodes_of(abstract_query(parse_query(text)))) is may
    assert (rows(text) > 0) is may
