"""The printed algebra gives the answers of the text: for the queries of the W3C suites and for random ones.

The engine answers both. Only translation and printing are tested, without the passes of `engine_text`: these
exist because the engine interprets some texts otherwise than the specification. Decisions on a query are the
same for its text and its printed algebra.
"""

from collections import Counter
from typing import TypeAlias

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    Store,
)

from graphdb.errors import QuerySyntaxError
from graphdb.planning.decisions import is_repeatable, why_not_cheap
from graphdb.rdf.canonical import canonical_lines
from graphdb.sparql.parser import parse_query
from graphdb.sparql.printing import written_query
from graphdb.sparql.syntax import Query
from graphdb.sparql.translation import abstract_query
from graphdb.store.small_joins import small_join
from tests.conformance.evaluation import QUERY_KINDS, case_store, evaluation_cases
from tests.conformance.manifests import iri_of, suite_root

Answer: TypeAlias = object

# The engine gives what GROUP_CONCAT makes the language of the values; the printed text removes it.
OTHER_ANSWERS = {"sparql11/aggregates#agg-groupconcat-04", "sparql11/aggregates#agg-groupconcat-06"}

cases = {name: case for name, case in evaluation_cases().items() if case.kinds & QUERY_KINDS}


def answer(store: Store, text: str, *, ordered: bool = False, base: str | None = None) -> Answer:
    """What can be compared of an answer: a bag of rows, a sequence of them, or the lines of a graph.

    Blank nodes that the query makes have new labels each time, so they count as one.
    """
    found = store.query(text, base_iri=base)
    if isinstance(found, QueryBoolean):
        return bool(found)
    if isinstance(found, QueryTriples):
        return canonical_lines([Quad(triple.subject, triple.predicate, triple.object) for triple in found])
    assert isinstance(found, QuerySolutions)
    names = sorted(variable.value for variable in found.variables)  # the order of `SELECT *` is ours
    rows = [tuple(shown(store, solution[name]) for name in names) for solution in found]
    return (names, rows) if ordered else (names, Counter(rows))


def shown(store: Store, term: object) -> str:
    if isinstance(term, BlankNode) and not is_stored(store, term):
        return "_:made"
    return str(term)


def is_stored(store: Store, node: BlankNode) -> bool:
    starts = next(store.quads_for_pattern(node, None, None), None)
    return starts is not None or next(store.quads_for_pattern(None, None, node), None) is not None


def printed(query: Query) -> str:
    return written_query(abstract_query(query))


@pytest.mark.skipif(suite_root() is None, reason="the W3C suites are not at ../shared/suites")
@pytest.mark.parametrize("name", cases)
def test_the_queries_of_the_suites(name: str) -> None:
    case = cases[name]
    assert case.action.query is not None
    base = iri_of(case.action.query)
    text = case.action.query.read_text("utf-8")
    query = parse_query(text, base)
    store = case_store(case.action, query)
    ordered = bool(query.modifiers.order_by)
    try:
        expected = answer(store, text, ordered=ordered, base=base)
    except (SyntaxError, RuntimeError):
        pytest.skip("the engine does not accept the text")
    same = answer(store, printed(query), ordered=ordered) == expected
    assert same is (name not in OTHER_ANSWERS), printed(query)


