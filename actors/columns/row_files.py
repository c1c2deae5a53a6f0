"""`RowFiles` and `RowOutput`: rows in files of some size, of which there are only so many at a time."""

from collections.abc import Callable
from io import BytesIO
from itertools import count
from pathlib import Path
from threading import Semaphore
from typing import IO

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
