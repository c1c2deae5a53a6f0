"""Queries on an open view, without its process: what is answered at once, and what has a place of its own."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyoxigraph import Store

from actors.columns.column_query import ColumnQuery, NotTaken
from actors.columns.database import OpenView
from actors.columns.protocol import ColumnTask, ViewSettings
from graphdb.columns import estimate
from graphdb.config.service import Columns
from graphdb.sparql.packing import packed
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import ResultFormat
from tests.support.column_tables import column_tables

LOG_INDEX = 7
SETTINGS = ViewSettings.of(Columns())
FEW = [
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "SELECT (COUNT(DISTINCT ?p) AS ?n) { ?s ?p ?o }",
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER (ISIRI(?o)) }",
    "SELECT (COUNT(*) AS ?n) (MAX(?v) AS ?most) { ?s <x:value> ?v ; <x:kind> ?k }",
    "SELECT (MIN(?name) AS ?least) { ?s <x:name> ?name }",
    "SELECT ?k (COUNT(*) AS ?n) { ?s <x:kind> ?k ; <x:value> ?v } GROUP BY ?k",
    "SELECT (COUNT(*) AS ?n) { ?s <x:value> ?v FILTER (?v > 50) FILTER EXISTS { ?s <x:kind> ?k } }",
]
MANY = ["SELECT ?v (COUNT(*) AS ?n) { ?s <x:value> ?v } GROUP BY ?v"]


def opened() -> OpenView:
    store = Store()
    facts = (f"<x:s{n}> <x:kind> <x:k{n % 3}> ; <x:value> {n} ; <x:name> 'name {n}' ." for n in range(150))
    store.update(f"INSERT DATA {{ {' '.join(facts)} }}")
    connection = column_tables(store).connection
    connection.execute("UPDATE meta SET value = ? WHERE key = 'log_index'", [str(LOG_INDEX)])
    return OpenView(connection, query_memory_mb=64, arrays_bytes=1 << 24, strings_in_order=False)


def task(text: str, fmt: ResultFormat = ResultFormat.TSV) -> ColumnTask:
    return ColumnTask(packed(parse_query(text)), None, (), (), (), fmt.value, 0, 60.0, None)


def run(query: ColumnQuery) -> bytes:
    pieces = list[bytes]()
    query.run(lambda _index, _work: None, pieces.append)
    return b"".join(pieces)


def lines(answer: bytes) -> Sequence[bytes]:
    return sorted(answer.splitlines())


@pytest.mark.parametrize("fmt", [ResultFormat.JSON, ResultFormat.CSV, ResultFormat.XML])
def test_few_rows_are_written_as_on_a_thread(fmt: ResultFormat) -> None:
    view = opened()
    none = "SELECT ?k (COUNT(*) AS ?n) { ?s <x:kind> ?k FILTER (?k = <x:k7>) } GROUP BY ?k"
    for text in (*FEW, none):
        asked = replace(
            task(text, fmt), columns=["one", "other"][: 2 if "(MAX" in text or "?k (" in text else 1]
        )
        expected = run(ColumnQuery(view, asked, SETTINGS))
        found = ColumnQuery(view, asked, SETTINGS).at_once()
        assert text == none or found is not None, text
        assert found is None or b"".join(found[1]) == expected, text


@pytest.mark.parametrize("keeps", [True, False])
def test_few_rows_are_answered_at_once_when_all_is_known(keeps: bool) -> None:
    view, settings = opened(), replace(SETTINGS, plans_kept=keeps)
    in_sql = replace(settings, counts_without_rows=False)
    assert ColumnQuery(view, task(FEW[0]), settings).at_once() is None
    for text in (*FEW, *MANY):
        expected = run(ColumnQuery(view, task(text), settings))
        assert lines(run(ColumnQuery(opened(), task(text), in_sql))) == lines(expected), text
        for _ in range(2):
            query = ColumnQuery(view, task(text), settings)
            found = query.at_once()
            if text in FEW:
                assert found is not None, text
                assert (found[0], b"".join(found[1])) == (LOG_INDEX, expected), text
            else:
                assert found is None, text
                assert run(query) == expected, text
        assert ColumnQuery(view, task(text), in_sql).at_once() is None, text


def test_a_long_text_is_written_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    view, least = opened(), task("SELECT (MIN(?name) AS ?least) { ?s <x:name> ?name }")
    run(ColumnQuery(view, least, SETTINGS))
    assert ColumnQuery(view, least, SETTINGS).at_once() is not None
    monkeypatch.setattr("actors.columns.column_query._COUNTED_CHARACTERS_AT_ONCE", 5)
    assert ColumnQuery(view, least, SETTINGS).at_once() is None


def test_what_was_counted_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    view = opened()
    expected = run(ColumnQuery(view, task(MANY[0]), SETTINGS))
    query = ColumnQuery(view, task(MANY[0]), SETTINGS)
    assert query.at_once() is None
    monkeypatch.setattr("actors.columns.column_query.counted", None)
    assert run(query) == expected


def test_one_query_at_a_time_lists_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "LISTING_ROWS_MAX", 100)
    view, listing = opened(), task("SELECT ?s ?v { ?s <x:value> ?v }")
    few = task("SELECT ?s ?v { ?s <x:value> ?v } LIMIT 10")
    met = list[bytes | str]()

    def meanwhile(_index: int, _work: object) -> None:
        met.append(run(ColumnQuery(view, few, SETTINGS)))
        with pytest.raises(NotTaken, match="no place is free"):
            run(ColumnQuery(view, listing, SETTINGS))
        assert ColumnQuery(view, listing, SETTINGS).explained()["path"] == "columns"

    for _ in range(2):
        pieces = list[bytes]()
        ColumnQuery(view, listing, SETTINGS).run(meanwhile, pieces.append)
        assert b"".join(pieces).count(b"\n") == 151
    assert len(met) == 2

    def refused(_piece: bytes) -> None:
        raise ValueError("the client has gone")

    with pytest.raises(Exception, match="midst of the answer"):
        ColumnQuery(view, listing, SETTINGS).run(lambda _index, _work: None, refused)
    assert run(ColumnQuery(view, listing, SETTINGS)).count(b"\n") == 151
    with pytest.raises(NotTaken, match="no place is free"):
        run(ColumnQuery(view, listing, replace(SETTINGS, queries_max=1)))
