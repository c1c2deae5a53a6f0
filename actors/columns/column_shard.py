"""`ColumnShard`: the shards of a column view that one host has, in whatever process it is made: their
database, what it follows, and the steps of queries.

Its database is a copy of a part of the view, in a directory of its own that ends with it: a shard that is
lost is filled anew, on any machine.
"""

import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Lock
from typing import Any

import duckdb
import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from actors.columns.database import connected
from graphdb.columns.applying import transaction
from graphdb.columns.schema import REST
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.following import ShardChange, apply_change
from graphdb.columns.sharding.shard import (
    Piece,
    joined_in_parts,
    made_table,
    read_piece,
    split_piece,
    subject_bits,
    take_piece,
)
from graphdb.errors import CorruptionError, UnavailableError

__all__ = ["ColumnShard", "ShardPlace", "ShardSettings"]

_INTERRUPT_S = 0.05  # an interrupt that comes between two statements is lost, so it is repeated
_OVER_MAX = 1000
_JOINED_ROWS = 1 << 19  # of pieces that are taken in together
_DIRECTORY = "graphdb-shard-"
_BOOT = Path("/proc/sys/kernel/random/boot_id")  # another one on each machine
_LOOK = "FROM graphs LIMIT 0"  # DuckDB gives a transaction its state when it first looks at a table


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """name is the same for a shard that is made anew. Memory is DuckDB's; query_memory_mb of it a query may
    use before it spills, into spill_dir or the system's directory for temporary files.
    """

    name: str
    memory_mb: int
    query_memory_mb: int
    spill_dir: str | None
    spill_limit_mb: int


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Where a shard is: its process, its machine and the processors of that, and the version of DuckDB, whose
    hashes say which subjects are whose.
    """

    pid: int
    machine: str
    processors: int
    version: str


@dataclass(slots=True)
class _Session:
    """One query's: its cursor, one statement at a time."""

    cursor: DuckDBPyConnection
    busy: Lock = field(default_factory=Lock)
    is_over: bool = False


