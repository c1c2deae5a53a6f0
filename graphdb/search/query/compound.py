"""Compound queries: bool, boosting, constant_score, dis_max, wrapper."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from graphdb.search.deadline import checkpoint
from graphdb.search.leaf_reader import Bools, Floats, Leaf
from graphdb.search.query.clause import (
    Clause,
    ClauseParser,
    Parse,
    QueryContext,
    malformed,
    minimum_should_match,
)
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.forms import ClauseForm, Form, Make, fixed
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import MatchAllQuery, Matches, MatchNoneQuery, Query, boosted, late_last

__all__ = ["FORMS", "PARSERS", "BoolQuery", "BoostingQuery", "ConstantScoreQuery", "DisMaxQuery"]

# Queries around queries: `constant_score`, `dis_max`, `boosting`; and `match_all`, `match_none`.


@dataclass(frozen=True, kw_only=True)
class ConstantScoreQuery(Query):
    """What another matches, each with the boost for its score."""

    query: Query

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return Matches(self.query.mask(leaf, searcher), None, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self.query.mask(leaf, searcher)

    def mask_among(self, leaf: Leaf, searcher: Searcher, among: Bools) -> Bools:
        return self.query.mask_among(leaf, searcher, among)

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


def _constant_score_form(body: Mapping[str, Any], context: QueryContext, form: Form) -> Make:
    clause = Clause("constant_score", body, "[{}] query does not support [{}]")
    inner = form.clause(clause.sought("filter"), context)
    clause.done()
    return lambda values, context: ConstantScoreQuery(
        query=inner(values, context), boost=clause.boost, name=clause.name
    )


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


# `bool`: what must, must not and should match.


_TOO_FEW = "minimumShouldMatch is greater than the number of optional clauses"


@dataclass(frozen=True, kw_only=True)
class BoolQuery(Query):
    """Scores are the sum of those of must and of the should clauses that match.

    minimum is how many should clauses have to match; where nothing is in must and filter, it is at least one.
    """

    must: tuple[Query, ...] = ()
    filter: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()
    minimum: int = field(default=0)

    @property
    def needed(self) -> int:
        """How many should clauses have to match."""
        return max(self.minimum, 0 if self.must or self.filter or not self.should else 1)

    def at_least(self, minimum: int) -> Query:
        """The same with so many should clauses that have to match: nothing where there are fewer."""
        if minimum > len(self.should):
            return MatchNoneQuery(reason=_TOO_FEW, boost=self.boost, name=self.name)
        return replace(self, minimum=minimum)

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        boost *= self.boost
        mask = self._filtered(leaf, searcher, np.ones(leaf.segment.size, dtype=np.bool_))
        if not self.must and not self.should:
            return Matches(mask if self.needed == 0 else np.zeros_like(mask), None, 0.0)
        scores = np.zeros(leaf.segment.size, dtype=np.float32)
        if self.must:
            found, sums = self._sum(self.must, len(self.must), leaf, searcher, boost, mask)
            mask, scores = mask & found, sums
        if self.should and mask.any():
            found, sums = self._sum(self.should, self.needed, leaf, searcher, boost, mask)
            mask, scores = mask & found, scores + sums
        elif self.needed > len(self.should):
            mask = np.zeros_like(mask)
        return Matches(mask, np.where(mask, scores, np.float32(0)))

    def _filtered(self, leaf: Leaf, searcher: Searcher, among: Bools) -> Bools:
        mask = among.copy()
        for query in late_last(self.filter):
            checkpoint()
            mask &= query.mask_among(leaf, searcher, mask)
        for query in late_last(self.must_not):
            checkpoint()
            mask &= ~query.mask_among(leaf, searcher, mask)
        return mask

    @staticmethod
    def _sum(
        queries: tuple[Query, ...],
        needed: int,
        leaf: Leaf,
        searcher: Searcher,
        boost: float,
        among: Bools,
    ) -> tuple[Bools, Floats]:
        """Where so many of the queries match, and the sum of their scores (in doubles, as Lucene's). Scripts
        run among those documents only that the queries before them leave.
        """
        sums = np.zeros(leaf.segment.size, dtype=np.float64)
        counts = np.zeros(leaf.segment.size, dtype=np.int32)
        for place, query in enumerate(late_last(queries)):
            checkpoint()
            left = among
            if place and needed == len(queries) and query.is_late:
                left = among & (counts == place)
            query.accumulate_among(leaf, searcher, boost, sums, counts, left)
        return counts >= needed, sums.astype(np.float32)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self.mask_among(leaf, searcher, np.ones(leaf.segment.size, dtype=np.bool_))

    def mask_among(self, leaf: Leaf, searcher: Searcher, among: Bools) -> Bools:
        mask = self._filtered(leaf, searcher, among)
        for query in late_last(self.must):
            mask &= query.mask_among(leaf, searcher, mask)
        if self.needed:
            counts = np.zeros(leaf.segment.size, dtype=np.int32)
            for query in self.should:
                counts += query.mask_among(leaf, searcher, mask)
            mask &= counts >= self.needed
        return mask

    def children(self) -> tuple[Query, ...]:
        return (*self.must, *self.filter, *self.should, *self.must_not)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        details: list[Explanation] = []
        failed = False
        for query in self.must:
            part = query.explain(leaf, doc, searcher, boost * self.boost)
            failed |= _add(details, part, "no match on required clause", query)
        for query in self.filter:
            part = query.explain(leaf, doc, searcher, 0.0)
            failed |= "no_match" in part
            text = (
                "no match on required clause"
                if "no_match" in part
                else "match on required clause, product of:"
            )
            zero = [explained(0.0, "# clause"), part] if "no_match" not in part else [part]
            details.append(explained(0.0, f"{text} ({query})" if "no_match" in part else text, zero))
        for query in self.must_not:
            part = query.explain(leaf, doc, searcher, boost * self.boost)
            if "no_match" not in part:
                details.append(no_match(f"match on prohibited clause ({query})", [part]))
                failed = True
        optional = [query.explain(leaf, doc, searcher, boost * self.boost) for query in self.should]
        met = [part for part in optional if "no_match" not in part]
        if failed:
            return no_match("Failure to meet condition(s) of required/prohibited clause(s)", details)
        if len(met) < self.needed:
            return no_match(f"Failure to match minimum number of optional clauses: {self.needed}", details)
        value = self.matches(leaf, searcher, boost).dense()[doc]
        return explained(float(value), "sum of:", details + met)

    def text(self) -> str:
        parts = [("+", self.must), ("#", self.filter), ("", self.should), ("-", self.must_not)]
        texts = [sign + _enclosed(query) for sign, queries in parts for query in queries]
        return " ".join(texts) + (f"~{self.minimum}" if self.minimum > 1 else "")


def _add(details: list[Explanation], part: Explanation, text: str, query: Query) -> bool:
    """Add what a required clause says; whether it has failed."""
    failed = "no_match" in part
    details.append(no_match(f"{text} ({query})", [part]) if failed else part)
    return failed


def _enclosed(query: Query) -> str:
    text = str(query)
    return f"({text})" if isinstance(query, BoolQuery) and query.boost == 1.0 else text


def _queries(clause: Clause, member: str, context: QueryContext, parse: Parse) -> tuple[Query, ...]:
    given = clause.take(member, [])
    return tuple(parse(body, context) for body in (given if isinstance(given, list) else [given]))


def parse_bool(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    """`minimum_should_match` counts the should clauses, see `minimum_should_match`."""
    clause = Clause("bool", body, "[{}] unknown field [{}]")
    parts = [
        tuple(query for member in members for query in _queries(clause, member, context, parse))
        for members in _PARTS
    ]
    return _bool_of(_Joined.read(clause), *parts)


def _bool_form(body: Mapping[str, Any], context: QueryContext, form: Form) -> Make:
    clause = Clause("bool", body, "[{}] unknown field [{}]")
    parts = []
    for members in _PARTS:
        given = [clause.sought(member) or [] for member in members]
        each = chain.from_iterable(one if isinstance(one, list) else [one] for one in given)
        parts.append([form.clause(one, context) for one in each])
    joined = _Joined.read(clause)
    return lambda values, context: _bool_of(
        joined, *[tuple([make(values, context) for make in part]) for part in parts]
    )


# By all their names; Elasticsearch still takes the deprecated one, and there are clients that write it.
_PARTS = (("must",), ("filter",), ("should",), ("must_not", "mustNot"))


@dataclass(frozen=True, slots=True)
class _Joined:
    """What a `bool` says beside its clauses."""

    minimum: str | None
    pure_negative: bool
    boost: float
    name: str | None

    @classmethod
    def read(cls, clause: Clause) -> "_Joined":
        minimum = clause.string("minimum_should_match")
        pure_negative = clause.flag("adjust_pure_negative", True)
        clause.done()
        return cls(minimum, pure_negative, clause.boost, clause.name)


def _bool_of(
    clause: _Joined,
    must: tuple[Query, ...],
    filters: tuple[Query, ...],
    should: tuple[Query, ...],
    must_not: tuple[Query, ...],
) -> Query:
    text = clause.minimum
    if not (must or filters or should or must_not):
        return MatchAllQuery(boost=clause.boost, name=clause.name)
    if not (must or filters or should):
        if not clause.pure_negative:
            return MatchNoneQuery(reason="only prohibited clauses", boost=clause.boost, name=clause.name)
        filters, text = (MatchAllQuery(),), None  # in Elasticsearch the minimum gets lost here
    query = BoolQuery(
        must=must, filter=filters, should=should, must_not=must_not, boost=clause.boost, name=clause.name
    )
    return query if text is None else query.at_least(minimum_should_match(len(should), text))


def _wrapper(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    """A query as JSON in base64."""
    clause = Clause("wrapper", body)
    given = clause.needed("query")
    clause.done()
    try:
        inner = json.loads(base64.b64decode(str(given), validate=True))
    except (ValueError, RecursionError):
        raise malformed("[wrapper] [query] must be JSON in base64") from None
    return boosted(parse(inner, context), clause.boost, clause.name)


PARSERS: dict[str, ClauseParser] = {
    "boosting": _boosting,
    "constant_score": _constant_score,
    "dis_max": _dis_max,
    "match_all": _match_all,
    "match_none": _match_none,
    "wrapper": _wrapper,
    "bool": parse_bool,
}
FORMS: dict[str, ClauseForm] = {
    "bool": _bool_form,
    "constant_score": _constant_score_form,
    "match_all": fixed(_match_all),
    "match_none": fixed(_match_none),
}
