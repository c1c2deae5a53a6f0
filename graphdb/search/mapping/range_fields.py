"""Range fields: a pair of bounds as one term, whose halves compare as the bounds do.

A bound is written with a fixed number of hexadecimal digits, the lower one first: 16 for numbers and dates,
32 for addresses. So an index of ranges is one of terms; a query compares the halves of its distinct terms.

Source: Elasticsearch's RangeFieldMapper and RangeType.
"""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.dates import DateFormat, date_format
from graphdb.search.mapping.readers import (
    Read,
    address_of,
    address_term,
    float_reader,
    integer_reader,
    network_terms,
    text_of,
)
from graphdb.search.mapping.value_formats import range_of

__all__ = ["RANGE_TYPES", "Range", "RangeType", "query_range", "range_reader", "shown_range"]

Bound = int | float
_BOUNDS = {"gte": (0, True), "gt": (0, False), "lte": (1, True), "lt": (1, False)}
"""By member: which bound it gives, and whether the bound is in."""


@dataclass(frozen=True, slots=True)
class RangeType:
    """element: the type of the bounds; before and after give the neighbours of a value."""

    element: str
    least: Bound
    most: Bound
    digits: int
    code: Callable[[Any], str]
    value: Callable[[str], Bound]
    before: Callable[[Any], Bound]
    after: Callable[[Any], Bound]

    def term(self, low: Bound, high: Bound) -> str:
        return self.code(low) + self.code(high)

    def bounds(self, term: str) -> tuple[Bound, Bound]:
        """Of a stored term, both included."""
        return self.value(term[: self.digits]), self.value(term[self.digits :])


def _float_code(number: float) -> str:
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    return f"{bits ^ (2**64 - 1 if bits >> 63 else 2**63):016x}"


def _float_value(code: str) -> float:
    bits = int(code, 16)
    (number,) = struct.unpack(">d", struct.pack(">Q", bits ^ (2**63 if bits >> 63 else 2**64 - 1)))
    return float(number)


def _whole(element: str, bits: int) -> RangeType:
    return RangeType(
        element, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 16,
        lambda number: f"{number + 2**63:016x}", lambda code: int(code, 16) - 2**63,
        lambda number: number - 1, lambda number: number + 1,
    )  # fmt: skip


def _fraction(element: str, kind: type[np.floating[Any]]) -> RangeType:
    return RangeType(
        element, -math.inf, math.inf, 16, _float_code, _float_value,
        lambda number: float(np.nextafter(kind(number), kind(-np.inf))),
        lambda number: float(np.nextafter(kind(number), kind(np.inf))),
    )  # fmt: skip


RANGE_TYPES = {
    "integer_range": _whole("integer", 32),
    "long_range": _whole("long", 64),
    "float_range": _fraction("float", np.float32),
    "double_range": _fraction("double", np.float64),
    "date_range": _whole("date", 64),
    "ip_range": RangeType(
        "ip", 0, 2**128 - 1, 32,
        lambda number: f"{number:032x}", lambda code: int(code, 16),
        lambda number: number - 1, lambda number: number + 1,
    ),
}  # fmt: skip


# The ranges of documents.


def range_reader(type_name: str, path: str, options: Mapping[str, Any]) -> Read:
    """What reads the ranges of a field as terms."""
    kind = RANGE_TYPES[type_name]
    read_bound = _bound_reader(kind, options)

    def read(value: Any) -> str:
        if kind.element == "ip" and isinstance(value, str):
            low, high = (int(IPv6Address(term)) for term in network_terms(value))
            return kind.term(low, high)
        if not isinstance(value, dict):
            raise _unreadable(f"error parsing field [{path}], expected an object but got {_shown(value)}")
        bounds = [kind.least, kind.most]
        for member, given in value.items():
            if member not in _BOUNDS:
                raise _unreadable(f"error parsing field [{path}], with unknown parameter [{member[:100]}]")
            if given is not None:
                side, included = _BOUNDS[member]
                bound = read_bound(given, included == (side == 1))
                if not included:
                    bound = _moved(kind, side, bound)
                bounds[side] = bound
        if bounds[0] > bounds[1]:
            raise illegal_argument(f"min value ({bounds[0]}) is greater than max value ({bounds[1]})")
        return kind.term(*bounds)

    return read


def _unreadable(reason: str) -> SearchError:
    return SearchError("document_parsing_exception", reason)


