"""The files of an index: its commit point, the segments that this names, and how they are saved."""

import contextlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import orjson

from graphdb.errors import CorruptionError
from graphdb.log.file_system import File, FileSystem, RealFileSystem, replace_file, storage_error
from graphdb.search.leaf_reader import Bools, Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.buffer import TombstoneRow
from graphdb.search.segments.segment_file import map_file, read_segment, verify_segment, write_segment
from graphdb.search.segments.shard_view import ShardView, array_segment, numbered

__all__ = [
    "CommitPoint",
    "CommittedSegment",
    "IndexFiles",
    "SavePlan",
    "SavedCommit",
    "SavedLeaves",
    "decode_checked",
    "encode_checked",
    "over_files",
]

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
        segment = read_segment(self._map(file), self._path(file))
        if isinstance(self._system, RealFileSystem):
            path = os.path.abspath(self._path(file))
            with _storage("opening an index"):
                segment.file = path, os.stat(path).st_ino
        return segment

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


# Saving: what is written, and what has been saved.

# `SavedLeaves`: which leaves of a shard are on disk, and in which files.


class SavedLeaves:
    """What the last commit that is known to be on disk stands on. Never changed: a failed flush leaves it."""

    def __init__(self, rows: Iterable[tuple[CommittedSegment, Bools]] = ()) -> None:
        self._rows = {row.name: (row, live) for row, live in rows}

    @classmethod
    def load(
        cls, files: IndexFiles, segments: Sequence[CommittedSegment]
    ) -> "tuple[SavedLeaves, tuple[Leaf, ...]]":
        """Open what a commit names. Raises CorruptionError, UnavailableError."""
        pairs = []
        for row in segments:
            segment = files.load(row.file)
            live = (
                np.ones(segment.size, np.bool_)
                if row.live_file is None
                else files.load_live(row.live_file, segment.size)
            )
            pairs.append((segment, live))
        return cls(zip(segments, (live for _, live in pairs), strict=True)), numbered(pairs)

    def segments(self) -> tuple[CommittedSegment, ...]:
        return tuple(row for row, _ in self._rows.values())

    def save(
        self, files: IndexFiles, leaves: Sequence[Leaf], generation: int
    ) -> "tuple[SavedLeaves, tuple[Leaf, ...]]":
        """Write what is new, under names that no commit has used; and the same leaves, over mapped files.
        Raises UnavailableError.
        """
        rows: list[tuple[CommittedSegment, Bools]] = []
        pairs: list[tuple[ArraySegment, Bools]] = []
        for leaf in leaves:
            segment = array_segment(leaf)
            row, saved_live = self._rows.get(segment.name, (None, None))
            if row is None or leaf.live is not saved_live:
                file = row.file if row is not None else files.save(segment, generation)
                row = CommittedSegment(segment.name, file, _save_live(files, leaf, generation))
            if segment.name not in self._rows:
                derived, segment = segment.derived, files.load(row.file)
                segment.derived = derived
            rows.append((row, leaf.live))
            pairs.append((segment, leaf.live))
        return SavedLeaves(rows), numbered(pairs)


def _save_live(files: IndexFiles, leaf: Leaf, generation: int) -> str | None:
    return None if leaf.live.all() else files.save_live(leaf.segment.name, generation, leaf.live)


# A commit in the making: planned where the shard is written to, written beside it, noted there again.


class _Mapping(Protocol):
    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class SavedCommit:
    """A commit that is on disk; leaves are those of its plan, over mapped files."""

    plan: "SavePlan"
    point: CommitPoint
    saved: SavedLeaves
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class SavePlan:
    """What a shard had when its buffer was sealed; the buffer of the view is that of what came later."""

    view: ShardView
    mapping: _Mapping
    settings: Mapping[str, Any]
    tombstones: Sequence[TombstoneRow]
    next_seq_no: int
    next_segment: int
    incarnation: int
    generation: int
    log_index: int
    saved: SavedLeaves  # by the commit before

    def write(self, files: IndexFiles) -> SavedCommit:
        """Put it on disk, on any thread; one commit of an index at a time. Raises UnavailableError: the
        commit before, or this one, is then on disk.
        """
        view = self.view
        while view.sealed:
            view = view.adopted()
        saved, leaves = self.saved.save(files, view.leaves, self.generation)
        point = CommitPoint(
            generation=self.generation,
            incarnation=self.incarnation,
            log_index=self.log_index,
            next_seq_no=self.next_seq_no,
            next_segment=self.next_segment,
            mapping=self.mapping.as_json(),
            settings=self.settings,
            segments=saved.segments(),
            tombstones=tuple(self.tombstones),
        )
        files.commit(point)
        return SavedCommit(self, point, saved, leaves)


def over_files(leaves: Sequence[Leaf], saved: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """The leaves of now, those over mapped files that were saved; what was deleted since stays deleted."""
    by_name = {leaf.segment.name: leaf for leaf in saved}
    pairs = []
    for leaf in leaves:
        same = by_name.get(leaf.segment.name, leaf)
        live = same.live if np.array_equal(leaf.live, same.live) else leaf.live
        pairs.append((array_segment(same), live))
    return numbered(pairs)