class ColumnShard:
    """Methods may be called on any threads: those that fill and follow by one caller, one after the other,
    and the steps of a query too.
    """

    def __init__(self, settings: ShardSettings) -> None:
        self._settings = settings
        self._directory: Path | None = None
        self._connection: DuckDBPyConnection | None = None
        self._index: int | None = None  # of the log, whose state it has; None while it is filled
        self._changed = Condition()
        self._sessions: dict[str, _Session] = {}
        self._over = deque[str](maxlen=_OVER_MAX)  # queries that have ended
        self._begun: set[str] = set()  # tables, while it is filled
        self._filling = 0
        self._writing = Lock()  # of the database, one at a time

    def place(self) -> ShardPlace:
        """Where it is."""
        machine = _BOOT.read_text().strip()
        return ShardPlace(os.getpid(), machine, os.cpu_count() or 1, duckdb.__version__)

    # Filling and following

    def clear(self, filling: int, threads: int) -> None:
        """Have an empty database, with so many threads for its queries. filling is the number of this time:
        a call of another that was given up may still come.
        """
        with self._writing:
            self._filling = filling
            self._clear(threads)

    def _clear(self, threads: int) -> None:
        self._close()
        directory = self._settings.spill_dir or tempfile.gettempdir()
        prefix = f"{_DIRECTORY}{self._settings.name}-"
        _remove_left(Path(directory), prefix)
        self._directory = Path(directory) / f"{prefix}{os.getpid()}"
        self._directory.mkdir(parents=True, mode=0o700)
        self._connection = connected(
            self._directory / "shard.duckdb",
            memory_mb=self._settings.memory_mb,
            spill=self._directory,
            spill_limit_mb=self._settings.spill_limit_mb,
            threads=threads,
        )
        self._begun.clear()

    def use_threads(self, threads: int) -> None:
        """As many for its queries from now on."""
        with self._writing:
            self._database.execute(f"SET threads = {threads}")

    def take(self, filling: int, table: str, piece: Piece) -> None:
        """Take in a piece of a table (`shard_pieces`), after clear() and before filled()."""
        with self._writing:
            self._check(filling)
            take_piece(self._database, table, piece, is_temporary=False, appends=table in self._begun)
            self._begun.add(table)

    def filled(self, filling: int, log_index: int) -> None:
        """All has come: this is the state of that index."""
        with self._writing:
            self._check(filling)
            assert REST in self._begun
            self._database.execute("CHECKPOINT")
            self._reach(log_index)

    def _check(self, filling: int) -> None:
        if filling != self._filling:
            raise UnavailableError("the shard is filled anew")

    def apply(self, change: ShardChange) -> None:
        """Follow. Raises CorruptionError where it does not follow from the shard's state, and the errors of
        DuckDB; then the shard is as before.
        """
        with self._writing, ExitStack() as held:
            if self._index != change.before_index:
                raise CorruptionError(f"it is at {self._index}, not {change.before_index}", "column shard")
            with transaction(self._database):
                apply_change(self._database, change.parts)
                held.enter_context(self._changed)  # no query begins between the end of this and the new index
            self._reach(change.log_index)

    def close(self) -> None:
        """End all queries, and what is written, and delete the database."""
        while not self._writing.acquire(timeout=_INTERRUPT_S):
            if (connection := self._connection) is not None:
                connection.interrupt()
        try:
            self._close()
        finally:
            self._writing.release()

    def _close(self) -> None:
        """While nothing is written: DuckDB does not close a connection that another thread uses."""
        with self._changed:
            self._index = None
            self._changed.notify_all()
        for query in list(self._sessions):
            self.end(query)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _reach(self, log_index: int) -> None:
        with self._changed:
            self._index = log_index
            self._changed.notify_all()

    @property
    def _database(self) -> DuckDBPyConnection:
        if self._connection is None:
            raise UnavailableError("the shard is empty")
        return self._connection

    # A query's steps

    def begin(self, query: str, log_index: int, wait_s: float) -> int | None:
        """Give a query the state of that index, once the shard is there; otherwise the index that it is at
        after so many seconds, or that is beyond; None where it is being filled.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._index is None or self._index >= log_index or query in self._over, wait_s
            )
            if self._index == log_index and query not in self._over:
                cursor = self._database.cursor()
                cursor.execute(f"SET operator_memory_limit = '{self._settings.query_memory_mb}MB'")
                cursor.execute("BEGIN")
                cursor.execute(_LOOK)
                self._sessions[query] = _Session(cursor)
            return self._index

    def compute(self, query: str, table: str, sql: str) -> int:
        """Make a table of a SELECT; how many rows it has."""
        with self._in(query) as cursor:
            return made_table(cursor, table, sql)

    def read(self, query: str, sql: str) -> Piece:
        """The rows of a SELECT."""
        with self._in(query) as cursor:
            return read_piece(cursor, sql)

    def put(self, query: str, table: str, appends: bool, *pieces: Piece) -> int:
        """Make a table of pieces, at least one, or append them to it; how many rows came."""
        with self._in(query) as cursor:
            rows = 0
            for piece in joined_in_parts(pieces, _JOINED_ROWS):
                rows += take_piece(cursor, table, piece, appends=appends)
                appends = True
            return rows

    def bits(self, query: str, keys: str) -> NDArray[np.uint8]:
        """See `subject_bits`."""
        with self._in(query) as cursor:
            return subject_bits(cursor, keys)

    def split(
        self, query: str, source: str, column: str, division: Division, wanted: NDArray[np.uint8] | None
    ) -> tuple[Piece, ...] | Piece:
        """See `split_piece`; of one host the piece alone, as Ray has the results of one."""
        with self._in(query) as cursor:
            pieces = split_piece(cursor, source, column, division, wanted)
            return tuple(pieces) if len(pieces) > 1 else pieces[0]

    def interrupt(self, query: str) -> None:
        """End the step that runs, if one does; it begins none any more."""
        self._over.append(query)
        session = self._sessions.get(query)
        if session is not None:
            session.is_over = True
            session.cursor.interrupt()
        with self._changed:
            self._changed.notify_all()

    def end(self, query: str) -> None:
        """The query is over, whatever it does; its tables are deleted. Twice is allowed, also at once: each
        returns when it is done.
        """
        with self._changed:  # one that still waits to begin does not
            self._over.append(query)
            session = self._sessions.get(query)
        if session is None:
            return
        session.is_over = True
        while not session.busy.acquire(timeout=_INTERRUPT_S):
            with suppress(duckdb.Error):  # another has just closed it
                session.cursor.interrupt()
        try:
            if query in self._sessions:
                with suppress(duckdb.Error):
                    session.cursor.execute("ROLLBACK")
                session.cursor.close()
                del self._sessions[query]  # not before: a connection is not closed while its cursor works
        finally:
            session.busy.release()

    @contextmanager
    def _in(self, query: str) -> Iterator[Any]:
        session = self._sessions.get(query)
        if session is None:
            raise UnavailableError("the query is over")
        with session.busy:
            if session.is_over:
                raise UnavailableError("the query is over")
            yield session.cursor


def _remove_left(directory: Path, prefix: str) -> None:
    """What processes have left that are gone."""
    for left in directory.glob(f"{prefix}*"):
        pid = left.name.removeprefix(prefix)
        if not Path(f"/proc/{pid}").exists() or pid == str(os.getpid()):
            shutil.rmtree(left, ignore_errors=True)
