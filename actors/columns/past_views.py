"""`PastViews`: states of the past that queries of the column view ask for, kept as long as they hold."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

import duckdb
from duckdb import DuckDBPyConnection

from actors.columns.cursors import Cursors
from graphdb.columns.catalog import Catalog
from graphdb.columns.past_state import PastTables, attach_past, drop_past_state, make_past_state
from graphdb.columns.quad_arrays import PastArrays, QuadArrays

if TYPE_CHECKING:
    from graphdb.columns.text_order import TextOrders

__all__ = ["PastViews", "StillChanging"]

_STATES_MAX = 2
_LOOK_S = 0.02  # at the view, while it changes
_LOCK_S = 0.1  # between two looks whether the query has to end


class StillChanging(Exception):
    """The view changes so often that no state could be read."""


@dataclass(slots=True, eq=False)
class _State:
    """Its arrays are those of the predicates whose quads it has; of the others, those of the view count."""

    tables: PastTables
    version: object | None  # of the view, as it was when this held the last time; None once it is given up
    arrays: QuadArrays
    catalog: Catalog | None = None  # once a query has begun
    idle: deque[Cursors] = field(default_factory=deque)


class PastViews:
    """For queries on any threads, and the one writer. A state is made by the query that asks for it first,
    while others that ask for one wait.
    """

    def __init__(
        self,
        connection: DuckDBPyConnection,
        version: Callable[[], object | None],
        arrays: Callable[[], QuadArrays],
        make_arrays: Callable[[], QuadArrays],
        rows_max: int,
        orders: "TextOrders | None",
        predicate_names: dict[int, str],
        *,
        compares_dates: bool,
    ) -> None:
        """version: that of the view now; None in the midst of a change, before which the arrays of the view
        become others. make_arrays: none yet, for a state. rows_max: the quads that have changed since, of all
        states together. Otherwise as for `Catalog`.
        """
        self._connection, self._version, self._arrays = connection, version, arrays
        self._make_arrays = make_arrays
        self._rows_max = rows_max // _STATES_MAX
        self._orders, self._predicate_names = orders, predicate_names
        self._compares_dates = compares_dates
        self._states: dict[int, _State] = {}  # the one that was asked for last is the last
        self._making = Lock()
        self._lock = Lock()  # for moments
        self._changed: list[set[int] | None] = []  # since the making of a state began
        self._newest: object | None = None  # the last version that was told
        self._numbers = count(1)
        ((database,),) = connection.execute("SELECT current_database()").fetchall()
        self._own_path = f"{database}.main"

    def take(self, log_index: int) -> Cursors | None:
        """Those that a query of a state has given back, if there are any."""
        state = self._states.get(log_index)
        if state is not None:
            with suppress(IndexError):
                return state.idle.pop()
        return None

    def give_back(self, cursors: Cursors, log_index: int) -> None:
        """For another query of the state. Its transaction stays open while nothing changes."""
        if cursors.version is None or cursors.version is not self._version():
            cursors.end()
        with self._lock:
            state = self._states.get(log_index)
            if state is not None and state.tables.search_path == cursors.search_path:
                state.idle.append(cursors)
                return
        cursors.close()

    def end_idle(self) -> None:
        """Transactions that no query is in, before something changes."""
        with self._lock:
            states = [*self._states.values()]
        for state in states:
            for _ in range(len(state.idle)):
                with suppress(IndexError):  # a query was faster
                    cursors = state.idle.popleft()
                    cursors.end()
                    state.idle.append(cursors)

    def known(self, log_index: int) -> Catalog | None:
        """What queries have looked up of a state, as a catalog without a connection. None where none has
        begun, and while something changes.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            state = self._states.pop(log_index, None)
            if state is None:
                return None
            self._states[log_index] = state
        finally:
            self._lock.release()
        version, arrays = self._version(), self._arrays()
        holds = version is not None and state.version is version and self._version() is version
        return self._catalog(state, None, arrays) if holds and state.catalog is not None else None

    def begin(self, cursors: Cursors, log_index: int, wait_s: float, check: Callable[[], None]) -> Catalog:
        """Have a transaction open on cursors of take(), or on such as no other query has had: the catalog of
        the state behind log_index, which the view has reached. check raises where the query has to end.

        Raises NotKept, TooLarge, StillChanging, and what check and DuckDB raise.
        """
        ends = time.monotonic() + wait_s
        while True:
            check()
            version = self._version()
            if version is not None:
                state = self._state(cursors, log_index, version, check)
                arrays, path = self._arrays(), state.tables.search_path
                if cursors.version is not version or cursors.search_path != path:
                    with suppress(duckdb.CatalogException):  # it was given up
                        self._look(cursors, path)
                # a state that is given up is not read, nor what is found behind its tables
                if cursors.is_open and self._version() is version and state.version is version:
                    cursors.version = version
                    return self._catalog(state, cursors.rows, arrays)
                cursors.end()
            if time.monotonic() > ends:
                raise StillChanging("the column view changes too often to read a state of its past")
            time.sleep(_LOOK_S)

    def _look(self, cursors: Cursors, path: str) -> None:
        """Begin a transaction that finds the tables of a state, if they are there."""
        cursors.end()
        if cursors.search_path != path:
            cursors.rows.execute(f"SET search_path = '{path},{self._own_path}'")
            cursors.search_path = path
        cursors.rows.execute("BEGIN")
        cursors.is_open = True
        cursors.rows.execute("FROM predicates LIMIT 0")
        cursors.rows.execute("FROM meta LIMIT 0")

    def _catalog(self, state: _State, cursor: DuckDBPyConnection | None, arrays: QuadArrays) -> Catalog:
        """arrays: those of the version of the view that the cursor sees."""
        if state.catalog is None:
            assert cursor is not None
            state.catalog = Catalog(
                cursor,
                None,
                self._orders,
                self._predicate_names,
                compares_dates=self._compares_dates,
                is_past=True,
            )
        catalog = state.catalog.on(cursor)
        catalog.arrays = PastArrays(state.arrays, arrays, state.tables.has)
        return catalog

    def _state(self, cursors: Cursors, log_index: int, version: object, check: Callable[[], None]) -> _State:
        while not self._making.acquire(timeout=_LOCK_S):
            check()
        try:
            with self._lock:
                state = self._states.pop(log_index, None)
                if state is not None:
                    self._states[log_index] = state
                    return state
                while len(self._states) >= _STATES_MAX:
                    self._drop(next(iter(self._states)))
                self._changed, self._newest = [], version
            tables = self._made(cursors, log_index)
            with self._lock:
                # what has changed in the meantime may be in what was read, or not; it is right for both
                is_right = all(each is not None and tables.stays(each) for each in self._changed)
                state = self._states[log_index] = _State(tables, self._newest, self._make_arrays())
                if not is_right:
                    self._drop(log_index)
                return state
        finally:
            self._making.release()

    def _made(self, cursors: Cursors, log_index: int) -> PastTables:
        cursors.end()
        cursor = cursors.rows
        if cursors.search_path:  # of a state that is no more
            cursor.execute("RESET search_path")
            cursors.search_path = ""
        attach_past(cursor)  # not on the connection, which the writer may be using
        cursor.execute("BEGIN")
        try:
            tables = make_past_state(cursor, log_index, f"s{next(self._numbers)}", self._rows_max)
            cursor.execute("COMMIT")
        except BaseException:
            with suppress(duckdb.Error):
                cursor.execute("ROLLBACK")
            raise
        return tables

    def changed(self, version: object, predicates: set[int] | None) -> None:
        """The view has become another version: the quads of these predicates have changed, or, if None,
        anything may have. States that do not hold any more are given up.
        """
        with self._lock:
            self._changed.append(predicates)
            self._newest = version
            for log_index, state in list(self._states.items()):
                if predicates is not None and state.tables.stays(predicates):
                    state.version = version
                else:
                    self._drop(log_index)

    def close(self) -> None:
        """Close what no query has; the states go with the connection."""
        with self._lock:
            for state in self._states.values():
                while state.idle:
                    state.idle.pop().close()

    def _drop(self, log_index: int) -> None:
        """Holding the lock."""
        state = self._states.pop(log_index)
        state.version = None
        state.arrays.let_go()
        while state.idle:
            with suppress(IndexError):
                state.idle.pop().close()
        with suppress(duckdb.Error), self._connection.cursor() as cursor:
            drop_past_state(cursor, state.tables.schema)
