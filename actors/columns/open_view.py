"""`OpenView`: a view that is open, as its queries share it: which state it has, what they looked up in it."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from graphdb.columns.catalog import Catalog
from graphdb.columns.results import TermTexts

__all__ = ["OpenView"]

# DuckDB gives a transaction its state when it first looks at a table.
_LOOK = "FROM meta LIMIT 0"
_LOG_INDEX = "SELECT value::BIGINT FROM meta WHERE key = 'log_index'"


@dataclass(frozen=True, slots=True)
class _State:
    """What there is to know of one state of the view."""

    version: object
    log_index: int
    catalog: Catalog


class OpenView:
    """For queries on any threads, and the one writer, which says when it changes something."""

    def __init__(self, connection: DuckDBPyConnection, query_memory_mb: int) -> None:
        """query_memory_mb: what a query's joins, groups and sorts may have in memory before they spill."""
        self.connection = connection
        self.texts = TermTexts(connection)
        self._version: object | None = object()  # another one after each change, None in the midst of one
        self._state: _State | None = None
        self._query_memory_mb = query_memory_mb
        # parsed once
        (self._begin,) = connection.extract_statements("BEGIN")
        (self._look,) = connection.extract_statements(_LOOK)
        self._idle = deque[DuckDBPyConnection]()

    def take_cursor(self) -> DuckDBPyConnection:
        """One for a query, which gives it back outside a transaction, or closes it."""
        try:
            return self._idle.pop()
        except IndexError:
            cursor = self.connection.cursor()
            cursor.execute(f"SET operator_memory_limit = '{self._query_memory_mb}MB'")
            return cursor

    def give_back(self, cursor: DuckDBPyConnection) -> None:
        self._idle.append(cursor)

    def close(self) -> None:
        """No query runs any more."""
        while self._idle:
            self._idle.pop().close()
        self.connection.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Around what the writer does."""
        self._version = None
        try:
            yield
        finally:
            self._version = object()

    def begin(self, cursor: DuckDBPyConnection) -> tuple[int, Catalog]:
        """Begin a transaction on a cursor: the log index whose state it sees, and the catalog of that.

        What a query before has read of the same state is not read again.
        """
        version, state = self._version, self._state
        cursor.execute(self._begin)
        cursor.execute(self._look)
        is_known = version is not None and version is self._version
        if is_known and state is not None and state.version is version:
            return state.log_index, state.catalog.on(cursor)
        ((log_index,),) = cursor.execute(_LOG_INDEX).fetchall()
        catalog = Catalog(cursor)
        if is_known:
            self._state = _State(version, log_index, catalog)
        return log_index, catalog
