"""Live queries, grouped or evaluated anew: their events, folded, give the answer after each change."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Quad, QueryResultsFormat, Store

from graphdb.config.limits import GateLimits
from graphdb.live.live_queries import read_live_query
from graphdb.live.matcher import Matcher
from graphdb.live.notifications import Difference, Notification
from graphdb.live.records import value_of
from graphdb.live.sparql_queries import Rows, SolutionQuery, WholeQuery, differences
from graphdb.model import ChangeSet
from graphdb.planning.engine_text import engine_text
from graphdb.planning.gate import read_query
from graphdb.store.engine_query import engine_query
from graphdb.store.quad_store import QuadStore
from tests.property.test_live import net_changes
from tests.property.test_live_solutions import quads

GROUPED = [
    "SELECT ?a (COUNT(*) AS ?n) WHERE { ?a x:p ?b } GROUP BY ?a",
    "SELECT (COUNT(*) AS ?n) WHERE { ?a x:p ?b } GROUP BY ?a",
    "SELECT ?a (SUM(?c) AS ?sum) (MAX(?c) AS ?max) WHERE { ?a x:p ?b . ?b x:q ?c } GROUP BY ?a",
    "SELECT ?b (COUNT(?c) AS ?n) WHERE { ?a x:p ?b OPTIONAL { ?a x:q ?c } } GROUP BY ?b "
    "HAVING (COUNT(?c) > 1)",
    "SELECT ?kind (COUNT(?a) AS ?n) WHERE { ?a x:p ?b } GROUP BY ?b (ISIRI(?a) AS ?kind)",
    "SELECT ?a (COUNT(DISTINCT ?b) AS ?n) WHERE { { ?a x:p ?b } UNION { ?b x:q ?a } } GROUP BY ?a "
    "ORDER BY ?n",
    "SELECT ?a (COUNT(*) AS ?n) WHERE { ?a x:p ?b FILTER NOT EXISTS { ?b x:q ?a } } GROUP BY ?a",
    "SELECT ?a (COUNT(*) AS ?n) WHERE { ?a x:p ?b } GROUP BY ?a (EXISTS { ?b x:q ?c } AS ?has)",
    "SELECT ?a (COUNT(*) AS ?n) WHERE { ?a x:p ?b } GROUP BY ?a (ISIRI(?b))",
    "SELECT DISTINCT ?a WHERE { ?a x:p ?b }",
    "SELECT DISTINCT ?b (STR(?b) AS ?text) WHERE { ?a x:p ?b . ?b x:q ?c }",
    "SELECT DISTINCT * WHERE { { ?a x:p ?b } UNION { ?a x:p ?b } }",
    "SELECT REDUCED ?a WHERE { ?a x:p ?b MINUS { ?a x:q ?c } }",
]
WHOLE = [
    "SELECT (COUNT(*) AS ?n) WHERE { ?a x:p ?b }",
    "SELECT (SUM(?b) AS ?n) WHERE { ?a x:p ?b FILTER(ISNUMERIC(?b)) }",
    "SELECT ?b WHERE { ?a x:p ?b } ORDER BY DESC(?b) ?a LIMIT 2",
    "SELECT ?b WHERE { ?a x:p ?b } ORDER BY ?b ?a LIMIT 2 OFFSET 1",
    "SELECT * WHERE { ?a x:p+ ?b }",
    "SELECT * WHERE { ?a x:p* ?b }",
    "SELECT * WHERE { x:a x:p* ?b }",
    "SELECT * WHERE { ?a (x:p|^x:q)? x:b }",
    "SELECT * WHERE { ?a !x:p ?b }",
    "SELECT ?b WHERE { ?a x:p ?b { SELECT ?b (COUNT(*) AS ?n) { ?b x:q ?c } GROUP BY ?b } }",
    "SELECT ?a WHERE { ?a x:p ?b MINUS { ?c x:q ?d } }",
    "SELECT ?a WHERE { ?a x:p ?b FILTER EXISTS { ?c x:q ?c } }",
    "SELECT * WHERE { ?a x:p ?b . ?c x:q ?d }",
    "SELECT * FROM <http://g/1> FROM NAMED <http://g/2> "
    "WHERE { ?a x:p ?b OPTIONAL { GRAPH <http://g/2> { ?a x:q ?c } } }",
    "SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?g (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s x:p ?o } } GROUP BY ?g",
    "SELECT ?a WHERE { ?a x:p ?b } ORDER BY (EXISTS { ?a x:q ?c })",
    "SELECT * WHERE { GRAPH ?g { ?s x:p ?o OPTIONAL { ?o x:q ?r } } }",
    "SELECT ?g WHERE { GRAPH ?g { OPTIONAL { ?s x:q ?o } } }",
    "SELECT * WHERE { OPTIONAL { ?s x:q ?o } }",
    "SELECT * WHERE {}",
]


def read(text: str) -> Any:
    return read_live_query("PREFIX x: <http://x/> LIVE " + text, GateLimits())


def rows(query: WholeQuery, store: Store, union: bool) -> Rows:
    dataset = query.dataset
    answer: Any = engine_query(
        store,
        query.engine_text,
        base_iri=None,
        default_graph=dataset.default_graphs if dataset else None,
        named_graphs=dataset.named_graphs if dataset else None,
        union_default_graph=union,
    )
    return Rows(answer.serialize(format=QueryResultsFormat.TSV))


class Folded:
    """What a client has that does as it is told."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Any]] = {}

    def hear(self, told: Difference | Notification) -> None:
        record = dict(told.result)
        if told.action == "DELETE":
            assert record.keys() == {"id"}
            del self.records[record["id"]]
        else:
            assert (told.action, record["id"] in self.records) == ("CREATE", False)
            self.records[record.pop("id")] = record

    def shown(self) -> "Counter[str]":
        return Counter(str(sorted(record.items())) for record in self.records.values())


