"""`auto_date_histogram`: the finest interval that makes no more buckets than are wanted."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from graphdb.search.aggregations.base import Aggregation, Answer
from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.histogram import Histogram, date_source
from graphdb.search.aggregations.order import ByKey
from graphdb.search.aggregations.rounding import CalendarRounding, FixedRounding, Rounding, ZoneTable
from graphdb.search.aggregations.rows import Rows
from graphdb.search.aggregations.scope import Scope
from graphdb.search.aggregations.sources import Source
from graphdb.search.errors import illegal_request
from graphdb.search.segment import Longs

__all__ = ["AutoDateHistogram", "parse_auto_date_histogram"]

_BUCKETS_DEFAULT = 10
# Elasticsearch's roundings: unit, its name in `interval`, length (ms), and how many of it a bucket may have.
_UNITS = (
    ("second", "s", 1_000, (1, 5, 10, 30)),
    ("minute", "m", 60_000, (1, 5, 10, 30)),
    ("hour", "h", 3_600_000, (1, 3, 12)),
    ("day", "d", 86_400_000, (1, 7)),
    ("month", "M", 0, (1, 3)),
    ("year", "y", 0, (1, 5, 10, 20, 50, 100)),
)
_NAMES = tuple(unit for unit, *_ in _UNITS)


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
    least_unit: int  # the first of _UNITS that may be taken

    @property
    def typed(self) -> str:
        return "auto_date_histogram"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, values = self.source.numbers(scope, rows.docs)
        owners = rows.owners[members]
        answers = []
        for owner in range(rows.count):
            name, steps = self._chosen(values[owners == owner].astype(np.int64))
            histogram = Histogram(self.common, self.source, True, steps, 0, (ByKey(False),), False)
            own = rows.owners == owner
            (answer,) = histogram.answers(scope, Rows(rows.docs[own], np.zeros(int(own.sum()), np.int64), 1))
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
        for unit, short, length_ms, sizes in _UNITS[self.least_unit :]:
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
