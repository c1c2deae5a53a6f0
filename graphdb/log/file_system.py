"""The few file operations that the log needs, as protocols, and the real ones.

Everything that decides whether bytes survive a crash goes through here, so that the tests can put a file
system in its place that loses whatever was not synced.
"""

import contextlib
import errno
import fcntl
import os
from typing import Protocol

from graphdb.errors import LogUnavailable, StorageFull, UnavailableError
from graphdb.public_text import fault_text

__all__ = ["File", "FileSystem", "Lock", "RealFileSystem", "replace_file", "storage_error", "sync_path"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class File(Protocol):
    """An open file. Offsets and sizes are in bytes. Every method may raise OSError."""

    def size(self) -> int: ...

    def read(self, length: int, offset: int) -> bytes:
        """Up to length bytes; fewer only at the end of the file."""

    def write(self, data: bytes, offset: int) -> None:
        """All of data; where it raises, any part of data may have been written."""

    def allocate(self, size: int) -> None:
        """Make the file at least `size` long, zeros in the new part, and reserve its blocks."""

    def truncate(self, size: int) -> None:
        """Cut the file off at size."""

    def sync(self) -> None:
        """Return once all writes and the size are on disk.

        Where it raises, the state of every write since the last sync is unknown and stays unknown: the kernel
        may have dropped the pages and call them clean, so a second sync that succeeds proves nothing (the
        lesson of PostgreSQL's "fsyncgate", 2018).
        """

    def close(self) -> None: ...


class Lock(Protocol):
    """A lock held by this process until release() or its death."""

    def release(self) -> None: ...


class FileSystem(Protocol):
    """Directory operations. Creations, renames and removals survive a crash only after sync_directory."""

    def list(self, directory: str) -> list[str]:
        """The names in a directory."""

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents, durably; no error where it is there."""

    def create(self, path: str) -> File:
        """A new, empty file; whatever had that name is gone."""

    def open(self, path: str) -> File:
        """An existing file, to read and write."""

    def rename(self, source: str, target: str) -> None:
        """Give source the name target, in place of whatever had it."""

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, which nothing has."""

    def unlink(self, path: str) -> None: ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def sync_directory(self, path: str) -> None: ...

    def lock(self, path: str) -> Lock:
        """Take the lock file at path. Raises LogUnavailable where another process holds it."""


def storage_error(error: OSError, doing: str) -> UnavailableError:
    """The project's error for an operating system error that left nothing stored."""
    if error.errno in _FULL:
        return StorageFull(f"{doing}: the disk of the data directory is full", 5)
    return LogUnavailable(f"{doing}: {fault_text(error)}", 5)


def replace_file(file_system: FileSystem, directory: str, name: str, data: bytes) -> None:
    """Give a small file new content, durably: after a crash it has the old content or the new. Raises
    OSError.
    """
    temporary = os.path.join(directory, name + ".tmp")
    file = file_system.create(temporary)
    try:
        file.write(data, 0)
        file.sync()
    finally:
        file.close()
    file_system.rename(temporary, os.path.join(directory, name))
    file_system.sync_directory(directory)


def sync_path(path: str | os.PathLike[str], flags: int = 0) -> None:
    """Return once a file's content, or a directory's names, are on disk. flags: to open it with.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _RealFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, length: int, offset: int) -> bytes:
        data = os.pread(self._descriptor, length, offset)
        while 0 < len(data) < length:
            more = os.pread(self._descriptor, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, data: bytes, offset: int) -> None:
        written = os.pwrite(self._descriptor, data, offset)
        while written < len(data):
            written += os.pwrite(self._descriptor, memoryview(data)[written:], offset + written)

    def allocate(self, size: int) -> None:
        os.posix_fallocate(self._descriptor, 0, size)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        # fdatasync: the size counts as data, the access time does not (measured: half the time of fsync)
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class _RealLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


class RealFileSystem:
    """The operating system's files (POSIX)."""

    def list(self, directory: str) -> list[str]:
        return os.listdir(directory)

    def make_directory(self, path: str) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(os.path.abspath(path))
        self.make_directory(parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        self.sync_directory(parent)

    def create(self, path: str) -> File:
        return _RealFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640))

    def open(self, path: str) -> File:
        return _RealFile(os.open(path, os.O_RDWR | os.O_CLOEXEC))

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        os.link(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        sync_path(path, os.O_DIRECTORY)

    def lock(self, path: str) -> Lock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise LogUnavailable(f"{os.path.dirname(path)} is in use by another process", 1) from error
        return _RealLock(descriptor)
