"""`LossyFileSystem`: a `FileSystem` in memory that a crash treats as badly as a real one may be treated.

What was not synced may after a crash be there, be missing, or be torn: a write cut off at any byte, or with
any of its sectors missing; writes and size changes of a file in any combination; creations, renames and
removals of a directory likewise. A sync that fails loses some of the writes for good while they can still be
read (and calls them clean, so that the next sync does not care), as Linux does.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from graphdb.errors import LogUnavailable
from graphdb.log.file_system import File, FileSystem, Lock

__all__ = ["Crash", "LossyFileSystem", "random_faults"]

SECTOR_BYTES = 512


class Crash(BaseException):
    """The machine stops here. No `Exception`, so that no handler of the code under test survives it."""


@dataclass(slots=True)
class _Change:
    """An unsynced change of a file: data at offset, or (data None) a new size."""

    offset: int
    data: bytes | None


@dataclass(eq=False)
class _Content:
    """The bytes of a file as they are read, as they are on disk, and what lies between the two."""

    current: bytearray = field(default_factory=bytearray)
    on_disk: bytearray = field(default_factory=bytearray)
    unsynced: list[_Change] = field(default_factory=list)

    def change(self, change: _Change) -> None:
        _apply(self.current, change)
        self.unsynced.append(change)

    def persist(self, keep: Callable[[_Change], list[_Change]]) -> None:
        """Put on disk what keep makes of each unsynced change."""
        for change in self.unsynced:
            for kept in keep(change):
                _apply(self.on_disk, kept)
        self.unsynced.clear()


def _apply(content: bytearray, change: _Change) -> None:
    end = change.offset + len(change.data or b"")
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if change.data is None:
        del content[change.offset :]
    else:
        content[change.offset : end] = change.data


@dataclass(slots=True)
class _DirectoryChange:
    """An unsynced change of a directory: name now means content; before: the name that meant it and no longer
    does.
    """

    name: str
    content: _Content | None
    before: str | None = None


class LossyFileSystem:
    """One flat set of directories. Everything random is drawn from `random`.

    `fault`, called before each operation with its name, may raise OSError or Crash. A write that it stops may
    have been done in part.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.fault: Callable[[str], None] = lambda operation: None
        self._names: dict[str, _Content] = {}
        self._names_on_disk: dict[str, _Content] = {}
        self._unsynced: list[_DirectoryChange] = []
        self._locked: set[str] = set()
        self.life = 0  # files opened in an earlier one are gone

    def crash(self) -> None:
        """Lose what a crash loses; nothing is open or locked afterwards."""
        for content in {*self._names.values(), *self._names_on_disk.values()}:
            content.persist(self._torn)
            content.current = bytearray(content.on_disk)
        for change in self._unsynced:
            if self.random.random() < 0.5:
                _rename(self._names_on_disk, change)
        self._unsynced.clear()
        self._names = dict(self._names_on_disk)
        self.kill()

    def kill(self) -> None:
        """End the process alone: whatever it wrote can be read on, but is no better synced than before."""
        self._locked.clear()
        self.life += 1

    def damage(self, path: str, offset: int, data: bytes) -> None:
        """Overwrite bytes behind everyone's back."""
        for content in (self._names[path].current, self._names[path].on_disk):
            content[offset : offset + len(data)] = data

    def content(self, path: str) -> bytes:
        return bytes(self._names[path].current)

    def _torn(self, change: _Change) -> list[_Change]:
        """What of a change is on disk after a crash: all, nothing, a beginning, or some sectors."""
        fate = self.random.randrange(4)
        if fate == 0:
            return []
        if fate == 1 or not change.data:
            return [change]
        if fate == 2:
            return [_Change(change.offset, change.data[: self.random.randrange(len(change.data))])]
        return [piece for piece in _sectors(change) if self.random.random() < 0.5]

    def _half_lost(self, change: _Change) -> list[_Change]:
        return [change] if self.random.random() < 0.5 else []

    # FileSystem

    def list(self, directory: str) -> list[str]:
        return [os.path.basename(name) for name in self._names if os.path.dirname(name) == directory]

    def make_directory(self, path: str) -> None:
        self.fault("make_directory")

    def create(self, path: str) -> File:
        self.fault("create")
        content = _Content()
        self._change(_DirectoryChange(path, content))
        return _LossyFile(self, content)

    def open(self, path: str) -> File:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return _LossyFile(self, self._names[path])

    def rename(self, source: str, target: str) -> None:
        self.fault("rename")
        self._change(_DirectoryChange(target, self._names[source], before=source))

    def link(self, source: str, target: str) -> None:
        self.fault("link")
        if source not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        self._change(_DirectoryChange(target, self._names[source]))

    def remove_directory(self, path: str) -> None:
        self.fault("remove_directory")

    def unlink(self, path: str) -> None:
        self.fault("unlink")
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._change(_DirectoryChange(path, None))

    def sync_directory(self, path: str) -> None:
        self.fault("sync_directory")
        for change in self._unsynced:
            _rename(self._names_on_disk, change)
        self._unsynced.clear()

    def lock(self, path: str) -> Lock:
        if path in self._locked:
            raise LogUnavailable(f"{path} is in use by another process")
        self._locked.add(path)
        return _LossyLock(self._locked, path)

    def _change(self, change: _DirectoryChange) -> None:
        _rename(self._names, change)
        self._unsynced.append(change)


