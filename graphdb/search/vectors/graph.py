"""`Graph`: a navigable small world over the rows of one segment's vectors (HNSW), made by faiss.

Source: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical
Navigable Small World graphs", 2016.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from graphdb.search.segment import Bools, Floats, Longs

__all__ = ["MAGNITUDE_MAX", "Graph", "GraphShape"]

MAGNITUDE_MAX = 1e15  # of an element: squares of larger ones may not be summed in 32 bits
_faiss: Any = faiss  # its type hints lack half of what it has
_SAMPLE = 200
_MOVED = 0.25
_NEIGHBOURS, _RECALL = 10, 0.955
_EFFORTS = (16, 24, 32, 38, 44, 52, 64, 80, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
_EFFORT = struct.Struct("<I")
_BATCH = 2_048  # rows added between two questions whether to go on


@dataclass(frozen=True, slots=True)
class GraphShape:
    """What a graph is built with: a metric of `mapping.vectors.SIMILARITIES`, and `index_options`."""

    similarity: str
    m: int = 16
    ef_construction: int = 100

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Graph:
    """Immutable; any number of threads search it at a time. It has a copy of the rows, of unit length for
    cosines, so that it does without the segment.
    """

    def __init__(self, index: Any, shape: GraphShape, effort: int) -> None:
        """effort: how many rows to keep in view for ten of all rows, so that hardly any is missed."""
        self._index = index
        self.shape = shape
        self.effort = effort
        self.size: int = index.ntotal

    @classmethod
    def build(
        cls, rows: Floats, shape: GraphShape, stopped: Callable[[], bool] = lambda: False, threads: int = 1
    ) -> "Graph | None":
        """None where it was stopped. Takes long, without the interpreter's lock. With one thread the same
        rows always give the same graph. threads holds for the calling thread from then on.
        """
        index = _faiss.IndexHNSWFlat(rows.shape[1], shape.m, _faiss_metric(shape))
        index.hnsw.efConstruction = shape.ef_construction
        _faiss.omp_set_num_threads(threads)
        for start in range(0, len(rows), _BATCH):
            if stopped():
                return None
            index.add(_prepared(rows[start : start + _BATCH], shape))
        return cls(index, shape, _measured_effort(index, rows, shape))

    def nearest(self, vector: Floats, count: int, effort: int, allowed: Bools | None) -> Longs:
        """About the count nearest rows of those allowed (None: all), in no particular order; maybe fewer.

        effort: how many rows the walk keeps in view (`ef`), allowed ones or not.
        """
        bits = None if allowed is None else np.packbits(allowed, bitorder="little")
        selector = None if bits is None else _faiss.IDSelectorBitmap(len(bits), _faiss.swig_ptr(bits))
        how = _faiss.SearchParametersHNSW(efSearch=max(effort, count), sel=selector)
        _, labels = self._index.search(_one_prepared(vector, self.shape), count, params=how)
        found: Longs = labels[0]
        return found[found >= 0]

    def to_bytes(self) -> bytes:
        """Without the rows."""
        data: NDArray[np.uint8] = _faiss.serialize_index(self._index, _faiss.IO_FLAG_SKIP_STORAGE)
        return _EFFORT.pack(self.effort) + data.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, rows: Floats, shape: GraphShape) -> "Graph":
        """Of what to_bytes gave, unharmed, and the same rows. Raises ValueError where they do not fit."""
        index = _faiss.deserialize_index(np.frombuffer(data, np.uint8, offset=_EFFORT.size))
        if (index.ntotal, index.d) != rows.shape:
            raise ValueError("a graph of other rows")
        storage = _faiss.IndexFlat(rows.shape[1], _faiss_metric(shape))
        for start in range(0, len(rows), _BATCH):
            storage.add(_prepared(rows[start : start + _BATCH], shape))
        index.storage, index.own_fields = storage, True
        storage.this.disown()  # the graph frees it
        return cls(index, shape, *_EFFORT.unpack_from(data))


def _measured_effort(index: Any, rows: Floats, shape: GraphShape) -> int:
    """The least of some efforts at which queries find their nearest rows. The queries are rows that are moved
    a part of the way to another, as real ones lie between rows.
    """
    sample = np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.int64)
    moved = (1 - _MOVED) * rows[sample] + _MOVED * rows[np.roll(sample, _SAMPLE // 2)]
    vectors = _prepared(moved.astype(np.float32), shape)
    count = min(_NEIGHBOURS, len(rows))
    exact = _faiss.downcast_index(index.storage).search(vectors, count)[1]
    for effort in _EFFORTS:
        how = _faiss.SearchParametersHNSW(efSearch=effort)
        walked = index.search(vectors, count, params=how)[1]
        hits = sum(len(np.intersect1d(*pair)) for pair in zip(exact, walked, strict=True))
        if hits >= _RECALL * exact.size:
            return effort
    return _EFFORTS[-1]


def _faiss_metric(shape: GraphShape) -> int:
    is_distance = shape.similarity == "l2_norm"
    return int(_faiss.METRIC_L2 if is_distance else _faiss.METRIC_INNER_PRODUCT)


def _prepared(rows: Floats, shape: GraphShape) -> Floats:
    if shape.similarity != "cosine":
        return np.ascontiguousarray(rows, np.float32)
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.ascontiguousarray(wide / np.where(lengths > 0, lengths, 1), np.float32)


def _one_prepared(vector: Floats, shape: GraphShape) -> Floats:
    """A query as the only row of a matrix; as `_prepared`, in less time."""
    if shape.similarity == "cosine":
        wide = vector.astype(np.float64)
        vector = (wide / math.sqrt(float(wide @ wide))).astype(np.float32)
    return np.ascontiguousarray(vector.reshape(1, -1))
