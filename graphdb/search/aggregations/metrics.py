"""Metric aggregations: sums, extremes, statistics, bounds and centroids of points, top hits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphdb.search.aggregations.aggregation import (
    BUCKET_STEPS,
    Aggregation,
    Answer,
    Definition,
    Rows,
    Scope,
)
from graphdb.search.aggregations.options import Options, required
from graphdb.search.aggregations.value_sources import NUMERIC, DecimalPattern, Source, json_number
from graphdb.search.compiled import compiled
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Doubles, Longs

__all__ = [
    "GeoBounds",
    "GeoCentroid",
    "Moments",
    "NumberMetric",
    "TopHits",
    "grouped_sums",
    "parse_geo_bounds",
    "parse_geo_centroid",
    "parse_metric",
    "parse_top_hits",
    "parse_weighted_avg",
]

# Sums that lose nothing to rounding, by bucket.


def grouped_sums(scope: Scope, values: Doubles, owners: Longs, count: int) -> Doubles:
    """The sum of the values of each of count owners in all shards, compensated as Elasticsearch's (Kahan),
    0.0 for none.
    """
    totals, lost = np.zeros(count), np.zeros(count)
    _add(values, owners, totals, lost)
    if scope.searcher.peers is not None:
        parts = [part for pair in scope.gathered("sums", (totals, lost)) for part in pair]
        totals, lost = np.zeros(count), np.zeros(count)
        _add(np.concatenate(parts), np.tile(np.arange(count), len(parts)), totals, lost)
    return np.where(np.isfinite(totals), totals + lost, totals)


@compiled()
def _add(values: Doubles, owners: Longs, totals: Doubles, lost: Doubles) -> None:
    for i in range(len(values)):
        owner = owners[i]
        corrected = values[i] + lost[owner]
        updated = totals[owner] + corrected
        lost[owner] = corrected - (updated - totals[owner])
        totals[owner] = updated


# `geo_bounds` and `geo_centroid`: the box around points, and their middle.


@dataclass(frozen=True)
class _GeoMetric(Aggregation):
    source: Source
    leaf_only: ClassVar[bool] = True

    def points(self, scope: Scope, rows: Rows) -> tuple[Longs, Doubles, Doubles]:
        """(bucket, latitude, longitude) of each point."""
        if self.source.spec is None:
            return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        found = scope.columns.points(self.source.spec, rows.docs)
        return rows.owners[found.rows], found.latitudes, found.longitudes


@dataclass(frozen=True)
class GeoBounds(_GeoMetric):
    """wraps: the box may cross the date line, where that makes it narrower."""

    wraps: bool = True

    @property
    def typed(self) -> str:
        return "geo_bounds"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        owners, latitudes, longitudes = self.points(scope, rows)
        if scope.searcher.peers is not None:
            own = _outermost(owners, latitudes, longitudes)
            parts = scope.gathered("outermost points", (owners[own], latitudes[own], longitudes[own]))
            owners, latitudes, longitudes = (np.concatenate(column) for column in zip(*parts, strict=True))
        return [
            self._bounds(latitudes[owners == owner], longitudes[owners == owner])
            for owner in range(rows.count)
        ]

    def _bounds(self, latitudes: Doubles, longitudes: Doubles) -> Answer:
        if not len(latitudes):
            return {}
        left, right = float(longitudes.min()), float(longitudes.max())
        east, west = longitudes[longitudes >= 0], longitudes[longitudes < 0]
        if self.wraps and len(east) and len(west):
            across = (180 - float(east.min())) + (180 + float(west.max()))
            if across < right - left:
                left, right = float(east.min()), float(west.max())
        return {
            "bounds": {
                "top_left": {"lat": float(latitudes.max()), "lon": left},
                "bottom_right": {"lat": float(latitudes.min()), "lon": right},
            }
        }


def _outermost(owners: Longs, latitudes: Doubles, longitudes: Doubles) -> Longs:
    """Which points suffice to tell the bounds of each bucket: the first and last by latitude and, east and
    west of the prime meridian, by longitude.
    """
    chosen = [np.zeros(0, np.int64)]
    for groups, values in ((owners, latitudes), (2 * owners + (longitudes >= 0), longitudes)):
        order = np.lexsort((values, groups))
        ends = np.diff(groups[order]) != 0
        chosen += [order[np.append(True, ends)[: len(order)]], order[np.append(ends, True)[: len(order)]]]
    return np.unique(np.concatenate(chosen))


@dataclass(frozen=True)
class GeoCentroid(_GeoMetric):
    """The mean of the degrees."""

    @property
    def typed(self) -> str:
        return "geo_centroid"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        owners, latitudes, longitudes = self.points(scope, rows)
        counts = scope.total(np.bincount(owners, minlength=rows.count))
        sums = [grouped_sums(scope, degrees, owners, rows.count) for degrees in (latitudes, longitudes)]
        return [
            {"location": {"lat": lat / count, "lon": lon / count}, "count": count} if count else {"count": 0}
            for count, lat, lon in zip(counts.tolist(), sums[0].tolist(), sums[1].tolist(), strict=True)
        ]


def parse_geo_bounds(definition: Definition) -> Aggregation:
    wraps = definition.options.flag("wrap_longitude", True)
    source = Source.parse(definition, {Storage.POINTS})
    definition.options.done()
    return GeoBounds(definition.common, source, wraps)


def parse_geo_centroid(definition: Definition) -> Aggregation:
    source = Source.parse(definition, {Storage.POINTS})
    definition.options.done()
    return GeoCentroid(definition.common, source)


# Metrics that one pass gives: avg, sum, min, max, stats, extended_stats, value_count, weighted_avg.


@dataclass(frozen=True, slots=True)
class Moments:
    """By bucket: the number of values, their sum, extremes (infinite where there are none), squares."""

    count: Longs
    sum: Doubles
    min: Doubles
    max: Doubles
    squares: Doubles

    @staticmethod
    def of(scope: Scope, values: Doubles, owners: Longs, count: int) -> "Moments":
        """Of all shards."""
        least, greatest = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(least, owners, values)
        np.maximum.at(greatest, owners, values)
        if scope.searcher.peers is not None:
            parts = zip(*scope.gathered("extremes", (least, greatest)), strict=True)
            least, greatest = (
                np.asarray(choose(part, axis=0)) for choose, part in zip((np.min, np.max), parts, strict=True)
            )
        return Moments(
            scope.total(np.bincount(owners, minlength=count)),
            grouped_sums(scope, values, owners, count),
            least,
            greatest,
            grouped_sums(scope, values * values, owners, count),
        )

    def variance(self, lost: int) -> Doubles:
        """Of the population (lost 0) or of a sample (1); NaN where it has no meaning."""
        spread = self.squares - self.sum * self.sum / self.count
        return np.maximum(spread / (self.count - lost), 0.0)

    def column(self, name: str) -> Doubles:
        """A metric by the name that answers and orders give it, NaN where there are no values."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if name in _VARIANCES:
                return _VARIANCES[name](self)
            return np.asarray(_PLAIN[name](self), dtype=np.float64)


