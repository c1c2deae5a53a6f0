"""The order of terms: what ORDER BY sorts by, and what MIN and MAX choose by (SPARQL 1.2, section 15.1).

The order is: no value, blank nodes, IRIs, literals, triple terms. Among literals: numbers by value with NaN
last, dateTimes, dates, Gregorian fragments and times on their time lines, durations, then all others by text,
language and datatype. A time without a zone stands where it would in UTC (XML Schema 1.1, part 2, E.3.4). The
order extends `<`: values that `<` can compare stand as it says.

It has two levels. Values that are equal, such as 1 and 1.0, tie, so that a further condition of the same
ORDER BY decides between them. Where all conditions tie, the terms are told apart by datatype and text, so
that in the end two different terms never tie. (`=` rounds a decimal to compare it with an xsd:float. These do
not tie here.)

The engine's own comparison is not transitive, and its sort aborts the process when it notices. So the engine
gets keys instead (`graphdb.planning.ordering`), in which it compares only what it compares well: numbers as
doubles, then what the double leaves of them, and texts. It makes the keys of numbers and dateTimes by itself,
which is fastest; all other keys come from `ENGINE_FUNCTIONS`.
"""

import struct
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from math import inf, isinf, isnan
from re import Match
from re import compile as pattern
from typing import Any, Final, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.timestamps import days_of, month_length

__all__ = [
    "ENGINE_AGGREGATES",
    "ENGINE_FUNCTIONS",
    "KEY",
    "MAXIMUM",
    "MINIMUM",
    "NAN",
    "REST",
    "SortKey",
    "sort_key",
]

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple
SortKey: TypeAlias = tuple[tuple[object, ...], str]
"""Compares as terms do: the value, by which equal values tie, then a text that tells them apart."""

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_OWN: Final = "urn:graphdb:order:"
MINIMUM: Final = _OWN + "min"
MAXIMUM: Final = _OWN + "max"
KEY: Final = _OWN + "key"
REST: Final = _OWN + "rest"
NAN: Final = _OWN + "nan"

