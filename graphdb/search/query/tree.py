"""What every query is: a node of an immutable tree that matches and scores the documents of a segment."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from graphdb.search.abstract import Abstract
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Leaf, Longs
from graphdb.search.query.explanation import Explanation, explained, no_match

if TYPE_CHECKING:
    from graphdb.search.query.searcher import Searcher

__all__ = [
    "SCORE_MAX",
    "MatchAllQuery",
    "MatchNoneQuery",
    "Matches",
    "Query",
    "RewrittenQuery",
    "boosted",
    "largest_boost",
    "late_last",
    "runs_scripts",
    "walk",
]

SCORE_MAX = 1e30
"""No boost or function may make more of a score, so that their sums stay numbers in 32 bits."""

AnyQuery = TypeVar("AnyQuery", bound="Query")
_FOUND = ("_nodes", "plain_terms")  # members of a query that are no fields


@dataclass(frozen=True, slots=True)
class Matches:
    """The documents of a segment that a query matches, deleted and nested ones too: the caller masks those.

    scores is 0 where mask is false; None where every match scores the same, namely constant.
    """

    mask: Bools
    scores: Floats | None = None
    constant: float = 1.0

    def dense(self) -> Floats:
        """One score for each document."""
        if self.scores is not None:
            return self.scores
        return self.mask * np.float32(self.constant)


@dataclass(frozen=True, kw_only=True)
class Query(Abstract):
    """One node. boost multiplies its scores; name is what `_name` has called it.

    As in Lucene a boost is handed down to the scorers rather than multiplied in afterwards, so
    every method that scores takes the boost of what is above.
    """

    is_late: ClassVar[bool] = False  # it takes long, as scripts do: what is beside it should match first

    boost: float = 1.0
    name: str | None = None

    @abstractmethod
    def matches(self, leaf: Leaf, searcher: "Searcher", boost: float = 1.0) -> Matches:
        """Match and score all documents of a leaf."""

    def mask(self, leaf: Leaf, searcher: "Searcher") -> Bools:
        """Match without scores, as a filter does."""
        return self.matches(leaf, searcher).mask

    def mask_among(self, leaf: Leaf, searcher: "Searcher", among: Bools) -> Bools:
        """As mask, but only the documents among these count: a script runs for no others."""
        return self.mask(leaf, searcher)

    def accumulate_among(
        self, leaf: Leaf, searcher: "Searcher", boost: float, scores: Doubles, counts: Ints, among: Bools
    ) -> None:
        """As accumulate, but only the documents among these count."""
        self.accumulate(leaf, searcher, boost, scores, counts)

    def accumulate(
        self, leaf: Leaf, searcher: "Searcher", boost: float, scores: Doubles, counts: Ints
    ) -> None:
        """Add the scores of the matches to scores, and 1 for each of them to counts."""
        found = self.matches(leaf, searcher, boost)
        if found.scores is None:
            scores[found.mask] += np.float32(found.constant)
        else:
            scores += found.scores
        counts += found.mask

    def boost_max(self) -> float:
        """The largest of the boosts that it multiplies scores by itself."""
        return self.boost

    def children(self) -> "tuple[Query, ...]":
        """The queries right below."""
        return ()

    @property
    def nodes(self) -> "tuple[Query, ...]":
        """What `walk` gives, found once: several ask each query of a request."""
        # No cached_property: in Python 3.11 that holds one lock for all objects.
        kept = vars(self)
        if "_nodes" not in kept:
            kept["_nodes"] = tuple(walk(self))
        found: tuple[Query, ...] = kept["_nodes"]
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be found again."""
        return {name: value for name, value in vars(self).items() if name not in _FOUND}

    def scored_by(self) -> Iterable[tuple[str, str]]:
        """(path, term): what it, without the queries below, is known to score by the statistics of."""
        return ()

    def listed(self, searcher: "Searcher") -> "tuple[Longs, Floats] | None":
        """All live documents that match and their scores, best first, where that is a list already."""
        return None

    def listed_in(self, leaf: Leaf, searcher: "Searcher", boost: float) -> "tuple[Ints, Floats] | None":
        """As matches, but the documents of a leaf alone, ascending, and their scores; None where there is no
        such list that takes less time.
        """
        return None

    def docs_in(self, leaf: Leaf, searcher: "Searcher") -> "Ints | None":
        """The same without scores."""
        found = self.listed_in(leaf, searcher, 1.0)
        return None if found is None else found[0]

    def part(self, number: int) -> "Query":
        """What it is on one of several indexes, by number."""
        return self

    def explain(self, leaf: Leaf, doc: int, searcher: "Searcher", boost: float = 1.0) -> Explanation:
        """Why a document scores what it does; unless overridden: because it matches."""
        found = self.matches(leaf, searcher, boost)
        if not found.mask[doc]:
            return no_match(f"{self.text()} doesn't match id {leaf.shown_number(doc)}")
        return explained(float(found.dense()[doc]), f"ConstantScore({self.text()})")

    @abstractmethod
    def text(self) -> str:
        """As Lucene prints it, without its boost."""

    def __str__(self) -> str:
        return self.text() if self.boost == 1.0 else f"({self.text()})^{float(self.boost)}"


