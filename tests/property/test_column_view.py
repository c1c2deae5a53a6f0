"""The column view, loaded and changed, against an Oxigraph store that is changed in the same way."""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import (
    BaseDirection,
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    Store,
    Triple,
    parse,
)

from graphdb.columns import applying, entry_lines, loading, schema
from graphdb.columns.applying import apply_changes, collect_terms, is_worth_collecting, take_statistics
from graphdb.columns.entry_lines import EntryLines
from graphdb.columns.loading import load_store, settle
from graphdb.columns.schema import check
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.following import ChangeNotes, apply_change
from graphdb.columns.sharding.shard import shard_pieces, take_piece
from graphdb.columns.term_ids import (
    DEFAULT_GRAPH,
    INLINE_TAGS,
    PAYLOAD_BITS,
    Tag,
    inline_id,
    inline_literal,
    tag_of,
    tag_of_term,
)
from graphdb.log.payloads import encode_changes, encode_close
from graphdb.model import ChangeSet, EntryKind, LogEntry
from graphdb.store.stored_form import stored_form, stored_term

XSD = "http://www.w3.org/2001/XMLSchema#"


def typed(kind: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[Literal]:
    return values.map(lambda value: Literal(value, datatype=NamedNode(XSD + kind)))


DATES = st.dates().map(str) | st.sampled_from(["-0044-03-15", "12020-01-01", "0000-01-01", "2020-02-30"])
ZONES = st.sampled_from(["", "Z", "+00:00", "+02:00", "-14:00"])
TIMES = st.times().map(lambda time: time.isoformat()) | st.sampled_from(["24:00:00", "00:00:00.0000001"])
NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.integers(-(2**56), 2**56).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda value: format(value, "f")),
    st.decimals(-(10**10), 10**10, places=6).map(str),
    st.floats().map(str),
    st.floats(width=32).map(str),
    st.floats(width=16).map(str),
    st.sampled_from(["INF", "-INF", "NaN", "-0", "0", "007", "x", "", "1e400", "-1.50", "1.7e20"]),
)
NODES = st.sampled_from("abcdef").map(lambda name: NamedNode(f"http://example.org/{name}"))
BLANK_NODES = st.sampled_from(["x", "y", "b0"]).map(BlankNode)
TEXTS = st.text(max_size=8) | st.text('"\\\n\r\t\b\f\x00\x85 <>@^_:.ué', max_size=8)
KINDS = st.sampled_from(["integer", "decimal", "double", "float"])
LITERALS = st.one_of(
    TEXTS.map(Literal),
    st.builds(lambda text: Literal(text, language="en-US"), TEXTS),
    st.builds(lambda text: Literal(text, language="ar", direction=BaseDirection.RTL), TEXTS),
    st.builds(lambda text: Literal(text, datatype=NamedNode("http://example.org/type")), TEXTS),
    *(typed(kind, NUMBERS) for kind in ("integer", "decimal", "double", "float", "byte")),
    typed("boolean", st.sampled_from(["true", "false", "1", "0", "x"])),
    typed("date", st.builds(str.__add__, DATES, ZONES)),
    typed("dateTime", st.builds("{}T{}{}".format, DATES, TIMES, ZONES)),
    typed("gYear", st.just("2020")),
)
TRIPLES = st.builds(Triple, NODES | BLANK_NODES, NODES, NODES | LITERALS)
OBJECTS = st.one_of(NODES, BLANK_NODES, LITERALS, TRIPLES, st.builds(Triple, NODES, NODES, TRIPLES))


def _stored(quad: Quad) -> Quad:
    return next(stored_form([quad]))


GRAPHS = st.just(DefaultGraph()) | NODES | BLANK_NODES
QUADS = st.builds(Quad, NODES | BLANK_NODES, NODES, OBJECTS, GRAPHS).map(_stored)
# what comes, and of what is there what goes
SHARDS = 3
STEPS = st.lists(
    st.tuples(st.lists(QUADS, max_size=12), st.sets(st.integers(0, 30)), st.booleans()), max_size=6
)


