"""A whole search on one index: from the JSON of a request to that of its answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from graphdb.search.aggregations import MAX_BUCKETS, Scope, run
from graphdb.search.aggregations.aggregation import columns_of
from graphdb.search.deadline import checkpoint
from graphdb.search.hybrid import DEFAULT_SCORER, FusedQuery, Scorer
from graphdb.search.leaf_reader import Floats, Longs
from graphdb.search.query import Matches, QueryContext, Searcher, collect
from graphdb.search.query.peers import Peers
from graphdb.search.results.counting import counted
from graphdb.search.results.early_end import first_matched, may_end_early
from graphdb.search.results.hits import Fetcher
from graphdb.search.results.inner_hits import Groups, NestedHits, chosen_of, offer_of, pages, top_hits
from graphdb.search.results.matching import (
    Found,
    Hit,
    Rescored,
    ScoredLater,
    Sorting,
    collected,
    first_of,
    matched,
    rescored,
    without_later,
)
from graphdb.search.results.search_request import RESULT_WINDOW, SearchRequest, parse_request
from graphdb.search.results.sort_keys import ByScore, short_float, short_floats
from graphdb.search.results.suggesting import suggestions

__all__ = [
    "SearchOptions",
    "answered",
    "columns_of",
    "execute",
    "find",
    "plain_answer",
    "scope_of",
    "search",
    "whole_answer",
]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The parameters of a search beside its body. window: how far from and size may reach together.

    raw_source: whole sources are orjson.Fragments of what is stored; aggregations may be Fragments, too.
    hybrid: see `parse_request`.
    """

    window: int = RESULT_WINDOW
    typed_keys: bool = False
    max_buckets: int = MAX_BUCKETS
    raw_source: bool = False
    named_scores: bool = False
    hybrid: Scorer = DEFAULT_SCORER
    clock_ns: Callable[[], int] | None = None


def search(
    body: Mapping[str, Any],
    searcher: Searcher,
    context: QueryContext,
    matches: Sequence[Matches] | None = None,
    options: SearchOptions = SearchOptions(),
) -> dict[str, Any]:
    """The answer of `_search`, without `took` and `_shards`, which are the caller's to know.

    matches, one for each leaf, stand for what the query would match (vector and hybrid search); the query
    then only explains and highlights. For a scroll hold on to the searcher and ask for what comes
    after the last hit's sort values, `_doc` or `_shard_doc` among them.
    """
    request = parse_request(body, context, options.window, options.hybrid)
    return execute(request, searcher, context, matches, options)


def execute(
    request: SearchRequest,
    searcher: Searcher,
    context: QueryContext,
    matches: Sequence[Matches] | None = None,
    options: SearchOptions = SearchOptions(),
) -> dict[str, Any]:
    """As search, for a request that is parsed already."""
    scope = scope_of(searcher, context, options)
    if matches is None:
        return whole_answer(request, scope, options)
    return answered(request, scope, find(request, scope, matches), options)


def whole_answer(request: SearchRequest, scope: Scope, options: SearchOptions) -> dict[str, Any]:
    """Where nobody narrows or scores the candidates in between: the short way where it may be taken."""
    if request.is_plain:
        return plain_answer(request, scope, options)
    if options.raw_source and (found := counted(request, scope)) is not None:
        hits = {**_total(request, found[0]), "max_score": None, "hits": []}
        return {"timed_out": False, "hits": hits, "aggregations": found[1]}
    early = may_end_early(request, scope)
    return answered(request, scope, first_matched(request, scope) if early else find(request, scope), options)


def scope_of(searcher: Searcher, context: QueryContext, options: SearchOptions = SearchOptions()) -> Scope:
    """What one search reads."""
    return Scope(
        searcher,
        columns_of(searcher),
        context,
        typed_keys=options.typed_keys,
        max_buckets=options.max_buckets,
        clock_ns=options.clock_ns,
    )


def find(request: SearchRequest, scope: Scope, matches: Sequence[Matches] | None = None) -> Found:
    """The candidates: all documents that the query (or who has made matches) finds, with their scores where
    hits need them.
    """
    if matches is None and not request.scores_hits:
        return matched(scope, request.query)
    return collected(scope, request.query, matches, request.min_score)


