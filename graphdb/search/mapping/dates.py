"""Date formats and date math of a mapping."""

import re
from datetime import UTC, date, tzinfo
from functools import lru_cache
from typing import Protocol

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.date_patterns import DateFields, DatePattern, resolve
from graphdb.search.mapping.instants import (
    DAY_MS,
    MS_NANOS,
    YEAR_MAX,
    to_local,
    to_utc,
)
from graphdb.timestamps import date_of, days_of, month_length

__all__ = [
    "DEFAULT_FORMAT",
    "DEFAULT_NANOS_FORMAT",
    "DateFormat",
    "date_format",
    "date_math",
    "date_math_nanos",
]

# Date formats as mappings and queries name them: `strict_date_optional_time||epoch_millis`, `yyyy-MM-dd`.

DEFAULT_FORMAT = "strict_date_optional_time||epoch_millis"
DEFAULT_NANOS_FORMAT = "strict_date_optional_time_nanos||epoch_millis"
ALTERNATIVES_MAX = 20

_TIME, _ZONE = "HH:mm:ss", "XXX"
_NAMED = {
    "date": "uuuu-MM-dd",
    "date_hour": "uuuu-MM-dd'T'HH",
    "date_hour_minute": "uuuu-MM-dd'T'HH:mm",
    "date_hour_minute_second": f"uuuu-MM-dd'T'{_TIME}",
    "date_hour_minute_second_fraction": f"uuuu-MM-dd'T'{_TIME}.SSS",
    "date_hour_minute_second_millis": f"uuuu-MM-dd'T'{_TIME}.SSS",
    "date_time": f"uuuu-MM-dd'T'{_TIME}.SSS{_ZONE}",
    "date_time_no_millis": f"uuuu-MM-dd'T'{_TIME}{_ZONE}",
    "hour": "HH",
    "hour_minute": "HH:mm",
    "hour_minute_second": _TIME,
    "hour_minute_second_fraction": f"{_TIME}.SSS",
    "hour_minute_second_millis": f"{_TIME}.SSS",
    "ordinal_date": "uuuu-DDD",
    "ordinal_date_time": f"uuuu-DDD'T'{_TIME}.SSS{_ZONE}",
    "ordinal_date_time_no_millis": f"uuuu-DDD'T'{_TIME}{_ZONE}",
    "time": f"{_TIME}.SSS{_ZONE}",
    "time_no_millis": f"{_TIME}{_ZONE}",
    "t_time": f"'T'{_TIME}.SSS{_ZONE}",
    "t_time_no_millis": f"'T'{_TIME}{_ZONE}",
    "week_date": "YYYY-'W'ww-e",
    "week_date_time": f"YYYY-'W'ww-e'T'{_TIME}.SSS{_ZONE}",
    "week_date_time_no_millis": f"YYYY-'W'ww-e'T'{_TIME}{_ZONE}",
    "weekyear": "YYYY",
    "weekyear_week": "YYYY-'W'ww",
    "weekyear_week_day": "YYYY-'W'ww-e",
    "year": "uuuu",
    "year_month": "uuuu-MM",
    "year_month_day": "uuuu-MM-dd",
}
_BASIC = {
    "basic_date": "uuuuMMdd",
    "basic_date_time": "uuuuMMdd'T'HHmmss.SSSX",
    "basic_date_time_no_millis": "uuuuMMdd'T'HHmmssX",
    "basic_ordinal_date": "uuuuDDD",
    "basic_ordinal_date_time": "uuuuDDD'T'HHmmss.SSSX",
    "basic_ordinal_date_time_no_millis": "uuuuDDD'T'HHmmssX",
    "basic_time": "HHmmss.SSSX",
    "basic_time_no_millis": "HHmmssX",
    "basic_t_time": "'T'HHmmss.SSSX",
    "basic_t_time_no_millis": "'T'HHmmssX",
    "basic_week_date": "YYYY'W'wwe",
    "basic_week_date_time": "YYYY'W'wwe'T'HHmmss.SSSX",
    "basic_week_date_time_no_millis": "YYYY'W'wwe'T'HHmmssX",
}
_EPOCH = re.compile(r"(-?)(\d{1,18})(?:\.(\d{1,9}))?", re.ASCII)


class _Alternative(Protocol):
    """Instants are nanoseconds since 1970."""

    def parse(self, text: str, round_up: bool, zone: tzinfo) -> int | None: ...
    def write(self, nanos: int, zone: tzinfo = UTC) -> str: ...


