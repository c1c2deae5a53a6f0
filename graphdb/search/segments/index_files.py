"""The files of an index: its commit point, and the segments that this names."""

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson

from graphdb.errors import CorruptionError
from graphdb.log.file_system import File, FileSystem, replace_file, storage_error
from graphdb.search.segment import Bools
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.buffer import TombstoneRow
from graphdb.search.segments.segment_file import map_file, read_segment, verify_segment, write_segment

__all__ = ["CommitPoint", "CommittedSegment", "IndexFiles", "decode_checked", "encode_checked"]

# JSON after a line with its format and a CRC-32: what the small files of search are.


def encode_checked(mark: str, value: object) -> bytes:
    """mark names the format and its version, without spaces."""
    body = orjson.dumps(value)
    return f"{mark} {zlib.crc32(body):08x}\n".encode() + body


def decode_checked(mark: str, data: bytes, what: str, where: str) -> Any:
    """Raises CorruptionError, which says what the file should be and where it lies."""
    head, _, body = data.partition(b"\n")
    found, _, checksum = head.decode("latin-1").partition(" ")
    if found != mark:
        raise CorruptionError(f"no {what}, or one of another format", where)
    if checksum != f"{zlib.crc32(body):08x}":
        raise CorruptionError(f"the checksum of the {what} does not fit", where)
    return orjson.loads(body)


# The commit point: what an index consists of, in one small file that is replaced as a whole.

_MARK = "graphdb-search-commit-1"  # the last number is the format's version


@dataclass(frozen=True, slots=True)
class CommittedSegment:
    """A segment file and, unless all its documents are live, the file that says which are."""

    name: str
    file: str
    live_file: str | None


@dataclass(frozen=True, slots=True)
class CommitPoint:
    """All that is needed to open the index and to go on from the log."""

    generation: int  # counts commits
    incarnation: int  # counts openings; names of new segments begin with it
    log_index: int  # every entry of the log up to here is in
    next_seq_no: int
    next_segment: int
    mapping: Mapping[str, Any]
    settings: Mapping[str, Any]
    segments: tuple[CommittedSegment, ...]
    tombstones: tuple[TombstoneRow, ...]

    def encode(self) -> bytes:
        """A line with the format and a CRC-32, then JSON."""
        return encode_checked(_MARK, asdict(self))

    @classmethod
    def decode(cls, data: bytes, where: str) -> "CommitPoint":
        """Raises CorruptionError."""
        values = decode_checked(_MARK, data, "commit point", where)
        values["segments"] = tuple(CommittedSegment(**segment) for segment in values["segments"])
        values["tombstones"] = tuple(tuple(row) for row in values["tombstones"])
        return cls(**values)

    def files(self) -> set[str]:
        """The names of the files that it stands on."""
        names = {segment.file for segment in self.segments}
        return names | {segment.live_file for segment in self.segments if segment.live_file}


# `IndexFiles`: the directory of one index, written so that a crash leaves the last commit or the new one.
#
#     commit-<generation>                a commit point, never changed
#     <segment>-<generation>.segment     segments, never changed
#     <segment>-<generation>.live        which documents of a segment are live, never changed
#
# A file is synced, and so is its name, before a commit point names it. An older commit stays, with its
# files, until `remove_all_but` is told of the one that counts; on opening, whatever is not of the one that
# is opened goes. Readers that have a removed file mapped keep it.

_COMMIT = "commit-"
_OURS = (".segment", ".live", ".tmp")  # other files in the directory are not ours
_LIVE = struct.Struct("<II")  # CRC-32 of the rest, documents


class IndexFiles:
    """One index on disk. generation is that of the commit to come: no commit that may be on disk has used the
    names that are made with it.
    """

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._system, self._directory = file_system, directory
        with _storage("making the directory of an index"):
            file_system.make_directory(directory)

    def save(self, segment: ArraySegment, generation: int) -> str:
        """Write a segment's file and sync it, though not yet its name; returns the name. Raises
        UnavailableError.
        """
        name = f"{segment.name}-{generation}.segment"
        with _storage("writing a segment"), contextlib.closing(self._create(name)) as file:
            write_segment(file, segment)
        return name

    def save_live(self, name: str, generation: int, live: Bools) -> str:
        """Write which documents of a segment are live; returns the file's name. Raises UnavailableError."""
        file_name = f"{name}-{generation}.live"
        bits = np.packbits(live).tobytes()
        size = len(live).to_bytes(4, "little")
        with _storage("writing deletions"), contextlib.closing(self._create(file_name)) as file:
            file.write(_LIVE.pack(zlib.crc32(size + bits), len(live)) + bits, 0)
            file.sync()
        return file_name

    def commit(self, point: CommitPoint) -> None:
        """Write a commit point beside the older ones. Raises UnavailableError; then it may be there."""
        with _storage("committing an index"):
            self._system.sync_directory(self._directory)
            replace_file(self._system, self._directory, _commit_name(point.generation), point.encode())

    def committed(self, generation: int | None = None) -> CommitPoint | None:
        """A commit point, the latest one where none is asked for; None where there never was one.

        Raises CorruptionError, UnavailableError.
        """
        if generation is None:
            with _storage("opening an index"):
                names = self._system.list(self._directory)
            numbers = [name.removeprefix(_COMMIT) for name in names if name.startswith(_COMMIT)]
            generation = max((int(number) for number in numbers if number.isdigit()), default=None)
        if generation is None:
            return None
        name = _commit_name(generation)
        return CommitPoint.decode(bytes(self._map(name)), self._path(name))

    def remove_all_but(self, point: CommitPoint | None) -> None:
        """Remove what the commit point does not name; what cannot be removed now is removed another time."""
        keep = point.files() | {_commit_name(point.generation)} if point is not None else set()
        with contextlib.suppress(OSError):
            for name in self._system.list(self._directory):
                if (name.endswith(_OURS) or name.startswith(_COMMIT)) and name not in keep:
                    self._system.unlink(self._path(name))

    def load(self, file: str) -> ArraySegment:
        """A segment over the mapped file. Raises CorruptionError, UnavailableError."""
        return read_segment(self._map(file), self._path(file))

    def verify(self, file: str) -> None:
        """Read all of a segment's file. Raises CorruptionError, UnavailableError."""
        verify_segment(self._map(file), self._path(file))

    def load_live(self, file: str, size: int) -> Bools:
        """Which of a segment's `size` documents are live. Raises CorruptionError, UnavailableError."""
        data = bytes(self._map(file))
        if len(data) != _LIVE.size + (size + 7) // 8:
            raise CorruptionError(f"not the length for {size} documents", self._path(file))
        checksum, documents = _LIVE.unpack_from(data)
        if checksum != zlib.crc32(data[4:]) or documents != size:
            raise CorruptionError("the checksum does not fit", self._path(file))
        bits = np.frombuffer(data, np.uint8, offset=_LIVE.size)
        return np.unpackbits(bits, count=size).astype(np.bool_)

    def _map(self, file: str) -> memoryview:
        try:
            with _storage("opening an index"):
                return map_file(self._system, self._path(file))
        except FileNotFoundError as error:
            raise CorruptionError("a file that the index stands on is not there", self._path(file)) from error

    def _create(self, name: str) -> File:
        return self._system.create(self._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _commit_name(generation: int) -> str:
    return f"{_COMMIT}{generation}"


@contextlib.contextmanager
def _storage(doing: str) -> Iterator[None]:
    """The operating system's refusals as the project's errors."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, doing) from error
