"""Queries that lift documents up: `distance_feature`, `rank_feature`, `pinned`."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Doubles, Floats, Ints, Leaf, Longs
from graphdb.search.mapping.readers import point_of
from graphdb.search.mapping.value_formats import range_of
from graphdb.search.mapping.weighted_features import feature_weights
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.explanation import Explanation, explained
from graphdb.search.query.geo import meters
from graphdb.search.query.score_functions import Decay, duration_ms
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import SCORE_MAX, Matches, MatchNoneQuery, Query

__all__ = ["PARSERS", "DistanceFeatureQuery", "PinnedQuery", "RankFeatureQuery", "pinned_scores"]

# `distance_feature`: boost * pivot / (pivot + distance), of dates in milliseconds, of points in metres.


@dataclass(frozen=True, kw_only=True)
class DistanceFeatureQuery(Query):
    """All documents with a value; of several the nearest counts."""

    path: str
    origin: float | tuple[float, float]
    pivot: float

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        away = Decay("linear", self.path, self.origin, self.pivot, 0.0, 0.5).distances(leaf)
        known = np.isfinite(away)
        scores = np.where(known, boost * self.boost * self.pivot / (self.pivot + away), 0.0)
        return Matches(known, scores.astype(np.float32))

    def text(self) -> str:
        return f"DistanceFeatureQuery(field={self.path},origin={self.origin},pivot={self.pivot})"


def _distance_feature(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("distance_feature", body)
    given = [clause.take(member) for member in ("field", "origin", "pivot")]
    clause.done()
    if None in given:
        raise illegal_request("Required [field, origin, pivot]")
    path, origin, pivot = given
    spec = context.mapping.field(str(path))
    if spec is None:
        reason = f"Can't run [distance_feature] query on unmapped fields! [{path}]"
        return MatchNoneQuery(reason=reason, boost=clause.boost, name=clause.name)
    center: float | tuple[float, float]
    if spec.storage is Storage.POINTS:
        center, width = point_of(origin, spec.path), meters(pivot)
    elif spec.type in ("date", "date_nanos"):
        own = replace(spec, type="date")
        center, width = float(range_of(own, origin, True, None, None, context.now_ms)), duration_ms(pivot)
    else:
        raise illegal_argument(
            f"Illegal data type of [{spec.type}]!, [distance_feature] query can only be run on a date, "
            "date_nanos or geo_point field type!"
        )
    if not width > 0:
        raise illegal_argument(f"[pivot] must be positive, got [{pivot}]")
    return DistanceFeatureQuery(
        path=spec.path, origin=center, pivot=width, boost=clause.boost, name=clause.name
    )


# `rank_feature`: a function of a number that says how good a document is.


@dataclass(frozen=True, kw_only=True)
class RankFeatureQuery(Query):
    """kind: saturation, log, sigmoid or linear. pivot None: the mean of all values."""

    path: str
    kind: str
    pivot: float | None = None
    number: float = 1.0  # the factor of log, the exponent of sigmoid
    feature: str | None = None  # of a field of type rank_features

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        values = np.zeros(leaf.segment.size)
        docs, weights = _features(leaf, self.path, self.feature)
        values[docs] = weights
        scores: Floats = (boost * self.boost * self._scored(values, searcher)).astype(np.float32)
        return Matches(values > 0, np.where(values > 0, scores, np.float32(0)))

    def _scored(self, values: Doubles, searcher: Searcher) -> Doubles:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.kind == "linear":
                return values
            if self.kind == "log":
                return np.log(self.number + values)
            pivot = self._mean(searcher) if self.pivot is None else self.pivot
            if self.kind == "sigmoid":
                return 1.0 / (1.0 + (pivot / values) ** self.number)
            return values / (values + pivot)

    def _mean(self, searcher: Searcher) -> float:
        asked = _Sum(self.path, self.feature)
        found = searcher.keep(("mean", asked), lambda: searcher.ask(asked))
        total, count = (sum(part) for part in zip(*found, strict=True))
        return total / count if count else 1.0

    def text(self) -> str:
        feature = "" if self.feature is None else f", feature={self.feature}"
        return f"FeatureQuery(field={self.path}{feature}, function={self.kind})"


def _features(leaf: Leaf, path: str, feature: str | None) -> tuple[Longs | Ints, Doubles]:
    """(documents, values): of a rank_feature, or of one of the features of a field."""
    if feature is not None:
        return feature_weights(leaf.segment, path, feature)
    column = leaf.segment.floats(path)
    if column is None:
        return np.empty(0, np.int64), np.empty(0)
    size = leaf.segment.size
    counts = np.ones(size, np.int64) if column.starts is None else np.diff(column.starts)
    return np.repeat(np.arange(size), counts), column.values.astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Sum:
    """(sum, count) of the values of a shard's live documents."""

    path: str
    feature: str | None

    def answered(self, searcher: Searcher) -> tuple[float, int]:
        parts: list[Doubles] = []
        for leaf in searcher.leaves:
            docs, weights = _features(leaf, self.path, self.feature)
            parts.append(weights[leaf.live[docs]])
        return math.fsum(value for part in parts for value in part.tolist()), sum(map(len, parts))