def _rename(names: dict[str, _Content], change: _DirectoryChange) -> None:
    if change.content is None:
        names.pop(change.name, None)
    else:
        names[change.name] = change.content
    if change.before is not None:
        names.pop(change.before, None)


def _sectors(change: _Change) -> list[_Change]:
    assert change.data is not None
    pieces, start = [], 0
    while start < len(change.data):
        end = start + SECTOR_BYTES - (change.offset + start) % SECTOR_BYTES
        pieces.append(_Change(change.offset + start, change.data[start:end]))
        start = end
    return pieces


class _LossyLock:
    def __init__(self, locked: set[str], path: str) -> None:
        self._locked, self._path = locked, path

    def release(self) -> None:
        self._locked.discard(self._path)


class _LossyFile:
    def __init__(self, file_system: LossyFileSystem, content: _Content) -> None:
        self._system = file_system
        self._content = content
        self._life = file_system.life
        self._open = True

    def _use(self, operation: str) -> None:
        assert self._open, "used after close"
        assert self._life == self._system.life, "used after a crash"
        self._system.fault(operation)

    def size(self) -> int:
        return len(self._content.current)

    def read(self, length: int, offset: int) -> bytes:
        return bytes(self._content.current[offset : offset + length])

    def write(self, data: bytes, offset: int) -> None:
        try:
            self._use("write")
        except (OSError, Crash):
            done = self._system.random.randrange(len(data) + 1)
            self._content.change(_Change(offset, data[:done]))
            raise
        self._content.change(_Change(offset, data))

    def allocate(self, size: int) -> None:
        self._use("allocate")
        if size > len(self._content.current):
            self._content.change(_Change(size, b""))

    def truncate(self, size: int) -> None:
        self._use("truncate")
        self._content.change(_Change(size, None))

    def sync(self) -> None:
        try:
            self._use("sync")
        except OSError:
            self._content.persist(self._system._half_lost)
            raise
        self._content.persist(lambda change: [change])

    def close(self) -> None:
        self._open = False


_: FileSystem = LossyFileSystem(Random(0))  # it is one, says the type checker


def random_faults(random: Random, operations_max: int, share: float) -> Callable[[str], None]:
    """A `fault`: a crash at one of the next operations, and before it that share of them fails."""
    left = random.randrange(3, operations_max)

    def fault(_operation: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash
        if random.random() < share:
            raise OSError(errno.EIO, "no")

    return fault
