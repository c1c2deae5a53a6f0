"""The plan of a hybrid search: its retrievers, and the neighbours that vectors find."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphdb.search.aggregations.options import Options, only_member
from graphdb.search.errors import SearchError, illegal_request, parsing
from graphdb.search.hybrid.fusion import (
    DEFAULT_SCORER,
    NORMALIZERS,
    RANK_CONSTANT,
    WINDOW_MAX,
    Bayesian,
    FusedQuery,
    Linear,
    ReciprocalRank,
    Scorer,
    window_of,
)
from graphdb.search.hybrid.reranker import RERANKED, parse_pinned, parse_reranked
from graphdb.search.hybrid.rescoring import parse_rescore, rescored_of
from graphdb.search.query import Query, QueryContext, parse_query
from graphdb.search.query.clause import malformed
from graphdb.search.query.knn import KnnQuery
from graphdb.search.query.ranked import BestQuery
from graphdb.search.query.tree import boosted, walk

__all__ = [
    "COMPOUND",
    "PINNED",
    "check_window",
    "fused",
    "nearest_of",
    "nearest_of_several",
    "parse_retriever",
    "planned",
    "reciprocal_rank",
]

# The `knn` of a search or a retriever: the k nearest of all indexes that are searched.

CLAUSES_MAX = 100


def nearest_of(body: object, context: QueryContext) -> Query:
    """The object under `knn`. Each index finds its own k; of all of these the k best stay."""
    if not isinstance(body, Mapping):
        raise malformed("[knn] malformed, expected an object")
    query = parse_query({"knn": body}, context.of_knn_section())
    parts = [node for node in walk(query) if isinstance(node, KnnQuery)]
    if not context.parts or not parts:
        return query
    likely = all(node.gives_likelihoods for node in parts)
    return BestQuery(query=query, count=max(node.sought.k for node in parts), likelihoods=likely)


def nearest_of_several(body: object, context: QueryContext) -> Query | None:
    """One or a list; a document that several have found scores the sum. None where the list is empty."""
    bodies = body if isinstance(body, list) else [] if body is None else [body]
    if len(bodies) > CLAUSES_MAX:
        raise malformed(f"[knn] takes at most [{CLAUSES_MAX}] clauses")
    queries = tuple(nearest_of(one, context) for one in bodies)
    if len(queries) < 2:
        return queries[0] if queries else None
    count = len(queries)
    summed = Linear((1.0,) * count, ("none",) * count)
    window = max(
        (node.sought.k for query in queries for node in walk(query) if isinstance(node, KnnQuery)), default=1
    )
    return FusedQuery(queries=queries, scorer=summed, window=window, kept=window * count)


# From the JSON of a retriever to a query: `standard`, `knn`, and those that make one list of several.

COMPOUND = ("rrf", "linear", "bayesian")
PINNED = "pinned"
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
        query = _standard_retriever(options, context, filters, score_min)
    elif kind == "knn":
        query = _knn(options, context, filters, score_min)
    elif kind in COMPOUND:
        query = _compound(kind, options, context.deeper(), filters, score_min)
    elif kind in (PINNED, RERANKED):
        inner = parse_retriever(options.take("retriever"), context.deeper(), filters)
        make = parse_reranked if kind == RERANKED else parse_pinned
        query = make(options, inner, context, window_of(options, kind))
        query = query if score_min is None else BestQuery(query=query, count=WINDOW_MAX, score_min=score_min)
    elif kind == "rescorer":
        query = _rescorer(options, context, filters)
    elif kind == "text_similarity_reranker":
        raise illegal_request(f"[{kind}] is only supported in [_search] and [_msearch], without [scroll]")
    else:
        raise parsing(f"unknown retriever [{kind[:100]}]", line=1, col=1)
    return boosted(query, 1.0, name)


def reciprocal_rank(options: Options) -> ReciprocalRank:
    """Takes its members out of a retriever or of `rank`."""
    constant = options.integer("rank_constant", RANK_CONSTANT)
    if constant < 1:
        raise illegal_request("[rank_constant] must be greater or equal to [1] for [rrf]")
    return ReciprocalRank(constant)


def _standard_retriever(
    options: Options, context: QueryContext, filters: Filters, score_min: float | None
) -> Query:
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
    if "inner_hits" in members:
        hint = "a [nested] query with a [knn] in it has them"
        raise parsing(f"[knn] unknown field [inner_hits]: {hint}", line=1, col=1)
    query = nearest_of({**members, "filter": list(filters)}, context)
    if score_min is None:
        return query
    return BestQuery(query=query, count=WINDOW_MAX, score_min=score_min)


def _rescorer(options: Options, context: QueryContext, filters: Filters) -> Query:
    """`min_score` has no effect, as in Elasticsearch."""
    inner, entries = options.take("retriever"), options.items("rescore")
    options.done()
    if inner is None:
        raise illegal_request("Required [retriever]")
    rescores = tuple(parse_rescore(entry, context) for entry in entries)
    return rescored_of(parse_retriever(inner, context.deeper(), filters), rescores)


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


# What a search asks for: its `query`, `knn`, `rank` and `retriever` made one query.

RANK_WINDOW = 10_000  # as far as pages reach, so that no page depends on which one is asked for
HITS_DEFAULT = 10
_BESIDE_RETRIEVER = (
    "query", "knn", "sub_searches", "search_after", "terminate_after", "sort", "rescore", "rank",
)  # fmt: skip
_BESIDE_RANK = ("rescore", "sort", "suggest")
_OF_STANDARD = ("query", "sort", "search_after", "terminate_after", "min_score", "collapse")


def planned(
    body: Mapping[str, Any], context: QueryContext, scorer: Scorer = DEFAULT_SCORER
) -> tuple[Query | None, dict[str, Any]]:
    """(the query, None where there is none; the body without what it is made of).

    scorer: for a search with `query` and `knn` that does not say how to rank. Fails with a SearchError.
    """
    context = context.of_size(_size(body))
    if body.get("retriever") is not None:
        return _retrieved(body, context)
    rest = {key: value for key, value in body.items() if key not in ("query", "knn", "rank", "sub_searches")}
    if body.get("rank") is not None:
        return _ranked(body, context), rest
    query = None if body.get("query") is None else parse_query(body["query"], context)
    nearest = nearest_of_several(body.get("knn"), context)
    if query is None or nearest is None:
        return query or nearest, rest
    hybrid = FusedQuery(queries=(query, nearest), scorer=scorer, window=RANK_WINDOW, kept=2 * RANK_WINDOW)
    return hybrid, rest


def _size(body: Mapping[str, Any]) -> int:
    """How many hits are asked for; the reader of the rest refuses what is not a number."""
    size = body.get("size")
    return size if isinstance(size, int) and 0 <= size <= RANK_WINDOW else HITS_DEFAULT


def _retrieved(body: Mapping[str, Any], context: QueryContext) -> tuple[Query | None, dict[str, Any]]:
    beside = [key for key in _BESIDE_RETRIEVER if body.get(key) is not None]
    if beside:
        raise _invalid(f"cannot specify [retriever] and [{', '.join(beside)}]")
    rest = {key: value for key, value in body.items() if key != "retriever"}
    kind, members = only_member(body["retriever"], "retriever")
    if kind == "standard":
        return _standard(members, rest, context)
    query = parse_retriever(body["retriever"], context)
    if isinstance(query, FusedQuery) and kind in (*COMPOUND, PINNED, "rescorer"):
        if body.get("size") is None:
            rest["size"] = query.kept
        elif kind != "rescorer" and _size(body) > query.kept:
            raise _too_many(kind, query.kept, _size(body))
    return query, rest


def _standard(
    members: Any, rest: dict[str, Any], context: QueryContext
) -> tuple[Query | None, dict[str, Any]]:
    """At the top it is a search in other words."""
    options = Options("standard", members)
    moved = {key: value for key in _OF_STANDARD if (value := options.take(key)) is not None}
    filters, query = options.items("filter"), moved.pop("query", {"match_all": {}})
    options.ignore("_name")
    options.done()
    if filters:
        query = {"bool": {"must": [query], "filter": filters}}
    return parse_query(query, context), rest | moved


def _ranked(body: Mapping[str, Any], context: QueryContext) -> Query:
    kind, members = only_member(body["rank"], "rank")
    if kind != "rrf":
        raise SearchError("parsing_exception", f"unknown rank [{kind[:100]}]")
    options = Options("rrf", members)
    scorer, window = reciprocal_rank(options), window_of(options, "rrf")
    options.done()
    bodies = [] if body.get("query") is None else [body["query"]]
    for entry in body.get("sub_searches") or []:
        bodies.append(only_member(entry, "sub_searches")[1])
    knn = body.get("knn")
    clauses = knn if isinstance(knn, list) else [] if knn is None else [knn]
    _check_rank(body, window, len(bodies) + len(clauses))
    queries = [parse_query(one, context) for one in bodies]
    return fused("rrf", [*queries, *(nearest_of(one, context) for one in clauses)], scorer, window)


def _check_rank(body: Mapping[str, Any], window: int, lists: int) -> None:
    size = _size(body)
    if size == 0:
        raise _invalid("[rank] requires [size] greater than [0]")
    if size > window:
        raise _too_many("rank", window, size)
    if lists < 2:
        raise _invalid(
            "[rank] requires a minimum of [2] result sets using a combination of sub searches and/or knn "
            "searches"
        )
    for key in _BESIDE_RANK:
        if body.get(key) is not None:
            raise _invalid(f"[rank] cannot be used with [{key}]")


def check_window(kind: str, window: int, size: int) -> None:
    """Errors: action_request_validation_exception, where more hits are asked for than there can be."""
    if size > window:
        raise _too_many(kind, window, size)


def _too_many(kind: str, window: int, size: int) -> SearchError:
    return _invalid(
        f"[{kind}] requires [rank_window_size: {window}] be greater than or equal to [size: {size}]"
    )


def _invalid(reason: str) -> SearchError:
    return SearchError("action_request_validation_exception", f"Validation Failed: 1: {reason};")