_PLAIN: dict[str, Callable[[Moments], Any]] = {
    "count": lambda moments: moments.count,
    "sum": lambda moments: moments.sum,
    "min": lambda moments: np.where(moments.count > 0, moments.min, np.nan),
    "max": lambda moments: np.where(moments.count > 0, moments.max, np.nan),
    "avg": lambda moments: moments.sum / moments.count,
    "sum_of_squares": lambda moments: np.where(moments.count > 0, moments.squares, np.nan),
}
_VARIANCES: dict[str, Callable[[Moments], Doubles]] = {
    "variance": lambda moments: moments.variance(0),
    "variance_population": lambda moments: moments.variance(0),
    "variance_sampling": lambda moments: moments.variance(1),
    "std_deviation": lambda moments: np.sqrt(moments.variance(0)),
    "std_deviation_population": lambda moments: np.sqrt(moments.variance(0)),
    "std_deviation_sampling": lambda moments: np.sqrt(moments.variance(1)),
}
_STATS = ("count", "min", "max", "avg", "sum")
_EXTENDED = (*_STATS, "sum_of_squares", *_VARIANCES)
_SHOWN: dict[str, tuple[str, ...]] = {
    "avg": ("avg",),
    "sum": ("sum",),
    "min": ("min",),
    "max": ("max",),
    "value_count": ("count",),
    "stats": _STATS,
    "extended_stats": _EXTENDED,
}


@dataclass(frozen=True)
class NumberMetric(Aggregation):
    """One of the metrics over the numbers of a field."""

    kind: str
    source: Source
    sigma: float = 2.0
    leaf_only: ClassVar[bool] = True

    @property
    def profiled(self) -> str:
        return "".join(word.capitalize() for word in self.kind.split("_")) + "Aggregator"

    @property
    def typed(self) -> str:
        return self.kind

    def steps(self, scope: Scope, documents: int) -> float | None:
        spec = self.source.spec
        is_number = spec is not None and spec.storage in NUMERIC
        return 2 * documents + BUCKET_STEPS if is_number else None

    def _moments(self, scope: Scope, rows: Rows) -> Moments:
        places, data = self.source.countable(scope, rows.docs)
        return Moments.of(scope, data.astype(np.float64), rows.owners[places], rows.count)

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        names = _SHOWN[self.kind]
        if len(names) == 1 and metric in ("", "value"):
            metric = names[0]
        if path or metric not in names:
            return super().measure(scope, rows, path, metric)
        return self._moments(scope, rows).column(metric)

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        moments = self._moments(scope, rows)
        names = _SHOWN[self.kind]
        columns = {name: moments.column(name).tolist() for name in names}
        if len(names) == 1:
            return [self._single(number) for number in columns[names[0]]]
        counts = moments.count.tolist()
        return [
            self._several({name: column[place] for name, column in columns.items()}, count)
            for place, count in enumerate(counts)
        ]

    def _single(self, number: float) -> Answer:
        if self.kind == "value_count":
            return {"value": int(number)}
        if number != number:
            return {"value": None}
        text = self.source.text(number)
        return {"value": number} if text is None else {"value": number, "value_as_string": text}

    def _several(self, numbers: dict[str, float], count: int) -> Answer:
        """The sum of no values is 0, everything else of none is null; a variance of too few is "NaN"."""
        answer: Answer = {"count": count}
        for name, number in numbers.items():
            if name != "count":
                answer[name] = json_number(number) if count else (0.0 if name == "sum" else None)
        if self.kind == "extended_stats":
            answer["std_deviation_bounds"] = self._bounds(numbers, count)
        for name in list(answer):
            text = self.source.text(numbers[name]) if count and name in numbers and name != "count" else None
            if text is not None:
                answer[f"{name}_as_string"] = text
        return answer

    def _bounds(self, numbers: dict[str, float], count: int) -> Answer:
        bounds: Answer = {}
        for suffix in ("", "_population", "_sampling"):
            width = numbers[f"std_deviation{suffix}"] * self.sigma
            bounds[f"upper{suffix}"] = json_number(numbers["avg"] + width) if count else None
            bounds[f"lower{suffix}"] = json_number(numbers["avg"] - width) if count else None
        return bounds


