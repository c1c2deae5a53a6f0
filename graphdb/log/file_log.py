"""The update log on disk: a chain of segments in one directory, used by one process.

Segments are numbered in the order of their making, and a newer one has the say: where it begins at or before
an index that an older one holds, the older one's entry does not count. So taking entries back (after a sync
that failed, or where a Raft leader says otherwise) is one atomic step, whatever the older files contain: a
new segment appears.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from graphdb.errors import CorruptionError, LogUnavailable, OutcomeUnknown, UnavailableError
from graphdb.log.codec import PlacedEntries
from graphdb.log.file_system import FileSystem, storage_error
from graphdb.log.segment import (
    TEMPORARY_SUFFIX,
    Segment,
    TailUnknown,
    archived_path,
    counting_segments,
    parse_segment_name,
    segment_path,
)
from graphdb.model import LogEntry

__all__ = ["FileLog", "FileLogConfig", "begin_log"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileLogConfig:
    """How the log lies on disk."""

    segment_bytes: int = 64 << 20  # a new segment is begun when this is reached; compaction drops whole ones
    # room allocated at a time, at most segment_bytes; syncing in reserved room is twice as fast
    reserve_bytes: int = 4 << 20
    history: str | None = None  # the directory where whole segments go that compaction drops; None: nowhere

    def __post_init__(self) -> None:
        if not 0 < self.reserve_bytes <= self.segment_bytes:
            raise ValueError("reserve_bytes must be positive and at most segment_bytes")


class FileLog:
    """An ordered list of entries that survives crashes. One thread at a time; one process at a time (a lock
    file).

    What append has returned for is on disk. An append that raised StorageFull or LogUnavailable has stored
    nothing, now and after any crash; one that raised OutcomeUnknown has stored nothing that this object
    shows, but a process that opens the directory after a crash may find it. In every case the log can be used
    on.
    """

    def __init__(self, file_system: FileSystem, directory: str, config: FileLogConfig | None = None) -> None:
        """Open the log in a directory, made where missing.

        Raises LogUnavailable where another process has it open or the disk refuses, CorruptionError where
        acknowledged entries are damaged or missing.
        """
        self._file_system = file_system
        self._directory = directory
        self._config = config or FileLogConfig()
        self._segments: list[Segment] = []
        self._void: list[Segment] = []  # superseded, to be removed before any older one is
        self._stillborn: list[
            str
        ] = []  # files that a failed beginning may have left; no append before they are gone
        self._tail_unknown = False
        try:
            file_system.make_directory(directory)
            self._lock = file_system.lock(os.path.join(directory, "lock"))
        except OSError as error:
            raise storage_error(error, f"opening the log {directory}") from error
        try:
            self._open_segments()
        except OSError as error:
            self.close()
            raise storage_error(error, f"opening the log {directory}") from error
        except CorruptionError:
            self.close()
            raise

    @property
    def first_index(self) -> int:
        """The oldest index that can still be read; last_index + 1 where there is none."""
        return self._segments[0].first_index

    @property
    def last_index(self) -> int:
        """The newest entry's log_index, 0 in a log that never had one."""
        return self._segments[-1].last_index

    @property
    def held_bytes(self) -> int:
        """How much of its files is in use."""
        return sum(segment.end for segment in self._segments)

    def append(self, entries: Sequence[LogEntry]) -> list[bytes]:
        """Store entries, all with one sync, and return when they are on disk: each as it was written.

        Their log_index continues last_index without a gap. Raises StorageFull, LogUnavailable,
        OutcomeUnknown.
        """
        first_index = self.last_index + 1
        assert [entry.log_index for entry in entries] == list(
            range(first_index, first_index + len(entries))
        ), "entries must continue the log"
        self.begin_append()
        return self._write(lambda newest: newest.append(entries, self._config.reserve_bytes))

    def begin_append(self) -> int:
        """Where in its file the next entry will begin. Raises StorageFull, LogUnavailable."""
        self._settle()
        if self._segments[-1].end >= self._config.segment_bytes:
            self._begin_segment(self.last_index + 1)
        return self._segments[-1].end

    def append_placed(self, placed: Sequence[PlacedEntries]) -> None:
        """As `append`, of entries that were placed, without a gap, behind last_index and from where
        `begin_append` has said, which is the durable_bytes of all. Nothing was appended since.
        """
        self._write(lambda newest: newest.append_placed(placed, self._config.reserve_bytes))

    def _write(self, append: Callable[[Segment], T]) -> T:
        """To the newest segment."""
        try:
            return append(self._segments[-1])
        except TailUnknown as error:
            self._tail_unknown = True
            try:
                self._settle()
            except UnavailableError as second:
                raise OutcomeUnknown(f"writing the log: {error.strerror}; {second}", 5) from error
            raise storage_error(error, "writing the log") from error
        except OSError as error:
            raise storage_error(error, "writing the log") from error

    def read(self, from_index: int, max_bytes: int = 4 << 20, omits_search: bool = False) -> list[LogEntry]:
        """Entries from from_index on, in order: as many as fit max_bytes, at least one, none after
        last_index. omits_search: long ones of search come without their payloads, which are not read.

        The list ends at the end of a segment too: an empty list, and only that, means the end of the log.
        Raises CorruptionError where the index has been compacted away or an entry is damaged, LogUnavailable.
        """
        if from_index > self.last_index:
            return []
        if from_index < self.first_index:
            raise CorruptionError(f"the log begins at {self.first_index}, not {from_index}", self._directory)
        segment = next(s for s in reversed(self._segments) if s.first_index <= from_index)
        try:
            return segment.read(from_index, max_bytes, omits_search)
        except OSError as error:
            raise LogUnavailable(f"reading the log: {error.strerror}") from error

    def index_before(self, index: int, size: int) -> int:
        """The largest index such that the entries after it, up to index, take size bytes of log or more;
        first_index - 1 where there is not so much.
        """
        if size <= 0:
            return index
        for segment in reversed(self._segments):
            if segment.first_index <= index:
                available = segment.bytes_until(index)
                if available >= size:
                    return segment.index_before(index, size)
                index, size = segment.first_index - 1, size - available
        return self.first_index - 1

    def end_segment(self, index: int) -> int:
        """Where the newest segment has entries before index, have the next entry begin another one. The
        answer: the first index of the first segment that has none of them; once everything before that is
        dropped, they are.

        Raises StorageFull, LogUnavailable; then nothing has changed.
        """
        self._settle()
        newest = self._segments[-1]
        if newest.first_index < index and newest.first_index <= newest.last_index:
            self._begin_segment(self.last_index + 1)
        begins = (segment.first_index for segment in self._segments if segment.first_index >= index)
        return next(begins, self._segments[-1].first_index)

    def truncate_before(self, index: int) -> None:
        """Drop entries before index that are not needed, in whole segments: first_index stays at most index.

        Each goes to the history first, if there is one. Raises LogUnavailable, StorageFull; then some may be
        dropped.
        """
        self._drop_void()
        while len(self._segments) > 1 and self._segments[1].first_index <= index:
            self._put_into_history(self._segments[0])
            self._remove(self._segments[0])
            self._segments.pop(0).close()

    def truncate_after(self, index: int) -> None:
        """Take back the entries after index, all at once. index is in [first_index - 1, last_index].

        Raises StorageFull, LogUnavailable; then nothing has changed, but after a crash it may have.
        """
        assert self.first_index - 1 <= index <= self.last_index, index
        self._settle()
        if index < self.last_index:
            self._begin_segment(index + 1)

    def restart_at(self, first_index: int) -> None:
        """Forget every entry, all at once; the next one will be first_index, which may leave a gap.

        Raises StorageFull, LogUnavailable; then nothing has changed, but after a crash it may have.
        """
        self._settle()
        self._begin_segment(first_index, begins_log=True)

    def close(self) -> None:
        """Let go of the files and the lock. Everything acknowledged is on disk already."""
        for segment in self._segments + self._void:
            segment.close()
        self._segments, self._void = [], []
        self._lock.release()

    def validate_state(self) -> None:
        """Assert what always holds between calls."""
        assert self._segments, "a log has a segment"
        for segment in self._segments:
            segment.validate_state()
        for older, newer in pairwise(self._segments):
            assert older.sequence < newer.sequence
            assert older.last_index + 1 == newer.first_index

    def _settle(self) -> None:
        """Finish what a failed call has left open; until then nothing may be appended.

        After a sync that failed, go on in a new segment, which makes void whatever the old one has got. The
        old file is never synced again: that would succeed and prove nothing (`File.sync`).
        """
        self._settle_stillborn()
        if self._tail_unknown:
            self._begin_segment(self.last_index + 1)

    def _begin_segment(self, first_index: int, begins_log: bool = False) -> None:
        """Make the segment that holds first_index and all that follow; atomic also across a crash.

        Where it begins the log, nothing before first_index counts any more either.
        """
        sequence = self._segments[-1].sequence + 1 if self._segments else 1
        path = segment_path(self._directory, sequence, first_index)
        reserve = self._config.reserve_bytes
        try:
            segment = Segment.create(self._file_system, path, sequence, first_index, reserve, begins_log)
        except OSError as error:
            self._stillborn = [path + TEMPORARY_SUFFIX, path]
            with contextlib.suppress(UnavailableError):
                self._settle_stillborn()
            raise storage_error(error, "beginning a log segment") from error
        self._tail_unknown = False
        self._supersede(0 if begins_log else first_index)
        self._segments.append(segment)
        with contextlib.suppress(
            UnavailableError
        ):  # what stays is void, and removed before the next compaction
            self._drop_void()

    def _supersede(self, first_index: int) -> None:
        for older in self._segments:
            older.forget_after(first_index - 1)
        self._void += [older for older in self._segments if older.first_index >= first_index]
        self._void.sort(key=lambda segment: segment.sequence)  # the one that made others void goes after them
        self._segments = [older for older in self._segments if older.first_index < first_index]

    def _drop_void(self) -> None:
        while self._void:
            self._remove(self._void[0])
            self._void.pop(0).close()

    def _settle_stillborn(self) -> None:
        if self._stillborn:
            self._remove_files(self._stillborn)
            self._stillborn = []

    def _put_into_history(self, segment: Segment) -> None:
        """Give it a second name there, durably, before it loses its own."""
        directory = self._config.history
        if directory is None or segment.last_index < segment.first_index:
            return
        try:
            self._file_system.make_directory(directory)
            with contextlib.suppress(FileExistsError):  # after a crash between this and its removal
                path = archived_path(directory, segment.first_index, segment.last_index)
                self._file_system.link(segment.path, path)
            self._file_system.sync_directory(directory)
        except OSError as error:
            raise storage_error(error, "moving a log segment into the history") from error

    def _remove(self, segment: Segment) -> None:
        """Unlink one segment for good: with two removals under way and one lost there could be a gap."""
        self._remove_files([segment.path])

    def _remove_files(self, paths: Sequence[str]) -> None:
        try:
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    self._file_system.unlink(path)
            self._file_system.sync_directory(self._directory)
        except OSError as error:
            raise storage_error(error, "removing a log segment") from error

    def _open_segments(self) -> None:
        # a process that was killed may have made names that are not on disk yet; entries will rely on them
        self._file_system.sync_directory(self._directory)
        for name in self._file_system.list(self._directory):
            path = os.path.join(self._directory, name)
            if name.endswith(TEMPORARY_SUFFIX):
                self._file_system.unlink(path)
            elif parse_segment_name(name) is not None:
                self._segments.append(Segment.open(self._file_system, path))
        self._segments.sort(key=lambda segment: segment.sequence)
        counting = counting_segments(self._segments)
        self._void = [segment for segment in self._segments if segment not in counting]
        self._segments = counting
        for older, newer in pairwise(self._segments):
            older.load(newer.first_index - 1)
        for newest in self._segments[-1:]:
            newest.load(None)
        self._drop_void()
        if not self._segments:
            self._begin_segment(1)


def begin_log(file_system: FileSystem, directory: str, first_index: int) -> None:
    """Make an empty log whose first entry will be first_index, in a directory without one.

    Raises StorageFull, LogUnavailable.
    """
    try:
        file_system.make_directory(directory)
        path = segment_path(directory, 1, first_index)
        Segment.create(file_system, path, 1, first_index, reserve=0).close()
    except OSError as error:
        raise storage_error(error, f"making a log in {directory}") from error
