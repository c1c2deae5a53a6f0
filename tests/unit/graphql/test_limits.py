"""What is refused, with which code."""

import pytest

from graphdb.graphql.failures import Limits
from tests.support.graphql_graph import GraphQLGraph

TURTLE = ":Person a owl:Class . :knows rdfs:domain :Person ; rdfs:range :Person . :name rdfs:domain :Person ."
GRAPH = GraphQLGraph(TURTLE, ":a a :Person ; :knows :b, :c, :d .")
BOMB = "".join(f"fragment f{n} on Person {{ ...f{n + 1} ...f{n + 1} }} " for n in range(50))
SAME = "name " * 2000


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{ person { no } }", "VALIDATION_FAILED"),
        ("{ person {", "VALIDATION_FAILED"),
        ("", "VALIDATION_FAILED"),
        ("{ persons(first: 101) { totalCount } }", "VALIDATION_FAILED"),
        ("{ persons(last: 101) { totalCount } }", "VALIDATION_FAILED"),
        ("{ persons(first: -1) { totalCount } }", "VALIDATION_FAILED"),
        ("{ persons(first: 1, last: 1) { totalCount } }", "VALIDATION_FAILED"),
        ("{ person { knows(first: 101) { id } } }", "VALIDATION_FAILED"),
        ('{ persons(after: "x") { totalCount } }', "VALIDATION_FAILED"),
        ('{ persons(after: "W1tdLFtdLCJ4Il0=") { totalCount } }', "VALIDATION_FAILED"),
        ('{ person(orderBy: {field: "knows"}) { id } }', "VALIDATION_FAILED"),
        ('{ person(orderBy: {field: "no"}) { id } }', "VALIDATION_FAILED"),
        ('{ person(filter: {name: {regex: "("}}) { id } }', "VALIDATION_FAILED"),
        ("{ person(filter: {name: {contains: null}}) { id } }", "VALIDATION_FAILED"),
        ("{ person(filter: {not: null}) { id } }", "VALIDATION_FAILED"),
        ('{ person(graph: "no iri") { id } }', "VALIDATION_FAILED"),
        ("{ person " + "{ knows " * 14 + "{ id }" + "}" * 15, "DEPTH_EXCEEDED"),
        ("{" * 5000, "DEPTH_EXCEEDED"),
        (f"{{ person {{ {SAME} }} }}", "COMPLEXITY_EXCEEDED"),
        ("{" + " ".join(f"a{n}: persons {{ totalCount }}" for n in range(90)) + "}", "COMPLEXITY_EXCEEDED"),
        (f"{{ person {{ ...f0 }} }} {BOMB} fragment f50 on Person {{ id }}", "COMPLEXITY_EXCEEDED"),
        (
            f"{{ person {{ ...f0 }} }} {BOMB} fragment f50 on Person {{ id @skip(if: true) }}",
            "COMPLEXITY_EXCEEDED",
        ),
        ("{ person { ...f } } fragment f on Person { ...f }", "COMPLEXITY_EXCEEDED"),
    ],
)
def test_codes(text: str, code: str) -> None:
    assert GRAPH.codes(text)[0] == code


def test_what_is_just_allowed() -> None:
    GRAPH.data("{ person " + "{ knows " * 13 + "{ id }" + "}" * 14)
    tight = GraphQLGraph(TURTLE, limits=Limits(max_complexity=14))
    assert tight.codes("{ persons { edges { node { id } } } }") == []
    assert tight.codes("{ persons { edges { node { id name } } } }") == ["COMPLEXITY_EXCEEDED"]


def test_an_answer_of_too_many_rows() -> None:
    graph = GraphQLGraph(TURTLE, ":a a :Person ; :knows :b, :c, :d .", Limits(max_rows=3))
    assert graph.codes("{ person { knows { id } } }") == ["COMPLEXITY_EXCEEDED"]
    assert graph.codes("{ person { id } }") == []


def test_introspection_can_be_switched_off() -> None:
    graph = GraphQLGraph(TURTLE, limits=Limits(introspection=False))
    assert set(graph.codes("{ __schema { queryType { name } } }")) == {"VALIDATION_FAILED"}
    assert graph.data("{ __typename }") == {"__typename": "Query"}


def test_several_operations_need_a_name() -> None:
    text = "query A { __typename } query B { b: __typename }"
    assert GRAPH.codes(text) == ["VALIDATION_FAILED"]
    assert GRAPH.ask(text, None, "B") == {"data": {"b": "Query"}}
    assert "errors" in GRAPH.ask(text, None, "C")


def test_half_of_a_character() -> None:
    text = "query ($t: String) { person(filter: {name: {eq: $t}}) { id } }"
    assert GRAPH.codes(text, {"t": "\ud800"}) == ["VALIDATION_FAILED"]
