"""Live queries: what they are told, folded over the first rows, gives the last; also from the middle on."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Store

from graphdb.live.matcher import FollowedQuery, Matcher
from graphdb.live.notifications import Notification
from graphdb.live.records import RDF_TYPE, Star
from graphdb.live.statement import read_statement
from graphdb.live.table_queries import TableQuery
from graphdb.model import ChangeSet
from graphdb.store.quad_store import QuadStore

X = "http://x/"
SUBJECTS = [NamedNode(f"{X}s{number}") for number in range(3)]
STATEMENTS = [
    "LIVE SELECT * FROM A",
    "LIVE SELECT a FROM A",
    "LIVE SELECT a, b FROM <http://x/B> WHERE a = 1",
    "LIVE SELECT * FROM A WHERE a > 0 AND NOT b IN [1, 2]",
    "LIVE SELECT b FROM A WHERE a = 1 OR b IS NULL",
    "LIVE SELECT * FROM B WHERE a != 1 AND type = <http://x/A>",
    "LIVE SELECT * FROM B WHERE a IN [0, 2] AND b < 2",
]


def quads() -> st.SearchStrategy[Quad]:
    types = st.tuples(st.just(NamedNode(RDF_TYPE)), st.sampled_from([NamedNode(X + "A"), NamedNode(X + "B")]))
    values = st.tuples(
        st.sampled_from([NamedNode(X + "a"), NamedNode(X + "b"), NamedNode("http://y/a")]),
        st.sampled_from([Literal(number) for number in range(3)]),
    )
    graphs = st.sampled_from([DefaultGraph(), DefaultGraph(), NamedNode("http://g")])
    return st.builds(
        lambda subject, rest, graph: Quad(subject, rest[0], rest[1], graph),
        st.sampled_from(SUBJECTS),
        st.one_of(types, values),
        graphs,
    )


def net_changes(writes: list[list[tuple[bool, Quad]]]) -> list[ChangeSet]:
    present: set[Quad] = set()
    found = []
    for write in writes:
        after = set(present)
        for adds, quad in write:
            (after.add if adds else after.discard)(quad)
        found.append(ChangeSet(tuple(present - after), tuple(after - present)))
        present = after
    return found


def rows(query: TableQuery, store: Store, union: bool) -> dict[str, Any]:
    graph = None if union else DefaultGraph()
    stars = [Star.of(one, store.quads_for_pattern(one, None, None, graph)) for one in SUBJECTS]
    return {star.id: query.shown(star) for star in stars if query.matches(star)}


@settings(max_examples=200, deadline=None)
@given(
    writes=st.lists(st.lists(st.tuples(st.booleans(), quads()), min_size=1, max_size=5), max_size=12),
    union=st.booleans(),
    data=st.data(),
)
def test_events_folded_over_the_first_rows_give_the_last(
    writes: list[list[tuple[bool, Quad]]], union: bool, data: st.DataObject
) -> None:
    changes = net_changes(writes)
    queries = [query for text in STATEMENTS if isinstance(query := read_statement(text), TableQuery)]
    store = Store()
    matcher = Matcher(QuadStore(store), union_default_graph=union)
    for query in queries:
        matcher.watch(query)
    states = [{query: rows(query, store, union) for query in queries}]
    told = []
    for index, change in enumerate(changes, 1):
        events = step(matcher, index, change)
        told.append(events)
        assert all(notification.index == index for _, notification in events)
        states.append({query: rows(query, store, union) for query in queries})
        check(states[-2], events, states[-1])

    # back to any place and on again: the same is told once more
    since = data.draw(st.integers(0, len(changes)))
    for change in reversed(changes[since:]):
        matcher.go_back([change])
    assert {query: rows(query, store, union) for query in queries} == states[since]
    for index, change in enumerate(changes[since:], since + 1):
        again = step(matcher, index, change)
        assert [(query, one.tail) for query, one in again] == [
            (query, one.tail) for query, one in told[index - 1]
        ]


def step(matcher: Matcher, index: int, change: ChangeSet) -> list[tuple[FollowedQuery, Notification]]:
    told = []
    for query, notification in matcher.step(index, [change]):
        assert isinstance(notification, Notification)
        told.append((query, notification))
    return told


def check(before: dict[TableQuery, Any], events: list[Any], after: dict[TableQuery, Any]) -> None:
    """Each event says what is so, once for each row that has changed, and none for others."""
    folded = {query: dict(records) for query, records in before.items()}
    for query, notification in events:
        record = notification.result
        if notification.action == "DELETE":
            assert record == {"id": record["id"]}
            del folded[query][record["id"]]
        else:
            assert (record["id"] in folded[query]) == (notification.action == "UPDATE")
            assert folded[query].get(record["id"]) != record
            folded[query][record["id"]] = record
    assert folded == after
    assert len({(query, one.result["id"]) for query, one in events}) == len(events)
