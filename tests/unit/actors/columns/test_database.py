"""What a query is told of the state that its transaction sees, while a writer changes the view."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import duckdb
import numpy as np
import pytest
from duckdb import DuckDBPyConnection
from pyoxigraph import NamedNode

from actors.columns.cursors import Cursors
from actors.columns.database import OpenView
from graphdb.columns.applying import transaction
from graphdb.columns.quad_arrays import Ends, Terms
from graphdb.columns.schema import create
from graphdb.columns.term_ids import Tag
from tests.support.timing import HANG_S


@pytest.fixture
def view() -> Iterator[OpenView]:
    """Of log index 0, with one predicate of no quads."""
    with duckdb.connect(":memory:") as connection:
        create(connection)
        connection.execute("INSERT INTO predicates VALUES (1, 'rest', 0, 0, 0, true)")
        yield OpenView(connection, query_memory_mb=64, arrays_bytes=1 << 20)


def advance(view: OpenView, index: int) -> None:
    """There are as many quads, graphs and terms as log entries."""
    run = view.connection.execute
    with view.changing(), transaction(view.connection):
        run("UPDATE meta SET value = ? WHERE key = 'log_index'", [str(index)])
        run("UPDATE predicates SET quads = ?", [index])
        run("INSERT INTO graphs VALUES (?, 1)", [index])
        iri = [index, f"<http://e/{index}>", int(Tag.IRI)]
        run("INSERT INTO terms (id, text, kind) VALUES (?, ?, ?)", iri)


def cursors_of(view: OpenView) -> Cursors:
    return Cursors(view.connection.cursor(), view.connection.cursor())


def seen(view: OpenView, cursors: Cursors, *, stays_open: bool = False) -> tuple[int, int, int, bool, bool]:
    index, catalog = view.begin(cursors)
    try:
        own, following = (catalog.id_of(NamedNode(f"http://e/{number}")) for number in (index, index + 1))
        return index, catalog.predicates[1].quads, catalog.named_graphs, own == index, following is None
    finally:
        if not stays_open:
            cursors.end()


@pytest.mark.parametrize("stays_open", [False, True])
def test_each_transaction_sees_one_state(view: OpenView, *, stays_open: bool) -> None:
    cursors = cursors_of(view)
    for index in (1, 2, 3):
        advance(view, index)
        assert seen(view, cursors, stays_open=stays_open) == (index, index, index, True, True)
        assert seen(view, cursors, stays_open=stays_open) == (index, index, index, True, True)


def test_a_transaction_that_is_open_keeps_its_state(view: OpenView) -> None:
    advance(view, 1)
    older, newer = cursors_of(view), cursors_of(view)
    index, catalog = view.begin(older)
    advance(view, 2)
    assert view.begin(newer)[0] == 2
    assert (index, catalog.id_of(NamedNode("http://e/2"))) == (1, None)


def test_what_one_query_looks_up_the_next_one_need_not(view: OpenView) -> None:
    advance(view, 1)
    first, second = cursors_of(view), cursors_of(view)
    assert view.begin(first)[1].id_of(NamedNode("http://e/1")) == 1
    catalog = view.begin(second)[1]
    second.close()  # so that it can look nothing up
    assert catalog.id_of(NamedNode("http://e/1")) == 1


class Between:
    """A cursor beside which something is done after a certain statement."""

    def __init__(self, cursor: DuckDBPyConnection, statement: str, then: Callable[[], None]) -> None:
        self._cursor, self._statement, self._then = cursor, statement, then

    def execute(self, sql: str | duckdb.Statement, *parameters: Any) -> DuckDBPyConnection:
        result = self._cursor.execute(sql, *parameters)
        text = sql if isinstance(sql, str) else sql.query
        if text.startswith(self._statement):
            self._then()
        return result


@pytest.mark.parametrize(("statement", "index"), [("BEGIN", 2), ("FROM", 1)])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_change_that_comes_between_is_seen_as_the_transaction_sees_it(
    view: OpenView, statement: str, index: int, *, is_known: bool
) -> None:
    advance(view, 1)
    cursors, other = cursors_of(view), cursors_of(view)
    if is_known:
        seen(view, other)
    between: Any = Between(cursors.rows, statement, lambda: advance(view, 2))
    assert seen(view, Cursors(between, cursors.terms)) == (index, index, index, True, True)
    assert seen(view, other) == (2, 2, 2, True, True)


def test_states_are_exact_beside_a_writer(view: OpenView) -> None:
    advance(view, 1)

    def read(_number: int) -> set[tuple[int, ...]]:
        found = set[tuple[int, ...]]()
        for turn in range(300):
            cursors = view.take()
            found.add(seen(view, cursors, stays_open=turn % 2 == 0))
            view.give_back(cursors)
        return found

    with ThreadPoolExecutor(3) as threads:
        reading = threads.map(read, range(3))
        for index in range(2, 200):
            advance(view, index)
        states = set[tuple[int, ...]]().union(*reading)
    assert {state for state in states if state != (state[0], state[0], state[0], True, True)} == set()
    assert len(states) > 1


def test_cursors_are_used_again(view: OpenView) -> None:
    first, second = view.take(), view.take()
    view.give_back(first)
    assert view.take() is first
    setting = "SELECT current_setting('operator_memory_limit')"
    assert [each.execute(setting).fetchone() for each in (first.rows, first.terms)] == [("61.0 MiB",)] * 2
    view.give_back(second)
    view.close()
    with pytest.raises(duckdb.ConnectionException):
        second.rows.execute("SELECT 1")


def test_a_transaction_stays_open_until_the_view_changes(view: OpenView) -> None:
    cursors = view.take()
    view.begin(cursors)
    view.give_back(cursors)
    assert cursors.is_open
    begun: list[str] = []
    between: Any = Between(cursors.rows, "BEGIN", lambda: begun.append("again"))
    again = Cursors(between, cursors.terms, cursors.version, cursors.is_open)
    assert view.begin(again)[0] == 0
    assert begun == []
    with view.changing():
        assert not cursors.is_open
    cursors = view.take()
    with view.changing():  # while a query runs
        view.begin(cursors)
    view.give_back(cursors)
    assert not cursors.is_open


def test_arrays_stay_over_changes_of_other_predicates(view: OpenView) -> None:
    cursors = view.take()
    kept = Ends(Terms(0, 1), np.zeros(3, np.uint32))

    def made() -> dict[int, bool]:
        """Of which of two predicates arrays are made anew."""
        _, catalog = view.begin(cursors)
        anew = dict.fromkeys((1, 2), False)
        for predicate in anew:

            def make(predicate: int = predicate) -> Ends:
                anew[predicate] = True
                return kept

            catalog.arrays.get(((predicate,), "s"), make)
        return anew

    assert made() == {1: True, 2: True}
    with view.changing() as changed:
        changed.add(1)
    assert made() == {1: True, 2: False}
    with pytest.raises(duckdb.Error), view.changing() as changed:
        raise duckdb.Error
    assert made() == {1: True, 2: True}
    assert made() == {1: False, 2: False}


def test_a_query_of_an_older_state_adds_no_arrays_to_the_newer_one(view: OpenView) -> None:
    older, newer = view.take(), view.take()
    _, catalog = view.begin(older)
    with view.changing() as changed:
        changed.add(1)
    ends = [Ends(Terms(0, 1), np.zeros(count, np.uint32)) for count in (3, 4)]
    catalog.arrays.get(((1,), "s"), lambda: ends[0])
    assert view.begin(newer)[1].arrays.get(((1,), "s"), lambda: ends[1]) is ends[1]


def test_strings_are_put_in_order_beside_queries(view: OpenView) -> None:
    row = [3 << 56 | 5, '"a"', int(Tag.STRING), "a"]
    view.connection.execute("INSERT INTO terms (id, text, kind, lexical) VALUES (?, ?, ?, ?)", row)
    cursors = cursors_of(view)
    _, catalog = view.begin(cursors)
    deadline = time.monotonic() + HANG_S
    while (order := catalog.text_order()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert order is not None
    assert order.ids.tolist() == row[:1]
    cursors.close()
    view.close()


def test_a_query_may_end_while_strings_are_put_in_order() -> None:
    with duckdb.connect(":memory:") as connection:
        create(connection)
        connection.execute(
            "INSERT INTO terms (id, text, kind, lexical) "
            "SELECT ? + range, range::VARCHAR, ?, md5(range::VARCHAR) FROM range(300_000)",
            [3 << 56, int(Tag.STRING)],
        )
        view = OpenView(connection, query_memory_mb=64, arrays_bytes=1 << 28)
        first, second = cursors_of(view), cursors_of(view)
        assert view.begin(first)[1].text_order() is None
        time.sleep(0.05)  # it is being read now
        first.close()  # DuckDB refuses to close a connection while a cursor of it works
        _, catalog = view.begin(second)
        deadline = time.monotonic() + HANG_S
        while (order := catalog.text_order()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert order is not None
        assert len(order.ids) == 300_000
        view.close()


def test_the_names_of_predicates_are_looked_up_once(view: OpenView) -> None:
    advance(view, 1)
    name = NamedNode("http://e/1")
    cursors = cursors_of(view)
    assert view.begin(cursors)[1].id_of(name) == 1
    cursors.end()
    view.connection.execute("DELETE FROM terms")
    with view.changing():
        pass
    assert view.begin(cursors)[1].id_of(name) == 1
    assert view.begin(cursors)[1].id_of(NamedNode("http://e/2")) is None


def test_a_view_without_strings_in_order_has_none() -> None:
    with duckdb.connect(":memory:") as connection:
        create(connection)
        view = OpenView(connection, query_memory_mb=64, arrays_bytes=1 << 20, strings_in_order=False)
        _, catalog = view.begin(cursors_of(view))
        assert catalog.text_order() is None


def test_it_is_closed_when_no_query_works_on_it(view: OpenView) -> None:
    cursors, begun = cursors_of(view), Event()

    def note(number: int) -> int:
        begun.set()
        return number

    cursors.rows.create_function("note", note, ["BIGINT"], "BIGINT")
    endless = "SELECT count(*) FROM range(100_000_000_000) t(n) WHERE n % 7 = note(3)"
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(cursors.rows.execute, endless)
        assert begun.wait(HANG_S)
        is_closed = view.close()
        while not working.done():
            cursors.interrupt()  # one that comes before the call does not end it
            time.sleep(0.01)
        with pytest.raises(duckdb.InterruptException):
            working.result(HANG_S)
    assert not is_closed
    assert view.close()
    with pytest.raises(duckdb.ConnectionException):
        view.connection.execute("SELECT 1")
