"""What a search asks for: its `query`, `knn`, `rank` and `retriever` made one query."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphdb.search.aggregations.options import Options
from graphdb.search.errors import SearchError
from graphdb.search.hybrid.fused import FusedQuery
from graphdb.search.hybrid.nearest import nearest_of, nearest_of_several
from graphdb.search.hybrid.retrievers import (
    COMPOUND,
    fused,
    only_member,
    parse_retriever,
    reciprocal_rank,
    window_of,
)
from graphdb.search.hybrid.scorers import DEFAULT_SCORER, Scorer
from graphdb.search.query import Query, QueryContext, parse_query

__all__ = ["planned"]

RANK_WINDOW = 10_000  # as far as pages reach, so that no page depends on which one is asked for
HITS_DEFAULT = 10
_BESIDE_RETRIEVER = (
    "query", "knn", "sub_searches", "search_after", "terminate_after", "sort", "rescore", "min_score", "rank",
)  # fmt: skip
_BESIDE_RANK = ("rescore", "sort", "collapse", "suggest", "highlight")
_OF_STANDARD = ("query", "sort", "search_after", "terminate_after", "min_score", "collapse")


def planned(
    body: Mapping[str, Any], context: QueryContext, scorer: Scorer = DEFAULT_SCORER
) -> tuple[Query | None, dict[str, Any]]:
    """(the query, None where there is none; the body without what it is made of).

    scorer: for a search with `query` and `knn` that does not say how to rank. Fails with a SearchError.
    """
    context = _sized(context, _size(body))
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


def _sized(context: QueryContext, size: int) -> QueryContext:
    if context.size == size:
        return context
    parts = tuple(replace(part, size=size) for part in context.parts)
    return replace(context, size=size, parts=parts)


def _size(body: Mapping[str, Any]) -> int:
    """How many hits are asked for; whoever reads the rest refuses what is none."""
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
    if kind in COMPOUND and isinstance(query, FusedQuery) and _size(body) > query.kept:
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
            raise _invalid(f"[rank] cannot be used with [{'highlighter' if key == 'highlight' else key}]")


def _too_many(kind: str, window: int, size: int) -> SearchError:
    return _invalid(
        f"[{kind}] requires [rank_window_size: {window}] be greater than or equal to [size: {size}]"
    )


def _invalid(reason: str) -> SearchError:
    return SearchError("action_request_validation_exception", f"Validation Failed: 1: {reason};")
