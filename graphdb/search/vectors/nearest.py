"""The nearest vectors, by the graph or by all rows."""

import math
from dataclasses import dataclass

import numpy as np

from graphdb.search.leaf_reader import Bools, Floats, Ints, Longs, Segment
from graphdb.search.vectors.graph import MAGNITUDE_MAX, Graph
from graphdb.search.vectors.metric import Metric
from graphdb.search.vectors.row_set import RowSet

__all__ = [
    "GRAPH_KEY",
    "Sought",
    "VectorRows",
    "attach_graph",
    "graph_of",
    "graphs_of",
    "nearest_in",
    "nearest_ns_max",
]

# `VectorRows`: the rows of one vector field of a segment, and the documents that they are of.

_OWNERS = "vector owners"


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Row i is of document docs[i], which is or is in document owners[i] of the top level; both ascend."""

    rows: Floats
    docs: Ints
    owners: Ints
    is_one_each: bool  # row i is of document i, and there are no other documents

    @classmethod
    def of(cls, segment: Segment, path: str) -> "VectorRows | None":
        """None where no document has a vector there."""
        column = segment.vectors(path)
        if column is None:
            return None
        owners = column.docs if segment.parents is None else _owners(segment, path, column.docs)
        return cls(column.rows, column.docs, owners, len(column.docs) == segment.size)

    def where(self, mask: Bools) -> RowSet:
        """The rows of some documents of the top level; mask is of all documents of the segment."""
        return RowSet.of(mask if self.is_one_each else mask[self.owners])


def _owners(segment: Segment, path: str, docs: Ints) -> Ints:
    """Kept with the segment. (What is kept there must not hold its arrays: others may take their place.)"""
    known: Ints | None = segment.derived.get((_OWNERS, path))
    if known is None:
        assert segment.parents is not None
        roots = np.flatnonzero(segment.parents < 0).astype(np.int32)
        known = segment.derived[_OWNERS, path] = roots[np.searchsorted(roots, docs)]
    return known


# The nearest vectors of one segment, among the rows that a filter and the deletions leave.

GRAPH_KEY = "vector graph"
_SCORED_MAX = 1_000  # rows: so many are scored, whatever else there is
_PER_OBJECT = 4  # rows looked for instead of one, where several may be of one document
# Measured: how many rows a walk meets before it is near, how many of the links of a row lead to one that is
# met for the first time; nanoseconds, alone and for each byte of its code, to meet a row and to compare one
# of many.
_ENTRY, _FRESH = 100, 0.7
_MEET, _COMPARE = (20.0, 0.14), (3.5, 0.07)
_KEEP = (
    200.0,
    0.3,
)  # the same for each row, and dimension, that is taken by its code out of many, and scored
_FEW = 32  # rows
_EXACT = 3  # times as long as comparing codes: scoring rows themselves
_PATIENCE = 4  # times as many rows may be met as should be
_NOTHING = np.zeros(0, np.int64), np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True)
class Sought:
    """The k documents whose vectors score best; candidates: look at least at so many.

    A document may have several, in its nested objects: then the best of them counts. objects: find the nested
    object itself, not its document.
    """

    path: str
    vector: Floats
    metric: Metric
    k: int
    candidates: int
    nested: bool = False
    objects: bool = False

    @property
    def is_huge(self) -> bool:
        """Whether distances and products may not fit into 32 bits."""
        return bool(np.abs(self.vector).max() > MAGNITUDE_MAX)


def nearest_in(
    segment: Segment, rows: VectorRows, sought: Sought, allowed: RowSet | None = None
) -> tuple[Longs, Floats]:
    """(documents, scores), best first, ties by number. allowed: which of the rows; None: all."""
    count = len(rows.rows) if allowed is None else allowed.count
    if not count:
        return _NOTHING
    graph = graph_of(segment, sought.path)
    if graph is not None and count > _SCORED_MAX and not sought.is_huge:
        found = _best(rows, sought, np.sort(_likely(graph, sought, allowed, count)))
        if len(found[0]) == sought.k:
            return found
    every = np.arange(count, dtype=np.int32) if allowed is None else allowed.rows()
    return _best(rows, sought, every)


def nearest_ns_max(segment: Segment, rows: VectorRows, sought: Sought, filtered: bool) -> float:
    """About how long nearest_in takes in nanoseconds at most, whatever part of the rows a filter leaves."""
    graph = graph_of(segment, sought.path)
    if sought.is_huge:
        return math.inf
    if graph is None:
        return _EXACT * _ns(_COMPARE, len(sought.vector)) * len(rows.rows)
    meet, all_compared = _ns(_MEET, _size(graph, sought)), _scan_ns(graph, sought, graph.size, sought.k)
    if graph.links is None:
        return all_compared
    met = _FRESH * graph.links.width * max(graph.effort(1.0) + graph.more(sought.k), sought.candidates)
    if not filtered:
        return min(meet * (_ENTRY + met), all_compared)
    # Most where the walk, the longer the fewer are left, takes as long as comparing those that are left.
    half, product = meet * _ENTRY / 2, meet * met * all_compared
    return min(half + math.sqrt(half * half + product), all_compared)


def graph_of(segment: Segment, path: str) -> Graph | None:
    """The graph of a field, where it is made already."""
    found: Graph | None = segment.derived.get((GRAPH_KEY, path))
    return found


def graphs_of(segment: Segment) -> dict[str, Graph]:
    """The graphs that are made already, by field. Any thread."""
    return {path: found for (kind, path), found in list(segment.derived.items()) if kind == GRAPH_KEY}


def attach_graph(segment: Segment, path: str, graph: Graph) -> None:
    """Have searches use it from now on. Any thread."""
    segment.derived[GRAPH_KEY, path] = graph


def _likely(graph: Graph, sought: Sought, allowed: RowSet | None, count: int) -> Ints:
    """Rows among which the best are, found in whichever way is quicker."""
    wanted = min(sought.k * (_PER_OBJECT if sought.nested else 1), count)
    if graph.links is not None:
        effort = max(graph.effort(count / graph.size) + graph.more(wanted), sought.candidates)
        rows_met = _ENTRY + _FRESH * graph.links.width * effort * graph.size / count
        walk_ns = rows_met * _ns(_MEET, _size(graph, sought)) + _kept_ns(effort, sought)
        if walk_ns < _scan_ns(graph, sought, count, wanted):
            found = graph.walk(sought.vector, effort, allowed, int(_PATIENCE * rows_met))
            if len(found) >= wanted:
                return found
    return graph.scan(sought.vector, _kept(graph, sought, wanted), allowed)


def _kept(graph: Graph, sought: Sought, wanted: int) -> int:
    """How many rows are taken by their codes out of all, and scored."""
    return max(graph.scanned(wanted), sought.candidates)


def _scan_ns(graph: Graph, sought: Sought, count: int, wanted: int) -> float:
    kept = min(_kept(graph, sought, wanted), count)
    return count * _ns(_COMPARE, _size(graph, sought)) + _kept_ns(kept, sought)


def _kept_ns(kept: int, sought: Sought) -> float:
    """To keep so many rows and to score them; that of a few is in the other costs."""
    return max(kept - _FEW, 0) * _ns(_KEEP, len(sought.vector))


def _size(graph: Graph, sought: Sought) -> int:
    """What a comparison reads, in bytes; elements as they are take longer than one byte each, but not
    four times.
    """
    return min(graph.codes.row_bytes, len(sought.vector))


def _ns(cost: tuple[float, float], size: int) -> float:
    return cost[0] + cost[1] * size


def _best(rows: VectorRows, sought: Sought, which: Ints) -> tuple[Longs, Floats]:
    """Score some rows, ascending, and take the best of each document."""
    scores = sought.metric.scores(rows.rows, which, sought.vector)
    if sought.nested:
        places = _first_of_each(scores, rows.owners[which], sought.k)
    else:
        places = _first(scores, sought.k)
    docs = (rows.docs if sought.objects else rows.owners)[which[places]]
    return docs.astype(np.int64), scores[places]


def _first(scores: Floats, k: int) -> Longs:
    """The places of the k best, best first; ties keep their order."""
    places = np.arange(len(scores))
    if len(scores) > 4 * k:
        limit = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= limit)
    return places[np.argsort(-scores[places], kind="stable")[:k]]


def _first_of_each(scores: Floats, owners: Ints, k: int) -> Longs:
    """The same where of each owner only the best counts."""
    seen = _PER_OBJECT * k
    while True:
        places = _first(scores, seen)
        _, firsts = np.unique(owners[places], return_index=True)
        if len(firsts) >= k or seen >= len(scores):
            return places[np.sort(firsts)[:k]]
        seen *= _PER_OBJECT
