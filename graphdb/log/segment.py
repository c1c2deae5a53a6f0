"""One file of the log: a header, entries one after another, zeros reserved for more.

Header, 64 bytes, little-endian:

    offset  bytes  field
         0      8  magic, "GDBLOG" 0D 0A
         8      4  format version, 1
        12      4  CRC-32 of bytes 16 to 63
        16      8  sequence: segments are numbered in the order in which they were made
        24      8  first_index: the log_index of the first entry, also where there is none yet
        32      1  1 where the log begins here and no older segment counts, else 0
        33     31  zero

A header is complete before the file gets its name, so a damaged one is never the work of a crash.

**Torn or damaged?** After the last entry there are zeros. Entries are written in batches, one sync a batch,
and the next batch begins only when the sync has returned. A crash can therefore leave only this: in the last
batch, some sectors (512 bytes) as written, others still zero after some byte. That is a torn tail, was never
acknowledged, and is cut. Anything else is damage to what was acknowledged, and is an error. They are told
apart so:

1. Each entry says how much of the file was on disk when it was written (`durable_bytes`, the start of its
   batch). A damaged entry followed by a whole one that says so much was on disk already was acknowledged:
   damage.
2. In a torn entry some sector's share of it ends in zeros that were never overwritten (entries end in FF, so
   also the last share cannot end in a zero when whole). If no share ends in zero, everything was written and
   something changed it afterwards: damage.

What stays undecided is damage to the very last batch that also looks half-written: it is taken for torn.
"""

import os
import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from graphdb.errors import CorruptionError
from graphdb.log.codec import (
    HEADER_BYTES,
    MARK,
    PlacedEntries,
    Record,
    decode_entries,
    decode_entry,
    encode_entry,
    entry_bytes,
    entry_without_payload,
)
from graphdb.log.file_system import File, FileSystem
from graphdb.model import EntryKind, LogEntry

__all__ = [
    "SEGMENT_HEADER_BYTES",
    "TEMPORARY_SUFFIX",
    "Segment",
    "SegmentHead",
    "TailUnknown",
    "archived_path",
    "counting_segments",
    "parse_segment_name",
    "read_segment_head",
    "segment_path",
]

SEGMENT_HEADER_BYTES = 64
_HEADER = struct.Struct("<8sII")
_BODY = struct.Struct("<QQ?31x")
_MAGIC = b"GDBLOG\r\n"
_VERSION = 1
_SECTOR_BYTES = 512
_OMITTED_BYTES_MIN = 4096  # of an entry that may be left out: a shorter one is read with its neighbours
_SUFFIX = ".segment"
TEMPORARY_SUFFIX = ".tmp"


class TailUnknown(OSError):
    """A write or sync failed such that it is unknown what the file holds after its last durable entry."""


