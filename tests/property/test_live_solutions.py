"""Live queries of SPARQL: what they are told, folded over the first answer, gives the last answer."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Store

from graphdb.config.limits import GateLimits
from graphdb.live.live_queries import read_live_query
from graphdb.live.matcher import Matcher
from graphdb.live.notifications import Notification
from graphdb.live.records import value_of
from graphdb.live.sparql_queries import SolutionQuery
from graphdb.store.quad_store import QuadStore
from tests.property.test_live import net_changes

NODES: list[Any] = [NamedNode(f"http://x/{name}") for name in "abc"]
TERMS: list[Any] = [*NODES, BlankNode("b"), Literal(1), Literal(2)]
PREDICATES = [NamedNode(f"http://x/{name}") for name in "pq"]
QUERIES = [
    "SELECT * WHERE { ?s x:p ?o }",
    "SELECT ?o WHERE { ?s x:p ?o }",
    "SELECT * WHERE { ?s x:p ?o FILTER(?o > 1) }",
    "SELECT * WHERE { ?a x:p ?b . ?b x:q ?c }",
    "SELECT ?c WHERE { ?a x:p/x:q ?c }",
    "SELECT * WHERE { ?a x:p ?b OPTIONAL { ?b x:q ?c } }",
    "SELECT * WHERE { ?a x:p ?b OPTIONAL { ?b x:q ?c OPTIONAL { ?c x:p ?d } } }",
    "SELECT * WHERE { ?a x:p ?b OPTIONAL { ?b x:q ?c FILTER(?c = ?a) } }",
    "SELECT * WHERE { { ?a x:p ?b } UNION { ?b x:q ?a } }",
    "SELECT * WHERE { { ?a x:p ?b } UNION { ?a x:p ?b } }",
    "SELECT ?a WHERE { ?a x:p ?b FILTER NOT EXISTS { ?b x:q ?c } }",
    "SELECT ?a WHERE { ?a x:p ?b FILTER EXISTS { ?b x:q ?c . ?c x:p ?d } }",
    "SELECT ?a WHERE { ?a x:p ?b FILTER NOT EXISTS { ?b x:q ?c FILTER NOT EXISTS { ?c x:p ?d } } }",
    "SELECT ?a (EXISTS { ?a x:q ?c } AS ?has) WHERE { ?a x:p ?b }",
    "SELECT * WHERE { ?a x:p ?b MINUS { ?a x:q ?c } }",
    "SELECT (STR(?b) AS ?text) WHERE { ?a x:p ?b BIND(1 AS ?one) }",
    "SELECT * WHERE { ?a ?p ?a }",
    "SELECT * WHERE { x:a ?p ?o . ?o x:p ?r } VALUES ?r { 1 x:a }",
    "SELECT DISTINCT ?a ?b WHERE { ?a x:p ?b }",
    "SELECT * WHERE { ?a x:p ?b . ?a x:p ?c . ?a x:q [] }",
    "SELECT ?a WHERE { ?a x:p ?b OPTIONAL { ?b x:q ?c } FILTER(!BOUND(?c)) } ORDER BY ?a",
]


def read(text: str) -> SolutionQuery:
    found = read_live_query("PREFIX x: <http://x/> LIVE " + text, GateLimits())
    assert isinstance(found, SolutionQuery)
    return found


READ = [read(text) for text in QUERIES]


def quads() -> st.SearchStrategy[Quad]:
    return st.builds(
        Quad,
        st.sampled_from([*NODES, BlankNode("b")]),
        st.sampled_from(PREDICATES),
        st.sampled_from(TERMS),
        st.sampled_from([DefaultGraph(), DefaultGraph(), NamedNode("http://g/1"), NamedNode("http://g/2")]),
    )


def answer(query: SolutionQuery, store: Store, union: bool) -> "Counter[str]":
    """By the real engine over the whole graph, as what is shown of each row."""
    graph = Store()  # a set of triples, which the engine's union of graphs is not
    for quad in store.quads_for_pattern(None, None, None, None if union else DefaultGraph()):
        graph.add(Quad(quad.subject, quad.predicate, quad.object))
    found: Any = graph.query(query.text)
    names = [variable.value for variable in found.variables]
    rows = [{name: value_of(row[name]) for name in names if row[name] is not None} for row in found]
    return Counter(str(sorted(row.items())) for row in rows)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    writes=st.lists(st.lists(st.tuples(st.booleans(), quads()), min_size=1, max_size=4), max_size=8),
    union=st.booleans(),
)
def test_events_folded_over_the_first_answer_give_the_last(
    writes: list[list[tuple[bool, Quad]]], union: bool
) -> None:
    store = Store()
    matcher = Matcher(QuadStore(store, union_default_graph=union), union_default_graph=union)
    for asked in READ:
        matcher.watch(asked)
    records: dict[SolutionQuery, dict[str, Any]] = {query: {} for query in READ}
    for index, change in enumerate(net_changes(writes), 1):
        for query, told in matcher.step(index, [change]):
            assert isinstance(told, Notification)
            assert isinstance(query, SolutionQuery)
            record = dict(told.result)
            if told.action == "DELETE":
                assert record.keys() == {"id"}
                del records[query][record["id"]]
            else:
                assert (told.action, record["id"] in records[query]) == ("CREATE", False)
                records[query][record.pop("id")] = record
        for query, text in zip(READ, QUERIES, strict=True):
            folded = Counter(str(sorted(record.items())) for record in records[query].values())
            assert folded == answer(query, store, union), text
