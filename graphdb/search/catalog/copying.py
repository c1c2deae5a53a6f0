"""Copies of a node's search indexes, made while the process that owns them goes on writing."""

import contextlib
import errno
import os
from dataclasses import replace

from graphdb.errors import CorruptionError
from graphdb.log.file_system import FileSystem, RealFileSystem, storage_error
from graphdb.search.catalog.catalog_file import CatalogFile, read_catalog_file, write_catalog_file
from graphdb.search.segments.index_files import IndexFiles

__all__ = ["copy_state"]

_ATTEMPTS_MAX = 100
_PIECE_BYTES = 16 << 20
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}


def copy_state(
    directory: str, target: str, log_index: int | None = None, file_system: FileSystem | None = None
) -> int | None:
    """Put the state that is on disk into a new directory, durably; the log index that it is of, None where
    there is no state, and then no target.

    Files are linked where that is possible: none is ever changed. log_index: what the copy says it is of,
    in place of what the state says. Raises CorruptionError, UnavailableError.
    """
    system = file_system or RealFileSystem()
    try:
        for _ in range(_ATTEMPTS_MAX):
            content = read_catalog_file(system, directory)
            if content is None:
                return None
            if _copied(system, directory, target, content):
                named = content if log_index is None else replace(content, log_index=log_index)
                write_catalog_file(system, target, named)
                return named.log_index
            if read_catalog_file(system, directory) == content:
                raise CorruptionError("the catalogue names a commit that is not whole", directory)
    except OSError as error:
        raise storage_error(error, "copying the search indexes") from error
    raise storage_error(OSError(errno.EBUSY, "they change too fast"), "copying the search indexes")


def _copied(system: FileSystem, directory: str, target: str, content: CatalogFile) -> bool:
    """Whether all was still there. What an attempt before has copied stays: names are never given twice."""
    system.make_directory(target)
    for row in content.indexes:
        source, place = os.path.join(directory, row.uuid), os.path.join(target, row.uuid)
        try:
            names, beside = _names(system, source, row.generation)
            system.make_directory(place)
            present = set(system.list(place))
            for name in sorted(names - present):
                _copy(system, os.path.join(source, name), os.path.join(place, name))
            for name in sorted(beside - present):
                with contextlib.suppress(FileNotFoundError):  # it can be made again
                    _copy(system, os.path.join(source, name), os.path.join(place, name))
        except FileNotFoundError:
            return False
        for name in present - names - beside:
            system.unlink(os.path.join(place, name))
        system.sync_directory(place)
    return True


def _names(system: FileSystem, directory: str, generation: int) -> tuple[set[str], set[str]]:
    """The files of one commit, with itself; and the vectors' graphs beside its segments. Raises
    FileNotFoundError.
    """
    listed = system.list(directory)
    try:
        point = IndexFiles(system, directory).committed(generation)
    except CorruptionError as error:
        raise FileNotFoundError(errno.ENOENT, "the commit is gone", directory) from error
    assert point is not None, "a commit was asked for"
    segments = {segment.name for segment in point.segments}
    graphs = {name for name in listed if name.endswith(".hnsw") and name.partition(".")[0] in segments}
    return point.files() | {f"commit-{generation}"}, graphs


def _copy(system: FileSystem, source: str, target: str) -> None:
    try:
        system.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        _copy_bytes(system, source, target)


def _copy_bytes(system: FileSystem, source: str, target: str) -> None:
    with contextlib.closing(system.open(source)) as old, contextlib.closing(system.create(target)) as new:
        at = 0
        while data := old.read(_PIECE_BYTES, at):
            new.write(data, at)
            at += len(data)
        new.sync()
