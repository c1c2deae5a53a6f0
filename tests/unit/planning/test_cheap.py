"""What counts as cheap, and that it keeps its promise: every step of the evaluation yields a row."""

import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, QueryResultsFormat, QuerySolutions, Store

from graphdb.planning.decisions import is_cheap
from graphdb.sparql.parser import parse_query

CHEAP = [
    "ASK {}",
    "ASK { ?s ?p ?o }",
    "ASK { GRAPH <http://g> { ?s ?p ?o } }",
    "SELECT * { <http://s> ?p ?o }",
    "SELECT ?o { <http://s> <http://p> ?o }",
    "SELECT ?s { ?s <http://p> 'LHR' }",
    "SELECT ?s { ?s ?p <http://o> }",
    "SELECT * { GRAPH <http://g> { <http://s> ?p ?o } }",
    "PREFIX x: <http://x/> SELECT ?o { x:s x:p ?o } LIMIT 1000000",
    "SELECT * { ?s ?p ?o } LIMIT 10",
    "SELECT * { ?s a <http://C> } LIMIT 10",
    "SELECT ?p { <http://s> ?p [] }",
    "SELECT * { { { <http://s> ?p ?o } } }",
    "SELECT * { {} GRAPH <http://g> { { <http://s> ?p ?o } } }",
]
NOT_CHEAP = {
    "CONSTRUCT WHERE { <http://s> ?p ?o }": "may drop rows as duplicates",
    "DESCRIBE <http://s>": "follows blank nodes",
    "SELECT * { ?s ?p ?o }": "everything",
    "SELECT * { ?s <http://p> ?o }": "everything with this predicate",
    "SELECT * { ?s a <http://C> }": "classes are large",
    "SELECT * { ?s ?p ?o } LIMIT 100000": "a large LIMIT",
    "SELECT * { <http://s> ?p ?o } OFFSET 1": "drops rows",
    "SELECT * { <http://s> ?p ?o } ORDER BY ?o": "collects rows",
    "SELECT DISTINCT ?p { <http://s> ?p ?o }": "drops rows",
    "SELECT REDUCED ?p { <http://s> ?p ?o }": "may drop rows",
    "SELECT (COUNT(*) AS ?n) { <http://s> ?p ?o }": "collects rows",
    "SELECT ?p { <http://s> ?p ?o } GROUP BY ?p": "collects rows",
    "SELECT ?p { <http://s> ?p ?o } HAVING (?p > 1)": "drops rows",
    "SELECT (STR(?o) AS ?x) { <http://s> ?p ?o }": "computes",
    "SELECT ?other { <http://s> ?p ?o }": "rows that show nothing",
    "SELECT * { <http://s> ?p ?o FILTER(?o > 1) }": "drops rows",
    "SELECT * { <http://s> ?p ?p }": "drops rows",
    "SELECT * { _:a ?p _:a } LIMIT 1": "drops rows",
    "SELECT * { <http://s> ?p ?o ; ?q ?r }": "a join",
    "SELECT * { <http://s> ?p ?o . ?o ?q ?r }": "a join",
    "SELECT * { <http://s> <http://p>+ ?o }": "a path",
    "SELECT * { <http://s> <http://p>/<http://q> ?o }": "a path",
    "SELECT * { <http://s> ^<http://p> ?o }": "a path",
    "SELECT * { <http://s> ?p <<( ?a ?b ?c )>> }": "looks into triple terms",
    "SELECT * { GRAPH ?g { <http://s> ?p ?o } }": "any number of graphs",
    "SELECT * { { <http://s> ?p ?o } UNION { <http://t> ?p ?o } }": "more than one pattern",
    "SELECT * { OPTIONAL { <http://s> ?p ?o } }": "more than one pattern",
    "SELECT * { <http://s> ?p ?o MINUS { <http://t> ?p ?o } }": "drops rows",
    "SELECT * { SELECT * { <http://s> ?p ?o } }": "a query of its own",
    "SELECT * { BIND(1 AS ?x) }": "no pattern",
    "ASK { BIND(1 AS ?x) }": "computes",
    "ASK { FILTER(false) }": "drops rows",
    "ASK { SELECT * { <http://s> ?p ?o } }": "a query of its own",
    "SELECT * { GRAPH <http://g> {} }": "no pattern",
    "SELECT * { <http://s> ?p ?o BIND(1 AS ?x) }": "computes",
    "SELECT ?k { <http://s> ?p ?o } GROUP BY (STR(?o) AS ?k)": "collects rows",
    "SELECT * { VALUES ?x { 1 } }": "no pattern",
    "SELECT * { <http://s> ?p ?o } VALUES ?o { 1 }": "a join",
    "SELECT * FROM <http://g> { <http://s> ?p ?o }": "any number of graphs",
    "SELECT * { SERVICE <http://h/> { <http://s> ?p ?o } }": "elsewhere",
    "SELECT * { <http://s> ?p ?o FILTER EXISTS { ?o ?q ?r } }": "drops rows",
}


@pytest.mark.parametrize("text", CHEAP)
def test_cheap(text: str) -> None:
    assert is_cheap(parse_query(text, None))


@pytest.mark.parametrize(("text", "why"), NOT_CHEAP.items())
def test_not_cheap(text: str, why: str) -> None:
    assert not is_cheap(parse_query(text, None)), why


class Full(Exception):
    """Enough was written."""


class Sink:
    """Takes a little, then refuses."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max

    def write(self, piece: bytes) -> int:
        self._left -= len(piece)
        if self._left < 0:
            raise Full
        return len(piece)

    def flush(self) -> None:
        """Nothing is kept back."""


@pytest.mark.parametrize("text", ["SELECT * { <http://s> ?p ?o }", "SELECT ?s { ?s ?p 'x' }"])
def test_a_cheap_query_stops_where_its_reader_does(text: str) -> None:
    """Counted in quads that the engine reads for us: a custom sink ends the evaluation after a few rows."""
    store = Store()
    store.extend(
        Quad(NamedNode("http://s"), NamedNode(f"http://p/{n}"), Literal(f"{n}"), DefaultGraph())
        for n in range(50_000)
    )
    store.extend(
        Quad(NamedNode(f"http://s/{n}"), NamedNode("http://p"), Literal("x"), DefaultGraph())
        for n in range(50_000)
    )
    answer = store.query(text)
    assert isinstance(answer, QuerySolutions)
    with pytest.raises(Full):
        answer.serialize(Sink(10_000), QueryResultsFormat.JSON)  # type: ignore[arg-type]
    # The engine stopped in the middle: most rows are still to be had.
    assert sum(1 for _ in answer) > 49_000
