"""`text:query` finds what a scan with the same analysis finds, in any of the last states, whatever was taken
in, merged and removed in between; and joins it as SPARQL says.
"""

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store

from graphdb.model import ChangeSet
from graphdb.planning.engine_text import engine_text
from graphdb.search.analysis import Analyzers
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.store.join_walk import OverBudget
from graphdb.store.quad_store import QuadStore
from graphdb.store.search_tables import Stale, Table
from graphdb.store.small_joins import ENTRIES_AT_ONCE, small_join
from graphdb.text.literal_index import ALL, LiteralIndex
from graphdb.text.literal_search import LiteralSearcher, score_texts

PREFIXES = "PREFIX text: <http://jena.apache.org/text#> PREFIX : <urn:> "
FLOAT = "http://www.w3.org/2001/XMLSchema#float"
ANALYZER = Analyzers.of({}).analyzer("standard")

words = st.sampled_from(["red", "Green", "blue", "grün", "l'été", "x_1", "3.14", "!"])
texts = st.lists(words, max_size=4).map(" ".join)
literals = (
    texts.map(Literal)
    | texts.map(lambda text: Literal(text, language="en"))
    | texts.map(lambda text: Literal(text, datatype=NamedNode("urn:type")))
    | st.just(Literal(3))
)
subjects = st.sampled_from([NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:c"), BlankNode("d")])
predicates = st.sampled_from([NamedNode("urn:p"), NamedNode("urn:q")])
graphs = st.sampled_from([DefaultGraph(), DefaultGraph(), NamedNode("urn:g"), NamedNode("urn:h")])
objects = literals | literals | subjects
quads = st.builds(Quad, subjects, predicates, objects, graphs)
changes = st.lists(st.tuples(st.lists(quads, max_size=3), st.integers(0, 3), st.integers(0, 2)), max_size=12)
sought = st.lists(words, min_size=1, max_size=2)
searched_graphs = st.sampled_from([None, "urn:g", "?g"])
properties = st.sampled_from([(), ("urn:p",), ("urn:p", "urn:q"), ("urn:nothing",)])


@given(st.lists(st.floats(2**-40, 2**40, width=32), max_size=9))
def test_scores_are_written_as_the_engine_writes_floats(scores: list[float]) -> None:
    written = score_texts(np.array(scores, np.float32))
    typed = [Literal(repr(score), datatype=NamedNode(FLOAT)) for score in scores]
    sums = [Store().query(f"SELECT (1 * {each} AS ?x) {{}}") for each in typed]
    assert written == [str(row[0]) for each in sums if isinstance(each, QuerySolutions) for row in each]


class Indexed:
    """A store with an index, and what it held at each of its log indexes."""

    def __init__(self) -> None:
        self.quads = QuadStore(Store())
        self.log_index = 0
        self.states: list[frozenset[Quad]] = []
        self.index = LiteralIndex(self.quads.quads_of, [ALL], lambda: self.log_index)
        self.quads.text_index = self.index
        self.searcher = LiteralSearcher(self.index.analyzers, [ALL], 1_000)

    def apply(self, added: list[Quad], removed: int) -> None:
        """As the next entry of the log; removed is how many of the quads that there are it removes."""
        present = self.present
        gone = sorted(present, key=str)[:removed]
        new = [quad for quad in dict.fromkeys(added) if quad not in present]
        self.quads.apply(ChangeSet(removed=tuple(gone), added=tuple(new)))
        self.log_index += 1
        self.states.append(self.present)

    @property
    def present(self) -> frozenset[Quad]:
        return frozenset(self.quads.dataset_quads())

    def take_in(self) -> None:
        while self.index.has_work:
            self.index.begin()
            self.index.step()

    def tables(self, text: str, index: int) -> dict[str, Table]:
        state = self.index.state(index)
        return {
            search.name: self.searcher.table(
                self.searcher.planned(search, state, Dataset(), union_default_graph=False), index
            )
            for search in engine_text(parse_query(text)).searches
        }


def tokens(literal: Any) -> set[str]:
    is_text = isinstance(literal, Literal) and (
        literal.language is not None or literal.datatype.value.endswith("#string")
    )
    return set(ANALYZER.tokens(literal.value)[0]) if is_text else set()


def scanned(
    state: frozenset[Quad], wanted: list[str], where: tuple[str, ...], graph: str | None
) -> Counter[Any]:
    """(subject, literal, graph) of all literals with one of these words."""
    terms = set().union(*(ANALYZER.tokens(word)[0] for word in wanted))
    found = Counter[Any]()
    for quad in state:
        is_default = isinstance(quad.graph_name, DefaultGraph)
        if graph is None or graph == "?g":
            fits = is_default == (graph is None)
        else:
            fits = quad.graph_name == NamedNode(graph)
        if fits and (not where or quad.predicate.value in where) and tokens(quad.object) & terms:
            found[quad.subject, quad.object, None if is_default else quad.graph_name] += 1
    return found


def query_of(wanted: list[str], where: tuple[str, ...], graph: str | None, rest: str = "") -> str:
    named = " ".join(f"<{iri}>" for iri in where)
    given = " ".join(word.replace("!", "\\\\!") for word in wanted)
    pattern = f'(?s ?score ?l ?graph) text:query ({named} "{given}") {rest}'
    if graph is not None:
        pattern = f"GRAPH {graph if graph == '?g' else f'<{graph}>'} {{ {pattern} }}"
    return f"{PREFIXES} SELECT * {{ {pattern} }}"


@settings(max_examples=150, deadline=None)
@given(changes, st.integers(0, 12), sought, properties, searched_graphs)
def test_finds_what_a_scan_finds(
    steps: list[tuple[list[Quad], int, int]],
    begins: int,
    wanted: list[str],
    where: tuple[str, ...],
    graph: str | None,
) -> None:
    indexed = Indexed()
    for number, (added, removed, work) in enumerate(steps):
        indexed.apply(added, removed)
        if number >= begins:
            indexed.index.begin()
            for _ in range(work):
                indexed.index.step()
    indexed.take_in()
    for at, state in enumerate(indexed.states, start=1):
        if at < indexed.log_index:
            try:
                indexed.index.state(at)
            except Stale:
                continue
        (table,) = indexed.tables(query_of(wanted, where, graph), at).values()
        places = [table.names.index(name) for name in ("s", "l", "graph")]
        found = Counter(tuple(row[place] for place in places) for row in table.solutions)
        assert found == scanned(state, wanted, where, graph)


def test_finds_what_stood_alone_in_its_segment_before_it_was_removed() -> None:
    node, predicate = NamedNode("urn:a"), NamedNode("urn:p")
    red, blue = (Quad(node, predicate, Literal(text), DefaultGraph()) for text in ("red", "blue"))
    indexed = Indexed()
    indexed.apply([red], 0)
    indexed.take_in()
    indexed.apply([], 1)
    indexed.index.step()
    indexed.apply([blue], 0)
    indexed.take_in()
    for at, times in ((1, 1), (2, 0), (3, 0)):
        (table,) = indexed.tables(query_of(["red"], (), None), at).values()
        assert len(table.rows) == times


@settings(max_examples=100, deadline=None)
@given(st.lists(quads, max_size=15), sought, searched_graphs, st.sampled_from(["?p", ":q"]))
def test_joins_what_it_finds(added: list[Quad], wanted: list[str], graph: str | None, predicate: str) -> None:
    """As the engine joins it and as it is walked: the same as a filter on all literals."""
    indexed = Indexed()
    indexed.apply(added, 0)
    indexed.take_in()
    text = query_of(wanted, (), graph, f". ?s {predicate} ?o . ?o ?p2 ?o2")
    query = parse_query(text)
    tables = indexed.tables(text, 1)
    answer = indexed.quads.query(query, Dataset(), tables)
    assert isinstance(answer, QuerySolutions)
    found = Counter(tuple(row[name] for name in ("s", "l", "o", "o2")) for row in answer)
    expected = Counter[Any]()
    for (subject, literal, name), times in scanned(indexed.present, wanted, (), graph).items():
        for one in indexed.present:
            for other in indexed.present:
                in_graph = {quad.graph_name for quad in (one, other)} == {name or DefaultGraph()}
                fits = predicate == "?p" or one.predicate == NamedNode("urn:q")
                if in_graph and fits and one.subject == subject and one.object == other.subject:
                    expected[subject, literal, one.object, other.object] += times
    assert found == expected
    join = small_join(query)
    if join is not None:
        try:
            walked = join.with_tables(tables).answer(indexed.quads, ENTRIES_AT_ONCE)
        except OverBudget:
            return
        if walked is not None:
            rows = Counter(tuple(row[name] for name in ("s", "l", "o", "o2")) for row in walked)
            assert rows == expected
