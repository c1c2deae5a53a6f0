"""A second score for the best hits: `rescore`, and the retriever `rescorer`.

Source: Elasticsearch's QueryRescorer and RescorerRetrieverBuilder.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.aggregations.options import Options
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.hybrid.fusion import FusedQuery, Linear
from graphdb.search.leaf_reader import Bools, Floats, Leaf, Longs
from graphdb.search.query import Query, QueryContext, Searcher, parse_query
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.ranked import Ranking

__all__ = ["Rescore", "RescoredQuery", "mixed", "modes", "parse_rescore", "rescored_of"]


@dataclass(frozen=True, slots=True)
class Rescore:
    """Another score for the first `window` hits."""

    query: Query
    window: int
    query_weight: float
    rescore_weight: float
    mode: str


def parse_rescore(body: Any, context: QueryContext) -> Rescore:
    """Errors: SearchError."""
    options = Options("rescore", body)
    window = options.integer("window_size", 10, 0)
    most = context.limits.rescore_window
    if window > most:
        raise illegal_argument(
            f"Rescore window [{window}] is too large. It must be less than [{most}]. This prevents "
            "allocating massive heaps for storing the results to be rescored. This limit can be set by "
            "changing the [index.max_rescore_window] index level setting."
        )
    inner = Options("query", options.take("query"))
    options.done()
    query = parse_query(inner.take("rescore_query"), context)
    mode = inner.text("score_mode", "total") or "total"
    if mode not in ("total", "multiply", "avg", "max", "min"):
        raise illegal_request(f"illegal score_mode [{mode}]")
    weights = inner.number("query_weight", 1.0), inner.number("rescore_query_weight", 1.0)
    inner.done()
    return Rescore(query, window, weights[0] or 0.0, weights[1] or 0.0, mode)


def mixed(first: Floats, second: Floats, hit: Bools, rescore: Rescore) -> Floats:
    """What the second query does not match keeps its first score, weighed."""
    one, two = first * np.float32(rescore.query_weight), second * np.float32(rescore.rescore_weight)
    return np.where(hit, modes(one, two)[rescore.mode], one)


def modes(one: Floats, two: Floats) -> dict[str, Floats]:
    """Both scores as one, by `score_mode`."""
    return {
        "total": one + two,
        "multiply": one * two,
        "avg": (one + two) / np.float32(2),
        "max": np.maximum(one, two),
        "min": np.minimum(one, two),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class RescoredQuery(FusedQuery):
    """What one query matches; listed are the best of it, as many as the smallest window has, rescored."""

    rescores: tuple[Rescore, ...] = ()

    def rank(self, searcher: Searcher) -> Ranking:
        (found,) = self.lists(searcher)
        docs, scores = found.docs, found.scores
        for rescore in self.rescores:
            inside = docs[: rescore.window]
            second, hit = _scores(rescore.query, inside, searcher)
            first = mixed(scores[: rescore.window], second, hit, rescore)
            rest = scores[rescore.window :] * np.float32(rescore.query_weight)
            if len(first):  # what is outside stays below what is inside
                rest = np.minimum(rest, first.min())
            scores = np.concatenate([first, rest])
            order = np.lexsort((docs, -scores))
            docs, scores = docs[order], scores[order]
        return Ranking(docs, scores).best(self.kept)

    def part(self, number: int) -> Query:
        own = replace(self, queries=tuple(query.part(number) for query in self.queries))
        rescores = tuple(replace(one, query=one.query.part(number)) for one in self.rescores)
        return replace(own, rescores=rescores)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        ranking, number = self.ranking(searcher), leaf.base + doc
        if number not in ranking.docs:
            return no_match("not among the documents that were rescored")
        value = float(ranking.scores[ranking.docs == number][0]) * boost * self.boost
        asked = [self.queries[0], *(one.query for one in self.rescores)]
        return explained(value, "rescored from:", [query.explain(leaf, doc, searcher) for query in asked])


def rescored_of(query: Query, rescores: tuple[Rescore, ...]) -> RescoredQuery:
    """Errors: illegal_argument_exception where nothing is to be rescored."""
    if not rescores:
        raise illegal_request("Missing rescore definition")
    windows = [one.window for one in rescores]
    whole = Linear((1.0,), ("none",))
    return RescoredQuery(
        queries=(query,), scorer=whole, window=max(windows), kept=min(windows), rescores=rescores
    )


@dataclass(frozen=True, slots=True)
class _Scored:
    """Those of some documents that a query matches in a shard, by their numbers among those of all."""

    query: Query
    docs: Longs

    def answered(self, searcher: Searcher) -> tuple[Longs, Floats]:
        """(places in docs, scores)"""
        places, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
        own = self.docs - searcher.first.number
        for leaf in searcher.leaves:
            here = np.flatnonzero((own >= leaf.base) & (own < leaf.base + leaf.segment.size))
            if len(here):
                found, local = self.query.matches(leaf, searcher), own[here] - leaf.base
                hit = found.mask[local]
                places.append(here[hit])
                scores.append(found.dense()[local[hit]])
        return np.concatenate(places), np.concatenate(scores)


def _scores(query: Query, docs: Longs, searcher: Searcher) -> tuple[Floats, Bools]:
    """(scores, which match) of some documents."""
    scores, hit = np.zeros(len(docs), np.float32), np.zeros(len(docs), np.bool_)
    for places, found in searcher.ask(_Scored(query, docs)):
        scores[places], hit[places] = found, True
    return scores, hit
