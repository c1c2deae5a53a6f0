"""`SnapshotRepository`: snapshots in a directory, each whole by itself.

    snapshot-NAME            what there is of it: JSON with a checksum; written last
    data-NODE-UUID/N.docs    the documents of an index (`document_frames.py`)
    root-N                   who changed something last (`repository_root.py`)

The documents are written and synced first, then the manifest under a temporary name, which gets a link under
its own: one that is there is never replaced. So a crash leaves a snapshot or none. Data without a manifest is
removed by whoever may say that nobody writes it any more: the node whose number it has.

All snapshots are whole, so that one is deleted without a look at others. A clone has links to the same files.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from graphdb.errors import CorruptionError
from graphdb.log.file_system import FileSystem, RealFileSystem
from graphdb.search.errors import SearchError
from graphdb.search.segments.index_files import decode_checked, encode_checked
from graphdb.search.snapshots.document_frames import (
    MAGIC,
    SnapshotDocument,
    check_file,
    encode_frame,
    read_file,
)
from graphdb.search.snapshots.repository_root import RepositoryRoot

__all__ = [
    "DocumentsWriter",
    "Manifest",
    "SnapshotRepository",
    "allowed_directory",
    "check_snapshot_name",
    "invalid_name",
]

Manifest = Mapping[str, Any]
"""uuid, data (a directory), version, state, started_ms, ended_ms, metadata, global_state, failures, indices:
name, settings, mappings, aliases, shards, documents, closed, stream, follows_graph, and file, bytes, sha256.
"""

_MARK = "graphdb-snapshot-1"  # the last number is the format's version
_PREFIX, _DATA, _TEMPORARY = "snapshot-", "data-", "tmp-"
_NAME_BYTES_MAX = 200
_MANIFEST_BYTES_MAX = 64 << 20
_SNAPSHOTS_MAX = 500  # Elasticsearch's max_number_of_snapshots
_FREE_BYTES = 64 << 20  # left to others on the disk
_FORBIDDEN = '\\/*?"<>|,# '


def check_snapshot_name(repository: str, name: str) -> None:
    """Errors: invalid_snapshot_name_exception."""
    problem = None
    if not name:
        problem = "cannot be empty"
    elif any(one in _FORBIDDEN or one.isspace() for one in name):
        problem = f"must not contain the following characters [{','.join(_FORBIDDEN)}]"
    elif name[0] == "_":
        problem = "must not start with '_'"
    elif name != name.lower():
        problem = "must be lowercase"
    elif any(ord(one) < 32 or 0xD800 <= ord(one) < 0xE000 for one in name):
        problem = "must not contain control characters"
    elif len(name.encode("utf-8", "surrogatepass")) > _NAME_BYTES_MAX:
        problem = f"must not be longer than {_NAME_BYTES_MAX} bytes"
    if problem is not None:
        raise invalid_name(repository, name, problem)


def invalid_name(repository: str, name: str, problem: str) -> SearchError:
    """A name that a snapshot cannot have."""
    shown = name[:_NAME_BYTES_MAX]
    reason = f"[{repository}:{shown}] Invalid snapshot name [{shown}], {problem}"
    return SearchError("invalid_snapshot_name_exception", reason, 400)


def allowed_directory(location: str, allowed: Sequence[str]) -> str | None:
    """The real path of a location that lies below one of the directories, None for any other.

    A relative location is of the first of them. Links are followed before it is decided.
    """
    if not allowed or "\0" in location:
        return None
    path = os.path.realpath(os.path.join(allowed[0], location))
    for root in map(os.path.realpath, allowed):
        if path != root and os.path.commonpath((path, root)) == root:
            return path
    return None


class DocumentsWriter:
    """A new file of documents. For one thread at a time. Raises OSError."""

    def __init__(self, file_system: FileSystem, path: str, compress: bool) -> None:
        self._compress = compress
        self._file = file_system.create(path)
        self._digest, self._size, self._documents = hashlib.sha256(), 0, 0
        self._put(MAGIC)

    def write(self, documents: Sequence[SnapshotDocument]) -> int:
        """Add a frame; the bytes that it takes."""
        frame = encode_frame(documents, self._compress)
        self._put(frame)
        self._documents += len(documents)
        return len(frame)

    def _put(self, data: bytes) -> None:
        self._file.write(data, self._size)
        self._digest.update(data)
        self._size += len(data)

    def finish(self) -> dict[str, Any]:
        """Sync it; what the manifest says of it."""
        self._file.sync()
        return {"bytes": self._size, "sha256": self._digest.hexdigest(), "documents": self._documents}

    def close(self) -> None:
        self._file.close()


class SnapshotRepository:
    """Of one directory, which is there after `prepare`. Its methods block. Raises OSError."""

    def __init__(
        self,
        directory: str,
        file_system: FileSystem | None = None,
        free_bytes: Callable[[str], int] = lambda path: shutil.disk_usage(path).free,
    ) -> None:
        self._directory, self._free_bytes = directory, free_bytes
        self._system = file_system or RealFileSystem()
        self.root = RepositoryRoot(directory, self._system)

    def prepare(self) -> None:
        """Make the directory."""
        self._system.make_directory(self._directory)

    def verify(self, token: str) -> None:
        """Write, read and remove a file. Raises OSError, CorruptionError."""
        path, data = self._path(f"{_TEMPORARY}{token}"), token.encode()
        self.prepare()
        file = self._system.create(path)
        try:
            file.write(data, 0)
            file.sync()
            found = file.read(len(data), 0)
        finally:
            file.close()
            self._system.unlink(path)
        if found != data:
            raise CorruptionError("what is written to the repository is not what is read", path)

    def names(self) -> list[str]:
        """Of all snapshots."""
        try:
            listed = self._system.list(self._directory)
        except FileNotFoundError:
            return []
        return sorted(name.removeprefix(_PREFIX) for name in listed if name.startswith(_PREFIX))

    def read(self, name: str) -> Manifest:
        """Raises FileNotFoundError, CorruptionError."""
        path = self._path(_PREFIX + name)
        descriptor = read_file(path)
        try:
            size = os.fstat(descriptor).st_size
            if size > _MANIFEST_BYTES_MAX:
                raise CorruptionError("the manifest is too large", path)
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read()
        finally:
            os.close(descriptor)
        found: Manifest = decode_checked(_MARK, data, "manifest of a snapshot", path)
        if found.get("snapshot") != name or os.sep in found["data"]:
            raise CorruptionError("the manifest is of another snapshot", path)
        return found

    def begin(self, data: str) -> None:
        """The directory for the documents of a new snapshot. Raises SearchError."""
        if len(self.names()) >= _SNAPSHOTS_MAX:
            reason = f"the repository has [{_SNAPSHOTS_MAX}] snapshots: delete some first"
            raise SearchError("repository_exception", reason, 500)
        self.check_room()
        self._system.make_directory(self._path(data))

    def check_room(self) -> None:
        """Errors: repository_exception, where the disk has hardly anything left."""
        if self._free_bytes(self._directory) < _FREE_BYTES:
            raise SearchError(
                "repository_exception", "the disk of the repository has less than 64 MB left", 507
            )

    def writer(self, data: str, number: int, compress: bool) -> DocumentsWriter:
        """For the documents of the index with that number."""
        return DocumentsWriter(self._system, os.path.join(self._path(data), f"{number}.docs"), compress)

    def documents_path(self, manifest: Manifest, index: Mapping[str, Any]) -> str:
        """Raises CorruptionError."""
        if os.sep in index["file"]:
            raise CorruptionError("the manifest names a file elsewhere", self._directory)
        return os.path.join(self._path(manifest["data"]), index["file"])

    def check(self, manifest: Manifest, names: Iterable[str]) -> None:
        """Read all documents of those indexes. Raises CorruptionError, OSError."""
        wanted = set(names)
        for index in manifest["indices"]:
            if index["name"] in wanted and "file" in index:
                check_file(self.documents_path(manifest, index), index["bytes"], index["sha256"])

    def publish(self, manifest: Manifest) -> None:
        """From here on there is a snapshot. Raises SearchError where one has the name."""
        name, data = manifest["snapshot"], manifest["data"]
        self._system.sync_directory(self._path(data))
        temporary = self._path(_TEMPORARY + data)
        file = self._system.create(temporary)
        try:
            file.write(encode_checked(_MARK, manifest), 0)
            file.sync()
        finally:
            file.close()
        try:
            self._system.link(temporary, self._path(_PREFIX + name))
        except FileExistsError:
            raise invalid_name("", name, "snapshot with the same name already exists") from None
        self._system.unlink(temporary)
        self._system.sync_directory(self._directory)

    def link_files(self, source: Manifest, data: str, names: Iterable[str]) -> None:
        """The documents of those indexes for a clone. Raises OSError, CorruptionError."""
        wanted = set(names)
        for index in source["indices"]:
            if index["name"] in wanted and "file" in index:
                path = self.documents_path(source, index)
                self._system.link(path, os.path.join(self._path(data), index["file"]))

    def delete(self, name: str) -> None:
        """The manifest goes first: what is left of a crash is data that nobody lists."""
        data = None
        with suppress(CorruptionError):
            data = self.read(name)["data"]
        self._system.unlink(self._path(_PREFIX + name))
        self._system.sync_directory(self._directory)
        if data is not None:
            self.remove_data(data)

    def remove_data(self, data: str) -> tuple[int, int]:
        """A directory of documents, and the temporary manifest beside it: bytes and files that were there."""
        removed_bytes = removed = 0
        if not data.startswith(_DATA):
            raise CorruptionError("not a directory of documents", self._path(data))
        with suppress(FileNotFoundError):
            self._system.unlink(self._path(_TEMPORARY + data))
        directory = self._path(data)
        with suppress(FileNotFoundError):
            for name in self._system.list(directory):
                path = os.path.join(directory, name)
                removed_bytes += os.lstat(path).st_size
                self._system.unlink(path)
                removed += 1
            self._system.remove_directory(directory)
        return removed_bytes, removed

    def cleanup(self, is_abandoned: Callable[[int, str], bool]) -> tuple[int, int]:
        """Remove data without a manifest of which nobody writes: bytes and files. is_abandoned: of the number
        of the node and the uuid that such data has.

        Raises CorruptionError where a manifest cannot be read: it is unknown which data it has.
        """
        used = {self.read(name)["data"] for name in self.names()}
        removed_bytes = removed = 0
        try:
            listed = self._system.list(self._directory)
        except FileNotFoundError:
            return 0, 0
        for name in listed:
            if name.startswith(_TEMPORARY + _DATA) and name.removeprefix(_TEMPORARY) in used:
                self._system.unlink(self._path(name))  # of a crash right after its link
            node, _, uuid = name.removeprefix(_DATA).partition("-")
            unused = name.startswith(_DATA) and name not in used and node.isdigit()
            if unused and is_abandoned(int(node), uuid):
                size, count = self.remove_data(name)
                removed_bytes, removed = removed_bytes + size, removed + count
        return removed_bytes, removed

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
