"""Building a graph: its links, codes that are fine enough, and how much effort searches will take.

The measure is what some queries find: the rows that are next to a row, walked past that row as if it were not
there. (With it they are found too easily: it leads to its neighbours.)
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from graphdb.search.segment import Floats, Ints
from graphdb.search.vectors.codes import Codes
from graphdb.search.vectors.graph import SHARES, Graph, GraphShape
from graphdb.search.vectors.links import Links
from graphdb.search.vectors.metric import Metric
from graphdb.search.vectors.row_set import RowSet

__all__ = ["build_graph"]

_QUERIES, _NEAREST = 200, 10
# With a row its links are missing. What is next to a query that is no row is found better, to 0.95.
_RECALL = 0.92
_EFFORTS = (
    16, 20, 24, 28, 32, 38, 44, 50, 56, 64, 72, 80, 88, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024,
    1536, 2048,
)  # fmt: skip
_CODES_RECALL = 0.99  # of the nearest among the first by code, as many as the least effort looks for


def build_graph(
    rows: Floats, shape: GraphShape, stopped: Callable[[], bool] = lambda: False, threads: int = 1
) -> Graph | None:
    """None where it was stopped. Takes long, for most of the time without the interpreter's lock. With one
    thread the same rows always give the same graph. threads holds for the calling thread from then on.
    """
    links = Links.built(rows, shape.similarity, shape.m, shape.ef_construction, stopped, threads)
    if links is None:
        return None
    graph = Graph(shape, links, Codes.of(rows, shape.similarity, whole=False), _EFFORTS[: len(SHARES)])
    trial = _Trial(rows, shape, stopped)
    if stopped():
        return None
    if not trial.codes_suffice(graph):
        graph = replace(graph, codes=Codes.of(rows, shape.similarity, whole=True))
    efforts = tuple(trial.effort(graph, place) for place in range(len(SHARES)))
    return None if stopped() else replace(graph, efforts=efforts)


class _Trial:
    """Some rows as queries, and for each share of the others that may be allowed what the last of the nearest
    scores. (Which these are does not count: others may be as near.)
    """

    def __init__(self, rows: Floats, shape: GraphShape, stopped: Callable[[], bool]) -> None:
        self._rows, self._metric = rows, Metric(shape.similarity, rows.shape[1])
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

    def codes_suffice(self, graph: Graph) -> bool:
        found = (graph.scan(self._rows[row], _EFFORTS[0] + 1, self._allowed[0]) for row in self._sample)
        return self._recall(found, 0) >= _CODES_RECALL

    def effort(self, graph: Graph, place: int) -> int:
        """The least of some at which the queries find their nearest rows, at a share by its place."""
        allowed = self._allowed[place]
        for effort in _EFFORTS:
            found = (graph.walk(self._rows[row], effort, allowed, graph.size, row) for row in self._sample)
            if self._stopped() or self._recall(found, place) >= _RECALL:
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
