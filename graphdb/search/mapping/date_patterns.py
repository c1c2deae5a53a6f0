"""The patterns of Java's DateTimeFormatter: their fields, parsed and written."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cached_property

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.instants import (
    DAY_MS,
    MS_NANOS,
    YEAR_MAX,
    to_local,
    to_utc,
    zone_of,
)
from graphdb.timestamps import date_of, days_of, month_length

__all__ = ["DateFields", "DatePattern", "Resolved", "resolve"]

# From the fields of a date (year, week, hour and so on) to an instant, and back.

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


# One date pattern in the letters of java.time's DateTimeFormatter: parsing and writing.
#
# A pattern becomes a regular expression without backtracking (possessive, as Java's own parser is greedy)
# and a list of pieces that write. English names, ISO weeks.

PATTERN_LENGTH_MAX = 200
TEXT_LENGTH_MAX = 200

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_OFFSET = r"Z|[+-]\d\d(?::?\d\d(?::?\d\d|)?+|)?+"
_REGION = r"[A-Za-z][A-Za-z0-9_+\-]*+(?:/[A-Za-z0-9_+\-]++|)*+(?:[+-]\d\d?+(?::?\d\d|)?+|)?+"
_NUMBERS = "MLdDHhkKmseQqwc"


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of one letter, or a literal (letter is the empty string)."""

    letter: str
    count: int = 0
    text: str = ""


