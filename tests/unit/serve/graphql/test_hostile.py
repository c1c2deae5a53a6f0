"""Requests that mean no good: each is refused at once, and never a 500."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Triple

from graphdb.graphql.schema_triples import Matching, schema_triples
from serve.graph.graphql import schema_keeper
from tests.support.timing import quick_enough
from tests.unit.serve.graphql.conftest import LIBRARY, Port

JSON = {"Content-Type": "application/json"}
ALIASES = " ".join(f"a{number}: books {{ totalCount }}" for number in range(5_000))
DOUBLING = " ".join(f"fragment F{one} on Book {{ ...F{one + 1} ...F{one + 1} }}" for one in range(40))


def nested(depth: int) -> str:
    return "author { " * depth + "id" + " }" * depth


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"{{ books {{ edges {{ node {{ {nested(2_000)} }} }} }} }}", "DEPTH_EXCEEDED"),
        (f"{{ books {{ edges {{ node {{ {nested(20)} }} }} }} }}", "DEPTH_EXCEEDED"),
        (f"{{ {ALIASES} }}", "VALIDATION_FAILED"),  # more tokens than may be read
        (f"{{ {ALIASES[:5000].rpartition('a')[0]} }}", "COMPLEXITY_EXCEEDED"),
        ("query { ...A } fragment A on Query { ...A }", "COMPLEXITY_EXCEEDED"),
        (
            "{ books { edges { node { ...A } } } } fragment A on Book { author { ...B } } "
            "fragment B on Person { books { ...A } }",
            "DEPTH_EXCEEDED",
        ),
        (
            f"{{ books {{ edges {{ node {{ ...F0 }} }} }} }} {DOUBLING} fragment F40 on Book {{ id }}",
            "COMPLEXITY_EXCEEDED",
        ),
        (f"{{ __typename {'@include(if: true) ' * 2_000} }}", "VALIDATION_FAILED"),
        ('{ books(filter: {title: {regex: "("}}) { totalCount } }', "VALIDATION_FAILED"),
        ('{ books(graph: "http://e/> { ?s ?p ?o } } #") { totalCount } }', "VALIDATION_FAILED"),
        ('{ books(after: "xxxx") { totalCount } }', "VALIDATION_FAILED"),
        ("{ books(first: -1) { totalCount } }", "VALIDATION_FAILED"),
        ("{ books(first: 99999999999) { totalCount } }", "VALIDATION_FAILED"),
    ],
)
def test_it_is_refused_at_once(library: Port, query: str, code: str) -> None:
    for took in quick_enough(5):
        with took:
            assert set(library.codes(query)) == {code}


def test_many_values_are_too_many_for_one_query(library: Port) -> None:
    query = "query ($ids: [ID!]) { books(filter: {id: {in: $ids}}) { totalCount } }"
    ids = [f"http://e/{number}" for number in range(20_000)]
    assert library.codes(query, variables={"ids": ids}) == ["COMPLEXITY_EXCEEDED"]


def test_a_filter_in_a_variable_may_not_be_nested_without_end(library: Port) -> None:
    condition: dict[str, Any] = {"id": {"eq": "http://e/x"}}
    for _ in range(400):
        condition = {"not": condition}
    query = "query ($f: BookFilter) { books(filter: $f) { totalCount } }"
    assert set(library.codes(query, variables={"f": condition})) <= {
        "VALIDATION_FAILED",
        "COMPLEXITY_EXCEEDED",
    }


@pytest.mark.parametrize("text", ['http://e/x> } DROP ALL #"', 'a"b\\', "\u0000", "?x", "{", "<http://e/a>"])
def test_no_text_gets_out_of_its_place(library: Port, text: str) -> None:
    query = "query ($i: ID, $t: String) { a: books(filter: {id: {eq: $i}}) { totalCount } "
    query += "b: books(filter: {title: {contains: $t}}) { totalCount } c: book(id: $i) { id } }"
    found = library.data(query, variables={"i": text, "t": text})
    assert found == {"a": {"totalCount": 0}, "b": {"totalCount": 0}, "c": []}


def test_compressed_bodies_count_expanded(library: Port) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    answer = library.http.post("/graphql", content=bomb, headers={**JSON, "Content-Encoding": "gzip"})
    assert answer.status_code == 413


def test_a_body_is_no_larger_than_a_query_can_be(opened: Callable[..., Port]) -> None:
    port = opened(security={"max_query_bytes": 1_000})
    assert port.post("{ __typename }", variables={"x": "x" * 7_000}).status_code == 200
    assert port.post("{ __typename }", variables={"x": "x" * 9_000}).status_code == 413


def test_too_large_an_ontology_leaves_the_last_schema(
    opened: Callable[..., Port], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = opened()
    port.update(f"INSERT DATA {{ {LIBRARY} }}")
    assert port.data("{ books { totalCount } }") == {"books": {"totalCount": 2}}
    reads: list[int] = []

    def small(matching: Matching) -> list[Triple]:
        reads.append(1)
        return schema_triples(matching, triples_max=12)

    monkeypatch.setattr(schema_keeper, "schema_triples", small)
    port.update("INSERT DATA { :a a owl:Class . :b a owl:Class . :c a owl:Class . :d a owl:Class }")
    for _ in range(3):
        assert port.data("{ books { totalCount } }") == {"books": {"totalCount": 2}}
    assert len(reads) == 1, "what could not be read was read again"
    refreshed = port.http.post("/graphql/schema/refresh")
    assert refreshed.status_code == 400
    assert "ontology and shapes" in refreshed.json()["error"]
    fresh = opened()
    fresh.update(f"INSERT DATA {{ {LIBRARY} }}")
    monkeypatch.setattr(schema_keeper, "schema_triples", partial(schema_triples, triples_max=3))
    assert fresh.post("{ books { totalCount } }").status_code == 400


WORDS = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ":",
    "!",
    "$",
    "@",
    "...",
    "=",
    "|",
    "&",
    "query",
    "mutation",
    "subscription",
    "fragment",
    "on",
    "books",
    "book",
    "persons",
    "node",
    "edges",
    "author",
    "title",
    "name",
    "id",
    "totalCount",
    "pageInfo",
    "first",
    "last",
    "after",
    "filter",
    "orderBy",
    "graph",
    "eq",
    "in",
    "and",
    "or",
    "not",
    "lang",
    "Book",
    "Person",
    "$x",
    "$y",
    '""',
    '"a"',
    '"""b"""',
    "-1",
    "1",
    "2.5",
    "true",
    "null",
    "ASC",
    "DESC",
    "@skip(if:",
    "true)",
    "@include(if:",
    "$x)",
    "__typename",
    "__schema",
    "__type",
]
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join), values),
    st.one_of(st.none(), st.dictionaries(st.sampled_from(["x", "y"]), values), values),
    st.one_of(st.none(), values),
)
def test_nothing_is_our_fault(library: Port, query: Any, variables: Any, name: Any) -> None:
    body = json.dumps({"query": query, "variables": variables, "operationName": name})
    answer = library.http.post("/graphql", content=body, headers=JSON)
    assert answer.status_code in (200, 400), (body, answer.text)
    assert {"data", "errors"} & set(answer.json())
