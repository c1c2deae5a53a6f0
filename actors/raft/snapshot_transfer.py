"""A snapshot on its way to or from a peer."""

import os
import shutil
import struct
import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from graphdb.errors import CorruptionError, StorageFull
from graphdb.log.file_system import FileSystem, replace_file
from graphdb.raft.membership import encode_members, take_members
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.wire import Malformed, WireReader, pack_bytes

__all__ = [
    "BLOCK_BYTES",
    "TREE",
    "IncomingSnapshot",
    "Manifest",
    "OutgoingSnapshot",
    "Piece",
    "SnapshotFile",
    "block_mark",
    "encode_header",
    "free_bytes",
    "list_files",
    "read_mark",
    "take_header",
]

# The bytes of a snapshot on its way: a header that names its files, then what they hold. Knows no disk.
#
#     magic "GDBS" (4), version (1), length of the rest of the header (4), CRC-32 of that rest (4),
#     stream id (16), count of files (4), then for each: size (8), path (text);
#     then, as if all files were one, in the header's order: CRC-32 (4), block
#
# Integers are little-endian. Every block has BLOCK_BYTES, but the last. Paths are relative, with "/",
# ascending. A block's CRC-32 (zlib) is of stream id, number of the block (8) and block. The id is drawn for
# each stream, so that blocks of two snapshots at the same mark do not pass for one: a leader that was
# restarted, or has made a snapshot again, may go on in the middle of the one before.

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


# `OutgoingSnapshot`: a directory tree that stays as it is, read as one stream from any offset.

_OFFSETS_KEPT = 64  # as many as a cluster may have members


def list_files(tree: Path) -> tuple[SnapshotFile, ...]:
    """The files of a tree, in the order of a stream; directories without files do not count.

    Raises OSError, ValueError where there is something else than files, or a name that a stream cannot have.
    """
    files = []
    for directory, directories, names in os.walk(tree):
        for path in (Path(directory, name) for name in (*names, *directories)):
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise ValueError(f"{path} is no file")
        files += [_describe(tree, Path(directory, name)) for name in names]
    files.sort(key=lambda file: file.path)
    check_files(files)
    return tuple(files)


def _describe(tree: Path, path: Path) -> SnapshotFile:
    return SnapshotFile(path.relative_to(tree).as_posix(), path.stat().st_size)


