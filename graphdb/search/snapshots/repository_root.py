"""`RepositoryRoot`: who wrote to a snapshot repository last, so that two writers notice each other.

    root-N    JSON with a checksum: work, the uuid of what was done; each change of the repository makes one

Nothing on a shared directory keeps another cluster out. But each of them knows by its log which works have
been its own (`graphdb.search.catalog.snapshot_registry`): where the newest root is of none of them, somebody
else has written. The next root is made by a link, which only one of two can make.

Source: the generations `index-N` of Elasticsearch's `BlobStoreRepository`.
"""

import os
from collections.abc import Collection
from contextlib import suppress

from graphdb.errors import CorruptionError
from graphdb.log.file_system import FileSystem
from graphdb.search.errors import SearchError
from graphdb.search.segments.index_files import decode_checked, encode_checked
from graphdb.search.snapshots.document_frames import read_file

__all__ = ["NO_WORK", "RepositoryRoot"]

NO_WORK = ""
"""What a repository was last written by that has no root yet."""
_MARK = "graphdb-snapshot-root-1"  # the last number is the format's version
_PREFIX, _TEMPORARY = "root-", "tmp-root-"
_KEPT = 20  # so that a writer that is late finds the one that was before it
_BYTES_MAX = 64 << 10


class RepositoryRoot:
    """Of one directory, which is there. Its methods block. Raises OSError."""

    def __init__(self, directory: str, file_system: FileSystem) -> None:
        self._directory, self._system = directory, file_system

    def newest(self) -> tuple[int, str]:
        """The number of the newest root, and the work that it says. One that cannot be read is of no work."""
        numbers = self._numbers()
        if not numbers:
            return 0, NO_WORK
        number = max(numbers)
        path = self._path(f"{_PREFIX}{number}")
        try:
            descriptor = read_file(path)
            try:
                data = os.read(descriptor, _BYTES_MAX)
            finally:
                os.close(descriptor)
            return number, str(decode_checked(_MARK, data, "root of a snapshot repository", path)["work"])
        except (CorruptionError, KeyError, TypeError):
            return number, f"unreadable-{number}"

    def check(self, own: Collection[str] | None) -> int:
        """The number of the newest root. own: what it may say, None: anything.

        Errors: repository_exception, where another has written.
        """
        number, work = self.newest()
        if own is not None and work not in own:
            raise _modified(number, work)
        return number

    def claim(self, work: str, own: Collection[str] | None) -> None:
        """Say that this work changes the repository from here on. Errors: as of `check`."""
        number = self.check(own) + 1
        self._system.make_directory(self._directory)
        temporary = self._path(_TEMPORARY + work)
        file = self._system.create(temporary)
        try:
            file.write(encode_checked(_MARK, {"work": work}), 0)
            file.sync()
        finally:
            file.close()
        try:
            self._system.link(temporary, self._path(f"{_PREFIX}{number}"))
        except FileExistsError:
            raise _modified(*self.newest()) from None
        finally:
            self._system.unlink(temporary)
        self._system.sync_directory(self._directory)
        self.check({work})  # whoever was faster by many has deleted the root of this number
        for old in self._numbers():
            if old <= number - _KEPT:
                with suppress(FileNotFoundError):
                    self._system.unlink(self._path(f"{_PREFIX}{old}"))

    def _numbers(self) -> list[int]:
        try:
            listed = self._system.list(self._directory)
        except FileNotFoundError:
            return []
        numbers = (name.removeprefix(_PREFIX) for name in listed if name.startswith(_PREFIX))
        return [int(number) for number in numbers if number.isascii() and number.isdigit()]

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _modified(number: int, work: str) -> SearchError:
    reason = (
        f"the repository has been modified by another writer: its generation [{number}] is of work "
        f"[{work[:100]}], which this cluster did not do. One cluster writes to a repository; others register "
        "it with [readonly]. To go on with what is there, register the repository again"
    )
    return SearchError("repository_exception", reason, 500)