class Segment:
    """An open segment, owned by a `FileLog`.

    What is in [first_index, last_index] is on disk. A failed append leaves that unchanged.
    """

    def __init__(self, path: str, file: File, sequence: int, first_index: int, begins_log: bool) -> None:
        self.path = path
        self.sequence = sequence
        self.first_index = first_index
        self.begins_log = begins_log  # no older segment counts
        self._file = file
        self._starts = array("Q")  # where each entry begins
        self._kinds = bytearray()  # of each
        self._end = SEGMENT_HEADER_BYTES
        self._reserved = file.size()

    @classmethod
    def create(
        cls,
        file_system: FileSystem,
        path: str,
        sequence: int,
        first_index: int,
        reserve: int,
        begins_log: bool = False,
    ) -> "Segment":
        """Make an empty segment, durably. Raises OSError; then a file may be left at path or with
        TEMPORARY_SUFFIX.
        """
        temporary = path + TEMPORARY_SUFFIX
        file = file_system.create(temporary)
        try:
            file.allocate(SEGMENT_HEADER_BYTES + reserve)
            file.write(_encode_header(sequence, first_index, begins_log), 0)
            file.sync()
            file_system.rename(temporary, path)
            file_system.sync_directory(os.path.dirname(path))
        except OSError:
            file.close()
            raise
        return cls(path, file, sequence, first_index, begins_log)

    @classmethod
    def open(cls, file_system: FileSystem, path: str) -> "Segment":
        """Open a segment and check its header; `load` reads the rest. Raises CorruptionError, OSError."""
        file = file_system.open(path)
        try:
            sequence, first_index, begins_log = _decode_header(file.read(SEGMENT_HEADER_BYTES, 0), path)
            if parse_segment_name(os.path.basename(path)) != (sequence, first_index):
                raise CorruptionError("the header belongs to another segment", path)
        except (OSError, CorruptionError):
            file.close()
            raise
        return cls(path, file, sequence, first_index, begins_log)

    @property
    def last_index(self) -> int:
        return self.first_index + len(self._starts) - 1

    @property
    def end(self) -> int:
        """The size in bytes of header and entries."""
        return self._end

    def load(self, last_index: int | None) -> None:
        """Read and check the entries.

        Where last_index is given, this is not the newest segment: it must hold that entry, and what follows
        it does not count. In the newest segment (None) a torn tail is cut, and the last batch is written and
        synced again: it may have been read from memory only, and all readers from here on rely on it.
        Raises CorruptionError, OSError.
        """
        data = self._file.read(self._file.size(), 0)
        durable_bytes = self._index_entries(data, last_index)
        if last_index is not None:
            if self.last_index < last_index:
                raise self._damage(f"the entry {self.last_index + 1} is missing or damaged")
            return
        if data.count(0, self._end) != len(data) - self._end:
            self._judge_tail(data)
            self._file.truncate(self._end)
            self._reserved = self._end
        self._file.write(data[durable_bytes : self._end], durable_bytes)
        self._file.sync()

    def _index_entries(self, data: bytes, last_index: int | None) -> int:
        """Find the whole entries; answer where the last batch begins."""
        durable_bytes = SEGMENT_HEADER_BYTES
        while last_index is None or self.last_index < last_index:
            record = decode_entry(data, self._end)
            if record is None:
                break
            if record.entry.log_index != self.last_index + 1:
                raise self._damage(f"found entry {record.entry.log_index} in place of {self.last_index + 1}")
            self._starts.append(self._end)
            self._kinds.append(record.entry.kind)
            self._end, durable_bytes = record.end, record.durable_bytes
        return durable_bytes

    def _judge_tail(self, data: bytes) -> None:
        """Raise CorruptionError unless what follows the last whole entry can be the work of a crash."""
        for record in _records_in(data, self._end + 1):
            if record.durable_bytes > self._end:
                raise self._damage(f"the entry at offset {self._end} is damaged, and entries follow it")
        if not _unwritten(data, self._end):
            raise self._damage(f"the entry at offset {self._end} was written whole and is damaged")

    def _damage(self, what: str) -> CorruptionError:
        return CorruptionError(what, self.path)

    def append(self, entries: Sequence[LogEntry], reserve: int) -> list[bytes]:
        """Write entries and sync; each as it was written. They follow last_index without a gap. Otherwise as
        `append_placed`.
        """
        starts, chunks, end = list[int](), [], self._end
        for entry in entries:
            encoded = encode_entry(entry, durable_bytes=self._end)
            starts.append(end)
            chunks.append(encoded)
            end += len(encoded)
        self._append(b"".join(chunks), starts, bytes([entry.kind for entry in entries]), reserve)
        return chunks

    def append_placed(self, placed: Sequence[PlacedEntries], reserve: int) -> None:
        """Write entries and sync. They follow last_index and each other without a gap, the first at `end`,
        which is the durable_bytes of all. `reserve` bytes are allocated at a time.

        Raises OSError where the segment is as it was before, TailUnknown where it may hold anything after
        `end`, and must not be written again.
        """
        if len(placed) == 1:
            return self._append(bytes(placed[0].data), placed[0].starts, placed[0].kinds, reserve)
        starts = [start for some in placed for start in some.starts]
        kinds = b"".join([some.kinds for some in placed])
        self._append(b"".join([some.data for some in placed]), starts, kinds, reserve)

    def _append(self, data: bytes, starts: list[int], kinds: bytes | bytearray, reserve: int) -> None:
        assert not starts or starts[0] == self._end, "entries must continue the segment"
        end = self._end + len(data)
        self._reserve(end, reserve)
        self._write(data)
        self._starts.extend(starts)
        self._kinds += kinds
        self._end = end

    def _reserve(self, end: int, reserve: int) -> None:
        if end > self._reserved:
            size = end + reserve
            self._file.allocate(size)
            self._reserved = size

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data, self._end)
        except OSError as error:
            self._undo(error)
            raise
        try:
            self._file.sync()
        except OSError as error:
            raise TailUnknown(error.errno, error.strerror) from error

    def _undo(self, cause: OSError) -> None:
        """Take back what a failed write has left. No sync has failed yet, so one that succeeds can be
        believed.
        """
        try:
            self._file.truncate(self._end)
            self._reserved = self._end
            self._file.sync()
        except OSError as error:
            raise TailUnknown(cause.errno, cause.strerror) from error

    def read(self, from_index: int, max_bytes: int, omits_search: bool = False) -> list[LogEntry]:
        """Entries from from_index on, as many as fit max_bytes, at least one. omits_search: long ones of
        search come without their payloads. Raises CorruptionError, OSError.
        """
        position = from_index - self.first_index
        if not omits_search:
            return self._read(position, self._fitting(position, max_bytes))
        entries: list[LogEntry] = []
        while position < len(self._starts) and (max_bytes > 0 or not entries):
            fitting = self._fitting(position, max_bytes)
            stop = self._first_omitted(position, fitting)
            size = self._start(stop) - self._starts[position]
            if entries and size > max_bytes:
                break
            max_bytes -= size
            entries += self._read(position, stop)
            if stop < fitting:
                entries.append(self._without_payload(stop))
                max_bytes -= _OMITTED_BYTES_MIN
                stop += 1
            elif fitting < len(self._starts):
                break  # what comes next does not fit
            position = stop
        return entries

    def _fitting(self, position: int, max_bytes: int) -> int:
        """Where the entries end that fit, at least one."""
        bound = self._starts[position] + max_bytes
        if self._end <= bound:
            return len(self._starts)
        return max(bisect_right(self._starts, bound, position) - 1, position + 1)

    def _first_omitted(self, position: int, stop: int) -> int:
        """The first long entry of search, stop where there is none before that."""
        while (position := self._kinds.find(EntryKind.SEARCH, position, stop)) >= 0:
            if self._start(position + 1) - self._starts[position] >= _OMITTED_BYTES_MIN:
                return position
            position += 1
        return stop

    def _read(self, position: int, stop: int) -> list[LogEntry]:
        if position == stop:
            return []
        from_index, start = self.first_index + position, self._starts[position]
        entries = decode_entries(self._file.read(self._start(stop) - start, start))
        for index, entry in enumerate(entries or (), from_index):
            if entry.log_index != index:
                raise self._damage(f"the entry {index} is damaged")
        if entries is None:
            raise self._damage(f"one of the entries from {from_index} on is damaged")
        return entries

    def _without_payload(self, position: int) -> LogEntry:
        entry = entry_without_payload(self._file.read(HEADER_BYTES, self._starts[position]))
        index = self.first_index + position
        if entry is None or (entry.log_index, entry.kind) != (index, self._kinds[position]):
            raise self._damage(f"the entry {index} is damaged")
        return entry

    def _start(self, position: int) -> int:
        """Where an entry begins, or the next one will."""
        return self._starts[position] if position < len(self._starts) else self._end

    def bytes_until(self, index: int) -> int:
        """How much of the file the entries up to index take."""
        return self._start(index + 1 - self.first_index) - SEGMENT_HEADER_BYTES

    def index_before(self, index: int, size: int) -> int:
        """The largest index such that the entries after it, up to index, take size bytes or more; they must
        be there.
        """
        start = self._start(index + 1 - self.first_index) - size
        return self.first_index + bisect_right(self._starts, start) - 2

    def forget_after(self, index: int) -> None:
        """Entries after index do not count any more, for a newer segment begins there."""
        keep = max(index - self.first_index + 1, 0)
        if keep < len(self._starts):
            self._end = self._starts[keep]
            del self._starts[keep:], self._kinds[keep:]

    def close(self) -> None:
        self._file.close()

    def validate_state(self) -> None:
        """Assert what always holds."""
        bounds = [*self._starts, self._end]
        assert bounds[0] == SEGMENT_HEADER_BYTES, bounds[0]
        assert all(a < b for a, b in pairwise(bounds)), "entries overlap"
        assert len(self._kinds) == len(self._starts)


