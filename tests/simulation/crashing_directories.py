"""`CrashingDirectories`: the real file system until an operation where the process or the machine stops.

When the machine stops, what was not synced is lost as it may be: files are cut off, and the last creations
and renames that no sync of their directories came after are undone.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from graphdb.log.file_system import File, FileSystem, RealFileSystem
from tests.simulation.lossy_file_system import Crash

__all__ = ["CrashingDirectories"]


@dataclass
class _Change:
    """path has been created, or renamed from before; unsynced: the directories whose sync makes it last."""

    path: str
    before: str | None
    unsynced: set[str]


class CrashingDirectories(RealFileSystem):
    """Counts the operations that change something; before number crash_at, it raises Crash for good."""

    def __init__(self, crash_at: int) -> None:
        self.crash_at = crash_at
        self.count = 0
        self._changes: list[_Change] = []
        self._unsynced: dict[int, str] = {}  # paths by inode, for files are moved

    def lose_power(self, random: Random) -> None:
        """After a Crash: leave what may be left."""
        kept = random.randint(0, len(self._changes))
        for inode in self._unsynced:
            self._cut(inode, random)
        for change in reversed(self._changes[kept:]):
            if change.before is None:
                with suppress(FileNotFoundError):  # it went with its directory
                    os.unlink(change.path)
            else:
                os.rename(change.path, change.before)
                self._move(change.path, change.before)

    def _move(self, source: str, target: str) -> None:
        """What lay at source lies at target now, with all that is in it."""

        def moved(path: str) -> str:
            inside = path == source or path.startswith(source + os.sep)
            return target + path[len(source) :] if inside else path

        self._unsynced = {inode: moved(path) for inode, path in self._unsynced.items()}
        for change in self._changes:
            change.path = moved(change.path)
            change.unsynced = {moved(path) for path in change.unsynced}

    def _cut(self, inode: int, random: Random) -> None:
        path = self._unsynced[inode]
        if os.path.exists(path) and os.stat(path).st_ino == inode:
            os.truncate(path, random.randint(0, os.path.getsize(path)))

    def step(self) -> None:
        self.count += 1
        if self.count >= self.crash_at:
            raise Crash

    def create(self, path: str) -> File:
        self.step()
        is_new = not os.path.exists(path)
        file = super().create(path)
        if is_new:
            self._changes.append(_Change(path, None, {os.path.dirname(path)}))
        return _WatchedFile(self, file, path)

    def open(self, path: str) -> File:
        return _WatchedFile(self, super().open(path), path)

    def rename(self, source: str, target: str) -> None:
        self.step()
        super().rename(source, target)
        self._move(source, target)
        self._changes.append(_Change(target, source, {os.path.dirname(source), os.path.dirname(target)}))

    def sync_directory(self, path: str) -> None:
        self.step()
        super().sync_directory(path)
        for change in [*self._changes]:
            change.unsynced.discard(path)
            if not change.unsynced:
                self._changes.remove(change)

    def note_written(self, path: str) -> None:
        self._unsynced[os.stat(path).st_ino] = path

    def note_synced(self, path: str) -> None:
        self._unsynced.pop(os.stat(path).st_ino, None)


class _WatchedFile:
    def __init__(self, files: CrashingDirectories, file: File, path: str) -> None:
        self._files, self._file, self._path = files, file, path
        self.size, self.read, self.close = file.size, file.read, file.close
        self.allocate, self.truncate = file.allocate, file.truncate

    def write(self, data: bytes, offset: int) -> None:
        self._files.step()
        self._file.write(data, offset)
        self._files.note_written(self._path)

    def sync(self) -> None:
        self._files.step()
        self._file.sync()
        self._files.note_synced(self._path)


_: FileSystem = CrashingDirectories(0)  # it is one, says the type checker
