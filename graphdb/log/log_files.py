"""`LogFiles`: the entries of a log that another process has open, read from its files, the last first."""

import contextlib
from collections.abc import Iterator

from graphdb.errors import CorruptionError, LogUnavailable
from graphdb.log.file_log import open_segments
from graphdb.log.file_system import FileSystem, storage_error
from graphdb.log.segment import Segment
from graphdb.model import LogEntry

__all__ = ["LogFiles"]

_ATTEMPTS = 10  # to open all files of a log, while old ones are deleted
_READ_BYTES = 1 << 20


class LogFiles:
    """Reads what was in the log when it was made. Whoever makes it closes it.

    It takes no lock and writes nothing: the process that has the log open appends, begins segments and
    deletes old ones meanwhile.
    """

    def __init__(self, file_system: FileSystem, directory: str, last_index: int) -> None:
        """last_index: the last entry of interest, which is on disk and will not be taken back.

        Raises LogUnavailable, CorruptionError.
        """
        self._directory, self._last_index = directory, last_index
        self._segments = _opened(file_system, directory)
        self._is_loaded: set[int] = set()  # sequence numbers

    @property
    def first_index(self) -> int:
        """The oldest index that can be read; one more than the last where there are no entries."""
        return self._segments[0].first_index

    def entries_back(self, last: int, first: int) -> Iterator[LogEntry]:
        """The entries from last back to first, about a megabyte in memory at a time, or a single entry.

        first is at least first_index. Raises CorruptionError, LogUnavailable.
        """
        ends = [segment.first_index - 1 for segment in self._segments[1:]] + [self._last_index]
        for segment, end in zip(reversed(self._segments), reversed(ends), strict=True):
            upper = min(last, end)
            if upper >= max(first, segment.first_index):
                self._load(segment, end)
            while upper >= max(first, segment.first_index):
                lower = max(first, self._chunk_before(segment, upper))
                size = segment.bytes_until(upper) - segment.bytes_until(lower - 1)
                yield from reversed(self._read(segment, lower, size))
                upper = lower - 1

    def _load(self, segment: Segment, last_index: int) -> None:
        if segment.sequence not in self._is_loaded:
            try:
                segment.load(min(last_index, self._last_index))
            except OSError as error:
                raise storage_error(error, f"reading the log {self._directory}") from error
            self._is_loaded.add(segment.sequence)

    @staticmethod
    def _chunk_before(segment: Segment, upper: int) -> int:
        """Where to begin to read, so that it ends with upper."""
        if segment.bytes_until(upper) <= _READ_BYTES:
            return segment.first_index
        return segment.index_before(upper, _READ_BYTES) + 1

    def _read(self, segment: Segment, index: int, size: int) -> list[LogEntry]:
        try:
            return segment.read(index, size)
        except OSError as error:
            raise storage_error(error, f"reading the log {self._directory}") from error

    def close(self) -> None:
        """Let go of the files."""
        for segment in self._segments:
            segment.close()


def _opened(file_system: FileSystem, directory: str) -> list[Segment]:
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            try:
                counting, superseded = open_segments(file_system, directory)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise storage_error(error, f"opening the log {directory}") from error
            for segment in superseded:
                segment.close()
            if not counting:
                raise CorruptionError("there is no segment", directory)
            return counting
    raise LogUnavailable(f"the files of the log {directory} change all the time")