def answered(
    request: SearchRequest, scope: Scope, found: Found, options: SearchOptions = SearchOptions()
) -> dict[str, Any]:
    """The answer for the candidates: sorted, cut and shown, and aggregated."""
    answer: dict[str, Any] = {"timed_out": False}
    if request.terminate_after:
        sizes = scope.gathered("candidates", len(found.docs))
        answer["terminated_early"] = sum(sizes) > request.terminate_after
        before = 0 if scope.searcher.peers is None else sum(sizes[: scope.searcher.peers.number])
        kept = min(len(found.docs), max(0, request.terminate_after - before))
        found = found.kept(np.arange(kept))
    answer["hits"] = _hits(request, scope, found, options)
    if request.aggregations is not None:
        answer["aggregations"] = _aggregations(request, scope, found)
    if request.suggestions:
        fetcher = Fetcher(scope, None)
        answer["suggest"] = suggestions(
            request.suggestions,
            scope,
            lambda doc, score: fetcher.shown(Hit(doc, score), request.fetching),
            options.typed_keys,
        )
    return answer


def plain_answer(request: SearchRequest, scope: Scope, options: SearchOptions) -> dict[str, Any]:
    """For a plain request, the short way: only the best documents are ever gathered."""
    end = request.start + request.size
    best = collect(request.query, scope.searcher, end, request.track_total)
    total, scores = best.total, best.scores
    rows: Longs | slice = slice(request.start, None)
    peers = scope.searcher.peers
    if peers is not None:
        parts = scope.gathered("best", (best.total, best.scores))
        total, scores = sum(total for total, _ in parts), np.concatenate([scores for _, scores in parts])
        order = first_of([-scores], end)[request.start :]
        rows, _ = _own_of(peers, [len(own) for _, own in parts], order)
    out = _total(request, total)
    hits = _best_shown(request, scope, best.docs[rows], best.scores[rows], options)
    if peers is None and hits and not request.start:
        out["max_score"] = hits[0]["_score"]
    else:
        out["max_score"] = max(short_floats(scores), default=None)
    out["hits"] = hits
    return {"timed_out": False, "hits": out}


def _best_shown(
    request: SearchRequest, scope: Scope, docs: Longs, scores: Floats, options: SearchOptions
) -> list[dict[str, Any]]:
    is_silent = request.query_is_silent
    fetcher = Fetcher(scope, request.query, options.raw_source, options.named_scores, (), is_silent)
    nested = NestedHits(scope, request.query, is_silent=is_silent)
    plain = None if nested.are_wanted else fetcher.shown_plain(docs, scores, (), request.fetching)
    if plain is not None:
        return plain
    hits = map(Hit, docs.tolist(), scores.tolist())
    return [_with_inner(fetcher.shown(hit, request.fetching), nested.of(hit.doc)) for hit in hits]


