"""The documents that a request matches, and the selection of its page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.columns import Numbers
from graphdb.search.compiled import compiled
from graphdb.search.deadline import checkpoint
from graphdb.search.hybrid.rescoring import Rescore, mixed, modes
from graphdb.search.leaf_reader import Bools, Floats, Leaf, Longs
from graphdb.search.query import Matches, Query, Searcher, explain
from graphdb.search.query.explanation import Explanation, explained
from graphdb.search.query.tree import MatchAllQuery
from graphdb.search.results.competitive import competitive_rows
from graphdb.search.results.sort_keys import ByField, ByScore, SortColumn, SortKey

__all__ = [
    "Found",
    "Hit",
    "Rescored",
    "ScoredLater",
    "Sorting",
    "collected",
    "first_of",
    "joined",
    "listed_in",
    "matched",
    "matched_in",
    "matches_of",
    "rescored",
    "without_later",
]

# Which documents come first: a page of some documents, sorted by keys and at last by document number.


@dataclass(frozen=True, slots=True)
class Found:
    """Documents, ascending, and their scores; None: nothing was scored. beyond: how many more match that
    cannot be on the page, and are not listed.
    """

    docs: Longs
    scores: Floats | None
    beyond: int = 0

    @property
    def count(self) -> int:
        """How many match."""
        return len(self.docs) + self.beyond

    def kept(self, which: Bools | Longs) -> "Found":
        """Of a selection of those that are listed."""
        return Found(self.docs[which], None if self.scores is None else self.scores[which])


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a page. sort is empty where hits are sorted by score alone."""

    doc: int
    score: float | None
    sort: tuple[Any, ...] = ()


class Sorting:
    """The columns of some documents. keys empty: by score."""

    def __init__(self, scope: Scope, found: Found, keys: tuple[SortKey, ...]) -> None:
        self.found, self.keys = found, keys
        used = keys or (ByScore(),)
        self.columns: list[SortColumn] = [key.column(scope, found.docs, found.scores) for key in used]

    @property
    def orders(self) -> list[Numbers]:
        return [column.order for column in self.columns]

    def after(self, values: Sequence[Any]) -> Bools:
        """Which documents come after these sort values. (Those that equal all of them do not.)"""
        later = np.zeros(len(self.found.docs), np.bool_)
        equal = ~later
        for column, value in zip(self.columns, values, strict=True):
            place = column.place(value)
            later |= equal & (column.order > place)
            equal &= column.order == place
        return later

    def first(self, count: int, among: Longs | None = None) -> Longs:
        """The rows of the first `count` documents, in order; among: rows to choose from, ascending."""
        rows = np.arange(len(self.found.docs)) if among is None else among
        return rows[first_of([order[rows] for order in self.orders], count)]

    def hits(self, rows: Longs, scored: bool) -> list[Hit]:
        """Rows as hits, with what the answer says of them."""
        docs, scores = self.found.docs[rows].tolist(), self.scores(rows) if scored else None
        shown = repeat(None, len(docs)) if scores is None else scores.tolist()
        sorts = self.sorts(rows) or repeat((), len(docs))
        return list(map(Hit, docs, shown, sorts))

    def scores(self, rows: Longs) -> Floats | None:
        return None if self.found.scores is None else self.found.scores[rows]

    def sorts(self, rows: Longs) -> list[tuple[Any, ...]]:
        """The sort values of rows as the answer shows them; none where they are sorted by score alone."""
        if not self.keys:
            return []
        return list(zip(*[column.all_shown(rows) for column in self.columns], strict=True))


def without_later(scope: Scope, found: Found, keys: tuple[SortKey, ...], count: int) -> Found:
    """Without documents that the first key keeps from the first `count`, so that values need not be read for
    all.
    """
    if not keys or not isinstance(keys[0], ByField) or not 0 < 4 * count < len(found.docs):
        return found
    several = len(keys) > 1
    rows = competitive_rows(scope.columns, keys[0], found.docs, count, keeps_equal=several)
    if rows is not None or not several:
        return found if rows is None else found.kept(rows)
    order = keys[0].column(scope, found.docs, found.scores).order
    return found.kept(np.flatnonzero(order <= _greatest_of_least(order, count)))


