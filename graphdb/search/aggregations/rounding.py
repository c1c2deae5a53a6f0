"""Which interval of time an instant is in: calendar units and fixed intervals, in any time zone.

Intervals are numbered, so that the next one is the next number, however long it is.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from typing import Protocol

import numpy as np

from graphdb.search.errors import illegal_argument
from graphdb.search.leaf_reader import Doubles, Ints, Longs

__all__ = [
    "CALENDAR_UNITS",
    "CalendarRounding",
    "FixedRounding",
    "Rounding",
    "Spans",
    "TimeSlots",
    "ZoneTable",
    "time_slots",
]

_HOUR, _DAY = 3_600_000, 86_400_000
_FIRST_YEAR, _LAST_YEAR = 1850, 2150  # before and after, the first and last offset hold
CALENDAR_UNITS = {
    "second": "second", "1s": "second", "minute": "minute", "1m": "minute", "hour": "hour", "1h": "hour",
    "day": "day", "1d": "day", "week": "week", "1w": "week", "month": "month", "1M": "month",
    "quarter": "quarter", "1q": "quarter", "year": "year", "1y": "year",
}  # fmt: skip


class Rounding(Protocol):
    """Intervals by number, ascending in time."""

    def number(self, instants: Longs) -> Longs:
        """The interval that each instant (ms since 1970) is in."""

    def start(self, numbers: Longs) -> Longs:
        """The first instant of each interval."""


@dataclass(frozen=True, slots=True)
class ZoneTable:
    """When the clocks of a zone change: offsets[i] (ms) holds from changes[i - 1] until before changes[i]."""

    changes: Longs
    offsets: Longs

    @staticmethod
    @lru_cache(maxsize=64)
    def of(zone: tzinfo) -> "ZoneTable":
        if zone is UTC:
            return ZoneTable(np.empty(0, np.int64), np.zeros(1, np.int64))
        step, changes, offsets = timedelta(days=7), [], []
        now, last = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC), datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)
        offsets.append(_offset(zone, now))
        while now < last:
            after = now + step
            if _offset(zone, after) != offsets[-1]:
                after = _change(zone, now, after)
                changes.append(int(after.timestamp()) * 1000)
                offsets.append(_offset(zone, after))
            now = after
        return ZoneTable(np.array(changes, np.int64), np.array(offsets, np.int64))

    def local(self, instants: Longs) -> Longs:
        """What clocks show."""
        if not len(self.changes):
            return np.asarray(instants + self.offsets[0])
        local: Longs = instants + self.offsets[np.searchsorted(self.changes, instants, side="right")]
        return local

    def first_instant(self, local: Longs) -> Longs:
        """The first instant at which clocks show this or, where they skip it, later."""
        if not len(self.changes):
            return np.asarray(local - self.offsets[0])
        reached = np.maximum.accumulate(self.changes + self.offsets[:-1])
        period = np.searchsorted(reached, local, side="right")
        begin = np.concatenate([[np.iinfo(np.int64).min], self.changes])[period]
        return np.asarray(np.maximum(local - self.offsets[period], begin))


def _offset(zone: tzinfo, at: datetime) -> int:
    offset = at.astimezone(zone).utcoffset()
    return 0 if offset is None else offset // timedelta(milliseconds=1)


def _change(zone: tzinfo, before: datetime, after: datetime) -> datetime:
    """The second at which the offset is another than at `before`."""
    old, span = _offset(zone, before), int((after - before).total_seconds())
    low, high = 0, span
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if _offset(zone, before + timedelta(seconds=middle)) == old else (low, middle)
        )
    return before + timedelta(seconds=high)


@dataclass(frozen=True, slots=True)
class FixedRounding:
    """Intervals of equal length (ms). Those that divide an hour ignore clock changes, so that an hour which
    comes twice has its intervals twice.
    """

    interval: int
    zone: ZoneTable
    offset: int = 0

    @property
    def _phase(self) -> int | None:
        """By how much the zone shifts intervals of at most an hour; None: ask its clocks each time."""
        return int(self.zone.offsets[-1]) % self.interval if _HOUR % self.interval == 0 else None

    def number(self, instants: Longs) -> Longs:
        shifted = instants - self.offset
        phase = self._phase
        return (self.zone.local(shifted) if phase is None else shifted + phase) // self.interval

    def start(self, numbers: Longs) -> Longs:
        begin, phase = numbers * self.interval, self._phase
        return (self.zone.first_instant(begin) if phase is None else begin - phase) + self.offset


_LISTED_FROM, _LISTED_DAYS = -36_525, 73_050  # from 1870 to 2070


def _months(days: Longs) -> Longs:
    """The number of the month, since 1970, that each day is in; looked up, as working it out takes longer."""
    places = days - _LISTED_FROM
    if len(places) and places.min() >= 0 and places.max() < _LISTED_DAYS:
        return _listed_months()[places]
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


@cache
def _listed_months() -> Longs:
    days = np.arange(_LISTED_FROM, _LISTED_FROM + _LISTED_DAYS)
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


@dataclass(frozen=True, slots=True)
class CalendarRounding:
    """Days, weeks from Monday, months, quarters, years by the clocks of a zone. unit: see CALENDAR_UNITS."""

    unit: str
    zone: ZoneTable
    offset: int = 0

    @staticmethod
    def of(unit: str, zone: ZoneTable, offset: int) -> Rounding:
        short = {"second": 1000, "minute": 60_000, "hour": _HOUR}.get(unit)
        return CalendarRounding(unit, zone, offset) if short is None else FixedRounding(short, zone, offset)

    def number(self, instants: Longs) -> Longs:
        days = self.zone.local(instants - self.offset) // _DAY
        if self.unit == "day":
            return days
        if self.unit == "week":
            return (days + 3) // 7  # 1970-01-01 was a Thursday
        months = _months(days)
        return months if self.unit == "month" else months // {"quarter": 3, "year": 12}[self.unit]

    def start(self, numbers: Longs) -> Longs:
        if self.unit == "day":
            days = numbers
        elif self.unit == "week":
            days = numbers * 7 - 3
        else:
            months = numbers * {"month": 1, "quarter": 3, "year": 12}[self.unit]
            days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        return self.zone.first_instant(days * _DAY) + self.offset


@dataclass(frozen=True, slots=True)
class TimeSlots:
    """Some intervals, one behind the other, cut into slots of equal length (ms) from `begin` on.

    intervals: which one each slot is in, counted from the first, whose number is `first`.
    """

    begin: int
    length: float
    first: int
    count: int
    intervals: Ints


_SLOTS_MAX = 16_384
_INTERVALS_MAX = 1_000


def time_slots(rounding: Rounding, least: int, greatest: int) -> TimeSlots | None:
    """Of the intervals between two instants; None where these are many, or the clocks change."""
    if not isinstance(rounding, FixedRounding | CalendarRounding) or len(rounding.zone.changes):
        return None
    first, last = rounding.number(np.array([least, greatest], np.int64)).tolist()
    if last - first >= _INTERVALS_MAX:
        return None
    length = rounding.unit if isinstance(rounding, CalendarRounding) else rounding.interval
    return _time_slots(length, int(rounding.zone.offsets[0]), rounding.offset, first, last)


@lru_cache(maxsize=64)
def _time_slots(length: str | int, zone_ms: int, offset: int, first: int, last: int) -> TimeSlots | None:
    zone = ZoneTable(np.empty(0, np.int64), np.array([zone_ms], np.int64))
    if isinstance(length, str):
        rounding: Rounding = CalendarRounding(length, zone, offset)
    else:
        rounding = FixedRounding(length, zone, offset)
    starts = rounding.start(np.arange(first, last + 2))
    lengths = np.diff(starts)
    slot = int(np.gcd.reduce(lengths))
    if (starts[-1] - starts[0]) // slot > _SLOTS_MAX:
        return None
    count = last - first + 1
    intervals = np.repeat(np.arange(count, dtype=np.int32), lengths // slot)
    return TimeSlots(int(starts[0]), float(slot), first, count, intervals)


_UNIT_MS = {"second": 1_000, "minute": 60_000, "hour": _HOUR, "day": _DAY, "week": 7 * _DAY}
_UNIT_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class Spans:
    """Which interval of a rounding each bucket is in."""

    rounding: FixedRounding | CalendarRounding
    numbers: Longs

    def of(self, owners: Longs) -> "Spans":
        """Of buckets below those, by the bucket that each stands in."""
        return Spans(self.rounding, self.numbers[owners])

    def lengths(self, unit: str) -> Doubles:
        """How many of a unit, a value of CALENDAR_UNITS, each bucket is long. Days have 24 hours.

        Errors: illegal_argument_exception for months in intervals that are no number of months.
        """
        rounding = self.rounding
        months = _UNIT_MONTHS.get(rounding.unit) if isinstance(rounding, CalendarRounding) else None
        if unit in _UNIT_MONTHS:
            if months is None:
                raise illegal_argument(
                    f"Cannot use month-based rate unit [{unit}] with intervals that are not of months: only "
                    "week, day, hour, minute and second are supported for this histogram"
                )
            return np.full(len(self.numbers), months / _UNIT_MONTHS[unit])
        if isinstance(rounding, FixedRounding):
            return np.full(len(self.numbers), rounding.interval / _UNIT_MS[unit])
        if months is None:
            return np.full(len(self.numbers), _UNIT_MS[rounding.unit] / _UNIT_MS[unit])
        lengths: Doubles = (rounding.start(self.numbers + 1) - rounding.start(self.numbers)) / _UNIT_MS[unit]
        return lengths
