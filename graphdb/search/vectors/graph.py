"""The graph of nearest neighbours (HNSW), or the codes of all rows alone: built, searched, as bytes."""

import json
import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.leaf_reader import Floats, Ints
from graphdb.search.mapping.vectors import HAMMING
from graphdb.search.vectors.codes import BITS, LINE_BYTES, Codes, aligned, prepared_parts
from graphdb.search.vectors.metric import Metric
from graphdb.search.vectors.row_set import Bits, RowSet
from graphdb.search.vectors.walk import scan, walk

__all__ = ["MAGNITUDE_MAX", "SHARES", "Graph", "GraphShape", "Links", "build_graph"]

# `Links`: who neighbours whom in a graph, level by level; faiss decides it.


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
        for array in self.arrays:
            array.setflags(write=False)

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        return self.lowest, self.upper_at, self.upper

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
        import faiss as typed  # not at the top: 0.13 s and 25 MB of each search port, with or without vectors

        faiss: Any = typed  # its type hints lack half of what it has
        if similarity == HAMMING:
            index = faiss.IndexBinaryHNSW(8 * rows.shape[1], m)
        else:
            measure = faiss.METRIC_L2 if similarity == "l2_norm" else faiss.METRIC_INNER_PRODUCT
            index = faiss.IndexHNSWFlat(rows.shape[1], m, measure)
        index.hnsw.efConstruction = ef_construction
        faiss.omp_set_num_threads(threads)
        for part in prepared_parts(rows, similarity):
            if stopped():
                return None
            index.add(part)
        return cls._of(index.hnsw, faiss.vector_to_array)

    @classmethod
    def _of(cls, hnsw: Any, array_of: Callable[[Any], Any]) -> "Links":
        """There the neighbours of a row stand together, those on the lowest level first."""
        neighbours = array_of(hnsw.neighbors)
        starts = array_of(hnsw.offsets).astype(np.int64)
        levels = array_of(hnsw.levels)  # how many each row is on
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


# `Graph`: a navigable small world over the rows of one segment's vectors (HNSW).
#
# Source: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical
# Navigable Small World graphs", 2016.

MAGNITUDE_MAX = 1e15  # of an element: squares of larger ones may not be summed in 32 bits
SHARES = (1.0, 0.5, 0.25, 0.1)
"""Of the rows, that a filter may leave: where it is measured how much effort that takes."""

_LENGTH = struct.Struct("<I")
_EVERY: Bits = np.zeros(0, np.uint64)
_EVERY.setflags(write=False)