def joined(columns: Sequence[SortColumn], pieces: Sequence[Sequence[Any]]) -> list[Numbers]:
    """The orders of documents of several shards, one shard after the other; pieces: by shard and column."""
    return [column.joined(parts) for column, parts in zip(columns, zip(*pieces, strict=True), strict=True)]


def first_of(orders: list[Numbers], count: int) -> Longs:
    """The places of the least `count`, in order; equal ones keep their order.

    Only those that the first key does not rule out are sorted at all.
    """
    size = len(orders[0])
    places = np.arange(size)
    if count <= 0:
        return places[:0]
    if size > 4 * count:
        places = np.flatnonzero(orders[0] <= _greatest_of_least(orders[0], count))
    order = np.lexsort([one[places] for one in reversed(orders)])
    return places[order[:count]]


_FEW = 100  # of which a list is kept in order; numbers with a point, which may be none, are left to NumPy


def _greatest_of_least(order: Numbers, count: int) -> Any:
    """The greatest of the least `count`."""
    if count > _FEW or order.dtype != np.int64:
        return np.partition(order, count - 1)[count - 1]
    return _limit(order, count)


@compiled(nogil=True)
def _limit(order: Longs, count: int) -> Any:
    """The same of a few, in one pass."""
    least = np.sort(order[:count])
    last = least[count - 1]
    for place in range(count, len(order)):
        if order[place] < last:
            at = count - 1
            while at > 0 and least[at - 1] > order[place]:
                least[at] = least[at - 1]
                at -= 1
            least[at] = order[place]
            last = least[count - 1]
    return last


# The documents that a search has found, with their scores: query, minimum score, filters, rescoring.

_SHOWN_MODES = {"total": "sum", "multiply": "product"}  # others are shown by their own names


@dataclass(frozen=True, slots=True)
class Rescored:
    """A rescore that was done, and the documents (global numbers) that were in its window."""

    rescore: Rescore
    docs: frozenset[int]

    def explain(
        self, first: Explanation, was_in: bool, query: Query, leaf: Leaf, doc: int, searcher: Searcher
    ) -> Explanation:
        """The explanation of the score before, with what this has made of it; doc is of the leaf.

        Source: Elasticsearch's QueryRescorer.
        """
        own = self.rescore
        primary = _weighed(first, own.query_weight, "primaryWeight")
        matched, second = explain(query, leaf, doc, searcher) if was_in else (False, None)
        if second is None or not matched:
            return primary
        secondary = _weighed(second, own.rescore_weight, "secondaryWeight")
        one, two = (np.array([part["value"]], np.float32) for part in (primary, secondary))
        value = float(modes(one, two)[own.mode][0])
        return explained(value, f"{_SHOWN_MODES.get(own.mode, own.mode)} of:", [primary, secondary])


def _weighed(explanation: Explanation, weight: float, name: str) -> Explanation:
    value = float(np.float32(explanation["value"]) * np.float32(weight))
    return explained(value, "product of:", [explanation, explained(weight, name)])


def matches_of(scope: Scope, query: Query) -> list[Matches]:
    """What a query matches in each leaf."""
    found = []
    for leaf in scope.columns.leaves:
        checkpoint()
        found.append(query.matches(leaf, scope.searcher))
    return found


@dataclass
class ScoredLater:
    """Documents that a query has found without scores, for the few aggregations that ask for these."""

    docs: Longs
    scope: Scope
    query: Query
    _made: Floats | None = field(init=False, default=None)

    # No cached_property: in Python 3.11 that holds one lock for all objects, and shards wait for one another.
    @property
    def scores(self) -> Floats | None:
        if self._made is None:
            found = collected(self.scope, self.query, None, None)
            assert found.scores is not None
            self._made = found.scores[np.searchsorted(found.docs, self.docs)]
        return self._made


def matched(scope: Scope, query: Query) -> Found:
    """As `collected`, without scores."""
    if isinstance(query, MatchAllQuery):
        checkpoint()
        return Found(scope.columns.shown, None)
    docs = [np.empty(0, np.int64)]
    for leaf in scope.columns.leaves:
        checkpoint()
        docs.append(matched_in(scope, query, leaf))
    return Found(np.concatenate(docs), None)


