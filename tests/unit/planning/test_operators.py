"""Operators and aggregates have the values that SPARQL 1.2 (section 17 and 18.5) gives them, by every way."""

import pytest
from pyoxigraph import Store

from graphdb.columns.catalog import Catalog
from graphdb.planning.engine_text import engine_text
from graphdb.sparql.parser import parse_query
from tests.support.column_answers import Refused, engine_rows, view_rows
from tests.support.column_tables import column_tables

PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
DATA = """
    :a :value 1, "x" ; :flag true ; :text "one"@en ; :link :b, :c .
    :a :start "2026-01-01T10:00:00Z"^^xsd:dateTime .
    :b :value 2.5 ; :flag false ; :text ""@en, "two" ; :end "2026-01-03T12:00:00Z"^^xsd:dateTime .
    :c :mixed "m"@en, "m"@fr, "m", :m, 7 ; :last "P1D"^^xsd:dayTimeDuration ; :blank [] .
"""
ROWS = {
    # COUNT leaves out errors (18.5.1.2)
    "SELECT (COUNT(?v + 1) AS ?n) { ?s :value ?v }": ["2"],
    "SELECT (COUNT(?v * 2) AS ?n) { :none :value ?v }": ["0"],
    "SELECT (COUNT(DISTINCT ?v > 1) AS ?n) { ?s :value ?v }": ["2"],
    "SELECT (COUNT(IF(?v > 2, ?v, ?none)) AS ?n) { ?s :value ?v }": ["1"],
    "SELECT ?s (COUNT(?v + 1) AS ?n) (COUNT(*) AS ?m) { ?s :value ?v } GROUP BY ?s HAVING(COUNT(-?v) < 2)": [
        "a 1 2",
        "b 1 1",
    ],
    "SELECT ?n { GRAPH ?g { SELECT (COUNT(?v + 1) AS ?n) { ?s :value ?v } } }": [],
    # GROUP_CONCAT takes the texts of all values
    "SELECT (GROUP_CONCAT(?v; SEPARATOR = '|') AS ?t) { :b :value ?v }": ["2.5"],
    "SELECT (STRLEN(GROUP_CONCAT(?o)) AS ?n) { :a :link ?o }": [f"{2 * len('http://e/b') + 1}"],
    "SELECT (STRLEN(GROUP_CONCAT(DISTINCT ?o)) AS ?n) { ?s :link ?o }": [f"{2 * len('http://e/b') + 1}"],
    "SELECT (STRLEN(GROUP_CONCAT(DISTINCT ?o; SEPARATOR = '')) AS ?n) { :c :mixed ?o }": [
        f"{len('mmm') + len('http://e/m') + 1}"
    ],
    "SELECT (GROUP_CONCAT(?o) AS ?t) { :c :blank ?o }": ["None"],
    "SELECT (GROUP_CONCAT(?o) AS ?t) { :none :link ?o }": [""],
    "SELECT (GROUP_CONCAT('x') AS ?t) (GROUP_CONCAT(1) AS ?u) { :a :link ?o }": ["x x 1 1"],
    # truth values are ordered (17.3)
    "SELECT ?s { ?s :flag ?f FILTER(?f < true) }": ["b"],
    "SELECT ?s { ?s :flag ?f FILTER(BOUND(?f) >= ?f) }": ["a", "b"],
    "SELECT ?s ?t { ?s :flag ?f . ?t :flag ?g FILTER(?f > ?g) }": ["a b"],
    "SELECT (false < true AS ?x) (true <= false AS ?y) (isIRI(:a) > false AS ?z) { }": ["true false true"],
    "SELECT (COALESCE(true > 0, 'error') AS ?x) (COALESCE(?v < true, 'error') AS ?y) { :b :value ?v }": [
        "error error"
    ],
    # nothing divided by a decimal
    "SELECT (0 / 2.5 AS ?x) ((?v - ?v) / ?v AS ?y) (0.0 / ?v / 0.1 AS ?z) { :b :value ?v }": ["0 0 0"],
    "SELECT (COALESCE(0 / 0.0, 'error') AS ?x) (COALESCE(?v / (?v - ?v), 'error') AS ?y) { :b :value ?v }": [
        "error error"
    ],
    # dates and durations
    "SELECT (?e - ?s AS ?x) { ?a :start ?s . ?b :end ?e }": ["P2DT2H"],
    "SELECT (?s + ?d AS ?x) (?s - ?d AS ?y) { ?a :start ?s . ?c :last ?d }": [
        "2026-01-02T10:00:00Z 2025-12-31T10:00:00Z"
    ],
    'SELECT (xsd:date("2026-01-31") + "P1M"^^xsd:yearMonthDuration AS ?x) { }': ["2026-02-28"],
    "SELECT (-?d AS ?x) (?d + ?d AS ?y) { ?c :last ?d }": ["-P1D P2D"],
}
UNCHANGED = (
    "ASK WHERE { FILTER(?d && ?a + 1 > 2 && STRLEN(?b) < ?c) }",
    "ASK WHERE { FILTER(?a / 2 = 1.5 * ?b / 2e0 || ?a = ?b) }",
    "SELECT (COUNT(DISTINCT ?a) AS ?n) (SUM(?a * 2) AS ?m) WHERE { ?a ?b ?c . }",
)


@pytest.fixture(scope="module")
def store() -> Store:
    store = Store()
    store.update(f"{PREFIXES} INSERT DATA {{ {DATA} }}")
    return store


@pytest.fixture(scope="module")
def catalog(store: Store) -> Catalog:
    return column_tables(store)


def _plain(row: tuple[str, ...]) -> str:
    """Values without datatype and language."""
    texts = [each.removeprefix("<http://e/").rstrip(">") if each.startswith("<") else each for each in row]
    return " ".join(text.split('"')[1] if text.startswith('"') else text for text in texts)


@pytest.mark.parametrize("query", ROWS)
def test_values(store: Store, catalog: Catalog, query: str) -> None:
    parsed = parse_query(PREFIXES + query)
    rows = engine_rows(store, parsed)
    assert not isinstance(rows, bool)
    assert sorted(map(_plain, rows.elements())) == ROWS[query]
    by_columns = view_rows(catalog, parsed)
    assert isinstance(by_columns, Refused) or by_columns == rows


@pytest.mark.parametrize("text", UNCHANGED)
def test_what_the_engine_reads_as_it_is(text: str) -> None:
    assert engine_text(parse_query(text)).text == text


def test_texts_do_not_grow_without_bound() -> None:
    quotient = " / ".join(f"(?a + ?b{number})" for number in range(200))
    text = f"SELECT ({quotient} AS ?x) WHERE {{ }}"
    assert len(engine_text(parse_query(text)).text) < 20 * len(text)
