"""The bytes of a snapshot on its way: a header that names its files, then what they hold. Knows no disk.

    magic "GDBS" (4), version (1), length of the rest of the header (4), CRC-32 of that rest (4),
    stream id (16), count of files (4), then for each: size (8), path (text);
    then, as if all files were one, in the header's order: CRC-32 (4), block

Integers are little-endian. Every block has BLOCK_BYTES, but the last.
Paths are relative, with "/", ascending.
A block's CRC-32 (zlib) is of stream id, number of the block (8) and block. The id is drawn for each stream,
so that blocks of two snapshots at the same mark do not pass for one: a leader that was restarted, or has made
a snapshot again, may go on in the middle of the one before.
"""

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from graphdb.raft.wire import Malformed, WireReader, pack_bytes

__all__ = [
    "BLOCK_BYTES",
    "FRAME_BYTES",
    "Manifest",
    "Piece",
    "SnapshotFile",
    "block_mark",
    "check_files",
    "encode_header",
    "take_header",
]

_MAGIC = int.from_bytes(b"GDBS", "little")
_VERSION = 1
_HEAD = struct.Struct("<IBII")
_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_ID_BYTES = 16
FRAME_BYTES = 256 << 10  # four of them are the chunk that a peer sends at a time
BLOCK_BYTES = FRAME_BYTES - _CRC.size
FILES_MAX = 50_000  # a read may meet as many small files at once, and must be short
PATH_BYTES_MAX = 512
NAME_BYTES_MAX = 255
DEPTH_MAX = 16
CONTENT_BYTES_MAX = 1 << 50
HEADER_BYTES_MAX = 28 << 20


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A file of a snapshot: where it lies in the tree, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one file."""

    file: SnapshotFile
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a stream, in its order. What they hold, one after another, is its content."""

    stream_id: bytes  # 16 bytes
    files: tuple[SnapshotFile, ...]
    _ends: list[int] = field(init=False, compare=False, repr=False)  # in the content, of each file

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ends", list(accumulate(file.size for file in self.files)))

    @property
    def content_bytes(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def block_count(self) -> int:
        return -(-self.content_bytes // BLOCK_BYTES)

    @property
    def frames_bytes(self) -> int:
        """Of all blocks with their checksums."""
        return self.content_bytes + self.block_count * _CRC.size

    def block_bytes(self, number: int) -> int:
        """The size of a block, counted from 0."""
        return min(BLOCK_BYTES, self.content_bytes - number * BLOCK_BYTES)

    def pieces(self, number: int) -> Iterator[Piece]:
        """What a block is made of."""
        start, length = number * BLOCK_BYTES, self.block_bytes(number)
        position = bisect_right(self._ends, start)
        while length > 0:
            file = self.files[position]
            offset = start - (self._ends[position] - file.size)
            taken = min(length, file.size - offset)
            if taken:
                yield Piece(file, offset, taken)
            start, length, position = start + taken, length - taken, position + 1


def block_mark(manifest: Manifest, number: int, parts: Iterable[bytes | memoryview]) -> bytes:
    """The checksum that goes before a block, which is given in parts."""
    crc = zlib.crc32(manifest.stream_id + number.to_bytes(8, "little"))
    for part in parts:
        crc = zlib.crc32(part, crc)
    return _CRC.pack(crc)


def encode_header(manifest: Manifest) -> bytes:
    """What a stream begins with."""
    parts = [manifest.stream_id, _COUNT.pack(len(manifest.files))]
    for file in manifest.files:
        parts += (_SIZE.pack(file.size), pack_bytes(file.path.encode()))
    rest = b"".join(parts)
    return _HEAD.pack(_MAGIC, _VERSION, len(rest), zlib.crc32(rest)) + rest


def take_header(data: bytes) -> tuple[Manifest, int] | None:
    """The header that data begins with, and its length; None while there is more of it to come.

    Raises Malformed where it names a file that could not be one of a tree of its own.
    """
    if len(data) < _HEAD.size:
        return None
    magic, version, length, crc = _HEAD.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION) or length > HEADER_BYTES_MAX:
        raise Malformed("not a snapshot of this version")
    end = _HEAD.size + length
    if len(data) < end:
        return None
    rest = data[_HEAD.size : end]
    if zlib.crc32(rest) != crc:
        raise Malformed("the snapshot's header does not match its checksum")
    return _decode_manifest(rest), end


def _decode_manifest(rest: bytes) -> Manifest:
    if len(rest) < _ID_BYTES:
        raise Malformed("cut short")
    reader = WireReader(rest[_ID_BYTES:])
    (count,) = reader.unpack(_COUNT)
    if count > FILES_MAX:
        raise Malformed(f"a snapshot of {count} files")
    files = []
    for _ in range(count):
        (size,) = reader.unpack(_SIZE)
        files.append(SnapshotFile(reader.take_text(PATH_BYTES_MAX), size))
    reader.finish()
    check_files(files)
    return Manifest(rest[:_ID_BYTES], tuple(files))


def check_files(files: list[SnapshotFile]) -> None:
    """Raises Malformed unless these can be the files of one tree, in the stream's order."""
    if len(files) > FILES_MAX or sum(file.size for file in files) > CONTENT_BYTES_MAX:
        raise Malformed("a snapshot that is too large")
    paths = [file.path for file in files]
    if paths != sorted(set(paths)):
        raise Malformed("files of a snapshot twice or out of order")
    directories: set[str] = set()
    for path in paths:
        names = path.split("/")
        if not _is_plain(path, names):
            raise Malformed(f"a snapshot with a file {path[:100]!r}")
        directories.update("/".join(names[:depth]) for depth in range(1, len(names)))
    if not directories.isdisjoint(paths):
        raise Malformed("a snapshot with a file that is a directory too")


def _is_plain(path: str, names: list[str]) -> bool:
    return (
        len(path.encode()) <= PATH_BYTES_MAX
        and len(names) <= DEPTH_MAX
        and "\0" not in path
        and all(name not in ("", ".", "..") and len(name.encode()) <= NAME_BYTES_MAX for name in names)
    )