_FLOATS = frozenset((_XSD + "double", _XSD + "float"))
_SIZES = ("long", "int", "short", "byte")
_SIGNS = ("positiveInteger", "negativeInteger", "nonPositiveInteger", "nonNegativeInteger")
_INTEGERS = frozenset(
    _XSD + name for name in ("integer", *_SIGNS, *_SIZES, *(f"unsigned{size.title()}" for size in _SIZES))
)
_INTEGER_TEXT = pattern(r"[+-]?[0-9]+")
_DECIMAL_TEXT = pattern(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE_TEXT = pattern(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_INTEGER: Final = _XSD + "integer"
_DECIMAL: Final = _XSD + "decimal"
_LARGEST: Final = float.fromhex("0x1.fffffffffffffp+1023")
_ZERO: Final = Decimal(0)
# Computes what a number has beyond its double: 80 digits of it, for literals of any length.
_BEYOND = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)
_COMPLEMENT = str.maketrans("0123456789", "9876543210")

_YEAR, _MONTH, _DAY = r"(?P<y>-?(?:[1-9]\d{3,11}|0\d{3}))", r"(?P<m>\d\d)", r"(?P<d>\d\d)"
_TIME = r"(?P<t>\d\d:\d\d:\d\d(?:\.\d{1,18})?)"
_TIMES = {  # by datatype: the mark of its kind, and its form without a zone
    _XSD + "dateTime": ("", f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}"),
    _XSD + "date": ("~3", f"{_YEAR}-{_MONTH}-{_DAY}"),
    _XSD + "gYearMonth": ("~3m", f"{_YEAR}-{_MONTH}"),
    _XSD + "gYear": ("~3y", _YEAR),
    _XSD + "gMonthDay": ("~4d", f"--{_MONTH}-{_DAY}"),
    _XSD + "gMonth": ("~4m", f"--{_MONTH}"),
    _XSD + "gDay": ("~4n", f"---{_DAY}"),
    _XSD + "time": ("~5", _TIME),
}
_TIME_FORMS = {
    datatype: (mark, pattern(form + r"(?P<zone>Z|[+-]\d\d:\d\d)?"))
    for datatype, (mark, form) in _TIMES.items()
}
_DURATIONS = frozenset(_XSD + name for name in ("duration", "yearMonthDuration", "dayTimeDuration"))
_DURATION = pattern(
    r"(-)?P(?:(\d{1,18})Y)?(?:(\d{1,18})M)?(?:(\d{1,18})D)?"
    r"(?:T(?:(\d{1,18})H)?(?:(\d{1,18})M)?(?:(\d{1,18}(?:\.\d{1,40})?)S)?)?"
)


def sort_key(term: Term | None) -> SortKey:
    """What Python sorts terms by, None standing for no value."""
    match term:
        case None:
            return (0,), ""
        case BlankNode():
            return (1, term.value), ""
        case NamedNode():
            return (2, term.value), ""
        case Triple():
            return (5, _triple_key(term)), ""
    assert isinstance(term, Literal)
    datatype, text = term.datatype.value, term.value
    if (number := _number(datatype, text)) is not None:
        is_of_the_engine = datatype == _INTEGER and -(2**63) <= Decimal(text) < 2**63
        return (3, *number), "" if is_of_the_engine else datatype + text
    if (moment := _moment(datatype, text)) is not None:
        return ((4, *moment), _zone(text)) if moment[0] == "" else ((4, *moment, datatype + text), "")
    return (4, _text_key(term)), ""


def _engine_key(term: Term) -> Term:
    """The first key of a term for which the engine makes none by itself."""
    match term:
        case BlankNode():
            return term
        case NamedNode():
            # Not the IRI itself, which the engine would read from disk for each comparison.
            return NamedNode("o:" + term.value)
        case Triple():
            return Literal(_triple_key(term))
    datatype, text = term.datatype.value, term.value
    if (number := _number(datatype, text)) is not None:
        return Literal(number[1])
    # The engine makes the key of a dateTime itself: one that comes here is none that it can read.
    if (moment := _moment(datatype, text)) is not None and moment[0]:
        return Literal(" ".join((moment[0], *map(_digits, moment[1:]), datatype + text)))
    return Literal(_text_key(term))


def _engine_rest(term: Term) -> Term | None:
    """The second key of a number that is too large for the engine, or an integer for a double."""
    number = _number(term.datatype.value, term.value) if isinstance(term, Literal) else None
    return None if number is None else Literal(float(number[2]))


ENGINE_FUNCTIONS: Final[dict[NamedNode, Callable[[Term], Term | None]]] = {
    NamedNode(KEY): _engine_key,
    NamedNode(REST): _engine_rest,
}


# Literals of these types are compared by a value that is quick to make, None where the text is ill-typed.
_QUICK: Final[dict[str, Callable[[str], Any]]] = {
    _XSD + "string": lambda text: text,
    _INTEGER: lambda text: int(text) if _INTEGER_TEXT.fullmatch(text) else None,
    _DECIMAL: lambda text: Decimal(text) if _DECIMAL_TEXT.fullmatch(text) else None,
}
_QUICK_CHARACTERS_MAX = 4000  # Python reads no longer integers


class _Least:
    """The accumulator of MIN. The engine itself makes an error of a group in which a value is an error."""

    _is_least = True

    def __init__(self) -> None:
        self._chosen: Term | None = None
        self._key: SortKey | None = None  # of what is chosen, once it was needed
        self._datatype: NamedNode | None = None  # of what is chosen, if it is quick to compare
        self._read: Callable[[str], Any] = str
        self._value: Any = None

    def accumulate(self, element: Term) -> None:
        if isinstance(element, Literal) and element.datatype == self._datatype:
            text = element.value
            value = self._read(text) if len(text) < _QUICK_CHARACTERS_MAX else None
            if value is not None and value != self._value:
                if (value < self._value) is self._is_least:
                    self._chosen, self._value, self._key = element, value, None
                return
        self._compare(element)

    def finish(self) -> Term | None:
        return self._chosen

    def _compare(self, element: Term) -> None:
        key = sort_key(element)
        if self._chosen is not None:
            chosen = self._key = self._key or sort_key(self._chosen)
            if key == chosen or (key < chosen) is not self._is_least:
                return
        self._chosen, self._key, self._datatype = element, key, None
        if isinstance(element, Literal) and len(element.value) < _QUICK_CHARACTERS_MAX:
            read = _QUICK.get(element.datatype.value)
            value = read(element.value) if read is not None else None
            if read is not None and value is not None:
                self._datatype, self._read, self._value = element.datatype, read, value


class _Greatest(_Least):
    """The accumulator of MAX."""

    _is_least = False


ENGINE_AGGREGATES: Final[dict[NamedNode, type[_Least]]] = {
    NamedNode(MINIMUM): _Least,
    NamedNode(MAXIMUM): _Greatest,
}


def _number(datatype: str, text: str) -> tuple[bool, float, Decimal] | None:
    """Whether it is NaN; the nearest double; what an exact number has beyond the double as it is written."""
    if datatype in _FLOATS:
        if not _DOUBLE_TEXT.fullmatch(text):
            return None
        double = float(text)
        if isnan(double):
            return True, 0.0, _ZERO
        if datatype == _XSD + "float" and not isinf(double):
            double = _single(double)
        return False, double, _ZERO
    form = _INTEGER_TEXT if datatype in _INTEGERS else _DECIMAL_TEXT if datatype == _DECIMAL else None
    if form is None or not form.fullmatch(text):
        return None
    double = max(-_LARGEST, min(_LARGEST, float(text)))
    written = Decimal(int(double)) if form is _INTEGER_TEXT else Decimal(repr(double))
    return False, double, _BEYOND.subtract(Decimal(text), written)


def _single(double: float) -> float:
    """Rounded to what xsd:float holds."""
    try:
        return float(struct.unpack("f", struct.pack("f", double))[0])
    except OverflowError:
        return inf if double > 0 else -inf


def _moment(datatype: str, text: str) -> tuple[str, Decimal, Decimal] | None:
    """Which kind of time or duration a text is, and two numbers by which those of a kind stand."""
    if datatype in _DURATIONS:
        duration = _DURATION.fullmatch(text)
        return None if duration is None else _length(duration)
    mark, form = _TIME_FORMS.get(datatype, ("", None))
    found = form.fullmatch(text) if form is not None else None
    if found is None:
        return None
    parts = found.groupdict()
    # What a fragment leaves open is as in XML Schema 1.1, part 2, E.3.4: the last month and day of 1971.
    year, month = int(parts.get("y") or 1971), int(parts.get("m") or 12)
    day = int(parts["d"]) if parts.get("d") else month_length(year, month)
    hour, minute, second = (parts.get("t") or "0:0:0").split(":")
    if not 1 <= month <= 12 or not 1 <= day <= (month_length(year, month) if "y" in parts else 31):
        return None
    if int(hour) > 23 or int(minute) > 59 or Decimal(second) >= 60:
        return None
    seconds = 86_400 * days_of(year, month, day) + 3600 * int(hour) + 60 * int(minute) + Decimal(second)
    return mark, seconds - _offset_seconds(parts["zone"]), _ZERO


def _length(found: Match[str]) -> tuple[str, Decimal, Decimal]:
    """Durations stand by their seconds from 1969-09-01 on, and those of equal seconds by their months.

    That is the first of the dates from which XML Schema 1.1 (part 2, 3.3.6.1) compares durations.
    """
    sign, *parts = found.groups()
    years, months, days, hours, minutes = (int(part or 0) for part in parts[:5])
    months = (12 * years + months) * (-1 if sign else 1)
    seconds = 86_400 * days + 3600 * hours + 60 * minutes + Decimal(parts[5] or 0)
    start = 12 * 1969 + 8 + months
    length = 86_400 * (days_of(start // 12, start % 12 + 1, 1) - days_of(1969, 9, 1))
    return "~6", length + (-seconds if sign else seconds), Decimal(months)


def _zone(text: str) -> str:
    """The zone of a dateTime, as TZ gives it."""
    return "Z" if text.endswith("Z") else text[-6:] if text[-6] in "+-" and ":" in text[-3:] else ""


def _offset_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    seconds = 3600 * int(zone[1:3]) + 60 * int(zone[4:6])
    return -seconds if zone[0] == "-" else seconds


def _text_key(literal: Literal) -> str:
    """Sorts as text, then language, then datatype; no part is taken for the beginning of another."""
    text, language = literal.value, literal.language
    if "\0" in text:
        text = text.replace("\0", "\0\1")
    if language is not None:
        return f"~7{text}\0\0{language}\0{literal.direction or ''}"
    datatype = literal.datatype.value
    return f"~7{text}" if datatype == _XSD + "string" else f"~7{text}\0\0\0{datatype}"


def _triple_key(triple: Triple) -> str:
    """Sorts as subject, predicate, object, each by its own key."""
    terms = (triple.subject, triple.predicate, triple.object)
    return "~9" + "\0\0".join(_flat(sort_key(term)).replace("\0", "\0\1") for term in terms)


def _flat(key: SortKey) -> str:
    """A key as one text that sorts alike."""
    value, text = key
    parts = (part if isinstance(part, str) else _digits(part) for part in value)  # type: ignore[arg-type]
    return "\1".join((*parts, text))


def _digits(number: float | Decimal) -> str:
    """A number as a text that sorts alike: sign, exponent and digits, all complemented if it is negative."""
    exact = Decimal(number)
    if exact.is_infinite():
        return "9" if exact > 0 else "0"
    if not exact:
        return "5"
    sign, digits, _ = exact.as_tuple()
    written = f"{exact.adjusted() + 10**11:012}" + "".join(map(str, digits)).rstrip("0")
    return f"4{written.translate(_COMPLEMENT)}~" if sign else f"6{written}"
