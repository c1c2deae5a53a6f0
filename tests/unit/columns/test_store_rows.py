"""A view filled from rows of a store is the one that is filled quad by quad."""

from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pytest
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

from graphdb.columns import schema, store_rows
from graphdb.columns.loading import load_names, load_rows, load_store, settle
from graphdb.columns.schema import FREQUENT_QUADS, check
from graphdb.columns.store_rows import StoreRows
from graphdb.columns.term_ids import DEFAULT_GRAPH, INLINE_TAGS, Tag, inline_literal, tag_of
from tests.support.column_tables import column_tables

XSD = "http://www.w3.org/2001/XMLSchema#"
EXAMPLE = "http://example.org/"
Content = dict[str, Any]


def node(name: str) -> NamedNode:
    return NamedNode(EXAMPLE + name)


def typed(kind: str, *values: str) -> list[Literal]:
    return [Literal(value, datatype=NamedNode(XSD + kind)) for value in values]


def lenient(text: str) -> Any:
    """A term that only a parser lets in that is not strict."""
    return next(parse(f"<a:a> <a:a> {text} .".encode(), format=RdfFormat.N_TRIPLES, lenient=True)).object


ODD_IRIS = [
    lenient(iri) for iri in ("<http://example.org/a b>", "<relative>", '<a:"quoted">', "<a:%zz^|`{}>")
]
INNER = Triple(node("s"), node("p"), Literal("in\tner \x01"))
OBJECTS = [
    *(
        Literal(chr(code))
        for code in [*range(0x20), 0x22, 0x5C, 0x7F, 0x85, 0x2028, 0xFFFE, 0xFFFF, 0x10FFFF]
    ),
    *map(Literal, ("", "plain", "\\", "\\t", "\\u0041", 'a\\\n\\"', "\x00a", "true", "1", "?s", "x\t17\ty")),
    Literal("in\tner \x01"),
    Literal("a\tb", language="en-US"),
    Literal("a\x02", language="ar", direction=BaseDirection.RTL),
    Literal('"@en', language="en", direction=BaseDirection.LTR),
    *typed("integer", "1", "-7", "007", "+5", "x", "36028797018963968", "9" * 30, "-0"),
    *typed("decimal", "1", "1.0", "-0.5", ".5", "1.23456789", "123456789012345.5", "1e5", "."),
    *typed("double", "1", "1.5", "0.1", "1e400", "-0", "NaN", "-INF", "x"),
    *typed("float", "1.5", "-0", "0.1", "NaN", "x"),
    *typed("boolean", "true", "false", "1", "yes", ""),
    *typed("dateTime", "2020-01-01T00:00:00", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+02:00", "x"),
    *typed("date", "2020-02-29", "2020-02-29Z", "-0044-03-15", "2020-02-30"),
    *typed("byte", "1"),
    *typed("gYear", "2020"),
    Literal("1", datatype=node("type")),
    lenient('"x"^^<a:"quoted">'),
    lenient('"\\u0001"^^<a:b c>'),
    BlankNode("x.y"),
    BlankNode(),
    node("é"),
    *ODD_IRIS,
    INNER,
    Triple(BlankNode("x"), node("p"), INNER),
    *(Triple(node("s"), node("p"), value) for value in typed("integer", "1", "9" * 30)),
    *(Triple(node("s"), node("p"), value) for value in typed("decimal", "1", "1.5", "1.23456789")),
    *(Triple(node("s"), node("p"), value) for value in typed("boolean", "true", "x")),
    Triple(ODD_IRIS[0], ODD_IRIS[1], Literal("a", language="ar", direction=BaseDirection.RTL)),
]
GRAPHS = [DefaultGraph(), node("graph"), BlankNode("graph"), ODD_IRIS[0]]


def everything() -> Store:
    store = Store()
    for graph in GRAPHS:
        for predicate in (node("p"), ODD_IRIS[0], ODD_IRIS[1]):
            store.extend(Quad(node("s"), predicate, value, graph) for value in OBJECTS)
        for subject in (BlankNode("x"), *ODD_IRIS):
            store.add(Quad(subject, node("of"), Literal("one"), graph))
    store.add_graph(node("empty"))
    store.add(Quad(node("s"), node("only"), node("s"), node("graph")))
    for number in range(FREQUENT_QUADS):
        store.add(Quad(node(f"s{number}"), node("frequent"), Literal(number), GRAPHS[number % 2]))
    return store


def test_every_term_in_every_graph(tmp_path: Path) -> None:
    store = everything()
    view = empty_view()
    load_store(view, store, tmp_path)
    settle(view, 1)
    assert check(view) == (1, 1)
    assert content(view) == content(column_tables(store, FREQUENT_QUADS).connection)
    assert not list(tmp_path.iterdir())


def test_pieces_and_predicates_at_once_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = everything()
    monkeypatch.setattr(store_rows, "_BATCH_QUADS", 600)
    rows = StoreRows(store)
    view = empty_view()
    load_names(view, rows.graphs, rows.predicates, tmp_path)
    batches = list(rows.batches())
    assert [number for batch in batches for number in batch] == list(range(len(rows.predicates)))
    assert 1 < len(batches) < len(rows.predicates)
    path = tmp_path / "rows.tsv"
    for batch in reversed(batches):
        output = BytesIO()
        rows.write(batch, output)
        lines = output.getvalue().splitlines(keepends=True)
        for start in range(0, len(lines), 400):
            path.write_bytes(b"".join(lines[start : start + 400]))
            load_rows(view, path)
    settle(view, 1)
    assert check(view) == (1, 1)
    assert content(view) == content(column_tables(store, FREQUENT_QUADS).connection)


def test_a_row_of_any_length(tmp_path: Path) -> None:
    store = Store()
    for size in (1 << 21, 5 << 20):
        store.add(Quad(node("s"), node("p"), Literal("x" * size)))
    store.add(Quad(node("s"), node("p"), Literal("short")))
    view = empty_view()
    load_store(view, store, tmp_path)
    settle(view, 1)
    assert content(view) == content(column_tables(store, FREQUENT_QUADS).connection)


def test_a_store_without_quads(tmp_path: Path) -> None:
    store = Store()
    store.add_graph(node("empty"))
    view = empty_view()
    load_store(view, store, tmp_path)
    settle(view, 1)
    assert check(view) == (1, 1)
    assert content(view) == content(column_tables(store).connection)


def empty_view() -> duckdb.DuckDBPyConnection:
    view = duckdb.connect()
    schema.create(view)
    return view


def content(view: duckdb.DuckDBPyConnection) -> Content:
    """All tables, with terms in place of their numbers."""

    def rows(sql: str) -> list[tuple[Any, ...]]:
        return view.execute(sql).fetchall()

    known = {number: columns for number, *columns in rows("SELECT * FROM terms")}
    triples = {number: parts for number, *parts in rows("SELECT * FROM triple_terms")}

    def term(number: int) -> Any:
        if number == DEFAULT_GRAPH:
            return None
        if tag_of(number) in INLINE_TAGS:
            return str(inline_literal(number))
        return tuple(map(term, triples[number])) if number in triples else known[number][0]

    predicates = rows("SELECT * FROM predicates")
    tables = {table for _, table, *_ in predicates} - {"rest"}
    quads = rows("SELECT * FROM rest")
    for p, table, *_ in predicates:
        if table in tables:
            quads += [(s, p, o, g) for s, o, g in rows(f"FROM {table}")]
    named = [columns for columns in known.values() if columns[1] != Tag.TRIPLE]
    return {
        "quads": sorted(repr(tuple(map(term, quad))) for quad in quads),
        "terms": sorted(repr(columns) for columns in named),
        "triples": sorted(repr(term(number)) for number in triples),
        "graphs": {term(g): count for g, count in rows("SELECT * FROM graphs")},
        "predicates": {term(p): (table == "rest", *counts) for p, table, *counts in predicates},
    }