class DatePattern:
    """lenient: numbers may have fewer digits than letters, as in Elasticsearch's names without `strict_`.
    flexible: a run of S reads one to nine digits (the built-in names), not exactly as many as letters.

    Errors: illegal_argument_exception for a pattern that is none.
    """

    def __init__(self, pattern: str, lenient: bool = False, flexible: bool = False) -> None:
        if len(pattern) > PATTERN_LENGTH_MAX:
            raise illegal_argument(f"Invalid format: [{pattern[:50]}...]: longer than {PATTERN_LENGTH_MAX}")
        self._flexible = flexible
        self._lenient = lenient
        self._groups: list[str] = []  # the letter that each group of the expression reads
        self._pieces: list[Piece] = []
        self._regex = re.compile(self._expression(pattern), re.ASCII | re.IGNORECASE)

    def parse(self, text: str, round_up: bool, zone: tzinfo) -> int | None:
        """Nanoseconds since 1970; zone is for text that names none. None where text does not fit."""
        match = self._regex.fullmatch(text) if len(text) <= TEXT_LENGTH_MAX else None
        if match is None:
            return None
        fields: DateFields = {}
        for letter, value in zip(self._groups, match.groups(), strict=True):
            if value is not None:
                _read(letter, value, fields)
        return resolve(fields, round_up, zone)

    def write(self, nanos: int, zone: tzinfo = UTC) -> str:
        """The text of an instant, as clocks in zone show it."""
        ms, beyond = divmod(nanos, MS_NANOS)
        local = to_local(ms, zone)
        at = Resolved(local, (local - ms) // 1000, zone, beyond)
        return "".join(piece.text if not piece.letter else _write(piece, at) for piece in self._pieces)

    def _expression(self, pattern: str) -> str:
        parts: list[str] = []
        depth = 0
        for piece in _pieces(pattern):
            if piece.letter == "[":
                depth += 1
                parts.append("(?:")
            elif piece.letter == "]":
                depth -= 1
                parts.append("|)?+")
            else:
                self._pieces.append(piece)
                parts.append(self._piece_expression(piece, pattern))
            if depth < 0:
                break
        if depth:
            raise illegal_argument(f"Invalid format: [{pattern}]: Pattern has unbalanced brackets")
        return "".join(parts)

    def _piece_expression(self, piece: Piece, pattern: str) -> str:
        if not piece.letter:
            return re.escape(piece.text)
        self._groups.append(piece.letter)
        expression = _letter_expression(piece.letter, piece.count, self._lenient, self._flexible)
        if expression is None:
            raise illegal_argument(f"Invalid format: [{pattern}]: Unknown pattern letter: {piece.letter}")
        return f"({expression})"


def _pieces(pattern: str) -> Iterator[Piece]:
    """Runs of letters, quoted and bare literals, brackets."""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        end = at + 1
        if char == "'":
            end, text = _quoted(pattern, at)
            yield Piece("", text=text)
        elif char in "[]":
            yield Piece(char)
        elif char.isascii() and char.isalpha():
            while end < len(pattern) and pattern[end] == char:
                end += 1
            yield Piece(char, end - at)
        else:
            yield Piece("", text=char)
        at = end


def _quoted(pattern: str, start: int) -> tuple[int, str]:
    """Where a quoted literal ends, and what it says; a doubled quote is one."""
    text, at = "", start + 1
    while at < len(pattern):
        if pattern[at] != "'":
            text += pattern[at]
        elif pattern[at + 1 : at + 2] == "'":
            text += "'"
            at += 1
        else:
            return at + 1, text or "'"
        at += 1
    raise illegal_argument(
        f"Invalid format: [{pattern}]: Pattern ends with an incomplete string literal: {pattern}"
    )


def _letter_expression(letter: str, count: int, lenient: bool, flexible: bool) -> str | None:
    """The expression that reads a run of a letter; None for a letter that means nothing."""
    if letter in "yuY":
        return _year_expression(count, lenient)
    if letter in "ML" and count >= 3:
        return "|".join(_MONTHS if count == 4 else (name[:3] for name in _MONTHS))
    if letter == "E" or (letter in "ec" and count >= 3):
        return "|".join(_DAYS if count == 4 else (name[:3] for name in _DAYS))
    if letter == "S":
        return r"\d{1,9}+" if flexible else rf"\d{{{min(count, 9)}}}"
    if letter in _NUMBERS:
        longest = 3 if letter == "D" else 2
        return rf"\d{{1,{longest}}}+" if lenient or count == 1 else rf"\d{{{count}}}"
    return {
        "A": r"\d{1,8}+",
        "n": r"\d{1,9}+",
        "a": "AM|PM",
        "G": "AD|BC|CE|BCE",
        "X": _OFFSET,
        "x": _OFFSET,
    }.get(letter, _zone_expression(letter))


def _year_expression(count: int, lenient: bool) -> str:
    if count == 2:
        return r"\d{2}"
    if lenient or count == 1:
        return r"[+-]?+\d{1,9}+"
    return rf"-?+\d{{{count}}}" if count == 4 else rf"[+-]?+\d{{{min(count, 9)},9}}+"


def _zone_expression(letter: str) -> str | None:
    if letter == "Z":
        return rf"GMT(?:[+-]\d\d?+:?\d\d|)?+|{_OFFSET}"
    return rf"{_OFFSET}|{_REGION}" if letter in "zVOv" else None


def _read(letter: str, value: str, fields: DateFields) -> None:
    """Set a field from what its group has matched."""
    if letter in "XxZzVOv":
        fields["zone"] = value
    elif letter == "a":
        fields["half"] = int(value.upper() == "PM")
    elif letter == "G":
        fields["before_christ"] = int(value.upper().startswith("B"))
    elif letter == "S":
        fields["nanos"] = int(value.ljust(9, "0"))
    elif value[0].isalpha():
        names, key = (_MONTHS, "M") if letter in "ML" else (_DAYS, "e")
        fields[key] = 1 + [name[:3].lower() for name in names].index(value[:3].lower())
    else:
        number = int(value)
        two_digits = letter in "yuY" and len(value) == 2
        key = {"u": "y", "L": "M", "c": "e", "E": "e", "q": "Q", "n": "nanos"}.get(letter, letter)
        fields[key] = number + 2000 if two_digits else number


def _write(piece: Piece, at: Resolved) -> str:
    letter, count = piece.letter, piece.count
    if letter in "yuY":
        return _write_year(at.week_date[0] if letter == "Y" else at.year, count)
    if letter in "ML" and count >= 3:
        name = _MONTHS[at.month - 1]
        return name if count == 4 else name[:3]
    if letter == "E" or (letter in "ec" and count >= 3):
        name = _DAYS[at.week_date[2] - 1]
        return name if count == 4 else name[:3]
    if letter == "S":
        return f"{at.nanos:09}"[: max(count, 1)]
    if letter in "XxZzVOv":
        return _write_zone(letter, count, at)
    return _write_number(letter, count, at)


def _write_year(year: int, count: int) -> str:
    if count == 2:
        return f"{year % 100:02}"
    digits = str(abs(year)).rjust(count, "0")
    sign = "-" if year < 0 else "+" if len(digits) > max(count, 4) else ""
    return sign + digits


def _write_number(letter: str, count: int, at: Resolved) -> str:
    if letter in "aG":
        return ("AM", "PM")[at.hour >= 12] if letter == "a" else ("AD", "BC")[at.year < 1]
    numbers = {
        "M": at.month, "L": at.month, "d": at.day, "D": at.day_of_year, "H": at.hour, "m": at.minute,
        "s": at.second, "h": (at.hour + 11) % 12 + 1, "K": at.hour % 12, "k": (at.hour + 23) % 24 + 1,
        "A": at.local_ms % 86_400_000, "n": at.nanos, "Q": (at.month + 2) // 3,
        "q": (at.month + 2) // 3, "w": at.week_date[1], "e": at.week_date[2], "c": at.week_date[2],
    }  # fmt: skip
    return str(numbers[letter]).rjust(count, "0")


def _write_zone(letter: str, count: int, at: Resolved) -> str:
    if letter in "zVv":
        return str(getattr(at.zone, "key", "")) or (_offset_text(at.offset_s, 3) if at.offset_s else "Z")
    if letter == "O" or (letter == "Z" and count == 4):
        return "GMT" + (_offset_text(at.offset_s, 3) if at.offset_s else "")
    if at.offset_s == 0 and (letter == "X" or (letter == "Z" and count == 5)):
        return "Z"
    return _offset_text(at.offset_s, {"Z": {5: 3}.get(count, 2)}.get(letter, count))


def _offset_text(offset_s: int, count: int) -> str:
    """count as for the letter X: 1 hours (minutes where there are any), 2 without colon, 3 with."""
    minutes = abs(offset_s) // 60
    sign = "-" if offset_s < 0 else "+"
    hours, rest = divmod(minutes, 60)
    if count == 1:
        return f"{sign}{hours:02}" + (f"{rest:02}" if rest else "")
    return f"{sign}{hours:02}{':' if count % 2 else ''}{rest:02}"