def _with_inner(shown: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    return {**shown, "inner_hits": inner} if inner else shown


def _aggregations(request: SearchRequest, scope: Scope, found: Found) -> dict[str, Any]:
    assert request.aggregations is not None
    scope.scored = found if found.scores is not None else ScoredLater(found.docs, scope, request.query)
    scope.top_hits = partial(top_hits, query=request.query, around=request.fetching)
    return run(request.aggregations, scope, found.docs)


def _hits(request: SearchRequest, scope: Scope, found: Found, options: SearchOptions) -> dict[str, Any]:
    if request.post_filter is not None:
        found = found.kept(scope.matching(request.post_filter)[found.docs])
    counts = scope.gathered("hits", found.count)
    out: dict[str, Any] = _total(request, sum(counts))
    if isinstance(request.query, FusedQuery) and not request.sort:
        found = found.kept(request.query.ranked(scope.searcher)[found.docs])
    scored = not request.sort or request.track_scores or any(isinstance(key, ByScore) for key in request.sort)
    best: float | None = None
    done: tuple[Rescored, ...] = ()
    whole = found
    if request.rescore and request.size:
        if request.collapse is not None:  # the hits of each group that are best without it
            groups = Groups(scope, request.collapse.path, found.docs)
            leaders = groups.leaders(sorting := Sorting(scope, found, ()), sorting.first(len(found.docs)))
            found = found.kept(np.sort(leaders))
        found, done = rescored(scope, found, request.rescore, request.start + request.size)
    if request.tells_best_score and request.size and found.scores is not None:
        tops = scope.gathered("best score", found.scores.max().item() if len(found.docs) else None)
        best = max((short_float(score) for score in tops if score is not None), default=None)
    out["max_score"] = best
    out["hits"] = _page(request, scope, found, whole, scored, options, done) if request.size else []
    return out


def _total(request: SearchRequest, count: int) -> dict[str, Any]:
    if not request.shows_total:
        return {}
    tracked = request.track_total
    if tracked is not None and count > tracked:
        return {"total": {"value": tracked, "relation": "gte"}}
    return {"total": {"value": count, "relation": "eq"}}


def _page(
    request: SearchRequest,
    scope: Scope,
    found: Found,
    whole: Found,
    scored: bool,
    options: SearchOptions,
    done: tuple[Rescored, ...],
) -> list[dict[str, Any]]:
    """whole: what groups are of; found: the hits, fewer where they were rescored."""
    if request.after is None and request.collapse is None and scope.searcher.peers is None:
        found = without_later(scope, found, request.sort, request.start + request.size)
    sorting = Sorting(scope, found, request.sort)
    among = None if request.after is None else np.flatnonzero(sorting.after(request.after))
    end, groups = request.start + request.size, None
    if request.collapse is None:
        rows = sorting.first(end, among)
    else:
        groups = Groups(scope, request.collapse.path, found.docs)
        rows = groups.leaders(sorting, sorting.first(len(found.docs), among))[:end]
    chosen = _chosen(request, scope, sorting, rows, groups)
    is_silent = request.query_is_silent
    filters = () if request.post_filter is None else (request.post_filter,)
    fetcher = Fetcher(
        scope, request.query, options.raw_source, options.named_scores, done, is_silent, filters
    )
    nested = NestedHits(scope, request.query, is_silent=is_silent)
    if groups is None and scope.searcher.peers is None and not nested.are_wanted:
        docs, scores = found.docs[chosen.rows], sorting.scores(chosen.rows) if scored else None
        plain = fetcher.shown_plain(docs, scores, sorting.sorts(chosen.rows), request.fetching)
        if plain is not None:
            return plain
    below = {} if groups is None else _collapsed(request, scope, fetcher, whole, chosen)
    shown = []
    for place, row, hit in zip(
        chosen.places, chosen.rows.tolist(), sorting.hits(chosen.rows, scored), strict=True
    ):
        checkpoint()
        one = fetcher.shown(hit, request.fetching)
        inner = nested.of(hit.doc)
        if groups is not None:
            groups.show(one, row)
            inner |= {name: {"hits": of_group[place]} for name, of_group in below.items()}
        shown.append(_with_inner(one, inner))
    return shown


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The hits of these leaves that are on the page, in order, and their places on it.

    keys: of the groups of all hits of the page, by place; empty where they are not collapsed.
    """

    rows: Longs
    places: Sequence[int]
    keys: list[Any]


def _chosen(
    request: SearchRequest, scope: Scope, sorting: Sorting, rows: Longs, groups: Groups | None
) -> _Chosen:
    """rows: the first, in order."""
    peers = scope.searcher.peers
    if peers is None:
        rows = rows[request.start :]
        keys = [] if groups is None else [groups.key(row) for row in rows.tolist()]
        return _Chosen(rows, range(len(rows)), keys)
    offers = peers.gather("first", offer_of(sorting, rows, groups))
    order = chosen_of(sorting, offers, request.start, request.size)
    own, places = _own_of(peers, [offer.size for offer in offers], order)
    keys = [key for offer in offers for key in offer.groups or ()]
    return _Chosen(rows[own], places, [keys[place] for place in order.tolist()] if keys else [])


def _own_of(peers: Peers, sizes: Sequence[int], order: Longs) -> tuple[Longs, list[int]]:
    """(which of this shard's documents are on the page, their places on it).

    order: the documents of the page by their places among those of all shards, one shard after the other.
    """
    owners = np.repeat(np.arange(len(sizes)), sizes)[order]
    peers.place(owners.tolist())
    places = np.flatnonzero(owners == peers.number)
    return order[places] - sum(sizes[: peers.number]), places.tolist()


def _collapsed(
    request: SearchRequest, scope: Scope, fetcher: Fetcher, found: Found, chosen: _Chosen
) -> dict[str, list[dict[str, Any]]]:
    """The hits of each group that is shown, by the names of `inner_hits`."""
    assert request.collapse is not None
    if not request.collapse.inner_hits:
        return {}
    groups = Groups(scope, request.collapse.path, found.docs)
    members = [found.kept(groups.members(key)) for key in chosen.keys]
    return {inner.name: pages(scope, fetcher, members, inner) for inner in request.collapse.inner_hits}
