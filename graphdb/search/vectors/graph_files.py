"""`GraphFiles`: graphs beside the segments that they are of, in the directory of an index.

    <segment>.<digest of the field's path>.hnsw

A file that is missing, damaged or of other rows is as good as none: graphs are made of the segment again.
"""

import contextlib
import os
import struct
import zlib
from collections.abc import Collection
from hashlib import blake2b

import numpy as np

from graphdb.log.file_system import FileSystem
from graphdb.search.segment import Floats
from graphdb.search.segments.segment_file import map_file
from graphdb.search.vectors.graph import Graph, GraphShape

__all__ = ["GraphFiles"]

_MAGIC = b"gdbhnsw2"
_HEADER = struct.Struct("<8sII")  # magic, CRC-32 of the rest, CRC-32 of rows and shape
_SUFFIX, _UNFINISHED = ".hnsw", ".hnsw-part"


class GraphFiles:
    """Used by one thread at a time, any one; beside the `IndexFiles` of the same directory."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._system, self._directory = file_system, directory

    def save(self, segment: str, path: str, graph: Graph, rows: Floats) -> bool:
        """Whether the graph is on disk now; where it is not, the next start builds it again."""
        body = graph.to_bytes()
        name = _name(segment, path)
        unfinished = self._path(name.removesuffix(_SUFFIX) + _UNFINISHED)
        rest = struct.pack("<I", _fingerprint(rows, graph.shape)) + body
        try:
            self._system.make_directory(self._directory)  # an index gets it with its first flush
            with contextlib.closing(self._system.create(unfinished)) as file:
                file.write(_MAGIC + struct.pack("<I", zlib.crc32(rest)) + rest, 0)
                file.sync()
            self._system.rename(unfinished, self._path(name))
            self._system.sync_directory(self._directory)
        except OSError:
            return False
        return True

    def load(self, segment: str, path: str, rows: Floats, shape: GraphShape) -> Graph | None:
        """None where there is none that is whole and of these rows and this shape."""
        try:
            data = map_file(self._system, self._path(_name(segment, path)))
        except OSError:
            return None
        if len(data) < _HEADER.size:
            return None
        magic, checksum, fingerprint = _HEADER.unpack_from(data)
        if magic != _MAGIC or zlib.crc32(data[12:]) != checksum or fingerprint != _fingerprint(rows, shape):
            return None
        return Graph.from_bytes(bytes(data[_HEADER.size :]), rows, shape)

    def remove_all_but(self, segments: Collection[str]) -> None:
        """Remove the graphs of other segments; what cannot be removed now is removed another time."""
        with contextlib.suppress(OSError):
            for name in self._system.list(self._directory):
                if name.endswith((_SUFFIX, _UNFINISHED)) and name.rsplit(".", 2)[0] not in segments:
                    self._system.unlink(self._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _name(segment: str, path: str) -> str:
    """Paths of fields may hold what names of files may not."""
    return f"{segment}.{blake2b(path.encode(), digest_size=8).hexdigest()}{_SUFFIX}"


def _fingerprint(rows: Floats, shape: GraphShape) -> int:
    """Names of segments come again where an index is replaced by that of another node."""
    return zlib.crc32(np.ascontiguousarray(rows).view(np.uint8).data, zlib.crc32(repr(shape).encode()))