class Twin:
    """A view of a store; both are changed alike."""

    def __init__(self, directory: Path, quads: Iterable[Quad]) -> None:
        self.directory, self.store = directory, Store()
        self.store.extend(quads)
        self.view = duckdb.connect()
        self.index = 1
        schema.create(self.view)
        load_store(self.view, self.store, directory)
        settle(self.view, self.index)
        self.entries = EntryLines(self.index)

    def change(self, coming: Iterable[Quad], places: set[int], *, drops: bool) -> None:
        present = list(self.store)
        removed = tuple(quad for place, quad in enumerate(present) if place in places)
        kept = set(present) - set(removed)
        added = tuple(dict.fromkeys(quad for quad in coming if quad not in kept and quad not in removed))
        before = set(self.store.named_graphs())
        for quad in removed:
            self.store.remove(quad)
        self.store.extend(added)
        dropped = []
        for graph in list(self.store.named_graphs()) if drops else ():
            if not any(self.store.quads_for_pattern(None, None, None, graph)):
                self.store.remove_graph(graph)
                dropped.append(graph)
        created = tuple(set(self.store.named_graphs()) - before)
        change = ChangeSet(removed, added, tuple(graph for graph in dropped if graph in before), created)
        self.feed(EntryKind.CHANGES, encode_changes(change))

    def change_in_parts(self, coming: Iterable[Quad], *, replaces: bool) -> None:
        """What is put comes, and, where it replaces, all else goes: two quads a part, those that go first."""
        coming, present = dict.fromkeys(coming), set(self.store)
        removed = sorted(present - set(coming), key=str) if replaces else []
        added = [quad for quad in coming if quad not in present]
        before = set(self.store.named_graphs())
        for quad in removed:
            self.store.remove(quad)
        self.store.extend(added)
        parts = [ChangeSet(tuple(removed[at : at + 2]), ()) for at in range(0, len(removed), 2)]
        parts += [ChangeSet((), tuple(added[at : at + 2])) for at in range(0, len(added), 2)]
        parts.append(ChangeSet((), (), (), tuple(set(self.store.named_graphs()) - before)))
        for part in parts:
            self.feed(EntryKind.PART, encode_changes(part))
        if not replaces or added:
            self.feed(EntryKind.CLOSE, encode_close(len(parts)))
        else:  # all graphs are cleared
            graphs = (DefaultGraph(), *self.store.named_graphs())
            self.feed(EntryKind.CLOSE_CLEARED, encode_close(len(parts), graphs))

    def feed(self, kind: EntryKind, payload: bytes) -> None:
        self.index += 1
        self.entries.feed(LogEntry(self.index, 0, kind, bytes(16), 0, payload))

    def apply(self, notes: ChangeNotes | None = None) -> None:
        apply_changes(self.view, self.entries, self.directory, notes)
        self.entries.taken()

    def quads(self) -> set[Quad]:
        """Everything in the view, each number made a term again."""
        self.view.execute("CREATE OR REPLACE TEMP TABLE everything (s BIGINT, p BIGINT, o BIGINT, g BIGINT)")
        self.view.execute("INSERT INTO everything SELECT s, p, o, g FROM rest")
        for predicate, table in self.rows("SELECT p, tbl FROM predicates WHERE tbl <> 'rest'"):
            self.view.execute(f"INSERT INTO everything SELECT s, {predicate}, o, g FROM {table}")
        rows = self.rows("SELECT * FROM everything")
        assert len(rows) == len(set(rows))
        terms = {number: _parsed(text) for number, text in self.rows("SELECT id, text FROM terms")}

        def term(number: int) -> Any:
            return inline_literal(number) if number >> PAYLOAD_BITS in INLINE_TAGS else terms[number]

        return {
            Quad(term(s), term(p), term(o), DefaultGraph() if g == DEFAULT_GRAPH else term(g))
            for s, p, o, g in rows
        }

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.view.execute(sql).fetchall()


def _parsed(text: str) -> Any:
    return next(parse(f"<a:a> <a:a> {text} .".encode(), format=RdfFormat.N_TRIPLES, lenient=True)).object


