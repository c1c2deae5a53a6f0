"""Files of the history: what compaction took from the log, as it was (`.segment`) or compressed (`.history`).

Both are named for the first and the last log_index that count in them. A compressed file holds the entries
that change quads, encoded as in the log, and none of another kind:

    magic, "GDBHIST" 01
    blocks: entries one after another, about 1 MB of them, each block a Zstandard frame
    the table of the blocks: a Zstandard frame of rows (`_ROW`)
    offset and length of the table (8 and 4 bytes, little-endian), CRC-32 of all the table's rows (4), magic

Entries keep their checksums, so what is read of a block is checked when it is decoded.
"""

import mmap
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from backports import zstd

from graphdb.errors import CorruptionError
from graphdb.log.codec import decode_entry, encode_entry, peek_entry
from graphdb.log.segment import SEGMENT_HEADER_BYTES
from graphdb.model import EntryKind, LogEntry

__all__ = [
    "COMPRESSED",
    "HISTORY_KINDS",
    "RAW",
    "ArchiveName",
    "Block",
    "CompressedFile",
    "EntryFile",
    "RawFile",
    "compress",
    "entries_in",
    "parse_archive_name",
    "verify",
]

RAW, COMPRESSED = ".segment", ".history"
HISTORY_KINDS = frozenset(
    {EntryKind.CHANGES, EntryKind.PART, EntryKind.CLOSE, EntryKind.CLOSE_CLEARED}
)  # the others have no effect on quads
_CLOSING = frozenset(kind for kind in EntryKind if kind.closes_parts)
_MAGIC = b"GDBHIST\x01"
_END = struct.Struct("<QII8s")
_ROW = struct.Struct("<QIQQQQ?")
_BLOCK_BYTES = 1 << 20
_LEVEL = 6
_NAME = re.compile(r"(\d{20})-(\d{20})(\.segment|\.history)", re.ASCII)


class ArchiveName(NamedTuple):
    """What the name of a file in the history says."""

    first_index: int
    last_index: int
    suffix: str  # RAW or COMPRESSED

    def __str__(self) -> str:
        return f"{self.first_index:020}-{self.last_index:020}{self.suffix}"


def parse_archive_name(name: str) -> ArchiveName | None:
    """None for a file that is none of the history."""
    found = _NAME.fullmatch(name)
    return ArchiveName(int(found[1]), int(found[2]), found[3]) if found else None


class Block(NamedTuple):
    """Where some entries stand in a file, and what is known of them without reading them."""

    offset: int
    size: int  # in the file
    first_index: int
    last_index: int
    first_ms: int  # the smallest and the largest timestamp
    last_ms: int
    has_close: bool  # some entry makes PART entries visible


class EntryFile(Protocol):
    """A file with entries of the log, for one thread at a time."""

    def blocks(self, last_index: int) -> list[Block]:
        """Of the entries up to that index, in order; those of the last block may go beyond. Raises OSError,
        CorruptionError.
        """
        ...

    def read(self, block: Block) -> bytes:
        """Entries one after another (`entries_in`). Raises OSError, CorruptionError."""
        ...

    def close(self) -> None: ...


class RawFile:
    """A segment of the log, which may still be written, or one that compaction took from it.

    Only entries up to an index that is known to be on disk are looked at.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._blocks: list[Block] = []

    def same_again(self) -> "RawFile":
        """The file opened anew after close(), with what is known of it. Raises OSError."""
        again = RawFile(self._path)
        again._blocks = self._blocks
        return again

    def blocks(self, last_index: int) -> list[Block]:
        """See `EntryFile`. What is known of a file is not read again."""
        if self._blocks and self._blocks[-1].last_index >= last_index:
            return self._blocks
        # the last block may have grown
        start = self._blocks.pop().offset if self._blocks else SEGMENT_HEADER_BYTES
        size = os.fstat(self._file).st_size
        with mmap.mmap(self._file, size, prot=mmap.PROT_READ) as data:
            self._blocks += _blocks_of(data, start, last_index)
        return self._blocks

    def read(self, block: Block) -> bytes:
        """See `EntryFile`."""
        return os.pread(self._file, block.size, block.offset)

    def close(self) -> None:
        os.close(self._file)


class CompressedFile:
    """What `compress` has written."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, CorruptionError."""
        self._path = path
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._blocks = self._table()
        except BaseException:
            os.close(self._file)
            raise

    def _table(self) -> list[Block]:
        size = os.fstat(self._file).st_size
        end = os.pread(self._file, _END.size, max(0, size - _END.size))
        if len(end) == _END.size:
            offset, length, crc, magic = _END.unpack(end)
            if magic == _MAGIC:
                rows = self._decompressed(os.pread(self._file, length, offset))
                if zlib.crc32(rows) == crc:
                    return [Block(*row) for row in _ROW.iter_unpack(rows)]
        raise CorruptionError("a file of the history has no whole table", str(self._path))

    def _decompressed(self, frame: bytes) -> bytes:
        try:
            return zstd.decompress(frame)
        except zstd.ZstdError as error:
            raise CorruptionError(f"a file of the history is damaged: {error}", str(self._path)) from error

    def blocks(self, last_index: int) -> list[Block]:
        """See `EntryFile`."""
        return self._blocks

    def read(self, block: Block) -> bytes:
        """See `EntryFile`."""
        return self._decompressed(os.pread(self._file, block.size, block.offset))

    def close(self) -> None:
        os.close(self._file)