def segment_path(directory: str, sequence: int, first_index: int) -> str:
    """Where a segment stands in its directory."""
    return os.path.join(directory, f"{sequence:012d}-{first_index:020d}{_SUFFIX}")


def parse_segment_name(name: str) -> tuple[int, int] | None:
    """(sequence, first_index) of a segment's file name, None for other names."""
    sequence, dash, first_index = name.removesuffix(_SUFFIX).partition("-")
    if not (name.endswith(_SUFFIX) and dash and sequence.isdecimal() and first_index.isdecimal()):
        return None
    return int(sequence), int(first_index)


def archived_path(directory: str, first_index: int, last_index: int) -> str:
    """Of a segment in the history: the entries that count in it, for the file may hold others after them."""
    return os.path.join(directory, f"{first_index:020}-{last_index:020}{_SUFFIX}")


class SegmentHead(NamedTuple):
    """What the header of a segment says, and where it is."""

    sequence: int
    first_index: int
    begins_log: bool  # no older segment counts at all
    path: Path


def read_segment_head(path: Path) -> SegmentHead:
    """Raises CorruptionError, OSError."""
    with path.open("rb") as file:
        return SegmentHead(*_decode_header(file.read(SEGMENT_HEADER_BYTES), str(path)), path)


class _Headed(Protocol):
    @property
    def sequence(self) -> int: ...
    @property
    def first_index(self) -> int: ...
    @property
    def begins_log(self) -> bool: ...


