"""`OutgoingSnapshot`: a directory tree that stays as it is, read as one stream from any offset."""

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from actors.raft.snapshot_stream import (
    FRAME_BYTES,
    Manifest,
    Piece,
    SnapshotFile,
    block_mark,
    check_files,
    encode_header,
)
from graphdb.raft.messages import SnapshotMark

__all__ = ["OutgoingSnapshot", "list_files"]

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
