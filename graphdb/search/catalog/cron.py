"""Schedules as Elasticsearch writes them: cron expressions with seconds, or the time between two runs.

    seconds minutes hours day-of-month month day-of-week [year]

A field is `*`, values, ranges (`1-5`) and steps (`0/15`), between commas; months and days of the week have
names, too. One of the two days is `?`. The day of the month may be `L` (the last one), `L-3`, `15W` (the
working day next to it) or `LW`; that of the week `6L` (the last Friday) or `6#3` (the third one). 1 is
Sunday.
All times are UTC.

Source: Elasticsearch's reference, "Cron expressions"; Quartz, CronExpression, for what it leaves open.
"""

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import pairwise

from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["Schedule"]

_YEARS = (1970, 2199)
_RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (1, 7), _YEARS)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NAMES = {4: _MONTHS, 5: _DAYS}
_PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")
_MONTH_END = re.compile(r"L(?:-(\d{1,2}))?(W)?")
_WORKING_DAY = re.compile(r"(\d{1,2})W")
_WEEK_DAY = re.compile(r"(\w+?)(L|#[1-5])")
_LENGTH_MAX = 200
_INTERVAL = re.compile(r"(\d{1,9})(ms|s|m|h|d)")
_UNIT_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_SAMPLE = datetime(2024, 1, 1, tzinfo=UTC)  # a leap year, from which the shortest interval is looked for
_SAMPLES = 50


@dataclass(frozen=True, slots=True)
class Schedule:
    """fields: the values of each, in order, none for the two days, whose texts are kept. interval_ms: of a
    schedule that is only this.
    """

    fields: Sequence[Sequence[int]] = ()
    month_day: str = "?"
    week_day: str = "?"
    interval_ms: int | None = None

    @classmethod
    def of(cls, text: str) -> "Schedule":
        """Errors: illegal_argument_exception."""
        return _parsed(text)

    def next_ms(self, after_ms: int) -> int | None:
        """The first time after this one; None: never again."""
        if self.interval_ms is not None:
            return after_ms + self.interval_ms
        start = datetime.fromtimestamp(after_ms // 1000 + 1, UTC)
        for day in self._days(start.date()):
            at = self._time(start if day == start.date() else None)
            if at is not None:
                hour, minute, second = at
                moment = datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=UTC)
                return int(moment.timestamp()) * 1000
        return None

    def shortest_ms(self) -> int:
        """The least time between two runs, of some that follow each other."""
        if self.interval_ms is not None:
            return self.interval_ms
        times, last = [], int(_SAMPLE.timestamp()) * 1000
        for _ in range(_SAMPLES):
            following = self.next_ms(last)
            if following is None:
                break
            times.append(last := following)
        between = [b - a for a, b in pairwise(times)]
        return min(between, default=2**62)

    def _days(self, first: date) -> Iterator[date]:
        """The days that it is for, from this one on."""
        months, years = set(self.fields[4]), set(self.fields[6])
        year, month = first.year, first.month
        while year <= _YEARS[1]:
            if year in years and month in months:
                yield from (day for day in self._days_of(year, month) if day >= first)
            year, month = (year + 1, 1) if month == 12 else (year, month + 1)

    def _days_of(self, year: int, month: int) -> list[date]:
        length = calendar.monthrange(year, month)[1]
        days = [date(year, month, number) for number in range(1, length + 1)]
        if self.week_day == "?":
            wanted = set(_month_days(self.month_day, days))
            return [day for day in days if day.day in wanted]
        wanted = set(_week_days(self.week_day, days))
        return [day for day in days if day.day in wanted]

    def _time(self, start: datetime | None) -> tuple[int, int, int] | None:
        """The first of a day, or the first that is not before start."""
        seconds, minutes, hours = self.fields[:3]
        least = (0, 0, 0) if start is None else (start.hour, start.minute, start.second)
        for hour in hours:
            if hour < least[0]:
                continue
            for minute in minutes:
                if (hour, minute) < least[:2]:
                    continue
                for second in seconds:
                    if (hour, minute, second) >= least:
                        return hour, minute, second
        return None


