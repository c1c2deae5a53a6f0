"""Instants as milliseconds since 1970 (UTC), the proleptic Gregorian calendar, time zones.

`datetime` alone does not do: it ends at the year 9999, and dates in documents do not.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from graphdb.search.errors import illegal_argument

__all__ = ["DAY_MS", "YEAR_MAX", "date_of", "days_of", "month_length", "to_local", "to_utc", "zone_of"]

DAY_MS = 86_400_000
YEAR_MAX = 292_277_000  # beyond it the milliseconds do not fit 64 bits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONED_MS = (-62_000_000_000_000, 253_370_000_000_000)  # the years 5 to 9998, where `datetime` can be asked
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date; no check of its parts.

    Years are counted from March, so that the leap day is a year's last, in eras of 400 years.
    """
    year, shifted = (year - 1, month + 9) if month < 3 else (year, month - 3)
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day: the inverse of days_of."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month < 3), month, day_of_year - (153 * shifted + 2) // 5 + 1


def month_length(year: int, month: int) -> int:
    """Days of a month, 28 to 31."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTH_LENGTHS[month - 1]


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """`Z`, an offset (`+01:00`, `-5`, `UTC+2`) or a region (`Europe/Paris`).

    Errors: illegal_argument_exception.
    """
    if name in ("Z", "z", "UTC", "GMT", "UT"):
        return UTC
    if offset := _OFFSET.fullmatch(name):
        sign, hours, minutes, seconds = offset.groups()
        delta = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if delta <= timedelta(hours=18):
            return timezone(-delta if sign == "-" else delta)
        raise illegal_argument("Zone offset not in valid range: -18:00 to +18:00")
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise illegal_argument(f"Unknown time-zone ID: {name[:100]}") from None


def to_utc(local_ms: int, zone: tzinfo) -> int:
    """The instant at which the zone's clocks show local_ms; where they show it twice the first."""
    if zone is UTC:
        return local_ms
    return local_ms - _offset_ms(
        zone, _EPOCH.replace(tzinfo=zone) + timedelta(milliseconds=_within(local_ms))
    )


def to_local(ms: int, zone: tzinfo) -> int:
    """What the zone's clocks show at an instant."""
    if zone is UTC:
        return ms
    return ms + _offset_ms(zone, (_EPOCH + timedelta(milliseconds=_within(ms))).astimezone(zone))


def _within(ms: int) -> int:
    return min(max(ms, _ZONED_MS[0]), _ZONED_MS[1])


def _offset_ms(zone: tzinfo, at: datetime) -> int:
    offset = zone.utcoffset(at)
    return 0 if offset is None else offset // timedelta(milliseconds=1)
