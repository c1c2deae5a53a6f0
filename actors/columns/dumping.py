"""`python -m actors.columns.dumping STORE DIRECTORY`: a store as rows (`StoreRows`), in files.

On standard output come the names of graphs, an empty line, those of predicates, an empty line, and then the
name of each file that is whole; on standard input a byte for each that has been taken in and deleted.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import IO, cast

from pyoxigraph import Store

from graphdb.columns.store_rows import StoreRows

__all__ = ["RowFiles", "RowOutput"]


class RowFiles:
    """For any thread. Whoever takes the files in deletes each and says so by `taken`.

    The first has half of file_bytes, so that taking in begins early; each next one has a 32nd more.
    """

    def __init__(
        self, directory: Path, file_bytes: int, files_max: int, whole: Callable[[Path], None]
    ) -> None:
        self.whole = whole
        self._file_bytes = file_bytes
        self._directory, self._files_max = directory, files_max
        self._numbers, self._room = count(), Semaphore(files_max)

    def begin(self) -> tuple[Path, int]:
        """One to write, as soon as there may be another, and how many bytes it is to have."""
        self._room.acquire()
        number = next(self._numbers)
        return self._directory / f"rows-{number}.tsv", self._file_bytes * min(16 + number, 32) // 32

    def taken(self) -> None:
        self._room.release()

    def wait_until_taken(self) -> None:
        """Until all are; no other is written then."""
        for _ in range(self._files_max):
            self._room.acquire()


class RowOutput:
    """What one thread at a time writes to: whole rows in each file, whatever the pieces that they come in."""

    def __init__(self, files: RowFiles) -> None:
        self._files = files
        self._path: Path | None = None
        self._file: IO[bytes] = BytesIO()
        self._missing = 0

    def write(self, rows: bytes) -> int:
        if self._path is None:
            self._path, self._missing = self._files.begin()
            self._file = self._path.open("wb")
        end = rows.rfind(b"\n") + 1 if len(rows) >= self._missing else 0
        self._missing -= self._file.write(rows[:end] if end else rows)
        if end:
            self.close()
            if end < len(rows):
                self.write(rows[end:])
        return len(rows)

    def flush(self) -> None:
        """Nothing: a file is flushed when it is whole."""

    def close(self) -> None:
        if self._path is not None:
            self._file.close()
            self._files.whole(self._path)
            self._path = None


_THREADS = 2  # pyoxigraph lets the other run while it looks terms up
_FILES = 4  # at a time, with those that are being written
_FILE_BYTES = 32 << 20  # at most


def _main() -> None:
    store, directory = sys.argv[1:]
    files = RowFiles(Path(directory), _FILE_BYTES, _FILES, lambda path: _say(path.name))
    Thread(target=_hear, args=(files,), daemon=True).start()
    rows = StoreRows(Store.read_only(store))
    _say(*rows.graphs, "", *rows.predicates, "")
    outputs = [RowOutput(files) for _ in range(_THREADS)]
    free: SimpleQueue[RowOutput] = SimpleQueue()
    for output in outputs:
        free.put(output)

    def write(predicates: range) -> None:
        output = free.get()
        try:
            rows.write(predicates, cast(IO[bytes], output))  # no more of it is asked for
        finally:
            free.put(output)

    with ThreadPoolExecutor(_THREADS) as threads:
        for _ in threads.map(write, rows.batches()):
            pass
    for output in outputs:
        output.close()
    files.wait_until_taken()


def _hear(files: RowFiles) -> None:
    """To the end of this process, or of whoever takes files in: then nobody wants the rest."""
    while os.read(sys.stdin.fileno(), 1):
        files.taken()
    os._exit(1)


def _say(*lines: str) -> None:
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main()