@lru_cache(maxsize=1_000)
def _parsed(text: str) -> Schedule:
    found = _INTERVAL.fullmatch(text.strip())
    if found is not None:
        interval_ms = int(int(found[1]) * _UNIT_S[found[2]] * 1000)
        if interval_ms <= 0:
            raise _invalid(text)
        return Schedule(interval_ms=interval_ms)
    parts = text.upper().split()
    if len(text) > _LENGTH_MAX or len(parts) not in (6, 7):
        raise _invalid(text)
    month_day, week_day = parts[3], parts[5]
    if (month_day == "?") is (week_day == "?"):
        raise _invalid(text)
    values = []
    for place, part in enumerate([*parts, "*"][:7]):
        values.append(() if place in (3, 5) else _values(part, place, text))
    month = [date(2024, 1, number) for number in range(1, 32)]
    try:
        _ = _month_days(month_day, month) if week_day == "?" else _week_days(week_day, month)
    except (SearchError, ValueError):
        raise _invalid(text) from None
    return Schedule(tuple(values), month_day, week_day)


def _invalid(text: str) -> SearchError:
    return illegal_argument(
        f"invalid schedule [{text[:_LENGTH_MAX]}]: must be a valid cron expression or time unit"
    )


def _values(part: str, place: int, text: str) -> tuple[int, ...]:
    low, high = _RANGES[place]
    values: set[int] = set()
    for one in part.split(","):
        found = _PART.fullmatch(one)
        if found is None:
            raise _invalid(text)
        first = low if found[1] == "*" else _number(found[1], place, text)
        last = high if found[1] == "*" or (found[3] and not found[2]) else first
        if found[2]:
            last = _number(found[2], place, text)
        step = int(found[3] or 1)
        if step < 1 or (found[1] == "*" and found[2]):
            raise _invalid(text)
        if last < first:  # over the end: from Friday to Monday
            values.update(range(first, high + 1, step))
            first = low + (step - (high + 1 - first) % step) % step
        values.update(range(first, last + 1, step))
    return tuple(sorted(values))


def _number(word: str, place: int, text: str) -> int:
    names = _NAMES.get(place, ())
    if word in names:
        return names.index(word) + 1
    low, high = _RANGES[place]
    if not word.isdigit() or not low <= int(word[:5]) <= high:
        raise _invalid(text)
    return int(word)


def _month_days(part: str, days: Sequence[date]) -> tuple[int, ...]:
    """Of the days of one month."""
    if (found := _MONTH_END.fullmatch(part)) is not None:
        number = max(len(days) - int(found[1] or 0), 1)
        return (_working(number, days),) if found[2] else (number,)
    if (found := _WORKING_DAY.fullmatch(part)) is not None:
        number = int(found[1])
        if not 1 <= number <= 31:
            raise ValueError(part)
        return (_working(min(number, len(days)), days),)
    return _values(part, 3, part)


def _working(number: int, days: Sequence[date]) -> int:
    """The day from Monday to Friday next to it, in the same month."""
    weekday = days[number - 1].weekday()
    if weekday == 5:
        return number - 1 if number > 1 else number + 2
    if weekday == 6:
        return number + 1 if number < len(days) else number - 2
    return number


def _week_days(part: str, days: Sequence[date]) -> tuple[int, ...]:
    """Days of the month, of one month."""
    found = _WEEK_DAY.fullmatch(part)
    if part == "L":
        wanted: tuple[int, ...] = (7,)
    elif found is not None and found[1] not in ("", "*"):
        wanted = (_number(found[1], 5, part),)
    else:
        found, wanted = None, _values(part, 5, part)
    fitting = [day.day for day in days if (day.weekday() + 1) % 7 + 1 in wanted]
    if found is None:
        return tuple(fitting)
    if found[2] == "L":
        return (fitting[-1],)
    place = int(found[2][1:])
    return (fitting[place - 1],) if place <= len(fitting) else ()
