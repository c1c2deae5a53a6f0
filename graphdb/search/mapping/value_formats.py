"""What a value in a request means for a field, and how a stored value is shown."""

import math
from datetime import UTC
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.dates import date_format, date_math, date_math_nanos
from graphdb.search.mapping.instants import zone_of
from graphdb.search.mapping.readers import (
    address_of,
    address_term,
    checked_nanos,
    network_terms,
    parse_number,
    rounder,
    text_of,
)
from graphdb.search.mapping.versions import version_of

__all__ = ["interval_of", "range_of", "shown", "term_of", "whole_range"]

Stored = str | int | float

_DATES = ("date", "date_nanos")
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


def term_of(spec: FieldSpec, value: Any, now_ms: int = 0) -> Stored:
    """The stored value that a term in a query asks for.

    A number that a field of integers cannot hold (a fraction, or beyond its range) stays a double that none
    of its values equals. A date stands for its first millisecond (date_nanos: nanosecond), see interval_of
    for all of them.
    Errors: illegal_argument_exception, number_format_exception, parse_exception.
    """
    if spec.type in _DATES:
        return range_of(spec, value, False, now_ms=now_ms)
    if spec.type == "boolean":
        return _boolean(value)
    if spec.type == "ip":
        return address_term(text_of(value))
    if spec.storage in (Storage.INTS, Storage.FLOATS):
        return _number_term(spec, value)
    if spec.storage in (Storage.TERMS, Storage.TEXT):
        return _normalized(spec, value)
    raise illegal_argument(f"Field [{spec.path}] of type [{spec.type}] does not support term queries")


def interval_of(spec: FieldSpec, value: Any, now_ms: int = 0) -> tuple[Stored, Stored] | None:
    """The first and the last stored value of a term that stands for many: a date without its milliseconds,
    a network (`10.0.0.0/8`). None for all others: term_of tells.
    """
    if spec.type in _DATES:
        return range_of(spec, value, False, now_ms=now_ms), range_of(spec, value, True, now_ms=now_ms)
    if spec.type == "ip" and "/" in text_of(value):
        return network_terms(text_of(value))
    return None


def range_of(
    spec: FieldSpec,
    bound: Any,
    round_up: bool = False,
    time_zone: str | None = None,
    format: str | None = None,
    now_ms: int = 0,
) -> Stored:
    """A bound of a range as a stored value; of an unsigned_long perhaps one that there cannot be. round_up is
    for `gt` and `lte`: of a date that is not exact the end is meant, of a fraction between two integers the
    one below (else the one above).

    Errors as of term_of.
    """
    if spec.type in _DATES:
        pattern = date_format(format or spec.options["format"])
        zone = UTC if time_zone is None else zone_of(time_zone)
        if spec.type == "date_nanos":
            return checked_nanos(date_math_nanos(text_of(bound), pattern, now_ms, round_up, zone))
        return date_math(text_of(bound), pattern, now_ms, round_up, zone)
    if spec.storage is Storage.INTS and spec.type != "boolean":
        number = _parsed(bound)
        if math.isinf(number):
            number = 2**65 if number > 0 else -(2**65)
        whole = math.floor(number) if round_up else math.ceil(number)
        return whole if spec.type == "unsigned_long" else min(max(whole, _LONG_MIN), _LONG_MAX)
    return term_of(spec, bound)


def whole_range(spec: FieldSpec) -> tuple[int, int]:
    """The least and the greatest value that a column of whole numbers holds."""
    return (0, 2**64 - 1) if spec.type == "unsigned_long" else (_LONG_MIN, _LONG_MAX)


def shown(spec: FieldSpec, stored: Any, format: str | None = None, time_zone: str | None = None) -> Any:
    """A stored value as answers show it: a date by format (else the field's own), an address, true and false.

    format is a date format, or for geo_point `wkt` or `geojson`.
    """
    if spec.type in _DATES:
        zone = UTC if time_zone is None else zone_of(time_zone)
        pattern = date_format(format or spec.options["format"])
        return (pattern.write_nanos if spec.type == "date_nanos" else pattern.write)(int(stored), zone)
    if spec.type == "boolean":
        return bool(stored)
    if spec.type == "ip":
        return address_of(stored)
    if spec.type == "version":
        return version_of(stored)
    if spec.type in ("float", "half_float"):
        return _shortest(float(stored), spec.type)
    if spec.storage is Storage.POINTS:
        return _shown_point(stored, format)
    if spec.storage is Storage.VECTORS:
        return [float(str(item)) for item in stored]
    if spec.storage is Storage.INTS:
        return int(stored)
    return float(stored) if spec.storage is Storage.FLOATS else stored


def _boolean(value: Any) -> int:
    if value is True or value == "true":
        return 1
    if value is False or value in ("false", ""):
        return 0
    raise illegal_argument(f"Can't parse boolean value [{text_of(value)[:100]}], expected [true] or [false]")


def _parsed(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = text_of(value)
    number = parse_number(text)
    if number is None or number != number:
        raise SearchError("number_format_exception", f'For input string: "{text[:200]}"')
    return number


def _number_term(spec: FieldSpec, value: Any) -> int | float:
    number = _parsed(value)
    if spec.storage is Storage.FLOATS:
        return rounder(spec.type, spec.options.get("scaling_factor") or 1.0)(_double(number))
    least, most = whole_range(spec)
    if math.isinf(number) or not least <= number <= most:
        return math.inf if number > 0 else -math.inf
    return int(number) if number == int(number) else number


def _double(number: int | float) -> float:
    return float(number) if abs(number) < 2**1023 else math.copysign(math.inf, number)


def _normalized(spec: FieldSpec, value: Any) -> str:
    normalize = spec.options.get("normalize")
    text = text_of(value)
    return text if normalize is None else str(normalize(text))


def _shortest(number: float, type_name: str) -> float:
    """The double with the fewest digits that rounds to the number: 0.1 and not 0.10000000149."""
    return float(str((np.float32 if type_name == "float" else np.float16)(number)))


def _shown_point(point: tuple[float, float], format: str | None) -> Any:
    latitude, longitude = float(point[0]), float(point[1])
    if format == "wkt":
        return f"POINT ({longitude} {latitude})"
    return {"coordinates": [longitude, latitude], "type": "Point"}
