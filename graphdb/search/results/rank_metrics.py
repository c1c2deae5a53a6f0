"""How good a ranking is, by ratings of documents: the metrics of Elasticsearch's ranking evaluation API.

dcg: Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques (2002), with gain 2^rating - 1.
expected_reciprocal_rank: Chapelle et al.: Expected reciprocal rank for graded relevance (2009).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["RATING_MAX", "RankMetric", "Rated", "parse_metric"]

RATING_MAX = 1_000
_K_MAX = 10_000  # index.max_result_window


@dataclass(frozen=True, slots=True)
class Rated:
    """score: of the ranking. details: what it is computed from, by the name of the metric."""

    score: float
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RankMetric:
    """k: the hits that count, from the first one."""

    name: str
    k: int
    threshold: int = 1  # the least rating of a relevant document
    ignores_unrated: bool = False
    unknown: int | None = None  # the rating of documents without one
    normalizes: bool = False
    most: int = 1  # the highest rating there can be

    def rated(self, hits: Sequence[int | None], ratings: Sequence[int]) -> Rated:
        """hits: the ratings of the hits in their order, None: unrated. ratings: all that there are."""
        score, details = _METRICS[self.name](self, hits[: self.k], ratings)
        return Rated(score, {self.name: details})


_Computed = tuple[float, dict[str, Any]]


def _precision(metric: RankMetric, hits: Sequence[int | None], _ratings: Sequence[int]) -> _Computed:
    relevant = sum(rating is not None and rating >= metric.threshold for rating in hits)
    unrated = sum(rating is None for rating in hits)
    retrieved = len(hits) - (unrated if metric.ignores_unrated else 0)
    details = {"relevant_docs_retrieved": relevant, "docs_retrieved": retrieved}
    return (relevant / retrieved if retrieved else 0.0), details


def _recall(metric: RankMetric, hits: Sequence[int | None], ratings: Sequence[int]) -> _Computed:
    retrieved = sum(rating is not None and rating >= metric.threshold for rating in hits)
    relevant = sum(rating >= metric.threshold for rating in ratings)
    details = {"relevant_docs_retrieved": retrieved, "relevant_docs": relevant}
    return (retrieved / relevant if relevant else 0.0), details


def _reciprocal_rank(metric: RankMetric, hits: Sequence[int | None], _ratings: Sequence[int]) -> _Computed:
    ranks = enumerate(hits, 1)
    first = next((rank for rank, one in ranks if one is not None and one >= metric.threshold), None)
    return (0.0 if first is None else 1 / first), {"first_relevant": -1 if first is None else first}


def _dcg(metric: RankMetric, hits: Sequence[int | None], ratings: Sequence[int]) -> _Computed:
    gained = _cumulated_gain([metric.unknown if one is None else one for one in hits])
    details: dict[str, Any] = {"dcg": gained}
    score = gained
    if metric.normalizes:
        ideal = _cumulated_gain(sorted(ratings, reverse=True)[: len(hits)])
        score = gained / ideal if ideal else 0.0
        details |= {"ideal_dcg": ideal, "normalized_dcg": score}
    return score, {**details, "unrated_docs": sum(one is None for one in hits)}


def _cumulated_gain(ratings: Sequence[int | None]) -> float:
    return math.fsum(
        (2.0**rating - 1) / math.log2(rank + 1)
        for rank, rating in enumerate(ratings, 1)
        if rating is not None
    )


def _expected_reciprocal_rank(
    metric: RankMetric, hits: Sequence[int | None], _ratings: Sequence[int]
) -> _Computed:
    score, reached = 0.0, 1.0  # the probability that somebody looks at the next hit
    for rank, given in enumerate(hits, 1):
        rating = metric.unknown if given is None else given
        if rating is not None:
            satisfied = (2.0**rating - 1) / 2.0**metric.most
            score += reached * satisfied / rank
            reached *= 1 - satisfied
    return score, {"unrated_docs": sum(one is None for one in hits)}


_METRICS: dict[str, Callable[[RankMetric, Sequence[int | None], Sequence[int]], _Computed]] = {
    "precision": _precision,
    "recall": _recall,
    "mean_reciprocal_rank": _reciprocal_rank,
    "dcg": _dcg,
    "expected_reciprocal_rank": _expected_reciprocal_rank,
}
_BY_THRESHOLD = {"k", "relevant_rating_threshold"}
_MEMBERS = {
    "precision": _BY_THRESHOLD | {"ignore_unlabeled"},
    "recall": _BY_THRESHOLD,
    "mean_reciprocal_rank": _BY_THRESHOLD,
    "dcg": {"k", "normalize", "unknown_doc_rating"},
    "expected_reciprocal_rank": {"k", "maximum_relevance", "unknown_doc_rating"},
}


def parse_metric(body: Any) -> RankMetric:
    """`{"precision": {"k": 5}}`. Errors: parsing_exception, x_content_parse_exception,
    illegal_argument_exception.
    """
    if not isinstance(body, Mapping) or len(body) != 1:
        raise SearchError("parsing_exception", "[metric] must be an object with the name of one metric")
    [(name, options)] = body.items()
    if name not in _METRICS:
        raise SearchError("parsing_exception", f"unknown metric [{name[:100]}], one of {sorted(_METRICS)}")
    if not isinstance(options, Mapping):
        raise SearchError("parsing_exception", f"[{name}] must be an object")
    for member in options:
        if member not in _MEMBERS[name]:
            raise SearchError("x_content_parse_exception", f"[{name}] unknown field [{member[:100]}]")
    if name == "expected_reciprocal_rank" and options.get("maximum_relevance") is None:
        raise illegal_argument("Required [maximum_relevance]")
    unknown = options.get("unknown_doc_rating")
    return RankMetric(
        name,
        _number(options, "k", 10, 1, _K_MAX),
        _number(options, "relevant_rating_threshold", 1, 0, RATING_MAX),
        _flag(options, "ignore_unlabeled"),
        None if unknown is None else _number(options, "unknown_doc_rating", 0, 0, RATING_MAX),
        _flag(options, "normalize"),
        _number(options, "maximum_relevance", 1, 0, RATING_MAX),
    )


def _number(options: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = options.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise illegal_argument(
            f"[{name}] must be a number from {least} to {most}, found [{str(value)[:100]}]"
        )
    return value


def _flag(options: Mapping[str, Any], name: str) -> bool:
    value = options.get(name, False)
    if not isinstance(value, bool):
        raise illegal_argument(f"[{name}] must be a boolean, found [{str(value)[:100]}]")
    return value
