"""`IncomingSnapshot`: a snapshot from another peer, checked block by block and written as it comes.

Beside its tree lies a file `mark`, written when all is there: magic "GDBMARK" 0A (8), format version (4),
CRC-32 (zlib) of all that follows (4), log_index (8), raft_term (8), members. Integers are little-endian.
"""

import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from actors.raft.snapshot_stream import Manifest, Piece, block_mark, take_header
from graphdb.errors import CorruptionError, StorageFull
from graphdb.log.file_system import FileSystem, replace_file
from graphdb.raft.membership import encode_members, take_members
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.wire import Malformed, WireReader

__all__ = ["TREE", "IncomingSnapshot", "free_bytes", "read_mark"]

TREE = "tree"
_MARK_FILE = "mark"
_MAGIC = b"GDBMARK\n"
_VERSION = 1
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
    return _HEADER.pack(_MAGIC, _VERSION, zlib.crc32(body)) + body


def read_mark(directory: Path) -> SnapshotMark:
    """The mark of a snapshot that was finished in a directory. Raises CorruptionError, OSError."""
    path = directory / _MARK_FILE
    try:
        data = path.read_bytes()
        reader = WireReader(data[_HEADER.size :])
        if data[: _HEADER.size] != _HEADER.pack(_MAGIC, _VERSION, zlib.crc32(data[_HEADER.size :])):
            raise Malformed("not the mark of a snapshot, or its checksum does not hold")
        log_index, raft_term = reader.unpack(_PLACE)
        mark = SnapshotMark(log_index, raft_term, take_members(reader))
        reader.finish()
    except (FileNotFoundError, Malformed) as error:
        raise CorruptionError(str(error), str(path)) from error
    return mark
