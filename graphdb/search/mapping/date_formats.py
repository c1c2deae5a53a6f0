"""Date formats as mappings and queries name them: `strict_date_optional_time||epoch_millis`, `yyyy-MM-dd`."""

import re
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Protocol

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.date_fields import DateFields, resolve
from graphdb.search.mapping.date_pattern import DatePattern
from graphdb.search.mapping.instants import DAY_MS, YEAR_MAX, days_of, month_length

__all__ = ["DEFAULT_FORMAT", "DateFormat", "date_format"]

DEFAULT_FORMAT = "strict_date_optional_time||epoch_millis"
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
    def parse(self, text: str, round_up: bool, zone: tzinfo) -> int | None: ...
    def write(self, ms: int, zone: tzinfo = UTC) -> str: ...


class _OptionalTime:
    """`strict_date_optional_time`, `date_optional_time` and `iso8601`: the shape of nearly all dates, and so
    with a fast path of its own.
    """

    def __init__(self, lenient: bool) -> None:
        year, two = (r"[+-]?\d{1,9}", r"\d{1,2}") if lenient else (r"\d{4}|[+-]\d{5,9}|-\d{4}", r"\d\d")
        self._regex = re.compile(
            rf"({year})(?:-({two})(?:-({two})(?:T(?:({two})(?::({two})(?::({two})(?:[.,](\d{{1,9}}))?)?)?)?"
            rf"(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?|[A-Z][A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)*)?)?)?)?",
            re.ASCII,
        )
        # The format of nanoseconds writes three digits too where the others are zeros.
        self._print = DatePattern("uuuu-MM-dd'T'HH:mm:ss.SSSXXX")

    def parse(self, text: str, round_up: bool, zone: tzinfo) -> int | None:
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
        millis = (999 if round_up else 0) if fraction is None else int(fraction[:3].ljust(3, "0"))
        return days_of(y, m, d) * DAY_MS + (h * 3600 + n * 60 + s) * 1000 + millis

    def write(self, ms: int, zone: tzinfo = UTC) -> str:
        return self._print.write(ms, zone)


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
    """`epoch_millis` and `epoch_second`; unit in milliseconds."""

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
        ms = int(whole) * self._unit
        ms = -ms - part if sign and fraction else (-ms if sign else ms) + part
        return ms if abs(ms) < 2**63 else None

    def write(self, ms: int, zone: tzinfo = UTC) -> str:
        whole, part = divmod(abs(ms), self._unit)
        sign = "-" if ms < 0 else ""
        return f"{sign}{whole}" + (f".{part:03}".rstrip("0") if part else "")


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
        for alternative in self._alternatives:
            ms = alternative.parse(text, round_up, zone)
            if ms is not None:
                return ms
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
        return any(alternative.parse(text, False, zone) == ms for alternative in self._alternatives)

    def reads(self, text: str) -> bool:
        """Whether text is a date in this format."""
        return any(alternative.parse(text, False, UTC) is not None for alternative in self._alternatives)

    def write(self, ms: int, zone: tzinfo = UTC) -> str:
        """The text of an instant, as clocks in zone show it."""
        return self._alternatives[0].write(ms, zone)


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
        return _OptionalTime(lenient=name == "date_optional_time")
    if name in ("epoch_millis", "epoch_second"):
        return _Epoch(1 if name == "epoch_millis" else 1000)
    plain = name.removeprefix("strict_")
    if plain in _NAMED:
        return DatePattern(_NAMED[plain], lenient=plain == name, flexible=True)
    if plain in _BASIC:
        return DatePattern(_BASIC[plain], flexible=True)
    return DatePattern(name)
