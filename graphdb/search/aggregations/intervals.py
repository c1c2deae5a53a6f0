"""Which interval a number or an instant is in, and which intervals the options of a histogram say."""

import math
import re
from dataclasses import dataclass, replace

import numpy as np

from graphdb.search.aggregations.aggregation import Definition
from graphdb.search.aggregations.columns import Numbers
from graphdb.search.aggregations.rounding import (
    CALENDAR_UNITS,
    CalendarRounding,
    FixedRounding,
    Rounding,
    ZoneTable,
)
from graphdb.search.aggregations.value_sources import DATE_TYPES, NUMERIC, Display, Source
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Longs
from graphdb.search.mapping.dates import DateFormat

__all__ = ["Steps", "date_source", "duration_ms", "interval_rounding", "numbers_or_ranges"]

_NUMBER_MAX = 2.0**53  # so that each interval has a number of its own
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([+-]?)(\d{1,15})(ms|s|m|h|d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Steps:
    """Intervals of equal length over numbers."""

    interval: float
    offset: float

    def number(self, values: Numbers) -> Longs:
        places = np.floor((values - self.offset) / self.interval)
        if len(places) and np.abs(places).max() > _NUMBER_MAX:
            raise illegal_argument(f"[interval] [{self.interval}] is too small for the values of the field")
        return places.astype(np.int64)

    def start(self, numbers: Longs) -> Numbers:
        return numbers * self.interval + self.offset

    def ends(self, least: float, greatest: float) -> tuple[int, int] | None:
        """The numbers of these two; None where `number` would not have them."""
        first, last = ((value - self.offset) / self.interval for value in (least, greatest))
        if not (abs(first) <= _NUMBER_MAX and abs(last) <= _NUMBER_MAX):
            return None
        return math.floor(first), math.floor(last)


def numbers_or_ranges(definition: Definition, ranges: tuple[str, ...]) -> Source:
    """A field of numbers, or of ranges of these types. Errors: SearchError."""
    source = Source.parse(definition, NUMERIC | {Storage.CODES})
    spec = source.spec
    if spec is not None and spec.storage is Storage.CODES and spec.type not in ranges:
        raise _unsupported(definition, spec)
    return source


def _unsupported(definition: Definition, spec: FieldSpec) -> SearchError:
    return illegal_argument(
        f"Field [{spec.path}] of type [{spec.type}] is not supported for aggregation [{definition.kind}]"
    )


def interval_rounding(definition: Definition, ranges: tuple[str, ...] = ()) -> tuple[Source, Rounding]:
    """What `field`, `offset`, `time_zone` and one of the intervals say. ranges: types of ranges that may be
    meant.
    """
    options = definition.options
    offset = duration_ms(options.text("offset", "0ms") or "0ms", "offset")
    calendar, fixed = options.text("calendar_interval"), options.text("fixed_interval")
    if "interval" in options:
        raise illegal_request(
            "[interval] on [date_histogram] is removed: use [fixed_interval] or [calendar_interval]"
        )
    source = date_source(definition, ranges)
    return source, _rounding(calendar, fixed, ZoneTable.of(source.display.zone), offset)


def date_source(definition: Definition, ranges: tuple[str, ...] = ()) -> Source:
    """A field whose numbers are instants, and are shown so. ranges: types of ranges that may be meant."""
    source = numbers_or_ranges(definition, ranges)
    known = (*DATE_TYPES, *ranges, "boolean", "long", "integer")
    if source.spec is not None and source.spec.type not in known:
        raise _unsupported(definition, source.spec)
    if not isinstance(source.display.pattern, DateFormat):
        dates = Display.of(None, None, None, dates=True)
        source = replace(source, display=replace(dates, spec=source.spec, zone=source.display.zone))
    return source


def _rounding(calendar: str | None, fixed: str | None, zone: ZoneTable, offset: int) -> Rounding:
    if calendar is not None and fixed is not None:
        raise illegal_request("Cannot use [fixed_interval] with [calendar_interval] configuration option.")
    if calendar is not None:
        if calendar not in CALENDAR_UNITS:
            raise illegal_request(
                f"The supplied interval [{calendar}] could not be parsed as a calendar interval."
            )
        return CalendarRounding.of(CALENDAR_UNITS[calendar], zone, offset)
    if fixed is None:
        raise illegal_request("Invalid interval specified, must be non-null and non-empty")
    interval = duration_ms(fixed, "fixed_interval")
    if interval < 1:
        raise illegal_request("Zero or negative time interval not supported")
    return FixedRounding(interval, zone, offset)


def duration_ms(text: str, setting: str) -> int:
    """`90m` or `-6h` as milliseconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise illegal_request(
            f"failed to parse setting [{setting}] with value [{text[:100]}] as a time value: unit is missing "
            "or unrecognized"
        )
    sign, amount, unit = match.groups()
    length = min(int(amount) * _UNITS_MS[unit], 2**62)
    return -length if sign == "-" else length
