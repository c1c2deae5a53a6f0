"""`Links`: who neighbours whom in a graph, level by level; faiss decides it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np

from graphdb.search.segment import Floats, Ints
from graphdb.search.vectors.codes import aligned, prepared_parts

__all__ = ["Links"]

_faiss: Any = faiss  # its type hints lack half of what it has


@dataclass(frozen=True, slots=True)
class Links:
    """lowest[row]: the neighbours of a row on the lowest level, then -1; upper[upper_at[row] + l - 1]: the
    same on level l, of rows that are on it. entry is a row of the highest, `level`. Arrays are only read.
    """

    lowest: Ints
    upper_at: Ints
    upper: Ints
    entry: int
    level: int

    def __post_init__(self) -> None:
        for array in (self.lowest, self.upper_at, self.upper):
            array.setflags(write=False)

    @property
    def width(self) -> int:
        """How many neighbours a row may have."""
        return int(self.lowest.shape[1])

    @classmethod
    def built(
        cls,
        rows: Floats,
        similarity: str,
        m: int,
        ef_construction: int,
        stopped: Callable[[], bool],
        threads: int,
    ) -> "Links | None":
        """None where it was stopped. Takes long, without the interpreter's lock. With one thread the same
        rows always give the same links. threads holds for the calling thread from then on.
        """
        measure = _faiss.METRIC_L2 if similarity == "l2_norm" else _faiss.METRIC_INNER_PRODUCT
        index = _faiss.IndexHNSWFlat(rows.shape[1], m, measure)
        index.hnsw.efConstruction = ef_construction
        _faiss.omp_set_num_threads(threads)
        for part in prepared_parts(rows, similarity):
            if stopped():
                return None
            index.add(part)
        return cls._of(index.hnsw)

    @classmethod
    def _of(cls, hnsw: Any) -> "Links":
        """There the neighbours of a row stand together, those on the lowest level first."""
        neighbours = _faiss.vector_to_array(hnsw.neighbors)
        starts = _faiss.vector_to_array(hnsw.offsets).astype(np.int64)
        levels = _faiss.vector_to_array(hnsw.levels)  # how many each row is on
        width, above = (hnsw.nb_neighbors(level) for level in (0, 1))
        lowest = aligned((len(levels), width), np.int32)
        for place in range(width):
            lowest[:, place] = neighbours[starts[:-1] + place]
        upper_counts = levels - 1
        upper_at = np.cumsum(upper_counts) - upper_counts
        is_upper = np.ones(len(neighbours), np.bool_)
        for place in range(width):
            is_upper[starts[:-1] + place] = False
        upper = neighbours[is_upper].reshape(-1, above)
        return cls(lowest, upper_at.astype(np.int32), upper, int(hnsw.entry_point), int(hnsw.max_level))