def _moved(kind: RangeType, side: int, bound: Bound) -> Bound:
    """A bound that is out as the next one that is in; kept within what a code can say."""
    if bound == (kind.most if side == 0 else kind.least):
        raise illegal_argument(f"no value is {'above' if side == 0 else 'below'} {bound}")
    return kind.after(bound) if side == 0 else kind.before(bound)


def _bound_reader(kind: RangeType, options: Mapping[str, Any]) -> Callable[[Any, bool], Any]:
    """(value, whether a date that is not exact means its end) -> bound."""
    if kind.element == "date":
        pattern = date_format(options["format"])
        return lambda value, round_up: pattern.parse(text_of(value), round_up)
    if kind.element == "ip":
        return lambda value, round_up: int(IPv6Address(address_term(text_of(value))))
    make = integer_reader if kind.element in ("integer", "long") else float_reader
    read = make(kind.element, options["coerce"])

    def number(value: Any, round_up: bool) -> Any:
        found = read(value)
        if found is None:
            raise illegal_argument(f'For input string: "{_shown(value)}"')
        return found

    return number


def _shown(value: Any) -> str:
    return str(value)[:100]


def shown_range(spec: FieldSpec, value: Any, format: str | None = None) -> Any:
    """What a document gives as its range, as `fields` shows it: the bounds formatted, the members as given.

    Errors: as of the reader, for a value that is no range.
    """
    kind = RANGE_TYPES[spec.type]
    if isinstance(value, str):
        range_reader(spec.type, spec.path, spec.options)(value)
        return value
    range_reader(spec.type, spec.path, spec.options)(value)
    read_bound, pattern = _bound_reader(kind, spec.options), _pattern(spec, format)
    return {
        member: None if bound is None else _shown_bound(kind, read_bound(bound, False), pattern)
        for member, bound in value.items()
    }


def _pattern(spec: FieldSpec, format: str | None) -> DateFormat | None:
    return date_format(format or spec.options["format"]) if spec.type == "date_range" else None


def _shown_bound(kind: RangeType, bound: Any, pattern: DateFormat | None) -> Any:
    if pattern is not None:
        return pattern.write(bound)
    if kind.element == "ip":
        return address_of(IPv6Address(bound).exploded)
    return float(str(np.float32(bound))) if kind.element == "float" else bound


# The ranges of queries.


@dataclass(frozen=True, slots=True)
class Range:
    """Codes of the bounds of a type, both included."""

    low: str
    high: str


def query_range(
    spec: FieldSpec,
    low: Any,
    high: Any,
    with_low: bool = True,
    with_high: bool = True,
    time_zone: str | None = None,
    format: str | None = None,
    now_ms: int = 0,
) -> Range | None:
    """The range that a query means, None where nothing is in it; a bound None is open.

    Errors: as of `range_of`.
    """
    kind = RANGE_TYPES[spec.type]
    bounds = [kind.least, kind.most]
    for side, (given, included) in enumerate(((low, with_low), (high, with_high))):
        if given is None:
            continue
        bound = _asked(kind, spec, given, included == (side == 1), time_zone, format, now_ms)
        if not included:
            if bound == (kind.most if side == 0 else kind.least):
                return None
            bound = kind.after(bound) if side == 0 else kind.before(bound)
        bounds[side] = bound
    return Range(kind.code(bounds[0]), kind.code(bounds[1])) if bounds[0] <= bounds[1] else None


def _asked(
    kind: RangeType,
    spec: FieldSpec,
    given: Any,
    round_up: bool,
    time_zone: str | None,
    format: str | None,
    now_ms: int,
) -> Any:
    if kind.element == "ip":
        text = text_of(given)
        return int(IPv6Address(network_terms(text)[round_up] if "/" in text else address_term(text)))
    storage = Storage.FLOATS if kind.element in ("float", "double") else Storage.INTS
    element = FieldSpec(spec.path, kind.element, storage, options=spec.options)
    bound = range_of(element, given, round_up, time_zone, format, now_ms)
    if kind.element in ("integer", "long") and isinstance(bound, int):
        if bound != range_of(element, given, not round_up):
            raise illegal_argument(f"Value [{text_of(given)}] has a decimal part")
        if not kind.least <= bound <= kind.most:
            article = "an" if kind.element == "integer" else "a"
            raise illegal_argument(f"Value [{text_of(given)}] is out of range for {article} {kind.element}")
    return bound
