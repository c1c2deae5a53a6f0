"""GRAPH with a variable, against a naive twin that evaluates what is within for one graph after another."""

from collections import Counter
from typing import TypeAlias

from hypothesis import given, reject
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, QuerySolutions, Store

from graphdb.errors import QuerySyntaxError
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.store.quad_store import QuadStore

Row: TypeAlias = frozenset[tuple[str, str]]

NAMES = ["x:1", "x:2", "x:3"]
VARIABLES = ["?a", "?b", "?c", "?g"]
terms = st.sampled_from([*VARIABLES, *(f"<{name}>" for name in NAMES)])
variables = st.sampled_from(VARIABLES)
# Two exceptions that `graph_variables` names are left out: every MINUS surely shares ?a with its left side,
# or shares nothing; and of aggregates over all solutions, with the column ?whole, there is one at most.
triples = st.builds("{} <x:p> {} .".format, terms, terms)
minus = st.sampled_from(["MINUS { ?a <x:p> ?c }", "MINUS { ?y <x:p> ?z }", "MINUS { ?a ?g ?b }"])
tests = st.sampled_from(["BOUND({})", "{} = <x:1>", "!BOUND({})", "{} != <x:2>"])
filters = st.builds(lambda test, name: f"FILTER({test.format(name)})", tests, variables)
inline = st.sampled_from(["VALUES ?a { <x:1> <x:4> }", "VALUES (?g ?b) { (<x:1> <x:2>) (UNDEF <x:3>) }"])
SELECTS = [
    "SELECT * {}",
    "SELECT ?a {}",
    "SELECT DISTINCT ?b {}",
    "SELECT ?a ?g {}",
    "SELECT ?a {} ORDER BY ?a LIMIT 1",
    "SELECT (COUNT(*) AS ?whole) {}",
    "SELECT (COUNT(?b) AS ?whole) {} HAVING (COUNT(*) < 2)",
    "SELECT (MAX(?b) AS ?whole) {} LIMIT 1",
    "SELECT ?a (COUNT(*) AS ?n) {} GROUP BY ?a",
    "SELECT (1 AS ?n) {} VALUES ?m {{ 1 2 }}",
]


@st.composite
def groups(draw: st.DrawFn, depth: int) -> str:
    """A group in braces, of plain parts and of groups so many levels deep."""
    if depth == 0:
        return draw(st.builds("{{ {} }}".format, triples) | st.just("{ }"))
    inner = groups(depth - 1)
    part = st.one_of(
        triples,
        filters,
        inline,
        inner,
        st.builds("OPTIONAL {}".format, inner),
        st.builds("FILTER NOT EXISTS {}".format, inner),
        st.builds("{} UNION {}".format, inner, inner),
        st.builds("GRAPH <x:1> {}".format, inner),
        st.builds(lambda select, body: f"{{ {select.format(body)} }}", st.sampled_from(SELECTS), inner),
    )
    plain = st.lists(part, max_size=3).map(" ".join)
    anchored = st.builds("?a <x:p> ?b . {} {}".format, plain, minus)
    return f"{{ {draw(plain | anchored)} }}"


patterns = groups(depth=2).filter(lambda pattern: pattern.count("?whole") < 2)
quads = st.builds(
    lambda s, o, g: Quad(NamedNode(s), NamedNode("x:p"), NamedNode(o), NamedNode(g)),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES[:2]),
)


def rows(solutions: object) -> "Counter[Row]":
    assert isinstance(solutions, QuerySolutions)
    names = [variable.value for variable in solutions.variables]
    return Counter(
        frozenset((name, str(solution[name])) for name in names if solution[name] is not None)
        for solution in solutions
    )


def one_by_one(store: QuadStore, pattern: str) -> "Counter[Row]":
    """The solutions of GRAPH ?g with the pattern, as section 18.6 of SPARQL 1.1 defines them."""
    graphs = [graph for graph in store.named_graphs() if isinstance(graph, NamedNode)]
    found: Counter[Row] = Counter()
    for graph in graphs:
        answer = store.query(parse_query(f"SELECT * {pattern}"), Dataset((graph,), tuple(graphs)))
        for row, times in rows(answer).items():
            if dict(row).get("g", str(graph)) == str(graph):
                found[row | {("g", str(graph))}] += times
    return found


@given(st.lists(quads, max_size=6), patterns)
def test_a_graph_variable_is_joined_outside(data: list[Quad], pattern: str) -> None:
    quads_only = Store()
    quads_only.extend(data)
    quads_only.add_graph(NamedNode("x:3"))
    store = QuadStore(quads_only)
    try:
        query = parse_query(f"SELECT * {{ GRAPH ?g {pattern} }}")
    except QuerySyntaxError:  # sub-selects within each other may give one name twice
        reject()
    assert query.where is not None
    answer = store.query(query, Dataset())
    assert isinstance(answer, QuerySolutions)
    assert {variable.value for variable in answer.variables} == query.where.variables
    assert rows(answer) == one_by_one(store, pattern)