@dataclass(frozen=True, slots=True)
class GraphShape:
    """What a graph is built with: how rows are compared (see `Metric`), and `index_options`.

    m: 0 for codes without links. bits: what an element of a row takes in the codes, where that is enough.
    """

    similarity: str
    m: int = 16
    ef_construction: int = 100
    bits: int = 8

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Graph:
    """Any number of threads search it at a time. It has codes of the rows, and does without the segment.

    links: None where rows are only scanned. efforts: for each of SHARES how many rows to look for, so
    that of the ten nearest hardly any is missed. spare: how many of the first rows by code have these ten
    among them. file: path and inode of the file that its arrays are mapped from.
    """

    shape: GraphShape
    links: Links | None
    codes: Codes
    efforts: tuple[int, ...]
    spare: int
    file: tuple[str, int] | None = None

    @property
    def size(self) -> int:
        return len(self.codes.codes)

    @property
    def size_bytes(self) -> int:
        """What the arrays take, in memory or on disk."""
        return self.codes.codes.nbytes + self.link_bytes

    @property
    def link_bytes(self) -> int:
        return 0 if self.links is None else sum(array.nbytes for array in self.links.arrays)

    def more(self, wanted: int) -> int:
        """How many rows more to look for where not ten are wanted."""
        return max(wanted - _NEAREST, 0) * self.spare // _EFFORTS[0]

    def scanned(self, wanted: int) -> int:
        """How many of the first rows by code have the wanted ones among them."""
        return max(2 * wanted * self.spare // _EFFORTS[0], self.spare, _SCANNED_MIN)

    def effort(self, share: float) -> int:
        """How many rows to look for where a share of them is allowed."""
        place = min(max(sum(share < measured for measured in SHARES), 1), len(SHARES) - 1)
        part = math.log(SHARES[place - 1] / share) / math.log(SHARES[place - 1] / SHARES[place])
        above, below = self.efforts[place - 1 : place + 1]
        return math.ceil(above + min(max(part, 0), 1) * (below - above))

    def walk(
        self, vector: Floats, effort: int, allowed: RowSet | None, met_max: int, hidden: int = -1
    ) -> Ints:
        """About the `effort` nearest of the rows that are allowed (None: all), in no particular order.

        Fewer where the graph leads to no more, or has led to met_max rows, allowed ones or not. Only
        where it has links.
        """
        links, bits = self.links, _EVERY if allowed is None else allowed.bits
        assert links is not None
        found: Ints = walk(
            self.codes.codes,
            links.lowest,
            links.upper_at,
            links.upper,
            links.entry,
            links.level,
            *self.codes.asked(vector),
            bits,
            min(effort, self.size),
            min(met_max, self.size),
            hidden,
        )
        return found

    def scan(self, vector: Floats, count: int, allowed: RowSet | None) -> Ints:
        """The `count` nearest of the rows that are allowed (None: all) as far as codes tell, in no order."""
        bits = (allowed or RowSet.every(self.size)).bits
        found: Ints = scan(self.codes.codes, *self.codes.asked(vector), bits, min(count, self.size))
        return found

    def to_bytes(self) -> bytes:
        """The length of a table in JSON, the table, and the arrays, each where a line of the processor's
        cache begins. All numbers are little-endian.
        """
        links, codes = self.links, self.codes
        arrays = (codes.codes, codes.steps, codes.offsets, *(() if links is None else links.arrays))
        table = {
            "shape": self.shape.as_json(),
            "start": None if links is None else (links.entry, links.level),
            "efforts": self.efforts,
            "spare": self.spare,
            "arrays": [[array.dtype.newbyteorder("<").str, array.shape] for array in arrays],
        }
        text = json.dumps(table).encode()
        pieces = [_LENGTH.pack(len(text)), text]
        size = sum(map(len, pieces))
        for array in arrays:
            raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            pieces += [bytes(-size % LINE_BYTES), raw]
            size += len(pieces[-2]) + len(raw)
        return b"".join(pieces)

    @classmethod
    def from_bytes(cls, data: memoryview) -> "Graph":
        """Over what to_bytes gave, unharmed: the arrays stay where they are."""
        (length,) = _LENGTH.unpack_from(data)
        end = _LENGTH.size + length
        table = json.loads(bytes(data[_LENGTH.size : end]))
        arrays: list[NDArray[Any]] = []
        for kind, form in table["arrays"]:
            end += -end % LINE_BYTES
            array = np.frombuffer(data, kind, math.prod(form), end).reshape(form)
            array.setflags(write=False)
            arrays.append(array)
            end += array.nbytes
        codes, steps, offsets, *of_links = arrays
        shape = GraphShape(**table["shape"])
        links = None
        if of_links:
            lowest, upper_at, upper = of_links
            links = Links(lowest, upper_at, upper, *table["start"])
        codes_of = Codes(shape.similarity, codes, steps, offsets)
        return cls(shape, links, codes_of, tuple(table["efforts"]), table["spare"])


# Building a graph: its links, codes that are fine enough, and how much effort searches will take.
#
# The measure is what some queries find: the rows that are next to a row, walked past that row as if it were
# not there. (With it they are found too easily: it leads to its neighbours.)

_QUERIES, _NEAREST = 200, 10
# By the bits that codes are asked to have. With a row its links are missing. What is next to a query that
# is no row is found better: from 0.92 to 0.95 of it. Smaller codes leave time to make sure of that for all
# data.
_RECALLS = {8: 0.92, 4: 0.96, 1: 0.96}
_EFFORTS = (
    16, 20, 24, 28, 32, 38, 44, 50, 56, 64, 72, 80, 88, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024,
    1536, 2048,
)  # fmt: skip
_CODES_RECALL = 0.99  # of the nearest among the first by code
_SPARES = {1: (16, 32, 64, 128, 256, 512), 4: (16, 32, 64, 128), 8: (16,)}
"""By the bits of codes: how many of the first may be needed for that. More, and larger codes are quicker."""
_SPARED_PART = 16  # of the rows, at most: in all of a cluster its nearest are found by any code
_SCANNED_MIN = 32  # rows that are taken by their codes, at least


def build_graph(
    rows: Floats, shape: GraphShape, stopped: Callable[[], bool] = lambda: False, threads: int = 1
) -> Graph | None:
    """None where it was stopped. Takes long, for most of the time without the interpreter's lock. With one
    thread the same rows always give the same graph. threads holds for the calling thread from then on.
    """
    links = None
    if shape.m:
        links = Links.built(rows, shape.similarity, shape.m, shape.ef_construction, stopped, threads)
        if links is None:
            return None
    trial = _Trial(rows, shape, stopped)
    codes, spare = trial.codes()
    graph = Graph(shape, links, codes, _EFFORTS[: len(SHARES)], spare)
    if links is not None:
        graph = replace(graph, efforts=tuple(trial.effort(graph, place) for place in range(len(SHARES))))
    return None if stopped() else graph


class _Trial:
    """Some rows as queries, and for each share of the others that may be allowed what the last of the nearest
    scores. (Which these are does not count: others may be as near.)
    """

    def __init__(self, rows: Floats, shape: GraphShape, stopped: Callable[[], bool]) -> None:
        dims = rows.shape[1] * (8 if shape.similarity == HAMMING else 1)
        self._rows, self._metric, self._shape = rows, Metric(shape.similarity, dims), shape
        self._stopped = stopped
        self._sample = np.unique(np.linspace(0, len(rows) - 1, _QUERIES).astype(np.int64)).tolist()
        lots = np.random.default_rng(0).random(len(rows))
        self._masks = [lots < share for share in SHARES]
        self._allowed = [RowSet.of(mask) for mask in self._masks]
        self._last = [self._last_scores(row) for row in self._sample if not stopped()]

    def _last_scores(self, row: int) -> list[np.float32]:
        """For each share; -1 where fewer are allowed."""
        scores = self._metric.scores(self._rows, np.arange(len(self._rows), dtype=np.int32), self._rows[row])
        scores[row] = -1
        last = []
        for mask in self._masks:
            allowed = np.append(scores[mask], np.full(_NEAREST, -1, np.float32))
            last.append(np.partition(allowed, -_NEAREST)[-_NEAREST])
        return last

    def codes(self) -> tuple[Codes, int]:
        """The least that suffice, and how many of the first rows by code that takes."""
        for bits in BITS:
            if bits >= self._shape.bits:
                codes = Codes.of(self._rows, self._shape.similarity, bits)
                few = max(_SCANNED_MIN, len(self._rows) // _SPARED_PART)
                for spare in _SPARES.get(bits, ()):
                    if spare <= few and (self._stopped() or self._suffices(codes, spare)):
                        return codes, spare
        return codes, _EFFORTS[0]

    def _suffices(self, codes: Codes, spare: int) -> bool:
        every = self._allowed[0].bits
        found = (
            scan(codes.codes, *codes.asked(self._rows[row]), every, min(spare + 1, len(self._rows)))
            for row in self._sample
        )
        return self._recall(found, 0) >= _CODES_RECALL

    def effort(self, graph: Graph, place: int) -> int:
        """The least of some at which the queries find their nearest rows, at a share by its place."""
        allowed = self._allowed[place]
        for effort in _EFFORTS:
            found = (graph.walk(self._rows[row], effort, allowed, graph.size, row) for row in self._sample)
            if self._stopped() or self._recall(found, place) >= _RECALLS[self._shape.bits]:
                return effort
        return _EFFORTS[-1]

    def _recall(self, found: Iterable[Ints], place: int) -> float:
        hits = wanted = 0
        allowed = self._allowed[place].count
        for row, rows, last in zip(self._sample, found, self._last, strict=False):
            scores = self._metric.scores(self._rows, rows[rows != row], self._rows[row])
            there = min(_NEAREST, allowed - int(self._masks[place][row]))
            hits += min(there, int(np.count_nonzero(scores >= last[place])))
            wanted += there
        return hits / wanted if wanted else 1.0
