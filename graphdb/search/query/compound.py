"""Queries around queries: `constant_score`, `dis_max`, `boosting`; and `match_all`, `match_none`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.query.clause import Clause, malformed
from graphdb.search.query.context import QueryContext
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.parsers import ClauseParser, Parse
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import MatchAllQuery, Matches, MatchNoneQuery, Query
from graphdb.search.segment import Bools, Leaf

__all__ = ["PARSERS", "BoostingQuery", "ConstantScoreQuery", "DisMaxQuery"]


@dataclass(frozen=True, kw_only=True)
class ConstantScoreQuery(Query):
    """What another matches, each with the boost for its score."""

    query: Query

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return Matches(self.query.mask(leaf, searcher), None, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self.query.mask(leaf, searcher)

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def text(self) -> str:
        return f"ConstantScore({self.query})"


@dataclass(frozen=True, kw_only=True)
class DisMaxQuery(Query):
    """What any of the queries matches: the best score of them, and tie_breaker of the others'."""

    queries: tuple[Query, ...]
    tie_breaker: float = 0.0

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        best = np.zeros(leaf.segment.size, dtype=np.float32)
        total = np.zeros(leaf.segment.size, dtype=np.float64)
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        for query in self.queries:
            found = query.matches(leaf, searcher, boost * self.boost)
            scores = found.dense()
            mask |= found.mask
            np.maximum(best, scores, out=best)
            total += scores
        if self.tie_breaker:
            best = (best + (total - best) * np.float32(self.tie_breaker)).astype(np.float32)
        return Matches(mask, best)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        for query in self.queries:
            mask |= query.mask(leaf, searcher)
        return mask

    def children(self) -> tuple[Query, ...]:
        return self.queries

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        parts = [query.explain(leaf, doc, searcher, boost * self.boost) for query in self.queries]
        met = [part for part in parts if "no_match" not in part]
        if not met:
            return no_match("No matching clause")
        value = float(self.matches(leaf, searcher, boost).dense()[doc])
        plus = f" plus {self.tie_breaker} times others of:" if self.tie_breaker else " of:"
        return explained(value, "max" + plus, met)

    def text(self) -> str:
        tie = f"~{self.tie_breaker}" if self.tie_breaker else ""
        return f"({' | '.join(str(query) for query in self.queries)}){tie}"


@dataclass(frozen=True, kw_only=True)
class BoostingQuery(Query):
    """What positive matches; negative_boost multiplies the scores of what negative matches too."""

    positive: Query
    negative: Query
    negative_boost: float

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        found = self.positive.matches(leaf, searcher, boost * self.boost)
        scores = found.dense().copy()
        scores[self.negative.mask(leaf, searcher)] *= np.float32(self.negative_boost)
        return Matches(found.mask, scores)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self.positive.mask(leaf, searcher)

    def children(self) -> tuple[Query, ...]:
        return (self.positive, self.negative)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        part = self.positive.explain(leaf, doc, searcher, boost * self.boost)
        if "no_match" in part or not self.negative.mask(leaf, searcher)[doc]:
            return part
        value = float(self.matches(leaf, searcher, boost).dense()[doc])
        return explained(value, "product of:", [part, explained(self.negative_boost, "negative boost")])

    def text(self) -> str:
        return f"FunctionScoreQuery({self.positive}, scored by boost({self.negative}^{self.negative_boost}))"


def _match_all(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("match_all", body, "[{}] unknown field [{}]")
    clause.done()
    return MatchAllQuery(boost=clause.boost, name=clause.name)


def _match_none(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("match_none", body, "[{}] unknown field [{}]")
    clause.done()
    return MatchNoneQuery(boost=clause.boost, name=clause.name)


def _constant_score(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("constant_score", body, "[{}] query does not support [{}]")
    given = clause.take("filter")
    if given is None:
        raise malformed("[constant_score] requires a 'filter' element")
    if isinstance(given, list):
        raise malformed("unexpected token [START_ARRAY]")
    clause.done()
    return ConstantScoreQuery(query=parse(given, context), boost=clause.boost, name=clause.name)


def _dis_max(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("dis_max", body)
    given = clause.take("queries")
    tie_breaker = clause.number("tie_breaker", 0.0)
    clause.done()
    if not given:
        raise malformed("[dis_max] requires 'queries' field with at least one clause")
    bodies = given if isinstance(given, list) else [given]
    queries = tuple(parse(inner, context) for inner in bodies)
    return DisMaxQuery(queries=queries, tie_breaker=tie_breaker, boost=clause.boost, name=clause.name)


def _boosting(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("boosting", body)
    positive, negative = clause.take("positive"), clause.take("negative")
    factor = clause.number("negative_boost", -1.0)
    clause.done()
    for what, given in (("positive", positive), ("negative", negative)):
        if given is None:
            raise malformed(f"[boosting] query requires '{what}' query to be set'")
    if factor < 0:
        raise malformed(
            "[boosting] query requires 'negative_boost' to be set to be a positive value'"
            if "negative_boost" not in body
            else "query requires negativeBoost to be set to positive value"
        )
    return BoostingQuery(
        positive=parse(positive, context),
        negative=parse(negative, context),
        negative_boost=factor,
        boost=clause.boost,
        name=clause.name,
    )


PARSERS: dict[str, ClauseParser] = {
    "boosting": _boosting,
    "constant_score": _constant_score,
    "dis_max": _dis_max,
    "match_all": _match_all,
    "match_none": _match_none,
}
