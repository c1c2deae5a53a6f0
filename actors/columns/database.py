"""The view's database: `ViewFiles`, its directory; `OpenView`, what queries share while it is open."""

import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import IO

import duckdb
from duckdb import DuckDBPyConnection

from actors.columns.cursors import Cursors
from actors.columns.past_views import PastViews
from actors.columns.protocol import ViewSettings
from graphdb.columns import schema
from graphdb.columns.applying import transaction
from graphdb.columns.catalog import Catalog
from graphdb.columns.loading import load_names, load_rows, settle
from graphdb.columns.past_rows import keep_past
from graphdb.columns.past_state import ROW_BYTES
from graphdb.columns.quad_arrays import QuadArrays
from graphdb.columns.results import TermTexts
from graphdb.columns.text_order import TextOrders
from graphdb.errors import CorruptionError, UnavailableError

__all__ = ["OpenView", "ViewFiles", "connected"]

_ROOT = Path(__file__).resolve().parents[2]  # where `actors` is found, also when it is not installed


class ViewFiles:
    """One thread at a time. What is in the directory belongs to the view: it may all be deleted."""

    def __init__(self, directory: Path, settings: ViewSettings) -> None:
        self._directory, self._settings = directory, settings
        self._database = directory / "view.duckdb"
        self.scratch = directory / "scratch"
        self._spill = Path(settings.spill_dir) if settings.spill_dir else directory / "spill"

    def open(self) -> tuple[DuckDBPyConnection, int, int]:
        """The view as it was left, whole, with its log index and where to read on.

        Raises CorruptionError where there is none, or none that is whole.
        """
        if not self._database.exists():
            raise CorruptionError("there is none yet", "column view")
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        try:
            connection = self._connect()
        except duckdb.Error as error:
            raise CorruptionError(f"it cannot be opened: {error}", "column view") from error
        try:
            log_index, resume_index = schema.check(connection)
            self._keep_past(connection, log_index)
            return connection, log_index, resume_index
        except BaseException:
            connection.close()
            raise

    def load(self, store: Path, log_index: int) -> DuckDBPyConnection:
        """Make the view anew of a copy of the store. Raises UnavailableError, OSError, duckdb.Error."""
        self.remove()
        self.scratch.mkdir(parents=True)
        connection = self._connect()
        try:
            schema.create(connection)
            self._take_in(connection, store)
            settle(connection, log_index)
            self._keep_past(connection, log_index)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def keeps_past(self) -> bool:
        """See `columns.past`."""
        return self._settings.past

    def _keep_past(self, connection: DuckDBPyConnection, log_index: int) -> None:
        with transaction(connection):
            keep_past(connection, log_index, is_wanted=self.keeps_past)

    def opened(self, connection: DuckDBPyConnection) -> "OpenView":
        """What queries share of a connection of open() or load()."""
        settings = self._settings
        past_rows = (settings.tables_memory_mb << 20) // (_PAST_SHARE * ROW_BYTES) if settings.past else 0
        return OpenView(
            connection,
            settings.query_memory_mb,
            settings.arrays_mb << 20,
            strings_in_order=settings.strings_in_order,
            compares_dates=settings.dates_compared,
            past_rows=past_rows,
        )

    def remove(self) -> None:
        """Delete everything; no connection is open any more."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True, exist_ok=True)

    def _connect(self) -> DuckDBPyConnection:
        return connected(
            self._database,
            memory_mb=self._settings.tables_memory_mb,
            spill=self._spill,
            spill_limit_mb=self._settings.spill_limit_mb,
            threads=os.cpu_count() or 1,
        )

    def let_spill(self, connection: DuckDBPyConnection, is_allowed: bool) -> None:
        """Whether queries may write what does not fit into memory. Raises duckdb.Error where one has."""
        _bound_spill(connection, self._settings.spill_limit_mb if is_allowed else 0)

    def _take_in(self, connection: DuckDBPyConnection, store: Path) -> None:
        command = [sys.executable, "-m", "actors.columns.dumping", str(store), str(self.scratch)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT) as dumping:
            assert dumping.stdin is not None
            assert dumping.stdout is not None
            try:
                graphs, predicates = (list(_until_empty_line(dumping.stdout)) for _ in range(2))
                load_names(connection, graphs, predicates, self.scratch)
                for name in _until_empty_line(dumping.stdout):
                    load_rows(connection, self.scratch / name)
                    (self.scratch / name).unlink()
                    with suppress(BrokenPipeError):
                        os.write(dumping.stdin.fileno(), b"\n")
            except BaseException:
                dumping.kill()
                raise
        if dumping.returncode:
            raise UnavailableError(f"the store could not be read (exit code {dumping.returncode})")


def connected(
    database: Path, *, memory_mb: int, spill: Path, spill_limit_mb: int, threads: int
) -> DuckDBPyConnection:
    """A database of columns, opened or made. Raises duckdb.Error."""
    spill.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect(
        str(database),
        config={
            "memory_limit": f"{memory_mb}MB",
            "temp_directory": str(spill),
            "allocator_background_threads": "true",  # else what queries had is kept, within the limit
            "threads": str(threads),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    # among the options above DuckDB 2.0.0 takes it, and does not keep to it
    _bound_spill(connection, spill_limit_mb)
    schema.configure(connection)
    return connection


def _bound_spill(connection: DuckDBPyConnection, limit_mb: int) -> None:
    connection.execute(f"SET max_temp_directory_size = '{limit_mb}MB'")


def _until_empty_line(lines: IO[bytes]) -> Iterator[str]:
    """Or to the end, without a last line that is cut off."""
    while (line := lines.readline()) != b"\n" and line.endswith(b"\n"):
        yield line.decode()[:-1]


# DuckDB gives a transaction its state when it first looks at a table.
_LOOK = "FROM meta LIMIT 0"
_INTERRUPT_S = 0.05
_PAST_SHARE = 2  # of the tables' memory, quads of past states may have, before they spill
_ORDER_SHARE = 4  # of the memory for arrays, the order of the strings may have
_LOG_INDEX = "SELECT value::BIGINT FROM meta WHERE key = 'log_index'"


@dataclass(frozen=True, slots=True)
class _State:
    """What there is to know of one state of the view."""

    version: object
    log_index: int
    catalog: Catalog


class OpenView:
    """For queries on any threads, and the one writer, which says when it changes something."""

    def __init__(
        self,
        connection: DuckDBPyConnection,
        query_memory_mb: int,
        arrays_bytes: int,
        *,
        strings_in_order: bool = True,
        compares_dates: bool = True,
        past_rows: int = 0,
    ) -> None:
        """query_memory_mb: what a query's joins, groups and sorts may have in memory before they spill.
        arrays_bytes: what arrays may have, a quarter of it the order of the strings.
        strings_in_order, compares_dates: see `columns.strings_in_order` and `columns.dates_compared`.
        past_rows: see `PastViews`.
        """
        self._compares_dates = compares_dates
        self.connection = connection
        order_bytes = arrays_bytes // _ORDER_SHARE
        self._orders = TextOrders(connection, self._aside, order_bytes) if strings_in_order else None
        self._predicate_names: dict[int, str] = {}
        self._sorting: Thread | None = None
        self.texts = TermTexts(connection)
        self._version: object | None = object()  # another one after each change, None in the midst of one
        self._state: _State | None = None
        # of the present version, another one after each change
        all_arrays = QuadArrays(arrays_bytes - order_bytes)  # of the present and past states, in one bound
        self._arrays = all_arrays.beside()
        self._past = PastViews(
            connection,
            lambda: self._version,
            lambda: self._arrays,
            all_arrays.beside,
            past_rows,
            self._orders,
            self._predicate_names,
            compares_dates=compares_dates,
        )
        self._query_memory_mb = query_memory_mb
        self._listing = Lock()  # for the one query that may list many rows
        # parsed once
        (self._begin,) = connection.extract_statements("BEGIN")
        (self._look,) = connection.extract_statements(_LOOK)
        self._idle = deque[Cursors]()

    def take(self) -> Cursors:
        """Those of a query, which gives them back, or closes them."""
        try:
            return self._idle.pop()
        except IndexError:
            return self.fresh()

    def may_list(self) -> bool:
        """Whether a query may list many rows: one at a time, until it says that it has ended."""
        return self._listing.acquire(blocking=False)

    def has_listed(self) -> None:
        """The query to which may_list() said yes has ended."""
        self._listing.release()

    def _cursor(self) -> DuckDBPyConnection:
        cursor = self.connection.cursor()
        cursor.execute(f"SET operator_memory_limit = '{self._query_memory_mb}MB'")
        return cursor

    def give_back(self, cursors: Cursors) -> None:
        """For another query. Its transaction stays open while nothing changes: to begin one takes as long as
        a small query.
        """
        if cursors.version is None or cursors.version is not self._version:
            cursors.end()
        self._idle.append(cursors)

    def close(self) -> bool:
        """Whether it is closed, for no query works on it any more; else it may be called again."""
        if self._orders is not None and self._sorting is not None:
            while self._sorting.is_alive():
                self._orders.interrupt()  # again and again: one that comes before a call does not end it
                self._sorting.join(_INTERRUPT_S)
        while self._idle:
            self._idle.pop().close()
        self._past.close()
        try:
            self.connection.close()
        except duckdb.ResourceInUseException:
            return False
        return True

    def _aside(self, make: Callable[[], None]) -> None:
        """Run it while queries go on: one such thing at a time."""
        self._sorting = Thread(target=make, name="strings in order")
        self._sorting.start()

    def _end_idle(self) -> None:
        """Transactions that no query is in: an open one keeps what changes remove from being freed."""
        for _ in range(len(self._idle)):
            with suppress(IndexError):  # a query was faster
                cursors = self._idle.popleft()
                cursors.end()
                self._idle.append(cursors)
        self._past.end_idle()

    @contextmanager
    def changing(self, *, collects_terms: bool = False) -> Iterator[set[int]]:
        """Around what the writer does, who puts the predicates whose quads change into the set: what was made
        of the quads of the others stays.
        """
        self._version = None
        changed = set[int]()
        known: set[int] | None = None  # after a failure it is not known what has changed
        self._end_idle()
        try:
            yield changed
            known = changed
        finally:
            self._arrays = self._arrays.renewed() if known is None else self._arrays.without(known)
            changed_past = None if collects_terms else known
            version = object()
            self._past.changed(version, changed_past)
            self._version = version

    def fresh(self) -> Cursors:
        """Those of a query, which nobody has had."""
        return Cursors(self._cursor(), self._cursor())

    @property
    def past(self) -> PastViews:
        """What queries of the past ask."""
        return self._past

    def known(self) -> tuple[int, Catalog] | None:
        """The present log index, and what queries have looked up of its state, as a catalog without a
        connection. None while that changes, and where no query has begun since.
        """
        version, state = self._version, self._state
        if version is None or state is None or state.version is not version:
            return None
        return state.log_index, state.catalog.on(None)

    def begin(self, cursors: Cursors) -> tuple[int, Catalog]:
        """Have a transaction open on the cursor of the rows: the log index whose state it sees, and the
        catalog of that.

        What a query before has read of the same state is not read again.
        """
        version, state, arrays = self._version, self._state, self._arrays
        cursor = cursors.rows
        if version is None or cursors.version is not version:
            cursors.end()
            cursor.execute(self._begin)
            cursors.is_open = True
            cursor.execute(self._look)
            if version is not None and version is self._version:
                cursors.version = version
        if cursors.version is not None and state is not None and state.version is cursors.version:
            return state.log_index, state.catalog.on(cursor)
        ((log_index,),) = cursor.execute(_LOG_INDEX).fetchall()
        is_present = version is not None and version is self._version  # and so were they
        if not is_present:
            arrays = QuadArrays(arrays.bytes_max)
        names, dates = self._predicate_names, self._compares_dates
        catalog = Catalog(cursor, arrays, self._orders, names, compares_dates=dates)
        if cursors.version is not None:
            self._state = _State(cursors.version, log_index, catalog)
        return log_index, catalog
