"""How lists of hits become one: what each list gives a document is summed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphdb.search.query.ranked import Ranking
from graphdb.search.segment import Doubles

__all__ = [
    "DEFAULT_SCORER",
    "NORMALIZERS",
    "RANK_CONSTANT",
    "Bayesian",
    "Linear",
    "ReciprocalRank",
    "Scorer",
    "scorer_of",
]

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
