"""Counts without rows against the engine and against the same counts in SQL, on random data and queries."""

from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from graphdb.columns import pattern_counts
from graphdb.columns.catalog import Catalog
from graphdb.columns.counting import counted
from graphdb.columns.results import TermTexts, answer_of
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from tests.support.array_bounds import BOUNDS, array_bounds
from tests.support.column_answers import Refused, engine_rows, rows_of, view_rows
from tests.support.column_tables import column_tables

_NODES = st.sampled_from(["<x:1>", "<x:2>", "<x:3>", "<x:4>", "_:b", '"a"', '"a"@en'])
_OBJECTS = _NODES | st.sampled_from(["1", "2.5", "true"])
_PREDICATES = ("<x:p>", "<x:q>", "<x:r>")
_TRIPLES = st.lists(
    st.tuples(_NODES.filter(lambda node: node[0] != '"'), st.sampled_from(_PREDICATES), _OBJECTS), max_size=25
)


@st.composite
def _counts(draw: st.DrawFn) -> str:
    """Mostly patterns that form a tree, and beside them what has one variable in common with them."""
    fresh = (f"?n{number}" for number in count())

    def rarely() -> bool:
        return draw(st.integers(0, 24)) == 13

    def group(root: str, depth: int) -> str:
        elements, names = list[str](), [root]
        for _ in range(draw(st.integers(1, 3))):
            known = draw(st.sampled_from(names))
            other = draw(st.sampled_from(names)) if rarely() else draw(st.sampled_from(["[]", next(fresh)]))
            names += [] if other == "[]" else [other]
            one, two = draw(st.permutations([known, "?shared" if rarely() else other]))
            elements.append(
                f"{one} {'<x:absent>' if rarely() else draw(st.sampled_from(_PREDICATES))} {two} ."
            )
        for _ in range(draw(st.integers(0, 2)) if depth else 0):
            at = next(fresh) if rarely() else draw(st.sampled_from(names))
            inner = [f"{{ {group(at, depth - 1)} }}" for _ in range(draw(st.sampled_from([1, 1, 2])))]
            word = draw(st.sampled_from(["", "OPTIONAL", "MINUS", "FILTER EXISTS", "FILTER NOT EXISTS"]))
            text = " UNION ".join(inner)
            elements.append(f"{word} {{ {text} }}" if word and len(inner) > 1 else f"{word} {text}")
        return " ".join(draw(st.permutations(elements)) if rarely() else elements)

    aggregate = draw(st.sampled_from(["COUNT(*)", "COUNT(?a)", "COUNT(DISTINCT ?a)", "COUNT(DISTINCT ?n1)"]))
    text = f"{{ {group('?a', 1)} }} UNION {{ {group('?a', 1)} }}" if rarely() else group("?a", 2)
    return f"SELECT ({aggregate} AS ?k) {{ {text} }}"


def _loaded(data: Sequence[tuple[str, ...]], frequent: int) -> tuple[Store, Catalog]:
    store = Store()
    store.update(f"INSERT DATA {{ {' . '.join(map(' '.join, data))} }}")
    return store, column_tables(store, frequent)


def _agrees(store: Store, catalog: Catalog, text: str) -> bool:
    """Whether it is counted without rows."""
    query = parse_query(text)
    found = counted(abstract_query(query), catalog)
    if found is None:
        return False
    answer = rows_of(answer_of(*found.answer(), TermTexts(catalog.connection)))
    assert answer == engine_rows(store, query), text
    in_sql = view_rows(catalog, query)
    assert isinstance(in_sql, Refused) or answer == in_sql, text
    return True


def test_counts_without_rows_are_those_of_the_engine_and_of_sql() -> None:
    answered: list[bool] = []

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_TRIPLES, st.lists(_counts(), min_size=12, max_size=12), st.integers(1, 6), BOUNDS)
    def run(data: list[tuple[str, ...]], texts: list[str], frequent: int, bounds: tuple[int, int]) -> None:
        store, catalog = _loaded(data, frequent)
        with array_bounds(*bounds):
            answered.extend(_agrees(store, catalog, text) for text in texts)

    run()
    assert sum(answered) > len(answered) / 8


