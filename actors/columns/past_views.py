"""`PastViews`: states of the past that queries of the column view ask for, kept as long as they hold."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

import duckdb
from duckdb import DuckDBPyConnection

from graphdb.columns.catalog import Catalog
from graphdb.columns.past_state import PastTables, attach_past, drop_past_state, make_past_state
from graphdb.columns.quad_arrays import QuadArrays

if TYPE_CHECKING:
    from graphdb.columns.text_order import TextOrders

__all__ = ["PastViews", "StillChanging"]

_STATES_MAX = 2
_LOOK_S = 0.02  # at the view, while it changes
_LOCK_S = 0.1  # between two looks whether the query has to end


class StillChanging(Exception):
    """The view changes so often that no state could be read."""


@dataclass(slots=True)
class _State:
    tables: PastTables
    version: object | None  # of the view, as it was when this held the last time
    catalog: Catalog | None = None  # once a query has begun


class PastViews:
    """For queries on any threads, and the one writer. A state is made by the query that asks for it first,
    while others that ask for one wait.
    """

    def __init__(
        self,
        connection: DuckDBPyConnection,
        version: Callable[[], object | None],
        arrays_bytes: int,
        rows_max: int,
        orders: "TextOrders | None",
        predicate_names: dict[int, str],
        *,
        compares_dates: bool,
    ) -> None:
        """version: that of the view now; None in the midst of a change. arrays_bytes, rows_max: what all
        states together may have in arrays, and in quads that have changed since. Otherwise as for `Catalog`.
        """
        self._connection, self._version = connection, version
        self._arrays_bytes, self._rows_max = arrays_bytes // _STATES_MAX, rows_max // _STATES_MAX
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

    def begin(
        self, cursor: DuckDBPyConnection, log_index: int, wait_s: float, check: Callable[[], None]
    ) -> Catalog:
        """Have a transaction open on a cursor that no other query will get: the catalog of the state behind
        log_index, which the view has reached. check raises where the query has to end.

        Raises NotKept, TooLarge, StillChanging, and what check and DuckDB raise.
        """
        ends = time.monotonic() + wait_s
        while True:
            check()
            version = self._version()
            if version is not None:
                state = self._state(cursor, log_index, version, check)
                cursor.execute(f"SET search_path = '{state.tables.search_path},{self._own_path}'")
                cursor.execute("BEGIN")
                cursor.execute("FROM predicates LIMIT 0")
                cursor.execute("FROM meta LIMIT 0")
                if self._version() is version and state.version is version:
                    return self._catalog(state, cursor)
                cursor.execute("ROLLBACK")
                cursor.execute("RESET search_path")
            if time.monotonic() > ends:
                raise StillChanging("the column view changes too often to read a state of its past")
            time.sleep(_LOOK_S)

    def _catalog(self, state: _State, cursor: DuckDBPyConnection) -> Catalog:
        if state.catalog is None:
            state.catalog = Catalog(
                cursor,
                QuadArrays(self._arrays_bytes),
                self._orders,
                self._predicate_names,
                compares_dates=self._compares_dates,
                is_past=True,
            )
        return state.catalog.on(cursor)

    def _state(
        self, cursor: DuckDBPyConnection, log_index: int, version: object, check: Callable[[], None]
    ) -> _State:
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
            tables = self._made(cursor, log_index)
            with self._lock:
                # what has changed in the meantime may be in what was read, or not; it is right for both
                is_right = all(each is not None and tables.stays(each) for each in self._changed)
                state = self._states[log_index] = _State(tables, self._newest)
                if not is_right:
                    self._drop(log_index)
                    state.version = None
                return state
        finally:
            self._making.release()

    def _made(self, cursor: DuckDBPyConnection, log_index: int) -> PastTables:
        attach_past(self._connection)
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

    def _drop(self, log_index: int) -> None:
        """Holding the lock."""
        state = self._states.pop(log_index)
        with suppress(duckdb.Error), self._connection.cursor() as cursor:
            drop_past_state(cursor, state.tables.schema)
