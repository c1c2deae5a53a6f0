"""Instants as milliseconds since 1970 (UTC), and time zones.

`datetime` alone does not do: it ends at the year 9999, and dates in documents do not.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from graphdb.search.errors import illegal_argument

__all__ = [
    "DAY_MS",
    "MS_NANOS",
    "YEAR_MAX",
    "to_local",
    "to_utc",
    "zone_of",
]

DAY_MS = 86_400_000
MS_NANOS = 1_000_000
YEAR_MAX = 292_277_000  # beyond it the milliseconds do not fit 64 bits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONED_MS = (-62_000_000_000_000, 253_370_000_000_000)  # the years 5 to 9998, where `datetime` can be asked
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)


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
