"""Variables with a value before a request is evaluated: the text, and what the engine makes of it."""

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from graphdb.errors import InvalidParameter
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.prebinding import with_values

A, B, P = (NamedNode(f"urn:{name}") for name in "abp")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?s { ?s <urn:p> ?o FILTER (?o = ?x) }",
        "SELECT ?s WHERE{?s <urn:p> ?x}",
        "PREFIX : <urn:> SELECT ?s { { SELECT ?s ?x { ?s :p ?x } } }",
        "SELECT ?s { SELECT ?s ?x { ?s <urn:p> ?x } }",
        "SELECT ?s { ?s <urn:p> ?x OPTIONAL { ?s <urn:none> ?n } } ORDER BY ?s LIMIT 5",
        "SELECT ?s { ?s <urn:p> ?x } VALUES ?s { <urn:a> <urn:b> }",
    ],
)
def test_queries(text: str) -> None:
    store = Store()
    store.extend([Quad(A, P, Literal(1)), Quad(B, P, Literal(2))])
    worded = with_values(parse_query(text), {"x": Literal(2)})
    rows = list(store.query(worded))  # type: ignore[arg-type]
    assert [row["s"] for row in rows] == [B]


def test_several_values() -> None:
    worded = with_values(parse_query("ASK { ?s ?p ?o }"), {"s": A, "p": P})
    assert "VALUES (?s ?p) { (<urn:a> <urn:p>) }" in worded


def test_updates() -> None:
    text = "DELETE { ?s <urn:p> ?o } WHERE { ?s <urn:p> ?o } ; INSERT { ?s <urn:q> 1 } WHERE { ?s ?p ?o }"
    worded = with_values(parse_update(text), {"s": A})
    assert worded.count("VALUES (?s) { (<urn:a>) }") == 2
    parse_update(worded)


def test_without_values_it_is_the_same() -> None:
    text = "SELECT * { ?s ?p ?o }"
    assert with_values(parse_query(text), {}) == text


def test_what_cannot_be_bound() -> None:
    with pytest.raises(InvalidParameter, match="blank node"):
        with_values(parse_query("ASK { ?s ?p ?o }"), {"s": BlankNode("b")})
    with pytest.raises(InvalidParameter, match="no WHERE"):
        with_values(parse_update("INSERT DATA { <urn:a> <urn:b> 1 }"), {"s": A})
