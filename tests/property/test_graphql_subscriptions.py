"""Subscriptions of GraphQL: what they are told, folded over what a query answers first, gives what it answers
last; with random changes, filters and selections.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, Quad

from graphdb.config.limits import GateLimits
from graphdb.graphql.failures import Limits
from graphdb.graphql.planning import read_operation
from graphdb.graphql.subscriptions import ChangedQuery, read_subscription
from graphdb.live.matcher import Matcher
from graphdb.live.notifications import Notification
from graphdb.model import ChangeSet
from graphdb.store.quad_store import QuadStore
from tests.property.test_graphql import ONTOLOGY, TYPE, Text, filters, iri, literals, quads, selections
from tests.support.graphql_graph import GraphQLGraph

GRAPH = GraphQLGraph(ONTOLOGY, limits=Limits(max_page_size=100))
KINDS = ["Person", "Employee", "Company"]
Records = dict[str, Any]


NODES = st.sampled_from([*(iri(f"n{number}") for number in range(3)), BlankNode("b1")])


@st.composite
def near_quads(draw: st.DrawFn) -> Quad:
    """Of a few resources, so that they are near each other, and only what their types can show."""
    name = draw(st.sampled_from(["knows", "knows", "worksFor", *literals]))
    value: Any = draw(literals.get(name, NODES))
    subject: Any = draw(NODES)
    return Quad(subject, iri(name), value)


@st.composite
def writes(draw: st.DrawFn) -> list[ChangeSet]:
    """Changes as a log has them: of quads that were not there, or were; at times of all of a resource."""
    kinds = [iri(one) for one in KINDS]
    first = [Quad(iri(f"n{number}"), TYPE, draw(st.sampled_from(kinds))) for number in range(3)]
    first += draw(st.lists(near_quads(), min_size=4, max_size=12))
    present = dict.fromkeys(first)
    found = [ChangeSet((), tuple(present))]
    for _ in range(draw(st.integers(1, 6))):
        after: dict[Quad, Any] = dict(present)
        takes: bool = draw(st.booleans())
        if present and takes:
            gone = draw(st.sampled_from(list(present)))
            is_all: bool = draw(st.booleans())
            left = [quad for quad in after if quad != gone and not (is_all and quad.subject == gone.subject)]
            after = dict.fromkeys(left)
        after |= dict.fromkeys(draw(st.lists(st.one_of(near_quads(), quads()), max_size=2)))
        removed = tuple(quad for quad in present if quad not in after)
        found.append(ChangeSet(removed, tuple(quad for quad in after if quad not in present)))
        present = after
    return found


@st.composite
def questions(draw: st.DrawFn) -> tuple[ChangedQuery, str, dict[str, Any]]:
    """A subscription, and the query whose answers it keeps up to date."""
    kind = draw(st.sampled_from(KINDS))
    arguments = {"filter": draw(st.one_of(st.none(), filters(kind)))}
    text = Text()
    called = text.arguments(arguments, kind)
    shown = text.selection([*draw(selections(kind)), {"key": "id", "name": "id", "arguments": {}}])
    declared = ", ".join(f"${name}: {of}" for name, of in text.types.items())
    declared = f"({declared})" if declared else ""
    field = f"{kind[0].lower()}{kind[1:]}Changed"
    subscription = f"subscription{declared} {{ c: {field}{called} {{ how: mutationType node {shown} }} }}"
    operation = read_operation(GRAPH.schema, subscription, text.variables, None, GRAPH.limits)
    collection = {"Person": "person", "Employee": "employee", "Company": "company"}[kind]
    query = f"query{declared} {{ c: {collection}{called} {shown} }}"
    return read_subscription(operation, subscription, None, GateLimits()), query, text.variables


@settings(max_examples=80, deadline=None)
@given(writes(), st.lists(questions(), min_size=1, max_size=3), st.data())
def test_events_folded_over_the_first_answer_give_the_last(
    changes: list[ChangeSet], asked: list[tuple[ChangedQuery, str, dict[str, Any]]], data: st.DataObject
) -> None:
    GRAPH.store.clear()
    matcher = Matcher(QuadStore(GRAPH.store))
    for query, _, _ in asked:
        matcher.watch(query)
    told: list[list[Any]] = []
    states = [{query: shown(text, variables) for query, text, variables in asked}]
    for index, change in enumerate(changes, 1):
        told.append(step(matcher, index, change))
        states.append({query: shown(text, variables) for query, text, variables in asked})
        check(states[-2], told[-1], states[-1])

    since = data.draw(st.integers(0, len(changes)))
    for change in reversed(changes[since:]):
        matcher.go_back([change])
    for index, change in enumerate(changes[since:], since + 1):
        again = step(matcher, index, change)
        assert [(query, one.tail) for query, one in again] == [
            (query, one.tail) for query, one in told[index - 1]
        ]


def shown(text: str, variables: dict[str, Any]) -> Records | None:
    """None where the query has errors: a value that its type cannot show."""
    answer = GRAPH.ask(text, variables)
    if "errors" in answer:
        return None
    return {one["id"]: one for one in answer["data"]["c"]}


def step(matcher: Matcher, index: int, change: ChangeSet) -> list[tuple[Any, Notification]]:
    found = []
    for query, notification in matcher.step(index, [change]):
        assert isinstance(notification, Notification)
        found.append((query, notification))
    return found


def check(before: dict[Any, Records | None], events: list[Any], after: dict[Any, Records | None]) -> None:
    """Each event says what is so, once for each record that has changed, and none for others."""
    for query, first in before.items():
        last = after[query]
        if first is None or last is None:
            continue
        folded = dict(first)
        concerned = []
        for of, notification in events:
            if of != query:
                continue
            event = notification.result["data"]["c"]
            record, how = event["node"], event["how"]
            assert how == notification.action
            assert notification.result["extensions"] == {"index": notification.index}
            concerned.append(record["id"])
            if how == "DELETED":
                assert folded.pop(record["id"]) == record
            else:
                assert (record["id"] in folded) == (how == "UPDATED")
                folded[record["id"]] = record
        assert folded == last
        assert len(set(concerned)) == len(concerned)


@pytest.mark.parametrize(
    ("selection", "told"),
    [("node { id }", True), ("mutationType", True), ("node { id name }", False), ("node { age }", False)],
)
def test_where_nothing_is_shown_that_could_change_each_change_is_told(selection: str, told: bool) -> None:
    GRAPH.store.clear()
    text = f"subscription {{ personChanged {{ {selection} }} }}"
    operation = read_operation(GRAPH.schema, text, None, None, GRAPH.limits)
    matcher = Matcher(QuadStore(GRAPH.store))
    matcher.watch(read_subscription(operation, text, None, GateLimits()))
    person, other = iri("n1"), iri("n2")
    assert actions(matcher, 1, Quad(person, TYPE, iri("Person")), Quad(other, iri("nick"), person)) == [
        "CREATED"
    ]
    assert actions(matcher, 2, Quad(person, iri("unknown"), other)) == (["UPDATED"] if told else [])
    assert actions(matcher, 3, Quad(other, iri("knows"), person)) == []
    assert actions(matcher, 4, Quad(person, iri("unknown"), person, iri("g"))) == []


def actions(matcher: Matcher, index: int, *added: Quad) -> list[str]:
    return [one.action for _, one in step(matcher, index, ChangeSet((), added))]


def test_a_subscription_to_a_named_graph_hears_of_that_alone() -> None:
    GRAPH.store.clear()
    text = 'subscription { personChanged(graph: "http://e/g") { mutationType node { id name } } }'
    operation = read_operation(GRAPH.schema, text, None, None, GRAPH.limits)
    matcher = Matcher(QuadStore(GRAPH.store), union_default_graph=True)
    matcher.watch(read_subscription(operation, text, None, GateLimits()))
    person, graph = iri("n1"), iri("g")
    assert actions(matcher, 1, Quad(person, TYPE, iri("Person"))) == []
    assert actions(matcher, 2, Quad(person, TYPE, iri("Person"), graph)) == ["CREATED"]
    assert actions(matcher, 3, Quad(person, iri("name"), Literal("here"))) == []
    assert actions(matcher, 4, Quad(person, iri("name"), Literal("there"), graph)) == ["UPDATED"]