@dataclass(frozen=True, kw_only=True)
class RewrittenQuery(Query):
    """One whose terms depend on what there are: for each searcher it stands for another query."""

    @abstractmethod
    def rewritten(self, searcher: "Searcher") -> Query:
        """What it stands for in this searcher, without its own boost."""

    def matches(self, leaf: Leaf, searcher: "Searcher", boost: float = 1.0) -> Matches:
        return self.rewritten(searcher).matches(leaf, searcher, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: "Searcher") -> Bools:
        return self.rewritten(searcher).mask(leaf, searcher)

    def explain(self, leaf: Leaf, doc: int, searcher: "Searcher", boost: float = 1.0) -> Explanation:
        return self.rewritten(searcher).explain(leaf, doc, searcher, boost * self.boost)


def boosted(query: AnyQuery, boost: float, name: str | None = None) -> AnyQuery:
    """The same query with its boost multiplied, and with a name where one is given."""
    if boost == 1.0 and name is None:
        return query
    return replace(query, boost=query.boost * boost, name=name or query.name)


def walk(query: Query) -> Iterator[Query]:
    """A query and all below it, parents first."""
    waiting = [query]
    while waiting:
        node = waiting.pop()
        yield node
        if below := node.children():
            waiting += reversed(below)


def late_last(queries: Iterable[Query]) -> list[Query]:
    """Queries in their order, but after all others those that run scripts or have such below them."""
    return sorted(queries, key=runs_scripts)


def runs_scripts(query: Query) -> bool:
    """Whether it, or a query below it, runs scripts."""
    return any(node.is_late for node in walk(query))


def largest_boost(query: Query) -> float:
    """The largest product of the boosts from a query down to any below it."""
    return query.boost_max() * max(1.0, *(largest_boost(child) for child in query.children()), 0.0)


@dataclass(frozen=True, kw_only=True)
class MatchAllQuery(Query):
    """Every document."""

    def matches(self, leaf: Leaf, searcher: "Searcher", boost: float = 1.0) -> Matches:
        return Matches(np.ones(leaf.segment.size, dtype=np.bool_), None, boost * self.boost)

    def explain(self, leaf: Leaf, doc: int, searcher: "Searcher", boost: float = 1.0) -> Explanation:
        return explained(boost * self.boost, "*:*")

    def text(self) -> str:
        return "*:*"


@dataclass(frozen=True, kw_only=True)
class MatchNoneQuery(Query):
    """No document. reason says why, as Lucene's does."""

    reason: str = 'User requested "match_none" query.'

    def matches(self, leaf: Leaf, searcher: "Searcher", boost: float = 1.0) -> Matches:
        return Matches(np.zeros(leaf.segment.size, dtype=np.bool_))

    def accumulate(
        self, leaf: Leaf, searcher: "Searcher", boost: float, scores: Doubles, counts: Ints
    ) -> None:
        """Adds nothing."""

    def text(self) -> str:
        return f'MatchNoDocsQuery("{self.reason}")'