class _OptionalTime:
    """`strict_date_optional_time`, `date_optional_time` and `iso8601`: the shape of nearly all dates, and so
    with a fast path of its own. with_nanos: it writes up to nine digits of a second, else three.
    """

    def __init__(self, lenient: bool, with_nanos: bool) -> None:
        year, two = (r"[+-]?\d{1,9}", r"\d{1,2}") if lenient else (r"\d{4}|[+-]\d{5,9}(?=-)|-\d{4}", r"\d\d")
        self._regex = re.compile(
            rf"({year})(?:-({two})(?:-({two})(?:T(?:({two})(?::({two})(?::({two})(?:[.,](\d{{1,9}}))?)?)?)?"
            rf"(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?|[A-Z][A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)*)?)?)?)?",
            re.ASCII,
        )
        self._with_nanos = with_nanos
        self._print = {
            digits: DatePattern(f"uuuu-MM-dd'T'HH:mm:ss.{'S' * digits}XXX")
            for digits in (range(3, 10) if with_nanos else [3])
        }

    def parse(self, text: str, round_up: bool, zone: tzinfo) -> int | None:
        if not round_up and zone is UTC and (days := _plain_days(text[:10])) is not None:
            if len(text) == 10:
                return days * _DAY_NANOS
            if (nanos := _plain_time(text)) is not None:
                return days * _DAY_NANOS + nanos
        match = self._regex.fullmatch(text)
        if match is None:
            return None
        year, month, day, hour, minute, second, fraction, offset = match.groups()
        if second is None or zone is not UTC or offset not in (None, "Z"):
            return resolve(_present(match), round_up, zone)
        y, m, d, h, n, s = int(year), int(month), int(day), int(hour), int(minute), int(second)
        if not (1 <= m <= 12 and 1 <= d <= month_length(y, m) and h < 24 and n < 60 and s < 60):
            return None
        if abs(y) > YEAR_MAX:
            return None
        nanos = (999_999_999 if round_up else 0) if fraction is None else int(fraction.ljust(9, "0"))
        return (days_of(y, m, d) * 86_400 + h * 3600 + n * 60 + s) * 1_000_000_000 + nanos

    def write(self, nanos: int, zone: tzinfo = UTC) -> str:
        """Three digits where the others are zeros."""
        beyond = f"{nanos % MS_NANOS:06}".rstrip("0") if self._with_nanos else ""
        digits = 3 + len(beyond)
        text = _utc_text(nanos, digits) if zone is UTC else None
        return self._print[digits].write(nanos, zone) if text is None else text


_DAY_NANOS = 86_400 * 10**9
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def _plain_days(text: str) -> int | None:
    """Days since 1970 of a date as nearly all are written, `2015-03-31`; None where the regex is to tell."""
    if len(text) != 10 or text[4] != "-" or text[7] != "-":
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def _plain_time(text: str) -> int | None:
    """Nanoseconds of the day of `2015-03-31T12:30:00Z` or `2015-03-31T12:30:00.000Z`; None as above."""
    if text[10:11] != "T" or text[-1] != "Z" or text[13:14] != ":" or text[16:17] != ":":
        return None
    if len(text) != 20 and (len(text) != 24 or text[19] != "."):
        return None
    hour, minute, second, millis = text[11:13], text[14:16], text[17:19], text[20:23] or "000"
    if not (text.isascii() and f"{hour}{minute}{second}{millis}".isdigit()):
        return None
    h, n, s = int(hour), int(minute), int(second)
    if h > 23 or n > 59 or s > 59:
        return None
    return ((h * 60 + n) * 60 + s) * 1_000_000_000 + int(millis) * MS_NANOS


@lru_cache(maxsize=8192)  # the buckets of a histogram are the same ones in the next search
def _utc_text(nanos: int, digits: int) -> str | None:
    """With so many digits of a second, in a tenth of the time that the pattern takes. None: the year has more
    than four, or is before 0.
    """
    seconds, of_second = divmod(nanos, 1_000_000_000)
    days, of_day = divmod(seconds, 86_400)
    year, month, day = date_of(days)
    if not 0 <= year <= 9999:
        return None
    hour, of_hour = divmod(of_day, 3600)
    time = f"{hour:02}:{of_hour // 60:02}:{of_hour % 60:02}"
    return f"{year:04}-{month:02}-{day:02}T{time}.{f'{of_second:09}'[:digits]}Z"


