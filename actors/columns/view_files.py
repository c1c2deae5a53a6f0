"""`ViewFiles`: the directory of a column view: its database, and what it spills."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import duckdb
from duckdb import DuckDBPyConnection

from graphdb.columns import schema
from graphdb.columns.loading import load_names, load_rows, settle
from graphdb.columns.schema import check
from graphdb.config.service import Columns
from graphdb.errors import CorruptionError, UnavailableError

__all__ = ["ViewFiles"]

_ROOT = Path(__file__).resolve().parents[2]  # where `actors` is found, also when it is not installed


class ViewFiles:
    """One thread at a time. What is in the directory belongs to the view: it may all be deleted."""

    def __init__(self, directory: Path, settings: Columns) -> None:
        self._directory, self._settings = directory, settings
        self._database = directory / "view.duckdb"
        self.scratch = directory / "scratch"
        self.query_memory_mb = settings.query_memory_mb
        self._spill = settings.spill_dir or directory / "spill"

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
            return connection, *check(connection)
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
        except BaseException:
            connection.close()
            raise
        return connection

    def remove(self) -> None:
        """Delete everything; no connection is open any more."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True, exist_ok=True)

    def _connect(self) -> DuckDBPyConnection:
        self._spill.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect(
            str(self._database),
            config={
                "memory_limit": f"{self._settings.memory_limit_mb}MB",
                "temp_directory": str(self._spill),
                "allocator_background_threads": "true",  # else what queries had is kept, within the limit
                "threads": str(os.cpu_count() or 1),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        # among the options above DuckDB 2.0.0 takes it, and does not keep to it
        self.let_spill(connection, True)
        schema.configure(connection)
        return connection

    def let_spill(self, connection: DuckDBPyConnection, is_allowed: bool) -> None:
        """Whether queries may write what does not fit into memory. Raises duckdb.Error where one has."""
        limit_mb = self._settings.spill_limit_mb if is_allowed else 0
        connection.execute(f"SET max_temp_directory_size = '{limit_mb}MB'")

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


def _until_empty_line(lines: IO[bytes]) -> Iterator[str]:
    """Or to the end, without a last line that is cut off."""
    while (line := lines.readline()) != b"\n" and line.endswith(b"\n"):
        yield line.decode()[:-1]
