"""`IndexFiles`: the directory of one index, written so that a crash leaves the last commit or the new one.

    commit-<generation>                a commit point, never changed
    <segment>-<generation>.segment     segments, never changed
    <segment>-<generation>.live        which documents of a segment are live, never changed

A file is synced, and so is its name, before a commit point names it. An older commit stays, with its files,
until `remove_all_but` is told of the one that counts; on opening, whatever is not of the one that is opened
goes. Readers that have a removed file mapped keep it.
"""

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator

import numpy as np

from graphdb.errors import CorruptionError
from graphdb.log.file_system import File, FileSystem, replace_file, storage_error
from graphdb.search.segment import Bools
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.commit_point import CommitPoint
from graphdb.search.segments.segment_file import map_file, read_segment, verify_segment, write_segment

__all__ = ["IndexFiles"]

_COMMIT = "commit-"
_OURS = (".segment", ".live", ".tmp")  # whatever else is in the directory is somebody else's
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
