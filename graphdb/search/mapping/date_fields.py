"""From the fields of a date (year, week, hour and so on) to an instant, and back."""

from collections.abc import Callable
from datetime import tzinfo
from functools import cached_property

from graphdb.search.errors import SearchError
from graphdb.search.mapping.instants import (
    DAY_MS,
    MS_NANOS,
    YEAR_MAX,
    to_utc,
    zone_of,
)
from graphdb.timestamps import date_of, days_of, month_length

__all__ = ["DateFields", "Resolved", "resolve"]

DateFields = dict[str, int | str]
"""By java.time's letter (y M d D Y w e H h K k m s A Q); nanos, half (1: PM), before_christ, zone."""

_RANGES = {
    "M": (1, 12), "d": (1, 31), "D": (1, 366), "w": (1, 53), "e": (1, 7), "H": (0, 23), "h": (1, 12),
    "k": (1, 24), "K": (0, 11), "m": (0, 59), "s": (0, 59), "A": (0, DAY_MS - 1), "Q": (1, 4),
    "y": (-YEAR_MAX, YEAR_MAX), "Y": (-YEAR_MAX, YEAR_MAX),
}  # fmt: skip


def resolve(fields: DateFields, round_up: bool, zone: tzinfo) -> int | None:
    """Nanoseconds since 1970; None where the fields are no date (February 30).

    What is missing is the beginning of 1970; with round_up a missing time of the day is its end (months and
    days stay 1: Elasticsearch's "missing date components" of a range).
    """
    zone_name = fields.pop("zone", None)
    numbers = {key: int(value) for key, value in fields.items()}
    if any(not low <= numbers.get(key, low) <= high for key, (low, high) in _RANGES.items()):
        return None
    days = _days(numbers)
    if days is None:
        return None
    local_ms, beyond = divmod(days * DAY_MS * MS_NANOS + _time_nanos(numbers, round_up), MS_NANOS)
    try:
        ms = to_utc(local_ms, zone if zone_name is None else zone_of(str(zone_name)))
    except SearchError:
        return None
    return ms * MS_NANOS + beyond


def _days(numbers: dict[str, int]) -> int | None:
    if "Y" in numbers:
        return _week_days(numbers["Y"], numbers.get("w", 1), numbers.get("e", 1))
    year = numbers.get("y", 1970)
    if numbers.get("before_christ"):
        year = 1 - year
    if "D" in numbers:
        days = days_of(year, 1, numbers["D"])
        return days if date_of(days)[0] == year else None
    month = numbers.get("M", 3 * numbers.get("Q", 1) - 2)
    day = numbers.get("d", 1)
    return days_of(year, month, day) if day <= month_length(year, month) else None


def _week_days(year: int, week: int, weekday: int) -> int | None:
    """An ISO week: week 1 is the one that January 4 is in."""
    days = _first_monday(year) + (week - 1) * 7
    return days + weekday - 1 if days < _first_monday(year + 1) else None


def _first_monday(year: int) -> int:
    fourth = days_of(year, 1, 4)
    return fourth - _weekday(fourth) + 1


def _weekday(days: int) -> int:
    """1 is Monday; 1970-01-01 was a Thursday."""
    return (days + 3) % 7 + 1


def _time_nanos(numbers: dict[str, int], round_up: bool) -> int:
    if "A" in numbers:
        return numbers["A"] * MS_NANOS + (MS_NANOS - 1 if round_up else 0)
    missing: Callable[[int], int] = (lambda last: last) if round_up else (lambda _: 0)
    half = 12 * numbers.get("half", 0)
    if "h" in numbers:
        hour = numbers["h"] % 12 + half
    elif "K" in numbers:
        hour = numbers["K"] + half
    else:
        hour = numbers["k"] % 24 if "k" in numbers else numbers.get("H", missing(23))
    minute = numbers.get("m", missing(59))
    second = numbers.get("s", missing(59))
    nanos = numbers["nanos"] if "nanos" in numbers else missing(999_999_999)
    return ((hour * 60 + minute) * 60 + second) * 1000 * MS_NANOS + nanos


class Resolved:
    """The fields of an instant, as clocks show them. beyond: nanoseconds after the millisecond."""

    def __init__(self, local_ms: int, offset_s: int, zone: tzinfo, beyond: int = 0) -> None:
        self.local_ms, self.offset_s, self.zone = local_ms, offset_s, zone
        self.days, of_day = divmod(local_ms, DAY_MS)
        self.year, self.month, self.day = date_of(self.days)
        seconds, millis = divmod(of_day, 1000)
        self.nanos = millis * MS_NANOS + beyond  # of the second
        minutes, self.second = divmod(seconds, 60)
        self.hour, self.minute = divmod(minutes, 60)

    @property
    def day_of_year(self) -> int:
        return self.days - days_of(self.year, 1, 1) + 1

    @cached_property
    def week_date(self) -> tuple[int, int, int]:
        """ISO year, week and weekday (1 is Monday)."""
        year = next(
            year for year in (self.year + 1, self.year, self.year - 1) if _first_monday(year) <= self.days
        )
        return year, (self.days - _first_monday(year)) // 7 + 1, _weekday(self.days)