TERMS = ["?a", "?b", "?c", "<x:1>", "<x:2>", "1"]
EXPRESSIONS = [
    "BOUND({})",
    "{} = <x:1>",
    "!({} != <x:2>) || {} = 1",
    "{} + 1 - -1 > 2 * 1 / 1",
    "COALESCE ({}, 1) IN (1, <x:2>)",
    "NOT EXISTS {{ ?a <x:q> {} FILTER(?a != <x:2>) }}",
    "IF(ISIRI({}), TRUE, STR({}) = '1')",
]
PATHS = ["<x:p>", "<x:q>", "^<x:p>", "<x:p>/<x:q>", "(<x:p>|^<x:q>)+", "!(<x:p>|^<x:q>)", "<x:p>?/<x:q>*"]
HEADS = [
    "SELECT * {}",
    "SELECT DISTINCT ?a ?c {}",
    "SELECT ?b (STR(?a) AS ?x) (CONCAT (?x, 'y') AS ?y) {}",
    "SELECT (COUNT(*) AS ?x) {}",
    "SELECT ?a (SUM(?b) + COUNT(DISTINCT ?c) AS ?x) {} GROUP BY ?a HAVING (COUNT(*) > 1 || ?x = 0)",
    "SELECT ?x (MIN(?a) AS ?y) {} GROUP BY (?b = <x:1> AS ?x) ?c VALUES ?c {{ <x:1> <x:2> UNDEF }}",
    "SELECT ?x (COUNT(*) AS ?y) {{ {} BIND(?a AS ?x) }} GROUP BY ?x",
    "SELECT ?x ?z (COUNT(*) AS ?y) {{ {} BIND(STR(?a) AS ?x) BIND(?x AS ?z) }} GROUP BY ?z ?x",
    "SELECT ?a {} VALUES (?a ?b) {{ (<x:1> UNDEF) (<x:2> 1) }}",
]
WHOLE = [*HEADS, "ASK {}", "CONSTRUCT {{ ?a <x:r> ?b, 'x'@en }} WHERE {}"]
variables = st.sampled_from(TERMS[:3])
triples = st.builds(
    "{} {} {} .".format, st.sampled_from(TERMS[:5]), st.sampled_from(PATHS), st.sampled_from(TERMS)
)
tests = st.builds(lambda test, name: test.replace("{}", name), st.sampled_from(EXPRESSIONS), variables).map(
    lambda test: test.replace("{{", "{").replace("}}", "}")
)


@st.composite
def groups(draw: st.DrawFn, depth: int) -> str:
    """A group in braces, of plain parts and of groups so many levels deep."""
    if depth == 0:
        return draw(st.builds("{{ {} }}".format, triples) | st.just("{ }"))
    inner = groups(depth - 1)
    part = st.one_of(
        triples,
        st.builds("FILTER({})".format, tests),
        st.builds("BIND({} AS ?{})".format, tests, st.sampled_from("abcd")),
        st.just("VALUES (?a ?b) { (<x:1> <x:2>) (UNDEF 1) }"),
        inner,
        st.builds("OPTIONAL {}".format, inner),
        st.builds("MINUS {}".format, inner),
        st.builds("FILTER EXISTS {}".format, inner),
        st.builds("{} UNION {}".format, inner, inner),
        st.builds("GRAPH {} {}".format, st.sampled_from(["<x:1>", "?c"]), inner),
        st.builds(lambda head, body: f"{{ {head.format(body)} }}", st.sampled_from(HEADS), inner),
    )
    return f"{{ {' '.join(draw(st.lists(part, max_size=4)))} }}"


texts = st.builds(lambda head, body: head.format(body), st.sampled_from(WHOLE), groups(depth=2))
names = st.sampled_from(["x:1", "x:2", "x:3"]).map(NamedNode)
quads = st.builds(
    Quad,
    names,
    st.sampled_from(["x:p", "x:q"]).map(NamedNode),
    names | st.just(Literal(1)),
    st.sampled_from([DefaultGraph(), NamedNode("x:1"), NamedNode("x:2")]),
)


@given(st.lists(quads, max_size=8), texts)
def test_random_queries(data: list[Quad], text: str) -> None:
    store = Store()
    store.extend(data)
    try:
        query = parse_query(text)
        expected = answer(
            store,
            text.replace("COALESCE (", "COALESCE(").replace("CONCAT (", "CONCAT(").replace("TRUE", "true"),
        )
    except (QuerySyntaxError, SyntaxError):
        reject()
    assert answer(store, printed(query)) == expected, printed(query)


@given(texts)
def test_decisions_are_those_of_the_printed_text(text: str) -> None:
    """They depend on the algebra only, not on how a text spells it."""
    try:
        query = parse_query(text)
    except QuerySyntaxError:
        reject()
    other = parse_query(printed(query))
    assert why_not_cheap(query) == why_not_cheap(other)
    assert is_repeatable(query) == is_repeatable(other)
    assert (small_join(query) is None) == (small_join(other) is None)
