"""What the commands share in speaking to a person: the two outputs, progress, and how a failure is said."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

__all__ = [
    "CommandError",
    "LoadProgress",
    "RecordFormat",
    "UsageError",
    "out",
    "print_table",
    "progress",
    "say",
    "title_of",
    "write_bytes",
]


class CommandError(Exception):
    """A command that cannot go on; str() of it is the one line that the person sees."""

    exit_code = 1


class UsageError(CommandError):
    """The command was called in a way that cannot mean anything."""

    exit_code = 2


class RecordFormat(StrEnum):
    """How a record of the service is printed: for a person, or as it is."""

    TABLE = "table"
    JSON = "json"


# No emoji: `:key:` in data is what it is.
out = Console(highlight=False, soft_wrap=True, emoji=False)
WIDE = 100_000  # columns, where nothing is to be wrapped
_err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_table(table: "Table") -> None:
    """Print a table, as wide as the terminal; as wide as its content without a terminal."""
    console = out if out.is_terminal else Console(highlight=False, width=WIDE, emoji=False)
    console.print(table)


def say(line: str) -> None:
    """Print a message for a person on standard error, so that it is not part of the output."""
    _err.print(line, markup=False)


def write_bytes(chunk: bytes) -> None:
    """Write bytes to standard output as they are."""
    sys.stdout.buffer.write(chunk)


class LoadProgress:
    """Bytes read and quads stored so far, shown while they grow if a person is watching."""

    def __init__(self, bar: "Progress | None", task: "TaskID | None") -> None:
        self._bar, self._task = bar, task
        self.bytes_read = 0
        self.quads = 0

    def read(self, count: int) -> None:
        self.bytes_read += count
        self._show()

    def stored(self, count: int) -> None:
        self.quads += count
        self._show()

    def begin_again(self) -> None:
        """What was read and stored so far does not count."""
        self.bytes_read = self.quads = 0
        self._show()

    def _show(self) -> None:
        if self._bar is None or self._task is None:
            return
        elapsed = self._bar.tasks[0].elapsed or 0
        rate = f"{self.quads:,} quads  {self.quads / elapsed:,.0f}/s" if self.quads and elapsed else ""
        self._bar.update(self._task, completed=self.bytes_read, rate=rate)


def title_of(documents: Sequence[object]) -> str:
    """What the progress of loading documents is called."""
    return str(documents[0]) if len(documents) == 1 else f"{len(documents):,} files"


@contextmanager
def progress(title: str, total_bytes: int | None) -> Iterator[LoadProgress]:
    """Show a progress bar on standard error while the block runs, if that is a terminal."""
    if not _err.is_terminal:
        yield LoadProgress(None, None)
        return
    # at the top, every command would load it, and most show none
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn(title, markup=False),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=_err, transient=True) as bar:
        yield LoadProgress(bar, bar.add_task("", total=total_bytes, rate=""))