def test_each_form_is_counted_without_rows() -> None:
    data = [(f"<x:{n}>", "<x:p>", f"<x:{n % 3}>") for n in range(9)]
    data += [(f"<x:{n}>", "<x:q>", f"<x:{n + 1}>") for n in range(0, 9, 2)]
    data += [(f"<x:{n}>", "<x:r>", f"{n}") for n in range(4)]
    loaded = _loaded(data, 5)
    for pattern in (
        "?a <x:p> ?b",
        "?a <x:p> ?b . ?a <x:q> ?c . ?a <x:r> ?d",
        "?a <x:p> ?b . ?b <x:q> ?c . ?c <x:r> ?d",
        "?a <x:p> ?b . ?b <x:q> ?c OPTIONAL { ?c <x:r> ?d } MINUS { ?a <x:q> ?e }",
        "?a <x:p> ?b OPTIONAL { ?b <x:q> ?c . ?c <x:r> ?d } FILTER EXISTS { ?a <x:r> ?e }",
        "?a <x:p> ?b FILTER NOT EXISTS { ?b <x:q> ?c MINUS { ?c <x:r> ?d } }",
        "{ ?a <x:p> ?b } UNION { ?a <x:q> ?b }",
        "{ ?a <x:p> ?b } UNION { ?a <x:q> ?b . ?b <x:r> ?d } ?a <x:r> ?e",
        "?a <x:p> ?b { ?b <x:q> ?c OPTIONAL { ?c <x:r> ?d } }",
    ):
        for name in ("COUNT(*)", "COUNT(?a)", "COUNT(DISTINCT ?a)"):
            assert _agrees(*loaded, f"SELECT ({name} AS ?k) {{ {pattern} }}"), pattern


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b . ?b <x:p> ?c . ?c <x:p> ?a }",  # a circle
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b . ?c <x:p> ?d }",  # a product
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?a }",
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b OPTIONAL { ?a <x:p> ?b } }",
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b OPTIONAL { ?b <x:p> ?c } OPTIONAL { ?c <x:p> ?d } }",
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b MINUS { ?c <x:p> ?d } }",
        "SELECT (COUNT(?c) AS ?k) { ?a <x:p> ?b OPTIONAL { ?b <x:p> ?c } }",
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b FILTER (?b > 1) }",  # some are no numbers
        "SELECT ?a ?b (COUNT(*) AS ?k) { ?a <x:p> ?b } GROUP BY ?a ?b",
        "SELECT (SUM(?b) AS ?k) { ?a <x:p> ?b }",  # an error
        "SELECT (COUNT(*) AS ?k) { ?a <x:p>* ?b }",
        "SELECT (COUNT(*) AS ?k) { ?a <x:p>|<x:q> ?b }",
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b FILTER (?a = ?b || ?a = <x:2>) }",
        "SELECT (MIN(?a) AS ?k) { ?a <x:p> ?b FILTER (?a != ?a) }",
        "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b } HAVING (COUNT(*) > 1)",
        "SELECT (COUNT(*) AS ?k) { { SELECT ?a { ?a <x:p> ?b } LIMIT 1 } }",
    ],
)
def test_what_is_not_a_tree_is_left_to_sql(text: str) -> None:
    data = [("<x:1>", "<x:p>", "<x:1>"), ("<x:2>", "<x:p>", "<x:1>"), ("<x:3>", "<x:p>", "2")]
    assert not _agrees(*_loaded(data, 1), text)


def test_a_count_that_doubles_do_not_hold_is_left_to_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [(f"<x:{n}>", "<x:p>", "<x:0>") for n in range(20)]
    text = "SELECT (COUNT(*) AS ?k) { ?a <x:p> ?o . ?b <x:p> ?o . ?c <x:p> ?o . ?d <x:p> ?o }"
    monkeypatch.setattr(pattern_counts, "EXACT", 20.0**4 + 1)
    assert _agrees(*_loaded(data, 1), text)
    monkeypatch.setattr(pattern_counts, "EXACT", 20.0**4)
    assert not _agrees(*_loaded(data, 1), text)


def test_one_graph_more_is_left_to_sql() -> None:
    store = Store()
    store.update("INSERT DATA { <x:1> <x:p> <x:2> GRAPH <x:g> { <x:1> <x:p> <x:2> } }")
    query = parse_query("SELECT (COUNT(*) AS ?k) { ?a <x:p> ?b }")
    assert counted(abstract_query(query), column_tables(store)) is None
    assert view_rows(column_tables(store), query) == engine_rows(store, query)


def test_a_chain_of_hundreds_of_patterns_is_left_to_sql() -> None:
    _, catalog = _loaded([("<x:1>", "<x:p>", "<x:1>"), ("<x:2>", "<x:p>", "<x:1>")], 1)
    chain = " . ".join(f"?v{place} <x:p> ?v{place + 1}" for place in range(900))
    query = parse_query(f"SELECT (COUNT(*) AS ?k) {{ {chain} }}")
    assert counted(abstract_query(query), catalog) is None


def test_products_are_more_than_the_weights_that_they_are_of() -> None:
    many = 41  # 8 bits hold it, but not its square, and 16 not its cube
    edges = [("<x:s>", "<x:q>", "<x:o>"), *((f"<x:s{n}>", "<x:q>", f"<x:o{n}>") for n in range(100))]
    into = [(f"<x:a{n}>", "<x:p>", "<x:s>") for n in range(many)]
    out = [("<x:o>", "<x:r>", f"<x:b{n}>") for n in range(many)]
    store, catalog = _loaded([*edges, *into, *out], 0)
    chain = "?a <x:p> ?x . ?x <x:q> ?y . ?y <x:r> ?b"
    star = " . ".join(f"?y <x:r> ?b{n}" for n in range(3))
    for pattern in (
        chain,
        f"{chain} . ?y <x:r> ?c",
        star,
        f"{star} . ?z <x:q> ?y",
        f"?z <x:q> ?y OPTIONAL {{ {star} }}",
        f"?z <x:q> ?y FILTER EXISTS {{ {star} }}",
        f"{star} MINUS {{ ?x <x:q> ?y }}",
    ):
        assert _agrees(store, catalog, f"SELECT (COUNT(*) AS ?k) {{ {pattern} }}"), pattern
