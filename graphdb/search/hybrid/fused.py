"""`FusedQuery`: the lists of several queries, made one by a scorer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphdb.search.hybrid.scorers import Scorer
from graphdb.search.query import Query, Searcher, collect
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.ranked import RankedQuery, Ranking
from graphdb.search.query.tree import SCORE_MAX, Matches
from graphdb.search.segment import Bools, Doubles, Leaf, Longs

__all__ = ["FusedQuery"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FusedQuery(RankedQuery):
    """Matches whatever any of the queries matches; what is not in its list scores 0.

    window: how many of each list count; kept: how many of the fused list. Equal scores stand in the order of
    the documents.
    """

    queries: tuple[Query, ...]
    scorer: Scorer
    window: int
    kept: int
    score_min: float | None = None

    def rank(self, searcher: Searcher) -> Ranking:
        docs, parts = fused(self.lists(searcher), self.scorer)
        with np.errstate(over="ignore"):
            scores = np.minimum(parts.sum(axis=0), SCORE_MAX).astype(np.float32)
        order = np.lexsort((docs, -scores))
        return Ranking(docs[order], scores[order]).best(self.kept, self.score_min)

    def lists(self, searcher: Searcher) -> tuple[Ranking, ...]:
        """Those of the queries."""
        return tuple(_list_of(query, searcher, self.window) for query in self.queries)

    def ranked(self, searcher: Searcher) -> Bools:
        """Which of all documents are in the list."""
        mask = np.zeros(searcher.max_doc, np.bool_)
        mask[self.ranking(searcher).docs] = True
        return mask

    def listed(self, searcher: Searcher) -> None:
        """Some that match are in no list."""

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        own = super().matches(leaf, searcher, boost)
        masks = [query.mask(leaf, searcher) for query in self.queries]
        return Matches(np.logical_or.reduce([own.mask, *masks]), own.scores)

    def children(self) -> tuple[Query, ...]:
        return self.queries

    def part(self, number: int) -> Query:
        return replace(self, queries=tuple(query.part(number) for query in self.queries))

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        whole = super().explain(leaf, doc, searcher, boost)
        if "no_match" in whole:
            return no_match("not in the fused list")
        details = [
            _explained(ranking, self.scorer, place, len(self.queries), leaf.base + doc)
            | {"details": [query.explain(leaf, doc, searcher)]}
            for place, (query, ranking) in enumerate(zip(self.queries, self.lists(searcher), strict=True))
        ]
        return explained(whole["value"], self.scorer.text(), details)

    def text(self) -> str:
        return f"({' '.join(str(query) for query in self.queries)})"


def fused(lists: Sequence[Ranking], scorer: Scorer) -> tuple[Longs, Doubles]:
    """(documents, parts): all that are in any list, ascending, and what each list gives each of them."""
    docs = np.unique(np.concatenate([ranking.docs for ranking in lists]))
    parts = np.zeros((len(lists), len(docs)))
    for place, ranking in enumerate(lists):
        parts[place, np.searchsorted(docs, ranking.docs)] = scorer.parts(ranking, place, len(lists))
    return docs, parts


def _list_of(query: Query, searcher: Searcher, window: int) -> Ranking:
    if isinstance(query, RankedQuery):
        found = query.ranking(searcher).best(window)
        return replace(found, scores=found.scores * np.float32(query.boost))
    best = collect(query, searcher, window, 0)
    return Ranking(best.docs, best.scores)


def _explained(ranking: Ranking, scorer: Scorer, place: int, lists: int, doc: int) -> Explanation:
    """Rank and score of a document in one list."""
    found = np.flatnonzero(ranking.docs == doc)
    if not len(found):
        return explained(0.0, f"not in the list of the query at index [{place}]")
    rank = int(found[0])
    part = float(scorer.parts(ranking, place, lists)[rank])
    score = float(ranking.scores[rank])
    return explained(
        part, f"rank [{rank + 1}] and score [{score}] in the list of the query at index [{place}]"
    )