def entries_in(
    data: bytes, first_index: int, last_index: int, is_wanted: Callable[[int, int], bool]
) -> Iterator[LogEntry]:
    """The entries of a block that change quads, from first_index to last_index and in order, as far as
    is_wanted says: it is called with where in the data an entry stands. Those that close PART entries are
    always among them.

    Raises CorruptionError.
    """
    offset = 0
    while offset < len(data):
        head = peek_entry(data, offset)
        if head is None or head.end > len(data):
            raise CorruptionError("an entry is damaged", "history")
        if head.log_index > last_index:
            return
        is_asked = head.log_index >= first_index and head.kind in HISTORY_KINDS
        if is_asked and (head.kind in _CLOSING or is_wanted(offset, head.end)):
            record = decode_entry(data, offset)
            if record is None:
                raise CorruptionError(f"the entry {head.log_index} is damaged", "history")
            yield record.entry
        offset = head.end


def compress(
    source: EntryFile,
    last_index: int,
    target: Path,
    pause: Callable[[], None],
    revised: Callable[[LogEntry], LogEntry] | None = None,
) -> None:
    """Write the entries up to last_index to target, compressed and durably; pause is called between blocks.

    revised: what an entry of the source becomes, with the same index, time and kind of effect. target may be
    the file of the source. A crash leaves the whole new file, or what had that name before. Raises OSError,
    CorruptionError.
    """
    temporary = target.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(_MAGIC)
        rows = bytearray()
        for block in source.blocks(last_index):
            if block.first_index > last_index:
                break
            data = _kept(source.read(block), last_index, revised)
            frame = zstd.compress(data, _LEVEL)
            end = min(block.last_index, last_index)
            rows += _ROW.pack(*block._replace(offset=file.tell(), size=len(frame), last_index=end))
            file.write(frame)
            pause()
        table = zstd.compress(bytes(rows), _LEVEL)
        file.write(table + _END.pack(file.tell(), len(table), zlib.crc32(rows), _MAGIC))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(target)


def _kept(data: bytes, last_index: int, revised: Callable[[LogEntry], LogEntry] | None) -> bytes:
    """The entries that change quads, each checked."""
    kept, offset = [], 0
    while offset < len(data):
        record = decode_entry(data, offset)
        if record is None:
            raise CorruptionError("an entry is damaged", "history")
        if record.entry.log_index > last_index:
            break
        entry = record.entry
        if entry.kind in HISTORY_KINDS:
            new = entry if revised is None else revised(entry)
            kept.append(data[offset : record.end] if new is entry else encode_entry(new))
        offset = record.end
    return b"".join(kept)


def verify(path: Path, name: ArchiveName) -> None:
    """Read all of a compressed file that is to have this name. Raises OSError, and CorruptionError where it
    is not whole, or has other entries than its name says.
    """
    with closing(CompressedFile(path)) as file:
        index = name.first_index - 1
        for block in file.blocks(name.last_index):
            if block.first_index != index + 1:
                break
            offset, data = 0, file.read(block)
            while offset < len(data):
                record = decode_entry(data, offset)
                if record is None or not index < record.entry.log_index <= block.last_index:
                    raise CorruptionError("an entry is damaged", str(path))
                index, offset = record.entry.log_index, record.end
            index = block.last_index
    if index != name.last_index:
        raise CorruptionError(f"not the entries {name.first_index} to {name.last_index}", str(path))


@dataclass(slots=True)
class _Growing:
    """A block that is being found."""

    offset: int
    first_index: int
    first_ms: int
    last_ms: int
    has_close: bool = False


def _blocks_of(data: mmap.mmap, start: int, last_index: int) -> Iterator[Block]:
    """Blocks of whole entries from start on, up to last_index. What stands behind that is not touched: it is
    not known to be on disk, and may be cut off.
    """
    offset, index, growing = start, 0, None
    while index < last_index:
        head = peek_entry(data, offset)
        if head is None or head.end > len(data) or head.log_index > last_index:
            break
        time_ms = head.timestamp_ms
        if growing is None:
            growing = _Growing(offset, head.log_index, time_ms, time_ms)
        growing.first_ms = min(growing.first_ms, time_ms)
        growing.last_ms = max(growing.last_ms, time_ms)
        growing.has_close = growing.has_close or head.kind in _CLOSING
        index, offset = head.log_index, head.end
        if offset - growing.offset >= _BLOCK_BYTES:
            yield _whole(growing, offset, index)
            growing = None
    if growing is not None:
        yield _whole(growing, offset, index)


def _whole(growing: _Growing, end: int, last_index: int) -> Block:
    return Block(
        growing.offset,
        end - growing.offset,
        growing.first_index,
        last_index,
        growing.first_ms,
        growing.last_ms,
        growing.has_close,
    )
