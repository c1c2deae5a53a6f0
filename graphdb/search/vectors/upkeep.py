"""The upkeep of a segment's graph of vectors, and its file."""

import contextlib
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from graphdb.errors import CorruptionError
from graphdb.log.file_system import FileSystem, RealFileSystem
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Floats, Leaf, Segment
from graphdb.search.mapping import Mapping
from graphdb.search.mapping.vectors import measure_of
from graphdb.search.segments.segment_file import map_file, map_pages
from graphdb.search.vectors.graph import MAGNITUDE_MAX, Graph, GraphShape, build_graph
from graphdb.search.vectors.nearest import GRAPH_KEY, attach_graph

__all__ = [
    "ROWS_MIN",
    "GraphFiles",
    "GraphJob",
    "graph_bytes",
    "keep_graphs",
    "missing_graphs",
    "read_graph",
    "remove_stale",
]

# `GraphFiles`: graphs beside the segments that they are of, in the directory of an index.
#
#     <segment>.<digest of the field's path>.hnsw
#
# A file that is missing, damaged or of other rows is as good as none: graphs are made of the segment again.
# Others are mapped, and searched where they lie, by any number of processes.

_MAGIC = b"gdbhnsw4"
_HEADER = struct.Struct("<8sII48x")  # magic, CRC-32 of the rest, CRC-32 of rows and shape
_CHECKED_FROM = 12
_SUFFIX, _UNFINISHED = ".hnsw", ".hnsw-part"


class GraphFiles:
    """Used by one thread at a time, any one; beside the `IndexFiles` of the same directory."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._system, self._directory = file_system, directory

    def save(self, segment: str, path: str, graph: Graph, rows: Floats) -> Graph:
        """The graph over its file; as it was where it cannot be on disk, so that the next start builds it
        again.
        """
        name = _name(segment, path)
        unfinished = self._path(name.removesuffix(_SUFFIX) + _UNFINISHED)
        try:
            self._system.make_directory(self._directory)  # an index gets it with its first flush
            with contextlib.closing(self._system.create(unfinished)) as file:
                file.write(graph_bytes(graph, rows), 0)
                file.sync()
            self._system.rename(unfinished, self._path(name))
            self._system.sync_directory(self._directory)
            data, inode = self._mapped(name)
        except OSError:
            return graph
        return self._over(data, name, inode)

    def load(self, segment: str, path: str, rows: Floats, shape: GraphShape) -> Graph | None:
        """None where there is none that is whole and of these rows and this shape."""
        name = _name(segment, path)
        try:
            data, inode = self._mapped(name)
        except OSError:
            return None
        if len(data) < _HEADER.size:
            return None
        magic, checksum, fingerprint = _HEADER.unpack_from(data)
        if magic != _MAGIC or zlib.crc32(data[_CHECKED_FROM:]) != checksum:
            return None
        return self._over(data, name, inode) if fingerprint == _fingerprint(rows, shape) else None

    def _over(self, data: memoryview, name: str, inode: int | None) -> Graph:
        file = None if inode is None else (os.path.abspath(self._path(name)), inode)
        return replace(read_graph(data, name), file=file)

    def _mapped(self, name: str) -> tuple[memoryview, int | None]:
        """(bytes, inode of a real file). Raises OSError."""
        if isinstance(self._system, RealFileSystem):
            return map_pages(self._path(name))
        return map_file(self._system, self._path(name)), None

    def remove_all_but(self, segments: Collection[str]) -> None:
        """Remove the graphs of other segments; what cannot be removed now is removed another time."""
        with contextlib.suppress(OSError):
            for name in self._system.list(self._directory):
                if name.endswith((_SUFFIX, _UNFINISHED)) and name.rsplit(".", 2)[0] not in segments:
                    self._system.unlink(self._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def graph_bytes(graph: Graph, rows: Floats) -> bytes:
    """What the file of a graph of some rows has."""
    rest = struct.pack("<I48x", _fingerprint(rows, graph.shape)) + graph.to_bytes()
    return _MAGIC + struct.pack("<I", zlib.crc32(rest)) + rest


def read_graph(data: memoryview, where: str) -> Graph:
    """The graph in a file's bytes, which stay where they are and are not checked. Raises CorruptionError."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise CorruptionError("this is no graph of vectors", where)
    return Graph.from_bytes(data[_HEADER.size :])