def _present(match: re.Match[str]) -> DateFields:
    fields: DateFields = {
        key: int(text) for key, text in zip("yMdHms", match.groups(), strict=False) if text is not None
    }
    if match[7] is not None:
        fields["nanos"] = int(match[7].ljust(9, "0"))
    if match[8] is not None:
        fields["zone"] = match[8]
    return fields


class _Epoch:
    """`epoch_millis` and `epoch_second`; unit in nanoseconds."""

    def __init__(self, unit: int) -> None:
        self._unit = unit

    def parse(self, text: str, round_up: bool, zone: tzinfo) -> int | None:
        match = _EPOCH.fullmatch(text)
        if match is None:
            return None
        sign, whole, fraction = match.groups()
        part = int(fraction.ljust(9, "0")) * self._unit // 10**9 if fraction else 0
        if round_up and not fraction:
            part = self._unit - 1
        nanos = int(whole) * self._unit
        nanos = -nanos - part if sign and fraction else (-nanos if sign else nanos) + part
        return nanos if abs(nanos // MS_NANOS) < 2**63 else None

    def write(self, nanos: int, zone: tzinfo = UTC) -> str:
        whole, part = divmod(abs(nanos), self._unit)
        sign, digits = "-" if nanos < 0 else "", len(str(self._unit)) - 1
        return f"{sign}{whole}" + (f".{part:0{digits}}".rstrip("0") if part else "")


class DateFormat:
    """Alternatives between `||`, tried in turn; the first one writes. source is the text of the format.

    Errors: illegal_argument_exception for a format that is none, and for text that no alternative reads.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        names = [name.removeprefix("8") for name in source.split("||")]
        if len(names) > ALTERNATIVES_MAX or not all(names):
            raise illegal_argument(f"No date pattern provided: [{source[:100]}]")
        self._alternatives = [_alternative(name) for name in names]

    def parse(self, text: str, round_up: bool = False, zone: tzinfo = UTC) -> int:
        """Milliseconds since 1970. round_up: a time of the day that is not given is its end."""
        return self.parse_nanos(text, round_up, zone) // MS_NANOS

    def parse_nanos(self, text: str, round_up: bool = False, zone: tzinfo = UTC) -> int:
        """Nanoseconds since 1970, else as `parse`."""
        for alternative in self._alternatives:
            nanos = alternative.parse(text, round_up, zone)
            if nanos is not None:
                return nanos
        many = len(self._alternatives) > 1
        why = (
            "Failed to parse with all enclosed parsers"
            if many
            else f"Text '{text[:200]}' could not be parsed"
        )
        raise illegal_argument(
            f"failed to parse date field [{text[:200]}] with format [{self.source}]",
            SearchError("date_time_parse_exception", why),
        )

    def means(self, text: str, ms: int, zone: tzinfo = UTC) -> bool:
        """Whether text is read as this very instant."""
        found = (alternative.parse(text, False, zone) for alternative in self._alternatives)
        return any(nanos is not None and nanos // MS_NANOS == ms for nanos in found)

    def reads(self, text: str) -> bool:
        """Whether text is a date in this format."""
        return any(alternative.parse(text, False, UTC) is not None for alternative in self._alternatives)

    def write(self, ms: int, zone: tzinfo = UTC) -> str:
        """The text of an instant, as clocks in zone show it."""
        return self._alternatives[0].write(ms * MS_NANOS, zone)

    def write_nanos(self, nanos: int, zone: tzinfo = UTC) -> str:
        """The same of nanoseconds since 1970."""
        return self._alternatives[0].write(nanos, zone)


@lru_cache(maxsize=512)
def date_format(source: str) -> DateFormat:
    """The format that a text names; made once."""
    return DateFormat(source)


@lru_cache(maxsize=512)
def _alternative(name: str) -> _Alternative:
    if name in (
        "strict_date_optional_time",
        "date_optional_time",
        "iso8601",
        "strict_date_optional_time_nanos",
    ):
        return _OptionalTime(name == "date_optional_time", name.endswith("_nanos"))
    if name in ("epoch_millis", "epoch_second"):
        return _Epoch(MS_NANOS if name == "epoch_millis" else 1000 * MS_NANOS)
    plain = name.removeprefix("strict_")
    if plain in _NAMED:
        return DatePattern(_NAMED[plain], lenient=plain == name, flexible=True)
    if plain in _BASIC:
        return DatePattern(_BASIC[plain], flexible=True)
    return DatePattern(name)


# Date math: `now-1d/d`, `2020-01-01||+1M/M`.

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
