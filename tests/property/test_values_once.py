"""Filters and aggregates that are computed once for each value against the engine, and against the same
computed for each solution.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from graphdb.columns import groups
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.errors import GraphDBError
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.syntax import Query
from graphdb.sparql.translation import abstract_query
from tests.support.column_answers import Refused, Rows, engine_rows, view_rows
from tests.support.column_tables import column_tables
from tests.support.wide_sparql_texts import OBJECTS, PREFIXES

_ALWAYS, _NEVER = 0.01, 1_000_000
_VALUES = (
    "?o",
    "?o + ?o",
    "ABS(?o)",
    "CEIL(?o)",
    "STRLEN(STR(?o))",
    "xsd:integer(?o > 1)",
    "1",
    "YEAR(?o)",
    "?s",
)
_AGGREGATES = (
    "COUNT(*)",
    "COUNT(?o)",
    "COUNT({})",
    "SUM({})",
    "AVG({})",
    "MIN({})",
    "MAX({})",
    "SUM(DISTINCT {})",
)
_FILTERS = (
    "",
    "?o > 1",
    "?o != 2",
    "STRLEN(STR(?o)) > 1",
    "LANG(?o) = 'en'",
    "ISLITERAL(?o) && ?o = ?o",
    "?s = :a",
)


@st.composite
def _queries(draw: st.DrawFn) -> str:
    shown = [
        f"({draw(st.sampled_from(_AGGREGATES)).format(draw(st.sampled_from(_VALUES)))} AS ?k{place})"
        for place in range(draw(st.integers(1, 3)))
    ]
    condition = draw(st.sampled_from(_FILTERS))
    pattern = f"?s {draw(st.sampled_from(list(OBJECTS)))} ?o"
    graph = draw(st.sampled_from(["{}"] * 4 + ["GRAPH :g {{ {} }}"]))
    filtered = f" FILTER ({condition})" if condition else ""
    return f"{PREFIXES} SELECT {' '.join(shown)} {{ {graph.format(pattern + filtered)} }}"


@st.composite
def _quads(draw: st.DrawFn) -> str:
    lines = []
    for predicate in draw(st.lists(st.sampled_from(list(OBJECTS)), min_size=4, max_size=8, unique=True)):
        for value in draw(st.lists(st.sampled_from(list(OBJECTS[predicate])), max_size=4)):
            subjects = draw(st.lists(st.sampled_from([":a", ":b", ":c", ":d"]), min_size=1, max_size=4))
            triples = " ".join(f"{subject} {predicate} {value} ." for subject in subjects)
            lines.append(draw(st.sampled_from(["{}"] * 3 + ["GRAPH :g {{ {} }}"])).format(triples))
    return f"{PREFIXES} INSERT DATA {{ {' '.join(lines)} }}"


def _answered(catalog: Catalog, query: Query, least: float, patched: pytest.MonkeyPatch) -> Rows | Refused:
    patched.setattr(groups, "_SOLUTIONS_A_VALUE", least)
    return view_rows(catalog, query)


def test_values_that_are_computed_once_give_the_engines_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[bool] = []

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_quads(), st.lists(_queries(), min_size=20, max_size=20), st.integers(1, 4))
    def run(data: str, texts: list[str], frequent: int) -> None:
        store = Store()
        store.update(data)
        catalog = column_tables(store, frequent)
        for text in texts:
            query = parse_query(text)
            each = _answered(catalog, query, _NEVER, monkeypatch)
            once = _answered(catalog, query, _ALWAYS, monkeypatch)
            assert isinstance(once, Refused) == isinstance(each, Refused), text
            answered.append(not isinstance(once, Refused))
            if answered[-1]:
                try:
                    assert once == each == engine_rows(store, query), text
                except GraphDBError:
                    continue

    run()
    assert sum(answered) > len(answered) / 3


def test_few_values_of_many_solutions_are_computed_once() -> None:
    store = Store()
    triples = " ".join(f":s{number} :p {number % 5}.5 ." for number in range(100))
    store.update(f"{PREFIXES} INSERT DATA {{ {triples} }}")
    catalog = column_tables(store)
    for text in ("SUM(CEIL(?o))", "COUNT(*)", "AVG(?o)", "MAX(?o)"):
        query = parse_query(f"{PREFIXES} SELECT ({text} AS ?k) {{ ?s :p ?o FILTER (?o > 1) }}")
        compiled = compile_query(abstract_query(query), Dataset(), catalog)
        assert isinstance(compiled, CompiledQuery)
        assert "GROUP BY e" in compiled.sql
        assert view_rows(catalog, query) == engine_rows(store, query)
