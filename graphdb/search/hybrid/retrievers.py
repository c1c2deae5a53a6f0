"""From the JSON of a retriever to a query: `standard`, `knn`, and those that make one list of several."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphdb.search.aggregations.options import Options
from graphdb.search.errors import SearchError, illegal_request, parsing
from graphdb.search.hybrid.fused import FusedQuery
from graphdb.search.hybrid.nearest import nearest_of
from graphdb.search.hybrid.scorers import NORMALIZERS, RANK_CONSTANT, Bayesian, Linear, ReciprocalRank, Scorer
from graphdb.search.query import Query, QueryContext, parse_query
from graphdb.search.query.ranked import BestQuery
from graphdb.search.query.tree import boosted

__all__ = ["COMPOUND", "fused", "only_member", "parse_retriever", "reciprocal_rank", "window_of"]

COMPOUND = ("rrf", "linear", "bayesian")
WINDOW_DEFAULT = 10  # rank_window_size
WINDOW_MAX = 10_000  # index.max_result_window
RETRIEVERS_MAX = 100
_ALONE = ("sort", "search_after", "terminate_after", "collapse")  # a standard retriever's at the top

Filters = tuple[Any, ...]
"""Queries as JSON, which what is retrieved has to match."""


def parse_retriever(body: object, context: QueryContext, filters: Filters = ()) -> Query:
    """filters: those of the retrievers around. Fails with a SearchError."""
    kind, members = only_member(body, "retriever")
    options = Options(kind, members)
    filters = (*filters, *options.items("filter"))
    name, score_min = options.text("_name"), options.number("min_score")
    if kind == "standard":
        query = _standard(options, context, filters, score_min)
    elif kind == "knn":
        query = _knn(options, context, filters, score_min)
    elif kind in COMPOUND:
        query = _compound(kind, options, context.deeper(), filters, score_min)
    else:
        raise parsing(f"unknown retriever [{kind[:100]}]", line=1, col=1)
    return boosted(query, 1.0, name)


def only_member(body: object, owner: str) -> tuple[str, Any]:
    """The one member of an object."""
    if not isinstance(body, Mapping) or len(body) != 1:
        raise parsing(f"[{owner}] malformed, expected an object with exactly one member", line=1, col=1)
    return next(iter(body.items()))


def window_of(options: Options, owner: str) -> int:
    """rank_window_size, once called window_size."""
    window = options.integer("rank_window_size", options.integer("window_size", WINDOW_DEFAULT))
    if window < 1:
        raise illegal_request(f"[rank_window_size] must be greater or equal to [1] for [{owner}]")
    if window > WINDOW_MAX:
        raise illegal_request(f"[rank_window_size] must be less than or equal to: [{WINDOW_MAX}]")
    return window


def reciprocal_rank(options: Options) -> ReciprocalRank:
    """Takes its members out of a retriever or of `rank`."""
    constant = options.integer("rank_constant", RANK_CONSTANT)
    if constant < 1:
        raise illegal_request("[rank_constant] must be greater or equal to [1] for [rrf]")
    return ReciprocalRank(constant)


def _standard(options: Options, context: QueryContext, filters: Filters, score_min: float | None) -> Query:
    for key in _ALONE:
        if key in options:
            raise illegal_request(f"[{key}] of a [standard] retriever inside another one is not supported")
    query = options.take("query", {"match_all": {}})
    options.done()
    if filters:
        query = {"bool": {"must": [query], "filter": list(filters)}}
    if score_min is not None:
        query = {"function_score": {"query": query, "min_score": score_min}}
    return parse_query(query, context)


def _knn(options: Options, context: QueryContext, filters: Filters, score_min: float | None) -> Query:
    members = options.rest()
    query = nearest_of({**members, "filter": list(filters)}, context)
    if score_min is None:
        return query
    return BestQuery(query=query, count=WINDOW_MAX, score_min=score_min)


def _compound(
    kind: str, options: Options, context: QueryContext, filters: Filters, score_min: float | None
) -> Query:
    window = window_of(options, kind)
    entries = options.items("retrievers")
    if not entries:
        raise illegal_request(f"[{kind}] requires at least one of [retrievers]")
    if len(entries) > RETRIEVERS_MAX:
        raise illegal_request(f"[{kind}] takes at most [{RETRIEVERS_MAX}] retrievers")
    scorer: Scorer
    if kind == "linear":
        bodies, scorer = _weighted(entries)
    else:
        bodies, scorer = entries, reciprocal_rank(options) if kind == "rrf" else Bayesian()
    options.done()
    queries = tuple(parse_retriever(one, context, filters) for one in bodies)
    return fused(kind, queries, scorer, window, score_min)


def fused(
    kind: str, queries: Sequence[Query], scorer: Scorer, window: int, score_min: float | None = None
) -> FusedQuery:
    """One list; a list inside may not be shorter than what is made of it."""
    for query in queries:
        if isinstance(query, FusedQuery) and query.kept < window:
            raise SearchError(
                "action_request_validation_exception",
                f"Validation Failed: 1: [{kind}] requires [rank_window_size: {window}] be smaller than or "
                f"equal to that of its sub retrievers [{query.kept}];",
            )
    return FusedQuery(queries=tuple(queries), scorer=scorer, window=window, kept=window, score_min=score_min)


def _weighted(entries: Sequence[Any]) -> tuple[list[Any], Linear]:
    bodies, weights, normalizers = [], [], []
    for entry in entries:
        options = Options("linear", entry)
        bodies.append(options.take("retriever"))
        weight = options.number("weight", 1.0) or 0.0
        if not 0 <= weight < 1e30:
            raise illegal_request("[weight] must be non-negative")
        normalizer = options.text("normalizer", "none") or "none"
        if normalizer not in NORMALIZERS:
            raise illegal_request(f"Unknown normalizer [{normalizer[:100]}]")
        options.done()
        weights.append(weight)
        normalizers.append(normalizer)
    return bodies, Linear(tuple(weights), tuple(normalizers))
