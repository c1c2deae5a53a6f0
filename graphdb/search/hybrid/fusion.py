"""The fusion of several rankings into one: by rank or by normalized score."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphdb.search.aggregations.options import Options
from graphdb.search.errors import illegal_request
from graphdb.search.leaf_reader import Bools, Doubles, Leaf, Longs
from graphdb.search.query import Query, Searcher
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.ranked import RankedQuery, Ranking, best_of
from graphdb.search.query.tree import SCORE_MAX, Matches

__all__ = [
    "DEFAULT_SCORER",
    "NORMALIZERS",
    "RANK_CONSTANT",
    "WINDOW_MAX",
    "Bayesian",
    "FusedQuery",
    "Linear",
    "ReciprocalRank",
    "Scorer",
    "scorer_of",
    "window_of",
]

# How lists of hits become one: what each list gives a document is summed.

RANK_CONSTANT = 60
NORMALIZERS = ("none", "minmax", "l2_norm")
_CERTAIN = 1e-7  # a likelihood is at least so far from 0 and from 1


class Scorer(ABC):
    """A document that is not in a list gets nothing from it."""

    @abstractmethod
    def parts(self, ranking: Ranking, place: int, lists: int) -> Doubles:
        """What one list, by its place among so many, gives each of its documents."""

    @abstractmethod
    def text(self) -> str:
        """What it does, for explanations."""


@dataclass(frozen=True, slots=True)
class ReciprocalRank(Scorer):
    """1 / (rank_constant + rank), ranks from 1.

    Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
    Learning Methods", 2009.
    """

    rank_constant: int = RANK_CONSTANT

    def parts(self, ranking: Ranking, place: int, lists: int) -> Doubles:
        ranks = np.arange(1, len(ranking.docs) + 1, dtype=np.float64)
        return np.asarray(1 / (self.rank_constant + ranks))

    def text(self) -> str:
        return f"rrf score with rankConstant: [{self.rank_constant}] as sum of [1 / (rank + rankConstant)]"


@dataclass(frozen=True, slots=True)
class Linear(Scorer):
    """Scores, made comparable, times weights: one weight and one normalizer for each list."""

    weights: tuple[float, ...]
    normalizers: tuple[str, ...]

    def parts(self, ranking: Ranking, place: int, lists: int) -> Doubles:
        scores = ranking.scores.astype(np.float64)
        if self.normalizers[place] == "minmax":
            scores = spread(scores)
        elif self.normalizers[place] == "l2_norm":
            length = float(np.sqrt(np.square(scores).sum()))
            scores = scores / length if length > 0 else scores
        return self.weights[place] * scores

    def text(self) -> str:
        weights = ", ".join(map(str, self.weights))
        return f"weighted linear combination score with weights [{weights}] as sum of (weight[i] * score[i])"


@dataclass(frozen=True, slots=True)
class Bayesian(Scorer):
    """The mean of log-odds of relevance, those of each list spread over [0, 1].

    The score of a text is turned into a likelihood by a logistic curve, whose log-odds are a straight line
    in the score: spreading takes its slope and place out again. What is a likelihood already, such as
    (1 + cosine) / 2, has log-odds that are steep near certainty.
    """

    def parts(self, ranking: Ranking, place: int, lists: int) -> Doubles:
        scores = ranking.scores.astype(np.float64)
        if ranking.likelihoods:
            likely = np.clip(scores, _CERTAIN, 1 - _CERTAIN)
            scores = np.log(likely) - np.log1p(-likely)
        return spread(scores) / lists

    def text(self) -> str:
        return "bayesian score as mean of log-odds, each list's from 0 to 1"


DEFAULT_SCORER: Scorer = ReciprocalRank()


def scorer_of(name: str, weights: Sequence[float] = (0.5, 0.5)) -> Scorer:
    """By the name that settings give it; weights: of query and knn. Raises ValueError."""
    if name == "rrf":
        return ReciprocalRank()
    if name == "bayesian":
        return Bayesian()
    if name == "linear":
        if len(weights) != 2 or not all(0 <= weight < 1e6 for weight in weights):
            raise ValueError(f"linear_weights must be two numbers that are not negative, not {list(weights)}")
        return Linear(tuple(weights), ("minmax", "minmax"))
    raise ValueError(f"unknown hybrid scorer {name!r}: rrf, linear or bayesian")


def spread(scores: Doubles) -> Doubles:
    """From 0 for the worst to 1 for the best; 1 for all where they are equal."""
    if not len(scores):
        return scores
    least, most = float(scores.min()), float(scores.max())
    if most - least <= 1e-12 * max(abs(least), abs(most)):
        return np.ones(len(scores))
    return (scores - least) / (most - least)


# How much of a list counts.

WINDOW_DEFAULT = 10  # rank_window_size
WINDOW_MAX = 10_000  # index.max_result_window


def window_of(options: Options, owner: str) -> int:
    """rank_window_size, once called window_size."""
    window = options.integer("rank_window_size", options.integer("window_size", WINDOW_DEFAULT))
    if window < 1:
        raise illegal_request(f"[rank_window_size] must be greater or equal to [1] for [{owner}]")
    if window > WINDOW_MAX:
        raise illegal_request(f"[rank_window_size] must be less than or equal to: [{WINDOW_MAX}]")
    return window


# `FusedQuery`: the lists of several queries, made one by a scorer.


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
        number = searcher.first.number + leaf.base + doc
        details = [
            _explained(ranking, self.scorer, place, len(self.queries), number)
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
        found = query.rank(searcher) if searcher.peers else query.ranking(searcher)
        found = found.best(window)
        return replace(found, scores=found.scores * np.float32(query.boost))
    return best_of(query, searcher, window)


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
