"""`SharedState`: an index as of one moment, as it is told to the processes beside a search port."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from operator import is_
from typing import IO

import numpy as np
import orjson

from actors.search.process_messages import AdoptIndex, SharedGraph, SharedLeaf
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.state import Index
from graphdb.search.leaf_reader import Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.index_shards import ShardLeaves
from graphdb.search.segments.segment_file import segment_pieces
from graphdb.search.segments.shard_view import array_segment
from graphdb.search.vectors import Graph, graph_bytes, graphs_of

__all__ = ["SharedState", "unsaved_bytes"]


@dataclass(slots=True)
class SharedState:
    """settings: of the cluster. unsaved: what holds those of its segments and graphs that are in no file."""

    message: AdoptIndex
    index: Index
    seen: tuple[object, ...]
    settings: object
    unsaved: list[IO[bytes]] = field(default_factory=list)
    is_closed: bool = False

    @classmethod
    def of(cls, index: Index, settings: object, number: int, slot: int) -> "SharedState":
        """As of now. Raises OSError."""
        view, files = index.shards.view(), list[IO[bytes]]()
        seen = _seen(index, view)  # first: what changes while the rest is made is another state then
        parts = tuple(tuple(_shared_leaf(leaf, files) for leaf in part) for part in view.parts)
        message = AdoptIndex(
            index.uuid,
            number,
            index.name,
            orjson.dumps(index.settings),
            orjson.dumps(index.mapping.as_json()),
            orjson.dumps(index.aliases),
            parts,
            slot,
        )
        return cls(message, index, seen, settings, files)

    def is_of(self, index: Index) -> bool:
        """Whether searches see nothing else of the index now."""
        seen = _seen(index, index.shards.view())
        return len(seen) == len(self.seen) and all(map(is_, seen, self.seen))

    def is_now(self, catalog: Catalog) -> bool:
        """Whether they see it in this catalogue."""
        index = catalog.find(self.message.name)
        if index is None or index.is_closed or catalog.cluster_settings is not self.settings:
            return False
        return self.is_of(index)

    def close(self) -> None:
        """Let go of these files. Processes that have not opened them yet see that they are not there."""
        self.is_closed = bool(self.unsaved) or self.is_closed
        for file in self.unsaved:
            file.close()
        self.unsaved.clear()


def _seen(index: Index, view: ShardLeaves) -> tuple[object, ...]:
    """What searches see of an index; each of these is replaced, never changed. view: of its shards."""
    graphs = [graph for leaf in view.leaves for graph in graphs_of(leaf.segment).values()]
    return index, view, index.mapping, index.settings, index.aliases, *graphs


def unsaved_bytes(index: Index) -> int:
    """Of what of an index is in no file."""
    return sum(map(_unsaved_bytes, index.shards.view().leaves))


def _unsaved_bytes(leaf: Leaf) -> int:
    segment = array_segment(leaf)
    graphs = [graph for graph in graphs_of(segment).values() if not _is_saved(graph)]
    return sum(graph.size_bytes for graph in graphs) + (segment.size_bytes if segment.file is None else 0)


def _is_saved(graph: Graph) -> bool:
    """Whether its file is there. (Others may have removed it, as it can be made again.)"""
    if graph.file is None:
        return False
    with suppress(OSError):
        return os.stat(graph.file[0]).st_ino == graph.file[1]
    return False


def _shared_leaf(leaf: Leaf, unsaved: list[IO[bytes]]) -> SharedLeaf:
    segment = array_segment(leaf)
    live = None if leaf.live.all() else np.packbits(leaf.live).tobytes()
    file = segment.file or _in_memory(segment.name, segment_pieces(segment), unsaved)
    graphs = tuple(_shared_graph(segment, *one, unsaved) for one in graphs_of(segment).items())
    return SharedLeaf(segment.name, *file, live, graphs)


def _shared_graph(segment: ArraySegment, path: str, graph: Graph, unsaved: list[IO[bytes]]) -> SharedGraph:
    if graph.file is not None and _is_saved(graph):
        return SharedGraph(path, *graph.file)
    column = segment.vectors(path)
    assert column is not None
    return SharedGraph(path, *_in_memory(segment.name, [(0, graph_bytes(graph, column.rows))], unsaved))


def _in_memory(name: str, pieces: Iterable[tuple[int, bytes]], unsaved: list[IO[bytes]]) -> tuple[str, int]:
    """(path, inode) of a new file that is as long there as it is open here."""
    file = os.fdopen(os.memfd_create(name), "wb", buffering=0)
    unsaved.append(file)
    for offset, piece in pieces:
        os.pwrite(file.fileno(), piece, offset)
    return f"/proc/{os.getpid()}/fd/{file.fileno()}", os.fstat(file.fileno()).st_ino
