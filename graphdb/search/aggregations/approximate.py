"""Aggregations that may be approximate: cardinality, percentiles and percentile ranks, median deviation."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from graphdb.search.aggregations.aggregation import (
    BUCKET_STEPS,
    Aggregation,
    Answer,
    Cells,
    Definition,
    Rows,
    Scope,
    cells_of,
)
from graphdb.search.aggregations.options import Options, required
from graphdb.search.aggregations.value_sources import COMPARABLE, NUMERIC, Source
from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Doubles, Longs

__all__ = [
    "Cardinality",
    "DistinctCount",
    "MedianDeviation",
    "Quantiles",
    "Sorted",
    "parse_cardinality",
    "parse_median_deviation",
    "parse_percentiles",
]

# `cardinality`: how many distinct values there are. Exact, whatever `precision_threshold` allows.


class DistinctCount(int):
    """How many distinct values a bucket has, and which. values: their numbers, that mean the same in all
    buckets of one aggregation.
    """

    values: Longs


@dataclass(frozen=True)
class Cardinality(Aggregation):
    """Distinct values by bucket. keeps_values: its answers are `DistinctCount`s."""

    source: Source
    keeps_values: bool = False
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "cardinality"

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        if path or metric not in ("", "value"):
            return super().measure(scope, rows, path, metric)
        return np.bincount(self._distinct(scope, rows).owners, minlength=rows.count).astype(np.float64)

    def steps(self, scope: Scope, documents: int) -> float | None:
        spec = self.source.spec
        is_known = spec is not None and spec.storage is Storage.TERMS and scope.columns.is_merged(spec)
        return self.source.values_among(scope, documents) + BUCKET_STEPS if is_known else None

    def _distinct(self, scope: Scope, rows: Rows) -> Cells:
        members, numbers, _ = self.source.keyed(scope, rows.docs)
        return cells_of(scope, rows, members, numbers)

    def _profile(self, scope: Scope, rows: Rows, clock_ns: Callable[[], int]) -> list[Answer]:
        """`answers`, step by step. The columns of a field are read as a whole, as Elasticsearch's collector
        of a segment is made; ordinals stand for texts, and numbers for themselves.
        """
        times = [clock_ns()]
        members, numbers, _ = self.source.keyed(scope, rows.docs)
        times.append(clock_ns())
        found = cells_of(scope, rows, members, numbers)
        times.append(clock_ns())
        counts = np.bincount(found.owners, minlength=rows.count)
        times.append(clock_ns())
        answers: list[Answer] = [{"value": number} for number in counts.tolist()]
        times.append(clock_ns())
        measured = scope.measured[id(self)]
        steps = ("build_leaf_collector", "collect", "post_collection", "build_aggregation")
        for step, start, end in zip(steps, times, times[1:], strict=False):
            measured.note_step(step, end - start)
        used = "empty" if self.source.storage is None else "ordinals" if self.source.textual else "numeric"
        for kind in ("empty", "numeric", "ordinals", "string_hashing"):
            name = f"{kind}_collectors_used"
            measured.debug[name] = measured.debug.get(name, 0) + (
                len(scope.columns.leaves) if kind == used else 0
            )
        measured.debug["ordinals_collectors_overhead_too_high"] = 0
        return answers

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        if scope.clock_ns is not None and not self.keeps_values:
            return self._profile(scope, rows, scope.clock_ns)
        if self.keeps_values:
            found = self._distinct(scope, rows)
            starts = np.searchsorted(found.owners, np.arange(rows.count + 1))
            return [{"value": _counted(found.keys[start:end])} for start, end in pairwise(starts.tolist())]
        return [{"value": int(number)} for number in self.measure(scope, rows, (), "").tolist()]


def _counted(values: Longs) -> DistinctCount:
    count = DistinctCount(len(values))
    count.values = values
    return count


def parse_cardinality(definition: Definition) -> Aggregation:
    options = definition.options
    threshold = options.integer("precision_threshold", 3000)
    if threshold < 0:
        raise illegal_request(
            f"[precisionThreshold] must be greater than or equal to 0. Found [{threshold}] in "
            f"[{definition.name}]"
        )
    options.ignore("execution_hint", "rehash")
    source = Source.parse(definition, COMPARABLE)
    options.done()
    return Cardinality(definition.common, source)


# `percentiles`, `percentile_ranks` and `median_absolute_deviation`.
#
# Exact, with linear interpolation between neighbours, as Elasticsearch's digests answer as long as they
# hold all values; for many values theirs are approximate. A rank counts half of the values that are equal.
#
# With `hdr` as a DoubleHistogram of HdrHistogram 2.1.9 answers: a value is the end of the bucket it falls
# in. The buckets between two powers of 2 are equally wide, at least 10^digits of them.

_DEFAULT = (1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0)
_COUNT_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Sorted:
    """The values of each bucket, ascending: values[starts[b]:starts[b + 1]]."""

    values: Doubles
    starts: Longs

    @staticmethod
    def of(scope: Scope, values: Doubles, owners: Longs, count: int) -> "Sorted":
        """Of all shards."""
        if scope.searcher.peers is not None:
            values, owners = _over_shards(scope, values, owners)
        order = np.lexsort((values, owners))
        return Sorted(values[order], np.searchsorted(owners[order], np.arange(count + 1)))

    def percentile(self, percent: float, /) -> Doubles:
        """By bucket; NaN where there are no values."""
        counts = np.diff(self.starts)
        filled = counts > 0
        place = percent / 100.0 * (counts[filled] - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, counts[filled] - 1)
        first = self.starts[:-1][filled]
        below, above = self.values[first + low], self.values[first + high]
        found = np.full(len(counts), np.nan)
        found[filled] = below + (place - low) * (above - below)
        return found

    def rank(self, value: float, /) -> Doubles:
        """The percentage of values below, with half of those that are equal; NaN where there are none."""
        weights = (self.values < value) + (self.values == value) * 0.5
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        with np.errstate(invalid="ignore"):
            return 100.0 * np.diff(sums[self.starts]) / np.diff(self.starts)


def _over_shards(scope: Scope, values: Doubles, owners: Longs) -> tuple[Doubles, Longs]:
    """The values of all shards. What each gives is its distinct values, and how often they occur."""
    order = np.lexsort((values, owners))
    values, owners = values[order], owners[order]
    starts = np.flatnonzero(
        np.r_[True, (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])][: len(values)]
    )
    counts = np.diff(starts, append=len(values))
    parts = scope.gathered("values", (values[starts], owners[starts], counts))
    every, of_each, often = (np.concatenate(column) for column in zip(*parts, strict=True))
    return np.repeat(every, often), np.repeat(of_each, often)


@dataclass(frozen=True, slots=True)
class Bucketed:
    """The same as HdrHistogram has them: slices of a power of 2 for values, which are none below 0."""

    sorted: Sorted
    slices: int

    @staticmethod
    def of(values: Sorted, digits: int) -> "Bucketed":
        """Errors: array_index_out_of_bounds_exception for values below 0."""
        if (values.values < 0).any():
            raise _negative("Negative values cannot be recorded")
        return Bucketed(values, 1 << max(math.ceil(math.log2(2 * 10**digits)) - 1, 0))

    def percentile(self, percent: float, /) -> Doubles:
        """By bucket of the aggregation; NaN where there are no values."""
        counts = np.diff(self.sorted.starts)
        filled = np.flatnonzero(counts)
        found = np.full(len(counts), np.nan)
        place = np.maximum((percent / 100.0 * counts[filled] + 0.5).astype(np.int64), 1) - 1
        units = self._units()[filled]
        low, width = self._slice(self.sorted.values[self.sorted.starts[:-1][filled] + place], units)
        found[filled] = low if percent == 0 else low + width - units
        return found

    def rank(self, value: float, /) -> Doubles:
        """The percentage of values that are not beyond the slice of one; NaN where there are none."""
        if value < 0:
            raise _negative("Histogram recorded value cannot be negative.")
        counts, units = np.diff(self.sorted.starts), self._units()
        low, width = self._slice(np.full(len(counts), float(value)), units)
        below = self.sorted.values < np.repeat(low + width, counts)
        sums = np.concatenate([[0], np.cumsum(below)])
        with np.errstate(invalid="ignore"):
            return 100.0 * np.diff(sums[self.sorted.starts]) / counts

    def _units(self) -> Doubles:
        """By bucket: what the histogram counts values in, by the least value above 0."""
        starts, values = self.sorted.starts, self.sorted.values
        counts = np.diff(starts)
        zeros = np.diff(np.concatenate([[0], np.cumsum(values == 0)])[starts])
        least = np.ones(len(counts))
        some = zeros < counts
        least[some] = values[(starts[:-1] + zeros)[some]]
        return np.asarray(np.ldexp(1.0, np.frexp(least)[1] - 1) / self.slices)

    def _slice(self, values: Doubles, units: Doubles) -> tuple[Doubles, Doubles]:
        """(low, width) of the slice that each value falls in; no slice is narrower than a unit."""
        exponents = np.frexp(np.where(values > 0, values, 1.0))[1] - 1
        widths = np.where(values > 0, np.ldexp(1.0, exponents) / self.slices, units)
        widths = np.maximum(widths, units)
        return np.floor(values / widths) * widths, widths


def _negative(reason: str) -> SearchError:
    return SearchError("array_index_out_of_bounds_exception", reason, 400)


@dataclass(frozen=True)
class Quantiles(Aggregation):
    """percentiles, or their inverse."""

    source: Source
    points: tuple[float, ...]
    ranks: bool
    keyed: bool
    digits: int | None = None  # of `hdr`
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        method = "tdigest" if self.digits is None else "hdr"
        return f"{method}_percentile_ranks" if self.ranks else f"{method}_percentiles"

    def _sorted(self, scope: Scope, rows: Rows) -> Sorted | Bucketed:
        places, data = self.source.numbers(scope, rows.docs)
        values = Sorted.of(scope, data.astype(np.float64), rows.owners[places], rows.count)
        return values if self.digits is None else Bucketed.of(values, self.digits)

    def _column(self, values: Sorted | Bucketed, point: float) -> Doubles:
        return values.rank(point) if self.ranks else values.percentile(point)

    def measure(self, scope: Scope, rows: Rows, path: Any, metric: str) -> Doubles:
        try:
            point = float(metric)
        except ValueError:
            point = np.nan
        if path or point not in self.points:
            return super().measure(scope, rows, path, metric)
        return self._column(self._sorted(scope, rows), point)

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        values = self._sorted(scope, rows)
        columns = [self._column(values, point).tolist() for point in self.points]
        return [self._answer(numbers) for numbers in zip(*columns, strict=True)]

    def _answer(self, numbers: tuple[float, ...]) -> Answer:
        named: dict[str, Any] = {}
        listed: list[Answer] = []
        for point, number in zip(self.points, numbers, strict=True):
            value = None if number != number else number
            text = None if value is None or self.ranks else self.source.text(value)
            named[str(point)] = value
            listed.append({"key": point, "value": value})
            if text is not None:
                named[f"{point}_as_string"] = listed[-1]["value_as_string"] = text
        return {"values": named if self.keyed else listed}


def parse_percentiles(definition: Definition) -> Aggregation:
    """percentiles (`percents`) and percentile_ranks (`values`)."""
    options, ranks = definition.options, definition.kind == "percentile_ranks"
    key = "values" if ranks else "percents"
    given = options.take(key) if ranks or key in options else list(_DEFAULT)
    given = required(given, key)
    if not isinstance(given, list) or not given or len(given) > _COUNT_MAX:
        raise illegal_request(f"[{key}] must not be empty: [{definition.name}]")
    try:
        points = tuple(sorted(float(point) for point in given))
    except (TypeError, ValueError) as error:
        raise options.unreadable(key) from error
    if not ranks and not all(0 <= point <= 100 for point in points):
        raise illegal_request(f"percent must be in [0,100], got [{points}]: [{definition.name}]")
    keyed = options.flag("keyed", True)
    digits = _hdr_digits(options)
    source = Source.parse(definition, NUMERIC)
    options.done()
    return Quantiles(definition.common, source, points, ranks, keyed, digits)


def _hdr_digits(options: Options) -> int | None:
    """None: not with `hdr`. With `tdigest` the answer is exact, but what it says must make sense."""
    if "tdigest" in options and "hdr" in options:
        raise illegal_request("Only one percentiles method should be declared.")
    if "tdigest" in options:
        compression = Options("tdigest", options.take("tdigest", {})).number("compression", 100.0)
        if compression is not None and not compression >= 0:
            raise illegal_request(f"[compression] must be greater than or equal to 0. Found [{compression}]")
    if "hdr" in options:
        hdr = options.take("hdr", {})
        if isinstance(hdr, Mapping) and hdr.get("number_of_significant_value_digits", 3) is None:
            raise illegal_request("[number_of_significant_value_digits] must be a whole number, not null")
        digits = Options("hdr", hdr).integer("number_of_significant_value_digits", 3)
        if not 0 <= digits <= 5:
            raise illegal_request("[numberOfSignificantValueDigits] must be between 0 and 5")
        return digits
    return None


@dataclass(frozen=True)
class MedianDeviation(Aggregation):
    """The median of how far the values are from their median."""

    source: Source
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "median_absolute_deviation"

    def measure(self, scope: Scope, rows: Rows, path: Any, metric: str) -> Doubles:
        if path or metric not in ("", "value"):
            return super().measure(scope, rows, path, metric)
        places, data = self.source.numbers(scope, rows.docs)
        owners, values = rows.owners[places], data.astype(np.float64)
        medians = Sorted.of(scope, values, owners, rows.count).percentile(50.0)
        return Sorted.of(scope, np.abs(values - medians[owners]), owners, rows.count).percentile(50.0)

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        found = self.measure(scope, rows, (), "").tolist()
        return [{"value": None if number != number else number} for number in found]


def parse_median_deviation(definition: Definition) -> Aggregation:
    options = definition.options
    compression = options.number("compression", 1000.0)
    if compression is None or not compression > 0:
        raise illegal_request(
            f"[compression] must be greater than 0. Found [{compression}] in [{definition.name}]"
        )
    source = Source.parse(definition, NUMERIC)
    options.done()
    return MedianDeviation(definition.common, source)
