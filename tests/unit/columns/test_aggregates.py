"""Counts that the view's statistics hold are read there, and only where they are those of the query."""

import pytest
from pyoxigraph import QuerySolutions, Store

from graphdb.columns.applying import take_statistics
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.results import TermTexts, answer_of
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from tests.support.column_tables import column_tables

DATA = "PREFIX : <http://e/> INSERT DATA { :a :p 1, 2 ; :q :b . :b :p 2 . }"
NAMED = "PREFIX : <http://e/> INSERT DATA { GRAPH :g { :a :p 3 } }"
OBJECTS = "SELECT ?p (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o } GROUP BY ?p"


def tables(*updates: str) -> Catalog:
    store = Store()
    for update in updates:
        store.update(update)
    return column_tables(store)


def compiled(catalog: Catalog, text: str) -> CompiledQuery:
    found = compile_query(abstract_query(parse_query(text)), Dataset(), catalog)
    assert isinstance(found, CompiledQuery)
    return found


def rows(catalog: Catalog, text: str) -> set[tuple[str, ...]]:
    query = compiled(catalog, text)
    cursor = catalog.connection.execute(query.sql)
    answer = answer_of(query, cursor.fetchmany, TermTexts(catalog.connection))
    assert isinstance(answer, QuerySolutions)
    return {tuple("" if term is None else term.value for term in row) for row in answer}


def reads_statistics(catalog: Catalog, text: str) -> bool:
    return "FROM predicates" in compiled(catalog, text).sql


@pytest.mark.parametrize(
    ("counted", "of_p", "of_q"),
    [
        ("COUNT(*)", "3", "1"),
        ("COUNT(?o)", "3", "1"),
        ("COUNT(DISTINCT ?s)", "2", "1"),
        ("COUNT(DISTINCT ?o)", "2", "1"),
        ("COUNT(DISTINCT ?p)", "1", "1"),
    ],
)
def test_counts_per_predicate_are_read_from_the_statistics(counted: str, of_p: str, of_q: str) -> None:
    catalog = tables(DATA)
    text = f"SELECT ?p ({counted} AS ?n) {{ ?s ?p ?o }} GROUP BY ?p"
    assert reads_statistics(catalog, text)
    assert rows(catalog, text) == {("http://e/p", of_p), ("http://e/q", of_q)}


def test_having_and_limit_are_those_of_the_query() -> None:
    catalog = tables(DATA)
    text = "SELECT ?p { ?s ?p ?o } GROUP BY ?p HAVING (COUNT(*) > 1) ORDER BY ?p LIMIT 5"
    assert reads_statistics(catalog, text)
    assert rows(catalog, text) == {("http://e/p",)}


def test_values_after_the_group_are_joined_to_its_solutions() -> None:
    catalog = tables(DATA)
    text = "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p VALUES (?p ?o) { (<http://e/p> 1) (UNDEF 5) }"
    assert reads_statistics(catalog, text)
    assert rows(catalog, text) == {("http://e/p", "3"), ("http://e/q", "1")}


def test_a_count_of_all_quads_may_stand_in_any_select() -> None:
    catalog = tables(DATA)
    text = """SELECT ?p (?n - ?m AS ?d) { { SELECT ?p (COUNT(*) AS ?m) { ?s ?p ?o } GROUP BY ?p }
              { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } } ORDER BY ?n ?d"""
    assert "FROM p_" not in compiled(catalog, text).sql
    assert rows(catalog, text) == {("http://e/p", "1"), ("http://e/q", "3")}


def test_distinct_counts_that_changes_made_stale_are_counted_anew() -> None:
    catalog = tables(DATA)
    catalog.connection.execute("UPDATE predicates SET is_stale = TRUE, objects = 99")
    catalog = Catalog(catalog.connection)
    assert not reads_statistics(catalog, OBJECTS)
    assert reads_statistics(catalog, OBJECTS.replace("DISTINCT", ""))
    assert rows(catalog, OBJECTS) == {("http://e/p", "2"), ("http://e/q", "1")}


@pytest.mark.parametrize(("counted", "count"), [("s", "2"), ("p", "2"), ("o", "3")])
def test_distinct_terms_of_all_quads_are_counted_once_a_change(counted: str, count: str) -> None:
    catalog = tables(DATA)
    text = f"SELECT (COUNT(DISTINCT ?{counted}) AS ?n) {{ ?s ?p ?o }}"
    assert rows(catalog, text) == {(count,)}
    while take_statistics(catalog.connection):
        pass
    assert " p_" not in compiled(catalog, text).sql
    assert "rest" not in compiled(catalog, text).sql
    assert rows(catalog, text) == {(count,)}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?s } GROUP BY ?p",
        "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s",
        "SELECT ?p (SUM(?o) AS ?n) { ?s ?p ?o FILTER(?o > 0) } GROUP BY ?p",
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o FILTER(isIRI(?o)) } GROUP BY ?p",
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o VALUES ?o { 1 } } GROUP BY ?p",
    ],
)
def test_others_are_counted(text: str) -> None:
    assert not reads_statistics(tables(DATA), text)


def test_named_graphs_are_not_counted_in_the_default_graph() -> None:
    catalog = tables(DATA, NAMED)
    assert not reads_statistics(catalog, OBJECTS)
    assert rows(catalog, OBJECTS) == {("http://e/p", "2"), ("http://e/q", "1")}


def test_those_of_a_named_graph_are_counted() -> None:
    text = "SELECT * { GRAPH <http://e/g> { SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p } }"
    assert not reads_statistics(tables(DATA, NAMED), text)
