"""All vectors of a field, scored one by one: what the `inner_hits` of a `knn` show."""

from dataclasses import dataclass

import numpy as np

from graphdb.search.leaf_reader import Bools, Floats, Leaf, Longs
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.kernels import find_sorted
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Matches, Query
from graphdb.search.vectors import Sought, VectorRows

__all__ = ["ExactKnnQuery"]


@dataclass(frozen=True, kw_only=True)
class ExactKnnQuery(Query):
    """Whatever has a vector at a path, documents or nested objects.

    score_min: what scores less is not found.
    """

    sought: Sought
    score_min: float | None = None

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        if self.score_min is not None:
            return self.matches(leaf, searcher).mask
        mask = np.zeros(leaf.segment.size, np.bool_)
        rows = VectorRows.of(leaf.segment, self.sought.path)
        if rows is not None:
            mask[rows.docs] = True
        return mask

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask, scores = np.zeros(leaf.segment.size, np.bool_), np.zeros(leaf.segment.size, np.float32)
        rows = VectorRows.of(leaf.segment, self.sought.path)
        if rows is not None:
            kept, found = self.scored(leaf, rows.docs.astype(np.int64))
            mask[kept], scores[kept] = True, found * np.float32(boost)
        return Matches(mask, scores)

    def scored(self, leaf: Leaf, docs: Longs) -> tuple[Longs, Floats]:
        """Those of some documents of a leaf that are found, ascending as they are, and their scores."""
        rows = VectorRows.of(leaf.segment, self.sought.path)
        if rows is None or not len(docs):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        which = find_sorted(docs.astype(np.int32), rows.docs)
        places = which[(has_one := which >= 0)].astype(np.int32)
        scores = self.sought.metric.scores(rows.rows, places, self.sought.vector)
        kept = docs[has_one]
        if self.score_min is not None:
            enough = scores >= np.float32(self.score_min)
            kept, scores = kept[enough], scores[enough]
        return kept, scores * np.float32(self.boost)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        kept, scores = self.scored(leaf, np.array([doc], np.int64))
        if not len(kept):
            return no_match(f"no vector found at [{self.sought.path}] that is near enough")
        value = float(scores[0] * np.float32(boost))
        return explained(value, f"found vector with calculated similarity: {value}")

    def text(self) -> str:
        return f"ExactKnnQuery:{self.sought.path}"