def _rank_feature(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("rank_feature", body)
    path = str(clause.needed("field"))
    kinds = [kind for kind in _FUNCTIONS if kind in clause]
    if len(kinds) > 1:
        raise illegal_argument("Can only specify one of [log], [saturation], [sigmoid] and [linear]")
    kind = kinds[0] if kinds else "saturation"
    given = clause.take(kind, {})
    clause.done()
    if not isinstance(given, Mapping):
        raise malformed(f"[rank_feature] [{kind}] must be an object")
    spec = context.mapping.field(path)
    if spec is None:
        return MatchNoneQuery(reason=f"unmapped field [{path}]", boost=clause.boost, name=clause.name)
    base, _, feature = spec.path.rpartition(".")
    above = context.mapping.field(base) if spec.type == "rank_features" and base else None
    if spec.type == "rank_features" and (above is None or above.type != "rank_features"):
        raise illegal_argument(
            f"[rank_feature] query on [rank_features] field [{path}] has to name a feature"
        )
    if spec.type not in ("rank_feature", "rank_features"):
        raise illegal_argument(
            "[rank_feature] query only works on [rank_feature] fields and features of [rank_features] "
            f"fields, not [{spec.type}]"
        )
    if not spec.options["positive_score_impact"] and kind == "log":
        raise illegal_argument(
            "Cannot use the [log] function with a field that has a negative score impact as it would "
            f"trigger negative scores: [{path}]"
        )
    query = _FUNCTIONS[kind](Clause(kind, given))
    if above is not None:
        query = replace(query, feature=feature)
    return replace(query, path=base if above else spec.path, boost=clause.boost, name=clause.name)


def _positive(clause: Clause, member: str) -> float:
    value = clause.number(member, 0.0) if member in clause else 0.0
    if not value > 0:
        raise illegal_argument(f"[{clause.kind}] requires a positive [{member}]")
    return value


def _saturation(clause: Clause) -> RankFeatureQuery:
    pivot = _positive(clause, "pivot") if "pivot" in clause else None
    clause.done()
    return RankFeatureQuery(path="", kind="saturation", pivot=pivot)


def _log(clause: Clause) -> RankFeatureQuery:
    factor = clause.number("scaling_factor", 0.0) if "scaling_factor" in clause else 0.0
    clause.done()
    if factor < 1:
        raise illegal_argument(f"scalingFactor must be >= 1, got [{factor}]")
    return RankFeatureQuery(path="", kind="log", number=factor)


def _sigmoid(clause: Clause) -> RankFeatureQuery:
    pivot, exponent = _positive(clause, "pivot"), _positive(clause, "exponent")
    clause.done()
    return RankFeatureQuery(path="", kind="sigmoid", pivot=pivot, number=exponent)


def _linear(clause: Clause) -> RankFeatureQuery:
    clause.done()
    return RankFeatureQuery(path="", kind="linear")


_FUNCTIONS: dict[str, Callable[[Clause], RankFeatureQuery]] = {
    "saturation": _saturation,
    "log": _log,
    "sigmoid": _sigmoid,
    "linear": _linear,
}


# `pinned`: some documents before all others.

_PINNED_MAX = 100


def pinned_scores(count: int) -> list[np.float32]:
    """Those of so many pinned documents, the last of them first."""
    least = int(np.float32(SCORE_MAX).view(np.int32)) + 1
    return [np.int32(least + place).view(np.float32) for place in range(count)]


@dataclass(frozen=True, kw_only=True)
class PinnedQuery(Query):
    """The documents with these ids in this order, then what the organic query finds. Pinned ones score just
    above whatever a query may.
    """

    ids: tuple[str, ...]
    organic: Query

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        found = self.organic.matches(leaf, searcher, boost * self.boost)
        mask, scores = found.mask.copy(), found.dense().copy()
        for doc, score in self._pinned(leaf):
            mask[doc], scores[doc] = True, score
        return Matches(mask, scores)

    def _pinned(self, leaf: Leaf) -> list[tuple[int, np.float32]]:
        """The first of equal ids counts, so it is written last."""
        docs = [leaf.segment.find(doc_id) for doc_id in reversed(self.ids)]
        return [(doc, score) for doc, score in zip(docs, pinned_scores(len(docs)), strict=True) if doc >= 0]

    def children(self) -> tuple[Query, ...]:
        return (self.organic,)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        score = dict(self._pinned(leaf)).get(doc)
        if score is None:
            return self.organic.explain(leaf, doc, searcher, boost * self.boost)
        return explained(float(score), f"ConstantScore({self.text()})")

    def text(self) -> str:
        return f"pinned({' '.join(self.ids)}, {self.organic})"


def _pinned(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("pinned", body)
    given, docs, organic = clause.take("ids"), clause.take("docs"), clause.take("organic")
    clause.done()
    if organic is None:
        raise illegal_request("Required [organic]")
    if (given is None) == (docs is None):
        raise illegal_request("[pinned] requires one of [ids] and [docs]")
    listed = given if docs is None else docs
    if not isinstance(listed, list) or len(listed) > _PINNED_MAX:
        raise illegal_argument(f"[pinned] takes a list of at most {_PINNED_MAX} documents")
    ids = [str(one) for one in listed] if docs is None else _ids_of(docs, context)
    return PinnedQuery(ids=tuple(ids), organic=parse(organic, context), boost=clause.boost, name=clause.name)


def _ids_of(docs: list[Any], context: QueryContext) -> list[str]:
    """Those that are of this index, by its name or an alias; without `_index` of any."""
    names = {context.index_name, *(name for name, _ in context.index_names)}
    ids = []
    for one in docs:
        if not isinstance(one, Mapping) or "_id" not in one or set(one) - {"_id", "_index"}:
            raise malformed("[pinned] [docs] takes objects with [_id] and [_index]")
        if one.get("_index") is None or str(one["_index"]) in names:
            ids.append(str(one["_id"]))
    return ids


PARSERS: dict[str, ClauseParser] = {
    "distance_feature": _distance_feature,
    "pinned": _pinned,
    "rank_feature": _rank_feature,
}
