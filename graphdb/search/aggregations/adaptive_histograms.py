"""Histograms whose intervals the values choose: `auto_date_histogram`, `variable_width_histogram`."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from graphdb.search.aggregations.aggregation import (
    Aggregation,
    Answer,
    Definition,
    Rows,
    Scope,
    bucket_lists,
    cells_of,
)
from graphdb.search.aggregations.histogram import Histogram
from graphdb.search.aggregations.intervals import date_source
from graphdb.search.aggregations.rounding import CalendarRounding, FixedRounding, Rounding, ZoneTable
from graphdb.search.aggregations.terms_aggregation import ByKey
from graphdb.search.aggregations.value_sources import NUMERIC, Source
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.leaf_reader import Doubles, Longs

__all__ = [
    "AutoDateHistogram",
    "VariableHistogram",
    "parse_auto_date_histogram",
    "parse_variable_histogram",
]

# `auto_date_histogram`: the finest interval that makes no more buckets than are wanted.

_BUCKETS_DEFAULT = 10
_IN_ORDER = (ByKey(False),)
# Elasticsearch's roundings: unit, its name in `interval`, length (ms), and how many of it a bucket may have.
_ROUNDINGS = (
    ("second", "s", 1_000, (1, 5, 10, 30)),
    ("minute", "m", 60_000, (1, 5, 10, 30)),
    ("hour", "h", 3_600_000, (1, 3, 12)),
    ("day", "d", 86_400_000, (1, 7)),
    ("month", "M", 0, (1, 3)),
    ("year", "y", 0, (1, 5, 10, 20, 50, 100)),
)
_NAMES = tuple(unit for unit, *_ in _ROUNDINGS)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """Several intervals of a rounding as one, counted from where the first document is."""

    inner: Rounding
    size: int
    first: int

    def number(self, instants: Longs) -> Longs:
        return np.asarray((self.inner.number(instants) - self.first) // self.size)

    def start(self, numbers: Longs) -> Longs:
        return self.inner.start(numbers * self.size + self.first)


@dataclass(frozen=True)
class AutoDateHistogram(Aggregation):
    """For every bucket around it an interval of its own."""

    source: Source
    buckets: int
    least_unit: int  # the first of _ROUNDINGS that may be taken

    @property
    def typed(self) -> str:
        return "auto_date_histogram"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, values = self.source.numbers(scope, rows.docs)
        owners = rows.owners[members]
        answers = []
        instants = [values[owners == owner].astype(np.int64) for owner in range(rows.count)]
        ends = [np.array([own.min(), own.max()]) if len(own) else own for own in instants]
        every = [np.concatenate(own) for own in zip(*scope.gathered("ends", ends), strict=True)]
        for owner in range(rows.count):
            name, steps = self._chosen(every[owner])
            histogram = Histogram(
                self.common, self.source, True, steps, 0, (ByKey(False),), False, is_span=False
            )
            own = rows.owners == owner
            alone = Rows(rows.docs[own], np.zeros(int(own.sum()), np.int64), 1)
            with scope.below(np.array([owner])):
                (answer,) = histogram.answers(scope, alone)
            answers.append({**answer, "interval": name})
        return answers

    def _chosen(self, instants: Longs) -> tuple[str, Rounding]:
        """The first interval that needs few enough buckets, else the last."""
        ends = np.array([instants.min(), instants.max()]) if len(instants) else np.zeros(2, np.int64)
        chosen = None
        for name, inner, size in self._intervals():
            low, high = inner.number(ends).tolist()
            chosen = name, (inner if size == 1 else _Grouped(inner, size, low))
            if (high - low) // size + 1 <= self.buckets:
                break
        assert chosen is not None
        return chosen

    def _intervals(self) -> Iterator[tuple[str, Rounding, int]]:
        zone = ZoneTable.of(self.source.display.zone)
        for unit, short, length_ms, sizes in _ROUNDINGS[self.least_unit :]:
            whole_days = unit in ("day", "month", "year")
            inner = CalendarRounding(unit, zone) if whole_days else FixedRounding(length_ms, zone)
            for size in sizes:
                yield f"{size}{short}", inner, size


def parse_auto_date_histogram(definition: Definition) -> Aggregation:
    """Errors: SearchError."""
    options = definition.options
    buckets, least = options.integer("buckets", _BUCKETS_DEFAULT), options.text("minimum_interval")
    if buckets < 1:
        raise illegal_request(f"[buckets] must be greater than 0 for [{definition.name}]")
    if least is not None and least not in _NAMES:
        raise illegal_request(
            f"minimum_interval must be one of [{', '.join(reversed(_NAMES))}] but was [{least[:100]}]"
        )
    source = date_source(definition)
    options.done()
    return AutoDateHistogram(definition.common, source, buckets, _NAMES.index(least) if least else 0)


# `variable_width_histogram`: as many buckets as are wanted, each of values that are near each other.
#
# Clusters begin as the distinct values, or as ranges of as many values each where there are too many of
# those. Then the two neighbours whose means are nearest become one, until no more are left than wanted.
#
# Source: `VariableWidthHistogramAggregator` and `InternalVariableWidthHistogram` of Elasticsearch 8.

_BUCKETS_MAX = 50_000
_AT_ONCE = 50  # clusters of a shard for each bucket, as Elasticsearch's default of `shard_size`


@dataclass(frozen=True, slots=True)
class _Clusters:
    """One a row: its least value, their sum, the greatest, how many. Ascending by owner and value."""

    owners: Longs
    least: Doubles
    sums: Doubles
    greatest: Doubles
    counts: Longs

    @property
    def means(self) -> Doubles:
        return self.sums / self.counts

    def merged(self, starts: Longs) -> "_Clusters":
        """Neighbours as one, each beginning at one of starts."""
        if not len(starts):
            return self
        return _Clusters(
            self.owners[starts],
            np.minimum.reduceat(self.least, starts),
            np.add.reduceat(self.sums, starts),
            np.maximum.reduceat(self.greatest, starts),
            np.add.reduceat(self.counts, starts),
        )


@dataclass(frozen=True)
class VariableHistogram(Aggregation):
    """buckets: at most so many in each that it stands in; clusters: of a shard, before they are merged."""

    source: Source
    buckets: int
    clusters: int

    @property
    def typed(self) -> str:
        return "variable_width_histogram"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, found = self.source.numbers(scope, rows.docs)
        values = found.astype(np.float64)
        clusters = self._clusters(scope, rows.owners[members], values)
        numbers = _numbers(clusters, rows.owners[members], values)
        cells = cells_of(scope, rows, members, numbers)
        scope.count_buckets(len(cells))
        means, least, greatest = (
            column.tolist() for column in (clusters.means, clusters.least, clusters.greatest)
        )

        def head(number: int) -> Answer:
            return {"min": least[number], "key": means[number], "max": greatest[number]}

        lists = bucket_lists(scope, self.common, cells, rows.count, head)
        return [{"buckets": buckets} for buckets in lists]

    def _clusters(self, scope: Scope, owners: Longs, values: Doubles) -> _Clusters:
        """Of all shards."""
        order = np.lexsort((values, owners))
        values, owners = values[order], owners[order]
        own = _Clusters(owners, values, values, values, np.ones(len(values), np.int64))
        own = own.merged(_changes(owners, values))
        own = own.merged(_even_parts(own.owners, self.clusters))
        columns = (own.owners, own.least, own.sums, own.greatest, own.counts)
        parts = scope.gathered("clusters", columns)
        together = _Clusters(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        order = np.lexsort((together.means, together.owners))
        together = _Clusters(*(getattr(together, name)[order] for name in _Clusters.__slots__))
        return together.merged(_nearest_merged(together, self.buckets))


def _changes(owners: Longs, values: Doubles) -> Longs:
    """Where another owner or value begins."""
    new = np.ones(len(values), np.bool_)
    new[1:] = (owners[1:] != owners[:-1]) | (values[1:] != values[:-1])
    return np.flatnonzero(new)


def _even_parts(owners: Longs, most: int) -> Longs:
    """Where parts begin of which each owner has at most so many."""
    first = np.searchsorted(owners, owners)
    sizes = np.searchsorted(owners, owners, side="right") - first
    ranks, width = np.arange(len(owners)) - first, -(-sizes // most)
    return np.flatnonzero(ranks % np.maximum(width, 1) == 0)


def _nearest_merged(clusters: _Clusters, wanted: int) -> Longs:
    """Where the clusters begin that are left when the nearest neighbours of each owner have been merged."""
    starts = [np.zeros(0, np.int64)]
    bounds = np.flatnonzero(np.diff(clusters.owners, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        sums, counts = clusters.sums[begin:end].tolist(), clusters.counts[begin:end].tolist()
        starts.append(begin + np.array(_left(sums, counts, wanted), np.int64))
    return np.concatenate(starts)


def _left(sums: list[float], counts: list[int], wanted: int) -> list[int]:
    """The first of each group of neighbours that have been merged."""
    size = len(sums)
    after, before = list(range(1, size + 1)), list(range(-1, size - 1))
    is_there, version = [True] * size, [0] * size

    def distance(one: int) -> float:
        other = after[one]
        return sums[other] / counts[other] - sums[one] / counts[one]

    nearest = [(distance(one), one, 0, 0) for one in range(size - 1)]
    heapq.heapify(nearest)
    left = size
    while left > wanted and nearest:
        _, one, own_version, other_version = heapq.heappop(nearest)
        other = after[one] if is_there[one] else size
        if other >= size or own_version != version[one] or other_version != version[other]:
            continue
        sums[one] += sums[other]
        counts[one] += counts[other]
        version[one] += 1
        is_there[other] = False
        after[one] = after[other]
        if after[one] < size:
            before[after[one]] = one
            heapq.heappush(nearest, (distance(one), one, version[one], version[after[one]]))
        if before[one] >= 0:
            heapq.heappush(nearest, (distance(before[one]), before[one], version[before[one]], version[one]))
        left -= 1
    return [one for one in range(size) if is_there[one]]


def _numbers(clusters: _Clusters, owners: Longs, values: Doubles) -> Longs:
    """The cluster of each value: the last of its owner that begins at or before it."""
    count = len(clusters.owners)
    begins = np.concatenate([clusters.least, values])
    of_each = np.concatenate([clusters.owners, owners])
    is_value = np.arange(len(begins)) >= count
    order = np.lexsort((is_value, begins, of_each))
    passed = np.cumsum(~is_value[order]) - 1
    numbers = np.empty(len(begins), np.int64)
    numbers[order] = passed
    return numbers[count:]


def parse_variable_histogram(definition: Definition) -> Aggregation:
    options = definition.options
    buckets = options.integer("buckets", 10)
    if not 1 < buckets <= _BUCKETS_MAX:
        limit = f"less than or equal to {_BUCKETS_MAX}" if buckets > 1 else "greater than [1]"
        raise illegal_argument(f"buckets must be {limit} for [{definition.name}]")
    clusters = options.integer("shard_size", buckets * _AT_ONCE)
    if clusters <= 1:
        raise illegal_argument(f"shard_size must be greater than [1] for [{definition.name}]")
    options.ignore("initial_buffer")
    source = Source.parse(definition, NUMERIC)
    options.done()
    return VariableHistogram(definition.common, source, buckets, min(clusters, _BUCKETS_MAX))