class OutgoingSnapshot:
    """Whoever reads says how far it is, so any number may; no file stays open between two reads.

    used_at: when it was offered, or last read further. A peer that is stuck asks for the same bytes again and
    again, which is no use of it.
    """

    def __init__(self, tree: Path, mark: SnapshotMark, manifest: Manifest, now: float) -> None:
        self.tree, self.mark = tree, mark
        self.used_at = now
        self.was_read = False
        self._manifest = manifest
        self._header = encode_header(manifest)
        self._bytes = len(self._header) + manifest.frames_bytes
        self._latest_offsets: deque[int] = deque(maxlen=_OFFSETS_KEPT)

    def read(self, offset: int, bytes_max: int, now: float) -> tuple[bytes, bool]:
        """Bytes of the stream and whether they are its last.

        They end with a block wherever one ends within bytes_max, so that whoever reads on from there has no
        block read twice. Raises OSError, also where a file has become shorter.
        """
        if offset not in self._latest_offsets:
            self._latest_offsets.append(offset)
            self.used_at, self.was_read = now, True
        end = self._end(offset, bytes_max)
        if offset >= end:
            return b"", True
        header = len(self._header)
        first = max(0, offset - header) // FRAME_BYTES
        behind = max(0, -(-(end - header) // FRAME_BYTES))
        parts = [self._header[offset:]]
        for number in range(first, behind):
            parts += self._frame(number)
        skipped = max(0, offset - header - first * FRAME_BYTES)
        return b"".join(parts)[skipped : skipped + end - offset], end == self._bytes

    def _end(self, offset: int, bytes_max: int) -> int:
        end = offset + bytes_max
        if end >= self._bytes:
            return self._bytes
        of_block = end - (end - len(self._header)) % FRAME_BYTES
        return of_block if of_block > max(offset, len(self._header)) else end

    def _frame(self, number: int) -> Iterator[bytes]:
        parts = [self._read_piece(piece) for piece in self._manifest.pieces(number)]
        yield block_mark(self._manifest, number, parts)
        yield from parts

    def _read_piece(self, piece: Piece) -> bytes:
        with (self.tree / piece.file.path).open("rb", buffering=0) as file:
            data = os.pread(file.fileno(), piece.length, piece.offset)
        if len(data) != piece.length:
            raise OSError(f"{piece.file.path} is shorter than it was")
        return data


# `IncomingSnapshot`: a snapshot from another peer, checked block by block and written as it comes.
#
# Beside its tree lies a file `mark`, written when all is there: magic "GDBMARK" 0A (8), format version (4),
# CRC-32 (zlib) of all that follows (4), log_index (8), raft_term (8), members. Integers are little-endian.

TREE = "tree"
_MARK_FILE = "mark"
_MARK_MAGIC, _MARK_VERSION = b"GDBMARK\n", 1

_HEADER = struct.Struct("<8sII")
_PLACE = struct.Struct("<QQ")
_CRC_BYTES = 4
_SPARE_BYTES = 64 << 20  # what the log needs meanwhile


def free_bytes(directory: Path) -> int:
    """The room on the disk that holds a directory."""
    return shutil.disk_usage(directory).free


class IncomingSnapshot:
    """Where `write` raises UnavailableError or OSError, the same bytes may come again.

    Nothing is written outside of the directory, whatever arrives.
    """

    def __init__(
        self, files: FileSystem, directory: Path, mark: SnapshotMark, free_bytes: Callable[[Path], int]
    ) -> None:
        """directory is there, and empty."""
        self.mark = mark
        self._files = files
        self._directory = directory
        self._free_bytes = free_bytes
        self._offset = 0  # of the byte that comes next
        self._manifest: Manifest | None = None
        self._block = 0  # that comes next
        self._rest = b""  # the beginning of the header or of that block

    def write(self, offset: int, data: bytes) -> None:
        """Take the next bytes.

        Raises Malformed: they are not of this snapshot, or no snapshot. StorageFull, before anything of it is
        written, where the disk has no room for all of it; OSError.
        """
        if offset != self._offset:
            raise Malformed(f"bytes {offset} of a snapshot, where {self._offset} come next")
        manifest, block, rest = self._manifest, self._block, self._rest + data
        if manifest is None and (header := take_header(rest)) is not None:
            manifest, rest = header[0], rest[header[1] :]
            self._check_room(manifest)
        if manifest is not None:
            block, rest = self._write_blocks(manifest, block, rest)
        self._offset += len(data)
        self._manifest, self._block, self._rest = manifest, block, rest

    def finish(self) -> None:
        """Check that all is there, and have it on disk with its mark. Takes long.

        Raises Malformed, OSError.
        """
        manifest = self._manifest
        if manifest is None or self._block != manifest.block_count or self._rest:
            raise Malformed("not all of the snapshot has arrived")
        for file in manifest.files:
            self._sync_file(str(self._make_parent(file.path)), file.size)
        for directory, _, _ in os.walk(self._directory / TREE, topdown=False):
            self._files.sync_directory(directory)
        replace_file(self._files, str(self._directory), _MARK_FILE, _encode_mark(self.mark))

    def _check_room(self, manifest: Manifest) -> None:
        needed = manifest.content_bytes + _SPARE_BYTES
        free = self._free_bytes(self._directory)
        if free < needed:
            raise StorageFull(f"a snapshot needs {needed >> 20} MiB of disk, {free >> 20} MiB are free", 5)
        (self._directory / TREE).mkdir(exist_ok=True)

    def _write_blocks(self, manifest: Manifest, block: int, data: bytes) -> tuple[int, bytes]:
        """Write all blocks that data has to their ends; the number of the next, and what there is of it."""
        view, start = memoryview(data), 0
        while block < manifest.block_count:
            end = start + _CRC_BYTES + manifest.block_bytes(block)
            if end > len(data):
                break
            content = view[start + _CRC_BYTES : end]
            if block_mark(manifest, block, [content]) != view[start : start + _CRC_BYTES]:
                raise Malformed(f"block {block} of a snapshot is not what was sent, or of another snapshot")
            self._write_block(manifest, block, content)
            block, start = block + 1, end
        rest = data[start:]
        if block == manifest.block_count and rest:
            raise Malformed("bytes behind the end of a snapshot")
        return block, rest

    def _write_block(self, manifest: Manifest, number: int, content: memoryview) -> None:
        start = 0
        for piece in manifest.pieces(number):
            self._write_piece(piece, bytes(content[start : start + piece.length]))
            start += piece.length

    def _write_piece(self, piece: Piece, data: bytes) -> None:
        path = str(self._make_parent(piece.file.path))
        file = self._files.open(path) if piece.offset else self._files.create(path)
        try:
            file.write(data, piece.offset)
        finally:
            file.close()

    def _make_parent(self, relative: str) -> Path:
        path = self._directory / TREE / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _sync_file(self, path: str, size: int) -> None:
        """A file that holds nothing has had no bytes to come with: it is made here."""
        file = self._files.open(path) if size else self._files.create(path)
        try:
            if file.size() != size:
                raise Malformed("a file of the snapshot has changed since it arrived")
            file.sync()
        finally:
            file.close()


def _encode_mark(mark: SnapshotMark) -> bytes:
    body = _PLACE.pack(mark.log_index, mark.raft_term) + encode_members(mark.members)
    return _HEADER.pack(_MARK_MAGIC, _MARK_VERSION, zlib.crc32(body)) + body


def read_mark(directory: Path) -> SnapshotMark:
    """The mark of a snapshot that was finished in a directory. Raises CorruptionError, OSError."""
    path = directory / _MARK_FILE
    try:
        data = path.read_bytes()
        reader = WireReader(data[_HEADER.size :])
        if data[: _HEADER.size] != _HEADER.pack(_MARK_MAGIC, _MARK_VERSION, zlib.crc32(data[_HEADER.size :])):
            raise Malformed("not the mark of a snapshot, or its checksum does not hold")
        log_index, raft_term = reader.unpack(_PLACE)
        mark = SnapshotMark(log_index, raft_term, take_members(reader))
        reader.finish()
    except (FileNotFoundError, Malformed) as error:
        raise CorruptionError(str(error), str(path)) from error
    return mark