def parse_metric(definition: Definition) -> Aggregation:
    """avg, sum, min, max, stats, extended_stats and value_count."""
    options, kind = definition.options, definition.kind
    sigma = options.number("sigma", 2.0) if kind == "extended_stats" else 2.0
    if sigma is None or sigma < 0:
        raise illegal_request(
            f"[sigma] must be greater than or equal to 0. Found [{sigma}] in [{definition.name}]"
        )
    source = Source.parse(definition, None if kind == "value_count" else NUMERIC)
    options.done()
    return NumberMetric(definition.common, kind, source, sigma)


@dataclass(frozen=True)
class WeightedAvg(Aggregation):
    """The mean of a field's values, each weighed by another field of its document."""

    value: Source
    weight: Source
    pattern: DecimalPattern | None = None
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "weighted_avg"

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        if path or metric not in ("", "value"):
            return super().measure(scope, rows, path, metric)
        weight_rows, weights = self.weight.countable(scope, rows.docs)
        if len(np.unique(weight_rows)) != len(weight_rows):
            raise illegal_argument(
                "Encountered more than one weight for a single document. Use a script to combine "
                "multiple weights-per-doc into a single value."
            )
        by_row = np.full(len(rows.docs), np.nan)
        by_row[weight_rows] = weights
        places, data = self.value.countable(scope, rows.docs)
        factors = by_row[places]
        known = ~np.isnan(factors)
        owners = rows.owners[places[known]]
        total = grouped_sums(scope, data[known] * factors[known], owners, rows.count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / grouped_sums(scope, factors[known], owners, rows.count)

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        means = self.measure(scope, rows, (), "value").tolist()
        pattern = self.pattern
        texts = [
            {} if pattern is None or mean != mean else {"value_as_string": pattern.write(mean)}
            for mean in means
        ]
        return [
            {"value": None if mean != mean else mean, **text} for mean, text in zip(means, texts, strict=True)
        ]


def parse_weighted_avg(definition: Definition) -> Aggregation:
    """weighted_avg: two fields, each with its own `missing`."""
    options = definition.options
    sources = {}
    for part in ("value", "weight"):
        inner = Options(part, required(options.take(part), part))
        sources[part] = Source.parse(definition.with_options(inner), NUMERIC)
        inner.done()
    given = options.text("format")
    options.ignore("value_type")
    options.done()
    pattern = None if given is None else DecimalPattern.of(given)
    return WeightedAvg(definition.common, sources["value"], sources["weight"], pattern)


# `top_hits`: the best documents of each bucket. How hits are sorted and shown is the caller's.

SIZE_MAX = 100  # index.max_inner_result_window


@dataclass(frozen=True)
class TopHits(Aggregation):
    """body is a search request without a query."""

    body: Mapping[str, Any]
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "top_hits"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        assert scope.top_hits is not None, "the runner of the aggregations sets how hits are made"
        return [{"hits": hits} for hits in scope.top_hits(self.body, rows, scope)]


def parse_top_hits(definition: Definition) -> Aggregation:
    body = {"size": 3, **definition.options.rest()}
    window = _whole(body.get("from", 0)) + _whole(body["size"])
    if window > SIZE_MAX:
        raise illegal_argument(
            f"Top hits result window is too large, the top hits aggregator [{definition.name}]'s from + size "
            f"must be less than or equal to: [{SIZE_MAX}] but was [{window}]. This limit can be set by "
            "changing the [index.max_inner_result_window] index level setting."
        )
    return TopHits(definition.common, body)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise illegal_request("[from] and [size] must be whole numbers, not negative")
    return value