@settings(max_examples=30, deadline=None)
@given(st.lists(QUADS, max_size=30), STEPS, st.integers(1, 3), st.booleans())
def test_a_view_holds_what_the_store_does(
    quads: list[Quad], steps: list[tuple[list[Quad], set[int], bool]], together: int, collects: bool
) -> None:
    with TemporaryDirectory() as directory:
        twin = Twin(Path(directory), quads)
        assert twin.quads() == set(twin.store)
        for number, (coming, going, drops) in enumerate(steps):
            twin.change(coming, going, drops=drops)
            if number % together == 0:
                twin.apply()
                if collects:
                    collect_terms(twin.view)
        twin.apply()
        _same(twin)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(QUADS, max_size=30),
    st.lists(st.tuples(st.lists(QUADS, max_size=12), st.booleans(), st.booleans()), max_size=5),
    st.integers(1, 600),
)
def test_large_changes_are_made_lines_of_some_parts_at_a_time(
    quads: list[Quad], steps: list[tuple[list[Quad], bool, bool]], together_bytes: int
) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patched:
        patched.setattr(entry_lines, "_TOGETHER_BYTES", together_bytes)
        twin = Twin(Path(directory), quads)
        for coming, replaces, applies in steps:
            twin.change_in_parts(coming, replaces=replaces)
            twin.change(coming[:2], {0, 3}, drops=False)
            if applies:
                twin.apply()
        twin.apply()
        _same(twin)


def test_terms_of_removed_quads_are_collected(tmp_path: Path) -> None:
    p, graph, other = (NamedNode(f"http://example.org/{name}") for name in ("p", "graph", "other"))
    inner = Triple(NamedNode("http://example.org/in"), p, Literal("inner"))
    outer = Triple(NamedNode("http://example.org/out"), p, inner)
    gone = [Quad(NamedNode(f"http://example.org/{n}"), p, Literal(f"text {n}"), graph) for n in range(20)]
    gone += [Quad(BlankNode("x"), NamedNode("http://example.org/q"), outer, other)]
    kept = [Quad(NamedNode("http://example.org/1"), p, Triple(p, p, inner)), Quad(p, p, Literal(1))]
    twin = Twin(tmp_path, [*gone, *kept])
    assert not is_worth_collecting(twin.view, removed_min=1)
    places = {place for place, quad in enumerate(twin.store) if quad in gone}
    twin.change([], places, drops=False)
    twin.apply()
    assert not is_worth_collecting(twin.view, removed_min=len(gone) + 1)
    # subjects and texts; the last quad, its outer triple term with its subject
    assert is_worth_collecting(twin.view, removed_min=len(gone))
    assert collect_terms(twin.view) == 19 + 20 + 4
    _same(twin)
    texts = {str(_parsed(text)) for (text,) in twin.rows("SELECT text FROM terms")}
    named = {term for quad in kept for term in (quad.subject, quad.predicate)} | {inner, inner.subject}
    assert texts == set(map(str, [*named, inner.object, kept[0].object, graph, other]))
    assert not is_worth_collecting(twin.view, removed_min=1)
    twin.change(gone, set(), drops=False)
    twin.apply()
    _same(twin)


def _same(twin: Twin) -> None:
    quads = set(twin.store)
    assert twin.quads() == quads
    assert check(twin.view) == (twin.index, twin.index)
    while take_statistics(twin.view):
        pass
    terms = {number: _parsed(text) for number, text in twin.rows("SELECT id, text FROM terms")}
    assert {
        terms[p]: counts for p, *counts in twin.rows("SELECT p, quads, subjects, objects FROM predicates")
    } == {
        p: [
            sum(quad.predicate == p for quad in quads),
            len({quad.subject for quad in quads if quad.predicate == p}),
            len({quad.object for quad in quads if quad.predicate == p}),
        ]
        for p in {quad.predicate for quad in quads}
    }
    assert dict(twin.rows("SELECT key, value FROM meta WHERE key IN ('subjects', 'objects')")) == {
        "subjects": str(len({quad.subject for quad in quads})),
        "objects": str(len({quad.object for quad in quads})),
    }
    assert {terms[g]: count for g, count in twin.rows("SELECT g, quads FROM graphs")} == {
        graph: sum(quad.graph_name == graph for quad in quads) for graph in twin.store.named_graphs()
    }
    _same_terms(twin, terms)


