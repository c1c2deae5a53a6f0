"""One query on several indexes: what it is on each of them, and the segments of all read as one.

Every index reads the query with its own mapping and analyzers and, unless statistics are shared, scores by
its own term statistics, as the shards of Elasticsearch do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from graphdb.search.leaf_reader import Bools, Doubles, Ints, Leaf, TermDictionary
from graphdb.search.query.explanation import Explanation
from graphdb.search.query.peers import Peers, Question
from graphdb.search.query.searcher import Searcher, ShardSearcher, TermCodes
from graphdb.search.query.tree import Matches, Query

__all__ = ["PerIndexQuery", "SeveralSearcher", "ShardSeveralSearcher"]


class SeveralSearcher(Searcher):
    """The leaves of several searchers, numbered through. Owned by the search, as theirs.

    shared_statistics: score as if all were one index (`dfs_query_then_fetch`).
    """

    def __init__(self, searchers: Sequence[Searcher], shared_statistics: bool = False) -> None:
        leaves: list[Leaf] = []
        self.searchers = tuple(searchers)
        self._parts: dict[int, tuple[int, Leaf]] = {}  # by the base of a leaf
        base = 0
        for number, searcher in enumerate(searchers):
            for leaf in searcher.leaves:
                # An empty segment would share its base with the next; there are no documents to find in it.
                if leaf.segment.size:
                    leaves.append(replace(leaf, base=base))
                    self._parts[base] = number, leaf
                    base += leaf.segment.size
        first = searchers[0]
        super().__init__(leaves, first.mapping, first.analyzers)
        self.shared_statistics = shared_statistics

    def part(self, leaf: Leaf) -> tuple[int, Leaf, Searcher]:
        number, own = self._parts[leaf.base]
        return number, own, self.searchers[number]

    def codes(self, leaf: Leaf, path: str, dictionary: TermDictionary) -> TermCodes:
        """Names of segments are unique within an index only."""
        _, own, searcher = self.part(leaf)
        return searcher.codes(own, path, dictionary)


class ShardSeveralSearcher(ShardSearcher):
    """One shard of one of several indexes, in a search of all their shards: others have no leaves here."""

    def __init__(self, searchers: Sequence[Searcher], peers: Peers, shared_statistics: bool = False) -> None:
        """searchers: those of this shard, by index; shards are numbered index by index."""
        self.searchers = tuple(
            ShardSearcher(one, _OfIndex(peers, number)) for number, one in enumerate(searchers)
        )
        self._several = SeveralSearcher(searchers, shared_statistics)
        super().__init__(self._several, peers)
        self.shared_statistics = shared_statistics

    def part(self, leaf: Leaf) -> tuple[int, Leaf, Searcher]:
        number, own, _ = self._several.part(leaf)
        return number, own, self.searchers[number]

    def codes(self, leaf: Leaf, path: str, dictionary: TermDictionary) -> TermCodes:
        return self._several.codes(leaf, path, dictionary)


Known = TypeVar("Known")


@dataclass(frozen=True, slots=True)
class _OfIndex:
    """See `Peers`: of all shards what they have of one index, which is nothing in most."""

    peers: Peers
    index: int

    @property
    def number(self) -> int:
        return self.peers.number

    def gather(self, place: str, piece: Known) -> list[Known]:
        return self.peers.gather(place, piece)

    def everywhere(self, question: Question[Known]) -> list[Known]:
        return self.peers.everywhere(_IndexQuestion(self.index, question))

    def advice(self, asked: Any) -> Any:
        return self.peers.advice(asked)

    def place(self, owners: list[int]) -> None:
        self.peers.place(owners)


@dataclass(frozen=True, slots=True)
class _IndexQuestion(Generic[Known]):
    """A question about one index, asked of the searcher of several."""

    index: int
    question: Question[Known]

    def answered(self, searcher: Any) -> Known:
        return self.question.answered(searcher.searchers[self.index])


@dataclass(frozen=True, kw_only=True)
class PerIndexQuery(Query):
    """queries: what the query is on each index of a SeveralSearcher, in its order."""

    queries: tuple[Query, ...]

    def on(self, leaf: Leaf, searcher: Searcher) -> tuple[Query, Leaf, Searcher]:
        """What to ask instead: the query of the leaf's index."""
        number, own, its_searcher = searcher.part(leaf)
        if searcher.shared_statistics:
            return self.queries[number], leaf, searcher
        return self.queries[number], own, its_searcher

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        query, own, its_searcher = self.on(leaf, searcher)
        return query.matches(own, its_searcher, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        query, own, its_searcher = self.on(leaf, searcher)
        return np.asarray(query.mask(own, its_searcher))

    def accumulate(self, leaf: Leaf, searcher: Searcher, boost: float, scores: Doubles, counts: Ints) -> None:
        query, own, its_searcher = self.on(leaf, searcher)
        query.accumulate(own, its_searcher, boost * self.boost, scores, counts)

    def children(self) -> tuple[Query, ...]:
        return self.queries

    def part(self, number: int) -> Query:
        return self.queries[number]

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        query, own, its_searcher = self.on(leaf, searcher)
        return query.explain(own, doc, its_searcher, boost * self.boost)

    def text(self) -> str:
        return str(self.queries[0])
