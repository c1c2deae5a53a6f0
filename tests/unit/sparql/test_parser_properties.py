"""Random texts: soup raises nothing but QuerySyntaxError, generated queries parse in both engines."""

import contextlib
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Store

from graphdb.errors import QuerySyntaxError
from graphdb.sparql.building.updates import UpdateBuilder
from graphdb.sparql.make_tables import make_tables
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.tables import TABLES_FILE, Production, load_tables

TABLES = load_tables()
PIECES = [
    *TABLES.keywords,
    *TABLES.signs,
    *("?x", "$y", "<a:b>", "<rel>", "ex:", "ex:a", "no:a", "_:b", "[]", "()", "1", "-1", "+1.5", "2e3"),
    *("'x'", '"y"', "'''z'''", "@en", "@ar--rtl", "\\", '"', "'", "#", "\n", "\ud800", "\0"),
]
soup = st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)


@given(text=st.one_of(soup, soup.map(lambda text: "PREFIX ex: <a:> SELECT * { " + text), st.text()))
def test_soup(text: str) -> None:
    for parse in (parse_query, parse_update):
        with contextlib.suppress(QuerySyntaxError):
            parse(text)


variables = st.sampled_from(["?a", "?b", "?c"])
iris = st.sampled_from(["<http://e/p>", ":q", "rdf:type"])
literals = st.sampled_from(["1", "-2", "3.5", "1e0", '"x"', "'y'@en", "'z'@ar--rtl", '"1"^^:t', "true"])
expressions = st.recursive(
    st.one_of(variables, iris, literals),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["||", "&&", "=", "<", ">=", "+", "-", "*", "/"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda part: f"!({part})"),
        inner.map(lambda part: f"STR({part})"),
        st.tuples(inner, inner).map(lambda parts: f"IF(BOUND(?a), {parts[0]}, {parts[1]})"),
        st.lists(inner, max_size=3).map(lambda parts: f"(?a NOT IN ({', '.join(parts)}))"),
        inner.map(lambda part: f"EXISTS {{ ?a :p ?b FILTER({part}) }}"),
    ),
    max_leaves=6,
)
paths = st.recursive(
    st.one_of(iris, st.just("a")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("/|"), inner).map(lambda parts: f"({''.join(parts)})"),
        st.tuples(inner, st.sampled_from("?*+")).map("".join),
        inner.map(lambda part: f"^({part})"),
    ).map(lambda path: f"({path})"),
    max_leaves=4,
)
triples = st.one_of(
    st.tuples(variables, paths, st.one_of(variables, iris, literals)).map(" ".join),
    st.tuples(variables, iris, variables).map(
        lambda parts: f"<< {' '.join(parts)} >> :r [ :s ({parts[0]}) ]"
    ),
    st.tuples(variables, iris, variables).map(lambda parts: f"{' '.join(parts)} ~ :r {{| :s 1 |}}"),
    st.tuples(variables, iris, variables).map(lambda parts: f"?a :p <<( {' '.join(parts)} )>>"),
)
groups = st.recursive(
    st.lists(triples, min_size=1, max_size=3).map(" . ".join),
    lambda inner: st.lists(
        st.one_of(
            inner.map(lambda part: f"OPTIONAL {{ {part} }}"),
            inner.map(lambda part: f"MINUS {{ {part} }}"),
            inner.map(lambda part: f"GRAPH ?g {{ {part} }}"),
            st.tuples(inner, inner).map(lambda parts: f"{{ {parts[0]} }} UNION {{ {parts[1]} }}"),
            inner.map(lambda part: f"{{ SELECT ?a (COUNT(?b) AS ?n) {{ {part} }} GROUP BY ?a }}"),
            expressions.map(lambda part: f"FILTER({part})"),
            st.just("VALUES (?a ?b) { (1 UNDEF) (:x 'y') }"),
        ),
        min_size=1,
        max_size=3,
    ).map(" ".join),
    max_leaves=5,
)


@given(group=groups, expression=expressions)
def test_generated_queries_parse_in_both_engines(group: str, expression: str) -> None:
    text = (
        "PREFIX : <http://e/> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>"
        f" SELECT * {{ {group} BIND({expression} AS ?new) }} ORDER BY ({expression}) LIMIT 1"
    )
    assert parse_query(text).form == "SELECT"
    Store().query(text)


def test_threads_parse_side_by_side() -> None:
    texts = [f"PREFIX : <http://e{n}/> SELECT ?v{n} {{ ?v{n} :p [ :q ({n} {n}) ] }}" for n in range(200)]
    alone = [parse_query(text, "http://alone/") for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(parse_query, texts, ["http://together/"] * len(texts)))
    assert [tree.where for tree in together] == [tree.where for tree in alone]


def test_a_text_is_parsed_once_for_each_base() -> None:
    text = "ASK { <x> ?p ?o }"
    assert parse_query(text, "http://a/") is parse_query(text, "http://a/")
    assert parse_query(text, "http://a/") != parse_query(text, "http://b/")


def test_tables_are_those_of_the_grammar() -> None:
    assert json.loads(TABLES_FILE.read_text("utf-8")) == make_tables()


def test_every_action_of_the_grammar_is_built() -> None:
    """A rule marked with ? needs an action only where it can have several values."""
    productions = {entry for row in TABLES.states for entry in row.values() if isinstance(entry, Production)}
    certain = {entry.action for entry in productions if entry.action is not None and not entry.single}
    assert {name for name in certain if not hasattr(UpdateBuilder, name)} == set()


def test_no_message_shows_the_names_of_the_tables() -> None:
    for text in (
        "ASK {",
        "ASK { ?s ?p 1 ",
        "SELECT (",
        "ASK { FILTER(?x ",
        "ASK { ?s !",
        "DESCRIBE",
        "ASK { VALUES",
    ):
        with pytest.raises(QuerySyntaxError) as caught:
            parse_query(text)
        assert not re.search(r"[A-Z]+_[A-Z]+|ANON", caught.value.reason)
