"""Queries whose matches are a list: the best of something over all segments, found once for a searcher."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphdb.search.leaf_reader import Floats, Leaf, Longs
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.top_hits import collect
from graphdb.search.query.tree import Matches, Query

__all__ = ["BestQuery", "Part", "RankedQuery", "Ranking", "best_of", "merged"]

Part = tuple[Longs, Floats]
"""Some documents, best first, ties by number, and their scores."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """docs are numbers in the whole searcher (or among the documents of all shards), best first, ties by
    number.

    likelihoods: scores are between 0 and 1, from unlike to alike.
    """

    docs: Longs
    scores: Floats
    likelihoods: bool = False

    def best(self, count: int, score_min: float | None = None) -> "Ranking":
        """The first, those of them that score enough."""
        docs, scores = self.docs[:count], self.scores[:count]
        if score_min is not None:
            kept = scores >= np.float32(score_min)
            docs, scores = docs[kept], scores[kept]
        return Ranking(docs, scores, self.likelihoods)


def merged(parts: Sequence[Part], likelihoods: bool = False) -> Ranking:
    """Of documents that are in one part only; each part best first, ties by number."""
    if len(parts) == 1:
        return Ranking(*parts[0], likelihoods)
    docs = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
    scores = np.concatenate([np.zeros(0, np.float32), *(part[1] for part in parts)])
    order = np.lexsort((docs, -scores))
    return Ranking(docs[order], scores[order], likelihoods)


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedQuery(Query):
    """Of one request: it remembers what it has found in each searcher. Rankings are without boost."""

    _known: dict[int, tuple[Searcher, Ranking]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """What was found stays where the searchers are."""
        return {**super().__getstate__(), "_known": {}}

    @abstractmethod
    def rank(self, searcher: Searcher) -> Ranking:
        """Make the list: over all shards that are searched, with numbers among all their documents."""

    def ranking(self, searcher: Searcher) -> Ranking:
        """The list over all segments of a searcher."""
        if id(searcher) not in self._known:
            found = _of_own(self.rank(searcher), searcher)
            self._share(searcher, found)
            # The searcher is kept with its answer, so that its identity is not given to another.
            self._known[id(searcher)] = searcher, found
        return self._known[id(searcher)][1]

    def listed(self, searcher: Searcher) -> tuple[Longs, Floats] | None:
        found = self.ranking(searcher)
        return found.docs, found.scores * np.float32(self.boost)

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        found = self.ranking(searcher)
        docs, scores = _within(leaf, found)
        mask = np.zeros(leaf.segment.size, np.bool_)
        dense = np.zeros(leaf.segment.size, np.float32)
        mask[docs] = True
        dense[docs] = scores * np.float32(boost * self.boost)
        return Matches(mask, dense)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        docs, scores = _within(leaf, self.ranking(searcher))
        if doc not in docs:
            return no_match("not in top k documents")
        return explained(float(scores[docs == doc][0]) * boost * self.boost, "within top k documents")

    def _share(self, searcher: Searcher, found: Ranking) -> None:
        """Where several indexes were searched as one: what was found in each, for callers that ask one."""
        parts: dict[int, tuple[Searcher, list[tuple[Longs, Floats]]]] = {}
        for leaf in searcher.leaves:
            _, own, its_searcher = searcher.part(leaf)
            if its_searcher is searcher:
                return
            docs, scores = _within(leaf, found)
            parts.setdefault(id(its_searcher), (its_searcher, []))[1].append((docs + own.base, scores))
        for its_searcher, pieces in parts.values():
            self._known[id(its_searcher)] = its_searcher, merged(pieces, found.likelihoods)


@dataclass(frozen=True, kw_only=True, eq=False)
class BestQuery(RankedQuery):
    """The best `count` documents of a query, and no others."""

    query: Query
    count: int
    score_min: float | None = None
    likelihoods: bool = False

    def rank(self, searcher: Searcher) -> Ranking:
        found = best_of(self.query, searcher, self.count)
        return replace(found, likelihoods=self.likelihoods).best(self.count, self.score_min)

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def part(self, number: int) -> Query:
        return replace(self, query=self.query.part(number))

    def text(self) -> str:
        return self.query.text()


@dataclass(frozen=True, slots=True)
class _Best:
    """The best documents of a query in a shard."""

    query: Query
    count: int

    def answered(self, searcher: Searcher) -> Part:
        found = collect(self.query, searcher, self.count, 0)
        return found.docs + searcher.first.number, found.scores


def best_of(query: Query, searcher: Searcher, count: int) -> Ranking:
    """The best documents of a query in all shards that are searched, by their numbers among all."""
    return merged(searcher.ask(_Best(query, count))).best(count)


def _of_own(found: Ranking, searcher: Searcher) -> Ranking:
    """What of a list over all shards is in the searcher's own leaves, by its numbers."""
    if searcher.peers is None:
        return found
    docs = found.docs - searcher.first.number
    own = (docs >= 0) & (docs < searcher.max_doc)
    return Ranking(docs[own], found.scores[own], found.likelihoods)


def _within(leaf: Leaf, found: Ranking) -> tuple[Longs, Floats]:
    """What of a list is in a leaf, by the leaf's numbers."""
    here = (found.docs >= leaf.base) & (found.docs < leaf.base + leaf.segment.size)
    return found.docs[here] - leaf.base, found.scores[here]