def answer(text: str, store: Store, union: bool) -> "Counter[str]":
    """By the engine, over the whole graph, from the text as it was asked."""
    query = read_query("PREFIX x: <http://x/> " + text, None, GateLimits())
    union &= not query.dataset
    found: Any = engine_query(
        store,
        engine_text(query).text,
        base_iri=None,
        default_graph=None,
        named_graphs=None,
        union_default_graph=union,
    )
    names = [variable.value for variable in found.variables]
    shown = [{name: value_of(row[name]) for name in names if row[name] is not None} for row in found]
    return Counter(str(sorted(row.items())) for row in shown)


writes_ = st.lists(st.lists(st.tuples(st.booleans(), quads()), min_size=1, max_size=4), max_size=8)
relaxed = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(writes=writes_)
def test_groups_near_a_change(writes: list[list[tuple[bool, Quad]]]) -> None:
    store = Store()
    matcher = Matcher(QuadStore(store))
    queries = [read(text) for text in GROUPED]
    assert all(isinstance(query, SolutionQuery) for query in queries)
    folded = {query: Folded() for query in queries}
    for query in queries:
        matcher.watch(query)
    before = {query: rows(query.whole, store, False) for query in queries}
    for index, change in enumerate(net_changes(writes), 1):
        heard: dict[Any, list[tuple[str, Any]]] = {query: [] for query in queries}
        for query, told in matcher.step(index, [change]):
            assert isinstance(told, Notification)
            folded[query].hear(told)
            heard[query].append((told.action, told.result))
        for query, text in zip(queries, GROUPED, strict=True):
            assert folded[query].shown() == answer(text, store, False), text
            after = rows(query.whole, store, False)
            anew = [(one.action, one.result) for one in differences(query.whole, before[query], after)]
            assert sorted(map(str, heard[query])) == sorted(map(str, anew)), text
            before[query] = after


@relaxed
@given(writes=writes_, union=st.booleans())
def test_what_is_evaluated_anew(writes: list[list[tuple[bool, Quad]]], union: bool) -> None:
    store = Store()
    quads_ = QuadStore(store, union_default_graph=union)
    queries = [read(text) for text in WHOLE]
    assert all(isinstance(query, WholeQuery) for query in queries)
    folded = {query: Folded() for query in queries}
    before = {query: Rows(b"?x\n") for query in queries}
    for change in [ChangeSet((), ()), *net_changes(writes)]:
        quads_.apply(change)
        for query, text in zip(queries, WHOLE, strict=True):
            if query.concerns([change]) or not folded[query].records:
                after = rows(query, store, union)
                for one in differences(query, before[query], after):
                    folded[query].hear(one)
                before[query] = after
            assert folded[query].shown() == answer(text, store, union), text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * WHERE { ?s ?p ?o FILTER(?o < NOW()) }", "clock"),
        ("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o FILTER(RAND() < 1) }", "chance"),
        ("SELECT (UUID() AS ?n) WHERE { ?s ?p ?o } LIMIT 1", "chance"),
        ("ASK { ?s ?p ?o }", "begins with LIVE SELECT|not ASK"),
        ("SELECT * WHERE { SERVICE x:e { ?s ?p ?o } } LIMIT 1", "SERVICE"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        read(text)


@pytest.mark.parametrize(
    ("text", "predicates"),
    [
        ("SELECT * WHERE { ?a x:p/x:q* ?b }", {"p", "q"}),
        ("SELECT * WHERE { ?a x:p* ?b }", None),
        ("SELECT * WHERE { x:a (x:p|^x:q)* ?b }", {"p", "q"}),
        ("SELECT * WHERE { ?a !x:p ?b }", None),
        ("SELECT (COUNT(*) AS ?n) WHERE { ?a x:p ?b FILTER EXISTS { ?b x:q ?c } }", {"p", "q"}),
        ("SELECT * WHERE { { SELECT ?a { ?a x:p ?b } LIMIT 1 } ?a x:q ?c }", {"p", "q"}),
        ("SELECT ?g WHERE { GRAPH ?g { } }", None),
        ("SELECT ?a WHERE { ?a ?p ?b } GROUP BY ?a HAVING (EXISTS { ?a x:q ?c })", None),
        ("SELECT ?a WHERE { ?a x:p ?b } GROUP BY ?a HAVING (EXISTS { ?a x:q ?c })", {"p", "q"}),
    ],
)
def test_which_changes_concern_a_query(text: str, predicates: set[str] | None) -> None:
    found = read(text)
    assert isinstance(found, WholeQuery)
    assert found.predicates == (None if predicates is None else {f"http://x/{name}" for name in predicates})
