"""`Graph`: a navigable small world over the rows of one segment's vectors (HNSW).

Source: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical
Navigable Small World graphs", 2016.
"""

import math
import struct
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphdb.search.segment import Floats, Ints
from graphdb.search.vectors.codes import Codes, aligned
from graphdb.search.vectors.links import Links
from graphdb.search.vectors.row_set import Bits, RowSet
from graphdb.search.vectors.walk import scan, walk

__all__ = ["MAGNITUDE_MAX", "SHARES", "Graph", "GraphShape"]

MAGNITUDE_MAX = 1e15  # of an element: squares of larger ones may not be summed in 32 bits
SHARES = (1.0, 0.5, 0.25, 0.1)
"""Of the rows, that a filter may leave: where it is measured how much effort that takes."""

_HEADER = struct.Struct("<6I4I?")
_EVERY: Bits = np.zeros(0, np.uint64)
_EVERY.setflags(write=False)


@dataclass(frozen=True, slots=True)
class GraphShape:
    """What a graph is built with: a metric of `mapping.vectors.SIMILARITIES`, and `index_options`."""

    similarity: str
    m: int = 16
    ef_construction: int = 100

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Graph:
    """Any number of threads search it at a time. It has codes of the rows, and does without the segment.

    efforts: for each of SHARES how many rows to look for, so that of the ten nearest hardly any is missed.
    """

    shape: GraphShape
    links: Links
    codes: Codes
    efforts: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.codes.codes)

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

        Fewer where the graph leads to no more, or has led to met_max rows, allowed ones or not.
        """
        query, weights = self.codes.asked(vector)
        links, bits = self.links, _EVERY if allowed is None else allowed.bits
        found: Ints = walk(
            self.codes.codes,
            links.lowest,
            links.upper_at,
            links.upper,
            links.entry,
            links.level,
            query,
            weights,
            bits,
            min(effort, self.size),
            min(met_max, self.size),
            hidden,
        )
        return found

    def scan(self, vector: Floats, count: int, allowed: RowSet | None) -> Ints:
        """The `count` nearest of the rows that are allowed (None: all) as far as codes tell, in no order."""
        query, weights = self.codes.asked(vector)
        bits = (allowed or RowSet.every(self.size)).bits
        found: Ints = scan(self.codes.codes, query, weights, bits, min(count, self.size))
        return found

    def to_bytes(self) -> bytes:
        """Without the codes, which the rows give again."""
        links = self.links
        upper, above = links.upper.shape
        head = (self.size, links.lowest.shape[1], upper, above, links.entry, links.level)
        whole = self.codes.codes.dtype != np.int8
        arrays = (links.lowest, links.upper_at, links.upper)
        return _HEADER.pack(*head, *self.efforts, whole) + b"".join(array.tobytes() for array in arrays)

    @classmethod
    def from_bytes(cls, data: bytes, rows: Floats, shape: GraphShape) -> "Graph":
        """Of what to_bytes gave, unharmed, and the same rows."""
        size, width, upper, above, entry, level, *efforts, whole = _HEADER.unpack_from(data)
        arrays, start = [], _HEADER.size
        for form in ((size, width), (size,), (upper, above)):
            array = aligned(form, np.int32)
            array[...] = np.frombuffer(data, "<i4", array.size, start).reshape(form)
            arrays.append(array)
            start += array.nbytes
        links = Links(arrays[0], arrays[1], arrays[2], entry, level)
        return cls(shape, links, Codes.of(rows, shape.similarity, whole), tuple(efforts))
