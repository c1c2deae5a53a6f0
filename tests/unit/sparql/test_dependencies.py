"""Which predicates may change the answer of a query."""

import pytest

from graphdb.sparql.dependencies import predicates_read, triple_patterns
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query

READ = {
    "triples": ("?s <p:1> ?o OPTIONAL { ?o <p:2> ?x }", {"p:1", "p:2"}),
    "no triple": ("VALUES ?x { 1 }", set()),
    "EXISTS": ("?s <p:1> ?o FILTER NOT EXISTS { ?o <p:2> ?x MINUS { ?x <p:3> ?y } }", {"p:1", "p:2", "p:3"}),
    "sub-select": ("{ SELECT ?s (COUNT(*) AS ?n) { ?s <p:1> ?o } GROUP BY ?s }", {"p:1"}),
    "any predicate": ("?s <p:1> ?o . ?o ?p ?x", None),
    "steps of a path": ("?s (<p:1>/^<p:2>|<p:3>)+ ?o", {"p:1", "p:2", "p:3"}),
    "negated property set": ("?s !<p:1> ?o", None),
    "path from a constant": ("<urn:a> <p:1>* ?o", {"p:1"}),
    "every node": ("?s <p:1>* ?o", None),
    "every node, by two steps": ("?s <p:1>*/<p:2>? ?o", None),
    "one step is not empty": ("?s <p:1>*/<p:2> ?o", {"p:1", "p:2"}),
    "a graph": ("GRAPH <urn:g> { ?s <p:1> ?o }", {"p:1"}),
    "graphs with triples": ("GRAPH ?g { ?s <p:1> ?o OPTIONAL { ?o <p:2> ?x } }", {"p:1", "p:2"}),
    "graphs alone": ("GRAPH ?g {}", None),
    "graphs with triples or without": ("GRAPH ?g { OPTIONAL { ?s <p:1> ?o } }", None),
    "graphs with a union": ("GRAPH ?g { { ?s <p:1> ?o } UNION {} }", None),
}


@pytest.mark.parametrize("name", READ)
def test_the_predicates_that_may_change_an_answer(name: str) -> None:
    where, expected = READ[name]
    found = predicates_read(abstract_query(parse_query(f"SELECT * {{ {where} }}")).pattern)
    assert found == (None if expected is None else frozenset(expected))


def test_all_triple_patterns_are_found() -> None:
    query = parse_query("SELECT * { ?s <p:1> ?o ; <p:2>* ?x FILTER EXISTS { ?x <p:3> ?y } }")
    found = [triple.predicate for triple in triple_patterns(abstract_query(query).pattern)]
    assert sorted(iri.value for iri in found) == ["p:1", "p:3"]  # type: ignore[union-attr]
