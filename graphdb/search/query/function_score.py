"""`function_score`: scores by other things than words: weights, fields, distance, random numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.errors import illegal_request
from graphdb.search.leaf_reader import Bools, Doubles, Leaf
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.score_functions import (
    ScoreFunction,
    Weight,
    parse_decay,
    parse_field_value_factor,
    parse_random_score,
)
from graphdb.search.query.scripted import ScriptFunction, script_function
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import SCORE_MAX, MatchAllQuery, Matches, Query

__all__ = ["PARSERS", "FilteredFunction", "FunctionScoreQuery"]

FLOAT_MAX = float(np.finfo(np.float32).max)
SCORE_MODES = ("multiply", "sum", "avg", "first", "max", "min")
BOOST_MODES = ("multiply", "replace", "sum", "avg", "max", "min")


@dataclass(frozen=True, slots=True)
class FilteredFunction:
    """One function, for the documents that filter matches (None: all)."""

    function: ScoreFunction
    filter: Query | None
    weight: float | None


@dataclass(frozen=True, kw_only=True)
class FunctionScoreQuery(Query):
    """What a query matches, where its score and those of the functions reach min_score together."""

    query: Query
    functions: tuple[FilteredFunction, ...] = ()
    score_mode: str = "multiply"
    boost_mode: str = "multiply"
    max_boost: float = FLOAT_MAX
    min_score: float | None = None

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        found = self.query.matches(leaf, searcher, boost * self.boost)
        scores = found.dense().astype(np.float64)
        factor, any_met = self._factors(leaf, searcher, scores, found.mask)
        if self.functions:
            scores = _combined(self.boost_mode, scores, np.minimum(factor, self.max_boost), any_met)
        scores, mask = np.minimum(scores, SCORE_MAX), found.mask
        if self.min_score is not None:
            mask = mask & (scores.astype(np.float32) >= np.float32(self.min_score))
        return Matches(mask, np.where(mask, scores, 0).astype(np.float32))

    def _factors(self, leaf: Leaf, searcher: Searcher, scores: Doubles, mask: Bools) -> tuple[Doubles, Bools]:
        """(factor, met): what the functions say of each document together, and for which any of them does.
        mask: the documents that the query matches.
        """
        size = leaf.segment.size
        met, factor = np.zeros(size, dtype=np.bool_), np.ones(size)
        weights = np.zeros(size)
        for filtered in self.functions:
            applies = _applies(filtered, leaf, searcher) & mask
            weight = 1.0 if filtered.weight is None else filtered.weight
            value = np.minimum(filtered.function.values(leaf, applies, scores) * weight, SCORE_MAX)
            fresh, again = applies & ~met, applies & met
            factor[fresh] = value[fresh]
            if self.score_mode != "first":
                joined = _joined(self.score_mode, factor[again], value[again])
                factor[again] = np.minimum(joined, SCORE_MAX)
            weights[applies] += weight
            met |= applies
        if self.score_mode == "avg":
            factor[met] = factor[met] / np.where(weights[met] == 0, 1, weights[met])
        return factor, met

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        if self.min_score is None:
            return self.query.mask(leaf, searcher)
        return self.matches(leaf, searcher).mask

    @property
    def is_late(self) -> bool:  # type: ignore[override]
        """Whether a function is a script."""
        return any(isinstance(one.function, ScriptFunction) for one in self.functions)

    def children(self) -> tuple[Query, ...]:
        return (self.query, *(one.filter for one in self.functions if one.filter is not None))

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        part = self.query.explain(leaf, doc, searcher, boost * self.boost)
        found = self.matches(leaf, searcher, boost)
        if not found.mask[doc]:
            return part if "no_match" in part else no_match("Score value is too low", [part])
        if not self.functions:
            return part
        # those of the query, which the functions and their explanations are about
        base = self.query.matches(leaf, searcher, boost * self.boost)
        scores = base.dense().astype(np.float64)
        factor, _ = self._factors(leaf, searcher, scores, base.mask)
        details = [
            _function_explained(one, leaf, doc, scores)
            for one in self.functions
            if _applies(one, leaf, searcher)[doc]
        ]
        mode = f"function score, score mode [{self.score_mode}]"
        together = explained(float(factor[doc]), mode, details)
        capped = explained(min(float(factor[doc]), self.max_boost), "min of:", [
            together, explained(self.max_boost, "maxBoost")
        ])  # fmt: skip
        text = "product of:" if self.boost_mode == "multiply" else f"{self.boost_mode} of"
        return explained(float(found.dense()[doc]), f"function score, {text}", [part, capped])

    def text(self) -> str:
        functions = ", ".join(str(one.function) for one in self.functions)
        return f"function score ({self.query}, functions: [{functions}])"


def _applies(filtered: FilteredFunction, leaf: Leaf, searcher: Searcher) -> Bools:
    if filtered.filter is None:
        return np.ones(leaf.segment.size, dtype=np.bool_)
    return filtered.filter.mask(leaf, searcher)


def _function_explained(filtered: FilteredFunction, leaf: Leaf, doc: int, scores: Doubles) -> Explanation:
    only = np.zeros(leaf.segment.size, dtype=np.bool_)
    only[doc] = True
    value = float(filtered.function.values(leaf, only, scores)[doc])
    shown = explained(value, str(filtered.function))
    if filtered.weight is not None:
        shown = explained(
            value * filtered.weight, "product of:", [shown, explained(filtered.weight, "weight")]
        )
    matched_by = explained(0.0, f"match filter: {filtered.filter or '*:*'}")
    return explained(shown["value"], "function score, product of:", [matched_by, shown])


def _joined(mode: str, first: Doubles, second: Doubles) -> Doubles:
    if mode == "multiply":
        return first * second
    if mode in ("sum", "avg"):
        return first + second
    return np.maximum(first, second) if mode == "max" else np.minimum(first, second)


def _combined(mode: str, scores: Doubles, factor: Doubles, met: Bools) -> Doubles:
    """Where no function applies, its factor is 1, and the score stays what it is."""
    if mode == "replace":
        return np.where(met, factor, 1.0)
    if mode == "avg":
        return np.where(met, (scores + factor) / 2, scores)
    return np.where(met, _joined(mode, scores, factor), scores)


def _parse_function(clause: Clause, context: QueryContext, parse: Parse) -> FilteredFunction | None:
    """The one function that a body has beside `filter` and `weight`; None where it has neither."""
    weight = clause.number("weight", 1.0) if "weight" in clause else None
    if weight is not None and weight < 0:
        raise illegal_request(f"[weight] cannot be negative for a filtering function, got [{weight}]")
    functions: list[ScoreFunction] = []
    for member, reader in (
        ("field_value_factor", parse_field_value_factor),
        ("random_score", parse_random_score),
    ):
        given = clause.take(member)
        if given is not None:
            functions.append(reader(Clause(member, _object(member, given)), context))
    given = clause.take("script_score")
    if given is not None:
        functions.append(script_function(_object("script_score", given), context))
    for kind in ("gauss", "exp", "linear"):
        given = clause.take(kind)
        if given is not None:
            functions.append(parse_decay(kind, _object(kind, given), context))
    if len(functions) > 1:
        raise malformed("failed to parse function_score functions. already found a function")
    if not functions and weight is None:
        return None
    given = clause.take("filter")
    return FilteredFunction(
        functions[0] if functions else Weight(), None if given is None else parse(given, context), weight
    )


def _object(member: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise malformed(f"failed to parse [{member}] query. it must be an object")
    return given


def _functions(clause: Clause, context: QueryContext, parse: Parse) -> tuple[FilteredFunction, ...]:
    given = clause.take("functions")
    if given is None:
        one = _parse_function(clause, context, parse)
        return () if one is None else (one,)
    if not isinstance(given, list):
        raise malformed("failed to parse [function_score] query. [functions] must be an array")
    found = []
    for body in given:
        inner = Clause("function_score", _object("functions", body))
        one = _parse_function(inner, context, parse)
        inner.done()
        if one is None:
            raise malformed("an entry in functions list is missing a function.")
        found.append(one)
    return tuple(found)


def _function_score(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("function_score", body)
    given = clause.take("query")
    query = MatchAllQuery() if given is None else parse(given, context)
    functions = _functions(clause, context, parse)
    score_mode = clause.choice("score_mode", "multiply", SCORE_MODES)
    boost_mode = clause.choice("boost_mode", "multiply", BOOST_MODES)
    max_boost = clause.number("max_boost", FLOAT_MAX)
    min_score = clause.number("min_score", 0.0) if "min_score" in clause else None
    clause.done()
    return FunctionScoreQuery(
        query=query,
        functions=functions,
        score_mode=score_mode,
        boost_mode=boost_mode,
        max_boost=max_boost,
        min_score=min_score,
        boost=clause.boost,
        name=clause.name,
    )


PARSERS: dict[str, ClauseParser] = {"function_score": _function_score}