def _name(segment: str, path: str) -> str:
    """Paths of fields may hold what names of files may not."""
    return f"{segment}.{blake2b(path.encode(), digest_size=8).hexdigest()}{_SUFFIX}"


def _fingerprint(rows: Floats, shape: GraphShape) -> int:
    """Names of segments come again where an index is replaced by that of another node."""
    return zlib.crc32(np.ascontiguousarray(rows).view(np.uint8).data, zlib.crc32(repr(shape).encode()))


# Which graphs are missing, and making them: work for a background thread of the owner of the shards.

ROWS_MIN = 5_000  # fewer are scored in less than a millisecond
_BITS = {"int4": 4, "bbq": 1}  # of an element of the codes; of the other types of an index 8


@dataclass(frozen=True, slots=True)
class GraphJob:
    """One graph to make."""

    segment: Segment
    path: str
    shape: GraphShape

    def run(self, files: GraphFiles | None, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Read the graph or build and save it; searches use it from then on. Whether there is one now.

        Safe beside searches, writes, refreshes, flushes and merges; one that is stopped leaves no trace.
        files None: of an index in memory.
        """
        rows = self._rows()
        graph = None if files is None else files.load(self.segment.name, self.path, rows, self.shape)
        if graph is None:
            graph = build_graph(rows, self.shape, stopped, _threads())
            if graph is None:
                return False
            if files is not None:
                graph = files.save(self.segment.name, self.path, graph, rows)
        attach_graph(self.segment, self.path, graph)
        return True

    def _rows(self) -> Floats:
        column = self.segment.vectors(self.path)
        assert column is not None
        return column.rows


def missing_graphs(leaves: Sequence[Leaf], mapping: Mapping, rows_min: int = ROWS_MIN) -> list[GraphJob]:
    """What is to be made for the leaves of a shard, or of a merged segment that is not adopted yet."""
    return [
        GraphJob(leaf.segment, spec.path, _shape(spec))
        for leaf in leaves
        for spec in _vector_fields(mapping)
        if (GRAPH_KEY, spec.path) not in leaf.segment.derived and _worth_it(leaf.segment, spec, rows_min)
    ]


def keep_graphs(
    leaves: Sequence[Leaf],
    mapping: Mapping,
    files: GraphFiles | None,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Make all that is missing; how many were made."""
    made = 0
    for job in missing_graphs(leaves, mapping):
        if stopped() or not job.run(files, stopped):
            break
        made += 1
    return made


def remove_stale(leaves: Sequence[Leaf], files: GraphFiles) -> None:
    """Remove the files of segments that are gone."""
    files.remove_all_but({leaf.segment.name for leaf in leaves})


def _vector_fields(mapping: Mapping) -> Iterator[FieldSpec]:
    """Those that a graph, or codes alone, are kept for: indexed, and not compared one by one."""
    for spec in mapping.match("*"):
        if spec.storage is Storage.VECTORS and spec.indexed and _type(spec) != "flat":
            yield spec


def _type(spec: FieldSpec) -> str:
    return str((spec.options.get("index_options") or {}).get("type", "hnsw"))


def _shape(spec: FieldSpec) -> GraphShape:
    options = spec.options.get("index_options") or {}
    given = {name: options[name] for name in ("m", "ef_construction") if name in options}
    if _type(spec).endswith("flat"):
        given = {"m": 0}
    return GraphShape(measure_of(spec.options), bits=_BITS.get(_type(spec).split("_")[0], 8), **given)


def _worth_it(segment: Segment, spec: FieldSpec, rows_min: int) -> bool:
    column = segment.vectors(spec.path)
    if column is None or len(column.docs) < rows_min:
        return False
    return bool(max(np.max(column.rows), -float(np.min(column.rows))) < MAGNITUDE_MAX)


def _threads() -> int:
    """Half of the cores: searches go on meanwhile."""
    return max(1, (os.cpu_count() or 1) // 2)
