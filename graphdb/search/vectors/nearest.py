"""The nearest vectors of one segment, among the documents that a filter and the deletions leave."""

from dataclasses import dataclass

import numpy as np

from graphdb.search.segment import Bools, Floats, Ints, Leaf, Longs, VectorColumn
from graphdb.search.vectors.graph import Graph
from graphdb.search.vectors.metric import Metric

__all__ = ["GRAPH_KEY", "Sought", "graph_of", "nearest_in"]

GRAPH_KEY = "vector graph"
_FILTERED = 0.65  # the effort grows as the share of allowed rows to this negative power
_ROWS_PER_EFFORT = 17  # rows that are scored in the time in which the walk takes one more into view
_SPARE = 1.3  # times as many allowed rows in view as are wanted
_PER_OBJECT = 4  # rows asked for instead of one, where several may be of one document


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


def nearest_in(leaf: Leaf, sought: Sought, allowed: Bools | None = None) -> tuple[Longs, Floats]:
    """(documents, scores), best first, ties by number. allowed: documents of the top level; None: all."""
    column = leaf.segment.vectors(sought.path)
    if column is None:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    owners = _owners(leaf, column) if sought.nested else column.docs
    rows = _allowed_rows(leaf, owners, allowed)
    if (graph := graph_of(leaf, sought.path)) is not None:
        found = _by_graph(graph, column, owners, sought, rows)
        if found is not None:
            return found
    which = np.arange(len(owners), dtype=np.int32) if rows is None else np.flatnonzero(rows).astype(np.int32)
    return _best(column, owners, sought, which)


def graph_of(leaf: Leaf, path: str) -> Graph | None:
    """The graph of a field, where it is made already."""
    found: Graph | None = leaf.segment.derived.get((GRAPH_KEY, path))
    return found


def _owners(leaf: Leaf, column: VectorColumn) -> Ints:
    """The document of the top level that each row is of."""
    segment = leaf.segment
    if segment.parents is None:
        return column.docs
    roots = np.flatnonzero(segment.parents < 0).astype(np.int32)
    owners: Ints = roots[np.searchsorted(roots, column.docs)]
    return owners


def _allowed_rows(leaf: Leaf, owners: Ints, allowed: Bools | None) -> Bools | None:
    """By row; None where all are."""
    mask = leaf.live if allowed is None else leaf.live & allowed
    if mask.all():
        return None
    return mask if len(owners) == len(mask) else mask[owners]


def _by_graph(
    graph: Graph, column: VectorColumn, owners: Ints, sought: Sought, rows: Bools | None
) -> tuple[Longs, Floats] | None:
    """None where it is quicker to score all rows, or the walk has not met enough."""
    count = graph.size if rows is None else int(np.count_nonzero(rows))
    wanted = min(sought.k * (_PER_OBJECT if sought.nested else 1), count)
    if not wanted:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    share = count / graph.size
    effort = max(
        sought.candidates,
        int((graph.effort + max(wanted - 10, 0)) * share**-_FILTERED),
        int(_SPARE * wanted / share),
    )
    if count <= _ROWS_PER_EFFORT * effort:
        return None
    which = graph.nearest(sought.vector, wanted, effort, rows)
    if len(which) < wanted:
        return None
    found = _best(column, owners, sought, np.sort(which).astype(np.int32))
    return found if len(found[0]) == sought.k else None


def _best(column: VectorColumn, owners: Ints, sought: Sought, which: Ints) -> tuple[Longs, Floats]:
    """Score some rows, ascending, and take the best of each document."""
    scores = sought.metric.scores(column.rows, which, sought.vector)
    docs = (column.docs if sought.objects else owners)[which].astype(np.int64)
    if sought.nested:
        order = np.lexsort((docs, -scores))
        _, first = np.unique(owners[which][order], return_index=True)
        kept = np.sort(order[first])
        docs, scores = docs[kept], scores[kept]
    places = _first(scores, sought.k)
    return docs[places], scores[places]


def _first(scores: Floats, k: int) -> Longs:
    """The places of the k best, best first; ties keep their order."""
    places = np.arange(len(scores))
    if len(scores) > 4 * k:
        limit = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= limit)
    return places[np.argsort(-scores[places], kind="stable")[:k]]
