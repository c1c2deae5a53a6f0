"""Dates in scripts: what `doc['date'].value` and the classes of `java.time` are there."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any, ClassVar

from graphdb.search.errors import SearchError
from graphdb.search.mapping.date_patterns import Resolved
from graphdb.search.mapping.dates import DateFormat, date_format, date_math
from graphdb.search.mapping.instants import MS_NANOS, to_local, zone_of
from graphdb.search.scripts.faults import ScriptFault, class_cast, unsupported

__all__ = ["MOMENT_MEMBERS", "MOMENT_METHODS", "STATIC_MOMENTS", "Moment", "Named", "Wording"]

_ISO = "strict_date_optional_time"
_NAMES = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MONTHS = (
    "JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER",
    "NOVEMBER", "DECEMBER",
)  # fmt: skip
_UNIT_MS = {
    "MILLIS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000,
    "WEEKS": 604_800_000,
}  # fmt: skip
_LETTERS = {
    "SECONDS": "s", "MINUTES": "m", "HOURS": "h", "DAYS": "d", "WEEKS": "w", "MONTHS": "M", "YEARS": "y",
}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """An instant in milliseconds since 1970, as clocks in a zone show it: ZonedDateTime, Instant and Date."""

    ms: int
    zone: tzinfo = UTC

    def resolved(self) -> Resolved:
        local = to_local(self.ms, self.zone)
        return Resolved(local, (local - self.ms) // 1000, self.zone)

    def moved(self, amount: Any, unit: str) -> "Moment":
        """unit: of `ChronoUnit`."""
        count = _whole(amount)
        if unit == "MILLIS":
            return replace(self, ms=self.ms + count)
        text = f"now{'-' if count < 0 else '+'}{abs(count)}{_LETTERS[unit]}"
        return replace(self, ms=_dated(lambda: date_math(text, date_format(_ISO), self.ms, zone=self.zone)))

    def truncated(self, unit: Any) -> "Moment":
        name = _unit(unit)
        if name == "MILLIS":
            return self
        text = f"now/{_LETTERS[name]}"
        return replace(self, ms=_dated(lambda: date_math(text, date_format(_ISO), self.ms, zone=self.zone)))

    def __str__(self) -> str:
        return date_format(_ISO).write(self.ms, self.zone)


@dataclass(frozen=True, slots=True)
class Named:
    """A day of the week, a month, or a unit of time. value: 1 is Monday, and January."""

    name: str
    value: int
    script_methods: ClassVar[dict[str, Callable[..., str]]] = {
        "getDisplayName": lambda named, style, locale: _displayed(named, style, locale),
    }

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Wording:
    """A `TextStyle`, or a `Locale`: of these only those that are English."""

    name: str
    is_style: bool

    def __str__(self) -> str:
        return self.name


def _displayed(named: Named, style: Any, locale: Any) -> str:
    """In English: `Sunday`, `Sun` or `S`."""
    if named.name not in (*_NAMES, *_MONTHS):
        raise unsupported(f"[{named.name}] has no display name")
    if not isinstance(style, Wording) or not style.is_style:
        raise class_cast("a TextStyle is expected")
    if not isinstance(locale, Wording) or locale.is_style:
        raise class_cast("a Locale is expected")
    return named.name.capitalize()[: {"FULL": None, "SHORT": 3, "NARROW": 1}[style.name]]


@dataclass(frozen=True, slots=True)
class _Zone:
    zone: tzinfo
    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class _Span:
    """`Duration`, in milliseconds."""

    ms: int
    script_methods: ClassVar[dict[str, Callable[["_Span"], int]]] = {
        "toMillis": lambda span: span.ms,
        "getSeconds": lambda span: _towards_zero(span.ms, 1_000),
        "toMinutes": lambda span: _towards_zero(span.ms, 60_000),
        "toHours": lambda span: _towards_zero(span.ms, 3_600_000),
        "toDays": lambda span: _towards_zero(span.ms, 86_400_000),
    }


def _dated(work: Callable[[], Any]) -> Any:
    """What the modules of dates give; their errors are the script's."""
    try:
        return work()
    except SearchError as error:
        raise ScriptFault("date_time_exception", error.reason) from None


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise class_cast("a whole number is expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise class_cast("a string is expected")
    return value


def _moment(value: Any) -> Moment:
    if not isinstance(value, Moment):
        raise class_cast("a date is expected")
    return value


def _unit(value: Any) -> str:
    if not isinstance(value, Named) or (value.name not in _LETTERS and value.name != "MILLIS"):
        raise class_cast("a ChronoUnit is expected")
    return value.name


def _between(unit: Any, start: Any, end: Any) -> int:
    """Whole units from start to end, towards zero."""
    name, first, last = _unit(unit), _moment(start), _moment(end)
    if name in _UNIT_MS:
        return _towards_zero(last.ms - first.ms, _UNIT_MS[name])
    one, two = first.resolved(), replace(last, zone=first.zone).resolved()
    months = (two.year - one.year) * 12 + two.month - one.month
    moved = first.moved(months, "MONTHS")
    if months > 0 and moved.ms > last.ms:
        months -= 1
    elif months < 0 and moved.ms < last.ms:
        months += 1
    return months if name == "MONTHS" else _towards_zero(months, 12)


def _towards_zero(number: int, unit: int) -> int:
    return number // unit if number >= 0 else -(-number // unit)


def _weekday(moment: Moment) -> Named:
    number = moment.resolved().week_date[2]
    return Named(_NAMES[number - 1], number)


def _month(moment: Moment) -> Named:
    number = moment.resolved().month
    return Named(_MONTHS[number - 1], number)


# Members are also known as methods: `year` as `getYear()`.
MOMENT_MEMBERS: dict[str, Callable[[Moment], Any]] = {
    "year": lambda moment: moment.resolved().year,
    "month": _month,
    "monthValue": lambda moment: moment.resolved().month,
    "dayOfMonth": lambda moment: moment.resolved().day,
    "dayOfYear": lambda moment: moment.resolved().day_of_year,
    "dayOfWeek": lambda moment: _weekday(moment).value,
    "dayOfWeekEnum": _weekday,
    "hour": lambda moment: moment.resolved().hour,
    "minute": lambda moment: moment.resolved().minute,
    "second": lambda moment: moment.resolved().second,
    "nano": lambda moment: moment.resolved().nanos,
    "millis": lambda moment: moment.ms,
    "time": lambda moment: moment.ms,
    "zone": lambda moment: _Zone(moment.zone, str(moment.zone)),
}

MOMENT_METHODS: dict[str, Callable[..., Any]] = {
    "toInstant": lambda moment: Moment(moment.ms),
    "toEpochMilli": lambda moment: moment.ms,
    "toEpochSecond": lambda moment: moment.ms // 1000,
    "getEpochSecond": lambda moment: moment.ms // 1000,
    "isBefore": lambda moment, other: moment.ms < _moment(other).ms,
    "isAfter": lambda moment, other: moment.ms > _moment(other).ms,
    "isEqual": lambda moment, other: moment.ms == _moment(other).ms,
    "truncatedTo": lambda moment, unit: moment.truncated(unit),
    "withZoneSameInstant": lambda moment, zone: replace(moment, zone=_zone(zone)),
    "atZone": lambda moment, zone: replace(moment, zone=_zone(zone)),
    "plus": lambda moment, amount, unit: moment.moved(amount, _unit(unit)),
    "minus": lambda moment, amount, unit: moment.moved(-_whole(amount), _unit(unit)),
    "until": lambda moment, other, unit: _between(unit, moment, other),
    "format": lambda moment, shape: _format(shape).write(moment.ms, moment.zone),
}
for _unit_name in (*_LETTERS, "MILLIS"):
    _word = _unit_name.capitalize()
    MOMENT_METHODS[f"plus{_word}"] = lambda moment, amount, unit=_unit_name: moment.moved(amount, unit)
    MOMENT_METHODS[f"minus{_word}"] = lambda moment, amount, unit=_unit_name: moment.moved(
        -_whole(amount), unit
    )


def _zone(value: Any) -> tzinfo:
    if isinstance(value, str):
        found: tzinfo = _dated(lambda: zone_of(value))
        return found
    if not isinstance(value, _Zone):
        raise class_cast("a ZoneId is expected")
    return value.zone


def _format(value: Any) -> DateFormat:
    if not isinstance(value, DateFormat):
        raise class_cast("a DateTimeFormatter is expected")
    return value


def _parsed(text: Any, shape: Any = None) -> Moment:
    format = date_format(_ISO) if shape is None else _format(shape)
    return Moment(_dated(lambda: format.parse_nanos(_text(text))) // MS_NANOS)


STATIC_MOMENTS: dict[str, Callable[..., Any]] = {
    "Instant.ofEpochMilli": lambda ms: Moment(_whole(ms)),
    "Instant.ofEpochSecond": lambda seconds: Moment(_whole(seconds) * 1000),
    "Instant.parse": _parsed,
    "ZonedDateTime.parse": _parsed,
    "ZonedDateTime.ofInstant": lambda moment, zone: Moment(_moment(moment).ms, _zone(zone)),
    "ZoneId.of": lambda name: _Zone(_zone(_text(name)), name),
    "DateTimeFormatter.ofPattern": lambda pattern: _dated(lambda: date_format(_text(pattern))),
    "Duration.between": lambda start, end: _Span(_moment(end).ms - _moment(start).ms),
    **{
        f"ChronoUnit.{name}.between": lambda start, end, unit=name: _between(Named(unit, 0), start, end)
        for name in (*_LETTERS, "MILLIS")
    },
}
"""Static methods by class and name."""
