"""The states of the past that a column view keeps, against a copy of the store behind every entry."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store

from graphdb.columns import applying, loading
from graphdb.columns.applying import collect_terms, is_worth_collecting, transaction
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.counting import counted
from graphdb.columns.entry_lines import EntryLines
from graphdb.columns.past_rows import keep_past, oldest_within_bound, past_from, trim_past
from graphdb.columns.past_state import (
    NotKept,
    PastTables,
    TooLarge,
    attach_past,
    drop_past_state,
    make_past_state,
)
from graphdb.columns.quad_arrays import QuadArrays
from graphdb.columns.results import TermTexts, answer_of
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from tests.property.test_column_view import Twin
from tests.support.column_answers import engine_answer

NODES = st.sampled_from("abc").map(lambda name: NamedNode(f"http://example.org/{name}"))
SUBJECTS = NODES | st.just(BlankNode("x"))
OBJECTS = NODES | st.sampled_from([BlankNode("x"), Literal(1), Literal("1.5"), Literal("a", language="en")])
GRAPHS = st.just(DefaultGraph()) | NODES
# few, so that they come and go and come again
QUADS = st.builds(Quad, SUBJECTS, NODES, OBJECTS, GRAPHS)
TRIPLES = st.builds(Quad, SUBJECTS, NODES, OBJECTS)
PREFIX = "PREFIX : <http://example.org/> "
QUERIES = (
    "SELECT ?s ?p ?o { ?s ?p ?o }",
    "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?s ?o { ?s :a ?o }",
    "SELECT ?s ?o { GRAPH :b { ?s :b ?o } }",
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o }",
    "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
    "SELECT (COUNT(*) AS ?n) { ?s :a ?o . ?o :b ?x }",
    "SELECT ?o (COUNT(?s) AS ?n) { ?s :c ?o } GROUP BY ?o",
    "SELECT (SUM(?o) AS ?n) { ?s :b ?o FILTER(ISNUMERIC(?o)) }",
    "SELECT DISTINCT ?s { ?s :a ?o MINUS { ?s :b ?x } }",
    "SELECT ?s ?x { ?s :a ?o OPTIONAL { ?s :c ?x } }",
    "SELECT ?s ?x { ?s :a+ ?x }",
    "SELECT ?s { ?s (:a|:b)/^:c ?x FILTER(ISBLANK(?s)) }",
    "SELECT ?s ?o FROM :a FROM :b { ?s ?p ?o }",
    "SELECT ?s ?o { { ?s :a ?o } UNION { ?s :b ?o } }",
    "SELECT (MAX(?o) AS ?n) { ?s :a ?o }",
)


class PastTwin(Twin):
    """With a copy of the store as it was behind each entry, and whether a large change was open there."""

    def __init__(self, directory: Path, quads: Sequence[Quad]) -> None:
        super().__init__(directory, quads)
        self.entries = EntryLines(self.index, keeps_turns=True)
        with transaction(self.view):
            keep_past(self.view, self.index, is_wanted=True)
        attach_past(self.view)
        self.states = {self.index: _copied(self.store)}
        self.made = 0

    def note(self, before: int) -> None:
        """The state of each entry behind that index; of the parts of a large change, that before it."""
        for index in range(before + 1, self.index):
            self.states[index] = self.states[before]
        self.states[self.index] = _copied(self.store)

    def reading(self, index: int) -> tuple[Catalog, PastTables]:
        """A catalog of the state behind an index."""
        self.made += 1
        with transaction(self.view):
            tables = make_past_state(self.view, index, f"s{self.made}", 10_000)
        cursor = self.view.cursor()
        cursor.execute(f"SET search_path = '{tables.search_path},memory.main'")
        return Catalog(cursor, QuadArrays(), is_past=True), tables


def _copied(store: Store) -> Store:
    copy = Store()
    copy.extend(store)
    for graph in store.named_graphs():
        copy.add_graph(graph)
    return copy


def perform(twin: PastTwin, kind: str, data: st.DataObject) -> None:
    before = twin.index
    coming = data.draw(st.lists(QUADS, max_size=6))
    if kind in ("change", "drop"):
        twin.change(coming, data.draw(st.sets(st.integers(0, 12))), drops=kind == "drop")
    else:
        twin.change_in_parts(coming, replaces=kind == "replace")
    twin.note(before)


def rows_of(answer: object) -> list[tuple[str, ...]]:
    assert isinstance(answer, QuerySolutions)
    return sorted(tuple(map(str, row)) for row in answer)


def check_answers(catalog: Catalog, store: Store) -> int:
    """How many of the queries the columns answer."""
    answered = 0
    for text in QUERIES:
        parsed = parse_query(PREFIX + text)
        query, expected = abstract_query(parsed), rows_of(engine_answer(store, parsed))
        texts = TermTexts(catalog.connection)
        compiled = compile_query(query, Dataset(), catalog)
        if isinstance(compiled, CompiledQuery):
            answered += 1
            fetch = catalog.connection.execute(compiled.sql).fetchmany
            assert rows_of(answer_of(compiled, fetch, texts)) == expected, text
        found = counted(query, catalog)
        if found is not None:
            assert rows_of(answer_of(*found.answer(), texts)) == expected, text
    return answered


@settings(max_examples=12, deadline=None)
@given(st.lists(QUADS | TRIPLES, max_size=12), st.lists(st.booleans(), max_size=8), st.booleans(), st.data())
def test_a_state_of_the_past_answers_as_a_copy_of_then(
    quads: list[Quad], steps: list[bool], collects: bool, data: st.DataObject
) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patched:
        for module in (applying, loading):
            patched.setattr(module, "FREQUENT_QUADS", 4)
        twin = PastTwin(Path(directory), quads)
        for applies in steps:
            kind = data.draw(st.sampled_from(["change", "drop", "put", "replace"]))
            perform(twin, kind, data)
            if applies:
                twin.apply()
                if collects:
                    collect_terms(twin.view)
        twin.apply()
        for index in data.draw(st.sets(st.sampled_from(sorted(twin.states)), min_size=1, max_size=4)):
            catalog, tables = twin.reading(index)
            store = twin.states[index]
            assert check_answers(catalog, store) > 8
            graphs = catalog.connection.execute("SELECT text FROM terms JOIN graphs ON g = id").fetchall()
            assert sorted(text for (text,) in graphs) == sorted(map(str, store.named_graphs()))
            drop_past_state(twin.view, tables.schema)
        check_trimmed(twin, data)


def check_trimmed(twin: PastTwin, data: st.DataObject) -> None:
    oldest = data.draw(st.sampled_from(sorted(twin.states)))
    with transaction(twin.view):
        trim_past(twin.view, oldest)
    assert past_from(twin.view) == oldest
    later = data.draw(st.integers(oldest, twin.index))
    catalog, _ = twin.reading(later)
    check_answers(catalog, twin.states[later])
    with pytest.raises(NotKept):
        twin.reading(oldest - 1)


def test_a_quad_is_there_from_its_entry_to_the_one_that_removes_it(tmp_path: Path) -> None:
    a = NamedNode("http://example.org/a")
    twin = PastTwin(tmp_path, [])
    for index, is_added in ((2, True), (3, False), (4, True), (5, False)):
        twin.change([Quad(a, a, a)] if is_added else [], set() if is_added else {0}, drops=False)
        twin.note(index - 1)
        if index == 4:  # the first three at once
            twin.apply()
    twin.apply()
    for index in range(1, 6):
        check_answers(twin.reading(index)[0], twin.states[index])
        assert len(twin.states[index]) == (index in (2, 4))


def test_what_stays_of_a_state_when_the_view_changes(tmp_path: Path) -> None:
    a, b = (NamedNode(f"http://example.org/{name}") for name in "ab")
    twin = PastTwin(tmp_path, [Quad(a, a, Literal(1)), Quad(b, b, Literal(1))])
    twin.change([Quad(a, a, Literal(2))], set(), drops=False)
    twin.apply()
    catalog, tables = twin.reading(1)
    numbers = [catalog.id_of(node) for node in (a, b)]
    # both predicates are rare, so their quads have been copied together
    assert tables.row_count == 2
    assert tables.has_rest
    assert all(tables.stays({number}) for number in numbers if number is not None)
    present, tables = twin.reading(2)
    assert tables.row_count == 0
    assert not tables.stays({present.id_of(a) or 0})
    with pytest.raises(TooLarge), transaction(twin.view):
        make_past_state(twin.view, 1, "too_large", 1)


def test_a_past_that_is_not_wanted_is_let_go_of(tmp_path: Path) -> None:
    a: Any = NamedNode("http://example.org/a")
    twin = PastTwin(tmp_path, [Quad(a, a, a, a)])
    twin.change([], {0}, drops=True)
    twin.apply()
    for is_wanted in (False, True):
        with transaction(twin.view):
            keep_past(twin.view, twin.index, is_wanted=is_wanted)
        for table in ("past_turns", "graph_spans"):
            assert twin.rows(f"FROM {table}") == []
    assert past_from(twin.view) == twin.index


def test_terms_of_the_past_go_when_it_is_forgotten(tmp_path: Path) -> None:
    quads = [
        Quad(NamedNode(f"urn:{number}"), NamedNode("urn:p"), Literal(f"{number} !")) for number in range(9)
    ]
    twin = PastTwin(tmp_path, quads)
    twin.change([], set(range(9)), drops=False)
    twin.apply()
    assert not is_worth_collecting(twin.view, removed_min=1)
    assert collect_terms(twin.view) == 0
    check_answers(twin.reading(1)[0], twin.states[1])
    with transaction(twin.view):
        assert trim_past(twin.view, twin.index) == 9
    assert is_worth_collecting(twin.view, removed_min=9)
    assert collect_terms(twin.view) == 9 + 9 + 1


def test_the_past_has_a_bound(tmp_path: Path) -> None:
    a = NamedNode("http://example.org/a")
    twin = PastTwin(tmp_path, [])
    for number in range(12):
        twin.change([] if number % 2 else [Quad(a, a, a)], {0} if number % 2 else set(), drops=False)
        twin.note(twin.index - 1)
        twin.apply()
    assert oldest_within_bound(twin.view, turns_min=12) == 0
    oldest = oldest_within_bound(twin.view, turns_min=8)
    with transaction(twin.view):
        trim_past(twin.view, oldest)
    assert twin.rows("SELECT count(*) FROM past_turns") == [(6,)]
    assert oldest_within_bound(twin.view, turns_min=8) == 0
    check_answers(twin.reading(oldest)[0], twin.states[oldest])


def test_what_a_large_change_takes_and_brings_again_has_not_changed(tmp_path: Path) -> None:
    """Its pieces are noted one after the other, all at the index of its end."""
    a = NamedNode("http://example.org/a")
    twin = PastTwin(tmp_path, [Quad(a, a, a)])
    [(number,)] = twin.rows("SELECT s FROM rest")
    came = number + 1
    with transaction(twin.view):
        for node, added in ((number, False), (came, True), (number, True), (came, False)):
            twin.view.execute(f"INSERT INTO past_turns VALUES ({node}, {number}, {node}, 0, 2, {added})")
    catalog, tables = twin.reading(1)
    assert (tables.row_count, tables.has_rest) == (0, False)
    check_answers(catalog, twin.store)