_H = TypeVar("_H", bound=_Headed)


def counting_segments(segments: Iterable[_H]) -> list[_H]:
    """The segments of a log that count, in the order of their entries: a newer one overrides older ones from
    its first index on.
    """
    counting: list[_H] = []
    for segment in sorted(segments, key=lambda segment: segment.sequence, reverse=True):
        if not counting or segment.first_index < counting[-1].first_index:
            counting.append(segment)
        if segment.begins_log:
            break
    return counting[::-1]


def _encode_header(sequence: int, first_index: int, begins_log: bool) -> bytes:
    body = _BODY.pack(sequence, first_index, begins_log)
    return _HEADER.pack(_MAGIC, _VERSION, zlib.crc32(body)) + body


def _decode_header(header: bytes, path: str) -> tuple[int, int, bool]:
    if len(header) != SEGMENT_HEADER_BYTES or header[:8] != _MAGIC:
        raise CorruptionError("not a log segment", path)
    _, version, crc = _HEADER.unpack_from(header)
    if version != _VERSION:
        raise CorruptionError(f"format version {version}, this program reads {_VERSION}", path)
    if zlib.crc32(header[_HEADER.size :]) != crc:
        raise CorruptionError("the segment header is damaged", path)
    sequence, first_index, begins_log = _BODY.unpack_from(header, _HEADER.size)
    return sequence, first_index, begins_log


def _records_in(data: bytes, start: int) -> Iterator[Record]:
    """Every whole entry that begins anywhere from start on."""
    while (start := data.find(MARK, start)) >= 0:
        record = decode_entry(data, start)
        if record is not None:
            yield record
        start = record.end if record is not None else start + 1


def _unwritten(data: bytes, start: int) -> bool:
    """Whether some sector's share of the entry at start ends in zero, as an unfinished write leaves it."""
    length = int.from_bytes(data[start + 8 : start + 12], "little")
    end = start + entry_bytes(length)
    if end > len(data) or len(data) < start + HEADER_BYTES:
        return True
    first_boundary = start - start % _SECTOR_BYTES + _SECTOR_BYTES
    shares = [*range(first_boundary, end, _SECTOR_BYTES), end]
    return any(data[share_end - 1] == 0 for share_end in shares)