def _same_terms(twin: Twin, terms: dict[int, Any]) -> None:
    """Every column of `terms` is as the term itself says."""
    for number, _, kind, lexical, datatype, lang, num in twin.rows("SELECT * FROM terms"):
        term = terms[number]
        assert tag_of(number) == kind == tag_of_term(term)
        assert inline_id(term) is None
        if isinstance(term, Triple):
            continue
        assert lexical == term.value
        is_string = kind in (Tag.STRING, Tag.LANGUAGE_STRING)
        assert datatype == (term.datatype.value if isinstance(term, Literal) and not is_string else None)
        assert (lang is None) == (kind != Tag.LANGUAGE_STRING)
        if kind >= Tag.BIG_INTEGER:
            assert str(float(lexical)) == str(num)
    made = {number: (s, p, o) for number, s, p, o in twin.rows("SELECT * FROM triple_terms")}
    assert set(made) == {number for number, term in terms.items() if isinstance(term, Triple)}
    for number, parts in made.items():
        made_of: list[Any] = [
            inline_literal(part) if part >> PAYLOAD_BITS in INLINE_TAGS else terms[part] for part in parts
        ]
        assert Triple(*made_of) == terms[number]


@settings(max_examples=400, deadline=None)
@given(LITERALS)
@example(Literal("-0.000001", datatype=NamedNode(XSD + "decimal")))
@example(Literal("1e-7", datatype=NamedNode(XSD + "float")))
@example(Literal("-2139410.25", datatype=NamedNode(XSD + "float")))
@example(Literal("3.4028235e38", datatype=NamedNode(XSD + "float")))
def test_an_inline_number_is_its_literal(literal: Literal) -> None:
    term = stored_term(literal)
    assert isinstance(term, Literal)
    number = inline_id(term)
    if number is not None:
        assert inline_literal(number) == term
        assert tag_of(number) == tag_of_term(term)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(KINDS, NUMBERS),
        min_size=2,
        max_size=20,
    )
)
def test_numbers_of_one_tag_stand_in_the_order_of_their_values(numbers: list[tuple[str, str]]) -> None:
    terms: list[Any] = [
        stored_term(Literal(value, datatype=NamedNode(XSD + kind))) for kind, value in numbers
    ]
    of_tag: dict[Tag, list[tuple[int, float]]] = {}
    for term in terms:
        number = inline_id(term)
        if number is not None:
            of_tag.setdefault(tag_of(number), []).append((number, float(term.value)))
    for pairs in of_tag.values():
        assert [value for _, value in sorted(pairs)] == sorted(value for _, value in pairs)


class Shard:
    """The tables of one shard of a view, or of several on one host."""

    def __init__(self, view: duckdb.DuckDBPyConnection, mine: Sequence[int]) -> None:
        self.connection = duckdb.connect()
        begun = set[str]()
        for table, piece in shard_pieces(view, mine, SHARDS, rows_max=7):
            take_piece(self.connection, table, piece, is_temporary=False, appends=table in begun)
            begun.add(table)

    def tables(self) -> dict[str, set[Any]]:
        """The rows of each, but for texts of terms that it would not need any more."""
        run = self.connection.execute
        names = [
            row[0] for row in run("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
        ]
        assert {"rest", "graphs", "terms", "first_shard"} <= set(names)
        found: dict[str, set[Any]] = {
            name: set(run(f"FROM {name}").fetchall()) for name in names if name != "terms"
        }
        of_quads = [rows for name, rows in found.items() if name not in ("graphs", "first_shard")]
        ends = set(chain.from_iterable(chain.from_iterable(of_quads)))
        # as text, for NaN is not equal to itself
        found["terms"] = {repr(row) for row in run("FROM terms").fetchall() if row[0] in ends}
        return found


@settings(max_examples=30, deadline=None)
@given(st.lists(QUADS, max_size=30), STEPS, st.integers(1, 3), st.integers(1, SHARDS))
def test_shards_follow_the_view(
    quads: list[Quad], steps: list[tuple[list[Quad], set[int], bool]], together: int, hosts: int
) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patched:
        for module in (applying, loading):
            patched.setattr(module, "FREQUENT_QUADS", 4)
        twin = Twin(Path(directory), quads)
        division = Division.among(hosts, SHARDS)
        shards = [Shard(twin.view, mine) for mine in division.hosts]
        for number, (coming, going, drops) in enumerate(steps):
            twin.change(coming, going, drops=drops)
            if number % together == 0:
                notes = ChangeNotes(division, 1_000)
                twin.apply(notes)
                for shard, change in zip(shards, notes.changes(0, 1), strict=True):
                    apply_change(shard.connection, change.parts)
        twin.apply(notes := ChangeNotes(division, 1_000))
        for mine, shard, change in zip(division.hosts, shards, notes.changes(0, 1), strict=True):
            apply_change(shard.connection, change.parts)
            assert shard.tables() == Shard(twin.view, mine).tables()
