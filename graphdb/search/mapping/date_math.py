"""Date math: `now-1d/d`, `2020-01-01||+1M/M`."""

import re
from datetime import UTC, tzinfo

from graphdb.search.errors import SearchError
from graphdb.search.mapping.date_formats import DateFormat
from graphdb.search.mapping.instants import (
    DAY_MS,
    MS_NANOS,
    YEAR_MAX,
    to_local,
    to_utc,
)
from graphdb.timestamps import date_of, days_of, month_length

__all__ = ["date_math", "date_math_nanos"]

TEXT_LENGTH_MAX = 200
_AMOUNT_DIGITS_MAX = 9
_STEP = re.compile(r"([+-])(\d*)([a-zA-Z])|(/)([a-zA-Z])", re.ASCII)
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "H": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}


def date_math(text: str, format: DateFormat, now_ms: int, round_up: bool = False, zone: tzinfo = UTC) -> int:
    """The instant that text means, in milliseconds since 1970.

    With round_up rounding gives the last millisecond of the unit, and so does a plain date whose time of the
    day is not given. Errors: parse_exception.
    """
    return date_math_nanos(text, format, now_ms, round_up, zone) // MS_NANOS


def date_math_nanos(
    text: str, format: DateFormat, now_ms: int, round_up: bool = False, zone: tzinfo = UTC
) -> int:
    """The same in nanoseconds: with round_up the last one of the unit."""
    if len(text) > TEXT_LENGTH_MAX:
        raise _parse_error(f"date math expression is longer than [{TEXT_LENGTH_MAX}] characters")
    if text.startswith("now"):
        return _walk(text[3:], now_ms * MS_NANOS, round_up, zone)
    date, separator, steps = text.partition("||")
    try:
        nanos = format.parse_nanos(date, round_up and not separator, zone)
    except SearchError as error:
        raise SearchError("parse_exception", f"{error.reason}: [{error.reason}]", cause=error) from None
    return _walk(steps, nanos, round_up, zone)


def _walk(steps: str, nanos: int, round_up: bool, zone: tzinfo) -> int:
    """Take the steps one after another. None is shorter than a second, so what is beyond a millisecond only
    goes where an instant is rounded.
    """
    at = 0
    ms, beyond = divmod(nanos, MS_NANOS)
    while at < len(steps):
        step = _STEP.match(steps, at)
        if step is None or len(step[2] or "") > _AMOUNT_DIGITS_MAX:
            raise _malformed(steps, at)
        at = step.end()
        if step[4]:
            ms = _round(ms, step[5], round_up, zone, steps)
            beyond = MS_NANOS - 1 if round_up else 0
        else:
            amount = int(step[2] or 1)
            ms = _add(ms, amount if step[1] == "+" else -amount, step[3], zone, steps)
    return ms * MS_NANOS + beyond


def _malformed(steps: str, at: int) -> SearchError:
    if steps[at] not in "+-/":
        return _parse_error(f"operator not supported for date math [{steps}]")
    if re.match(r"/\d", steps[at:]):
        return _parse_error(f"rounding `/` can only be used on single unit types [{steps}]")
    if re.fullmatch(r"[+\-/]\d*", steps[at:], re.ASCII):
        return _parse_error(f"truncated date math [{steps}]")
    return _parse_error(f"unit or amount not supported for date math [{steps}]")


def _add(ms: int, amount: int, unit: str, zone: tzinfo, steps: str) -> int:
    """Hours and below are time that passes; days and above move the clock's date."""
    if unit in "hHms":
        return _bounded(ms + amount * _UNIT_MS[unit], steps)
    local = to_local(ms, zone)
    if unit in "dw":
        return to_utc(_bounded(local + amount * _UNIT_MS[unit], steps), zone)
    if unit not in "yM":
        raise _parse_error(f"unit [{unit}] not supported for date math [{steps}]")
    days, of_day = divmod(local, DAY_MS)
    year, month, day = date_of(days)
    months = year * 12 + month - 1 + amount * (12 if unit == "y" else 1)
    year, month = months // 12, months % 12 + 1
    moved = days_of(year, month, min(day, month_length(year, month))) * DAY_MS + of_day
    return to_utc(_bounded(moved, steps), zone)


def _round(ms: int, unit: str, round_up: bool, zone: tzinfo, steps: str) -> int:
    """The first, or last, millisecond of the unit that an instant is in."""
    start = _floor(to_local(ms, zone), unit, steps)
    if not round_up:
        return to_utc(start, zone)
    if unit in "hHms":
        return to_utc(start, zone) + _UNIT_MS[unit] - 1
    return _add(to_utc(start, zone), 1, unit, zone, steps) - 1


def _floor(local: int, unit: str, steps: str) -> int:
    if unit == "w":
        days = local // DAY_MS
        return (days - (days + 3) % 7) * DAY_MS
    if unit in _UNIT_MS:
        return local - local % _UNIT_MS[unit]
    if unit not in "yM":
        raise _parse_error(f"unit [{unit}] not supported for date math [{steps}]")
    year, month, _ = date_of(local // DAY_MS)
    return days_of(year, month if unit == "M" else 1, 1) * DAY_MS


def _bounded(ms: int, steps: str) -> int:
    if abs(ms) > YEAR_MAX * 365 * DAY_MS:
        raise _parse_error(f"date math [{steps}] leaves the years that can be told")
    return ms


def _parse_error(reason: str) -> SearchError:
    return SearchError("parse_exception", reason)