def matched_in(scope: Scope, query: Query, leaf: Leaf) -> Longs:
    """Those of one leaf, by their numbers among all documents."""
    return np.asarray(np.add(listed_in(scope, query, leaf), leaf.base, dtype=np.int64))


def listed_in(scope: Scope, query: Query, leaf: Leaf) -> NDArray[np.signedinteger]:
    """The same by their numbers in the leaf."""
    local: NDArray[np.signedinteger] | None = query.docs_in(leaf, scope.searcher)
    if local is None:
        return np.flatnonzero(query.mask(leaf, scope.searcher) & leaf.roots)
    if not scope.searcher.keep_of(leaf, "all are shown", leaf.roots.all):
        return np.asarray(local[leaf.roots[local]])
    return local


def collected(
    scope: Scope, query: Query, matches: Sequence[Matches] | None, min_score: float | None
) -> Found:
    """The live documents of the top level that match, ascending. matches, one for each leaf, stand for the
    query's.
    """
    docs, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for number, leaf in enumerate(scope.columns.leaves):
        if matches is None:
            checkpoint()
            local, own = _matched(query, leaf, scope.searcher)
        else:
            local, own = _masked(matches[number], leaf)
        if min_score is not None:
            kept = own >= min_score
            local, own = local[kept], own[kept]
        docs.append(local + leaf.base)
        scores.append(own)
    return Found(np.concatenate(docs), np.concatenate(scores))


def _matched(query: Query, leaf: Leaf, searcher: Searcher) -> tuple[Longs, Floats]:
    listed = query.listed_in(leaf, searcher, 1.0)
    if listed is None:
        return _masked(query.matches(leaf, searcher), leaf)
    docs, scores = listed
    shown = leaf.roots[docs]
    return docs[shown].astype(np.int64), scores[shown]


def _masked(found: Matches, leaf: Leaf) -> tuple[Longs, Floats]:
    docs = np.flatnonzero(found.mask & leaf.roots)
    return docs, np.full(len(docs), found.constant, np.float32) if found.scores is None else found.scores[
        docs
    ]


def rescored(
    scope: Scope, found: Found, rescores: Sequence[Rescore], wanted: int
) -> tuple[Found, tuple[Rescored, ...]]:
    """(documents, what was done): the first of the documents with new scores; those beyond each window come
    after it.

    Of all others only as many are kept as a page may want.
    """
    assert found.scores is not None
    done: list[Rescored] = []
    for rescore in rescores:
        order = first_of([-found.scores], max(rescore.window, wanted))
        order = order[: _own_among(scope, found.scores[order], max(rescore.window, wanted))]
        window = order[: _own_among(scope, found.scores[order], rescore.window)]
        second = np.concatenate(
            [np.zeros(0, np.float32), *(one.dense() for one in matches_of(scope, rescore.query))]
        )
        hit = scope.matching(rescore.query)[found.docs[window]]
        scores = found.scores.copy()
        scores[window] = mixed(found.scores[window], second[found.docs[window]], hit, rescore)
        done.append(Rescored(rescore, frozenset(found.docs[window].tolist())))
        found = _in_order(scope, Found(found.docs, scores), window, order, rescore.query_weight)
    return found, tuple(done)


def _own_among(scope: Scope, scores: Floats, count: int) -> int:
    """How many of these documents, best first, are among the first `count` of all shards."""
    peers = scope.searcher.peers
    if peers is None:
        return count
    parts = scope.gathered("scores", scores[:count])
    shards = np.repeat(np.arange(len(parts)), list(map(len, parts)))
    return int(np.sum(shards[first_of([-np.concatenate(parts)], count)] == peers.number))


def _in_order(
    scope: Scope,
    found: Found,
    window: "np.typing.NDArray[np.int64]",
    order: "np.typing.NDArray[np.int64]",
    weight: float,
) -> Found:
    """Scores of what is outside the window are weighed as if the second query did not match, and pushed below
    those inside.
    """
    assert found.scores is not None
    rest = order[len(window) :]
    own = found.scores[window].min() if len(window) else np.float32(np.inf)
    lowest = min(scope.gathered("lowest score", own))
    if len(rest):
        found.scores[rest] = np.minimum(found.scores[rest] * np.float32(weight), lowest)
    kept = np.sort(order)
    return found.kept(kept)
