"""How the values of fields are read: numbers, IP addresses, points, dates, booleans."""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.dates import DEFAULT_NANOS_FORMAT, date_format

__all__ = [
    "FLOAT_TYPES",
    "INTEGER_RANGES",
    "Read",
    "address_of",
    "address_term",
    "checked_nanos",
    "float_reader",
    "geohash_cell",
    "integer_reader",
    "network_terms",
    "parse_number",
    "point_of",
    "points_of",
    "rounder",
    "text_of",
]

# IP addresses as terms that sort as the addresses do.
#
# The term is the IPv6 address with all its digits; an IPv4 address is its mapped IPv6 address
# (`::ffff:1.2.3.4`), as in Lucene's InetAddressPoint. So a range, and a network, is a range of terms.

_MAPPED = 0xFFFF << 32
_ADDRESS_LENGTH_MAX = 100


def address_term(text: str) -> str:
    """Errors: illegal_argument_exception."""
    try:
        if len(text) > _ADDRESS_LENGTH_MAX or "%" in text:
            raise ValueError
        return _term(ip_address(text))
    except ValueError:
        raise illegal_argument(f"'{text[:_ADDRESS_LENGTH_MAX]}' is not an IP string literal.") from None


def network_terms(text: str) -> tuple[str, str]:
    """The first and the last term of `10.0.0.0/8`, or of one address. Errors: illegal_argument_exception."""
    if "/" not in text:
        return address_term(text), address_term(text)
    try:
        if len(text) > _ADDRESS_LENGTH_MAX or not text.rpartition("/")[2].isdecimal():
            raise ValueError
        network = ip_network(text, strict=False)
    except ValueError:
        raise illegal_argument(f"'{text[:_ADDRESS_LENGTH_MAX]}' is not an IP string literal.") from None
    return _term(network[0]), _term(network[-1])


def address_of(term: str) -> str:
    """The address as it is shown: `1.2.3.4`, `2001:db8::1`."""
    address = IPv6Address(term)
    return str(address.ipv4_mapped or address)


def _term(address: IPv4Address | IPv6Address) -> str:
    number = int(address)
    return IPv6Address(number | _MAPPED if address.version == 4 else number).exploded


# From a JSON value to a number of a field's type.

INTEGER_RANGES = {
    "byte": (-(2**7), 2**7 - 1),
    "short": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
    "unsigned_long": (0, 2**64 - 1),
}
"""The smallest and largest value by type."""

FLOAT_TYPES = ("double", "float", "half_float", "scaled_float")

_INTEGER = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_DECIMAL = re.compile(
    r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?|[+-]?Infinity|NaN)[dDfF]?\s*", re.ASCII
)
_TEXT_LENGTH_MAX = 1000


def parse_number(text: str) -> int | float | None:
    """The number that a text means, as Java reads it; None where it means none."""
    if _INTEGER.fullmatch(text):
        return int(text)
    match = _DECIMAL.fullmatch(text) if len(text) <= _TEXT_LENGTH_MAX else None
    return float(match[1]) if match else None


def integer_reader(type_name: str, coerce: bool) -> Callable[[Any], int | None]:
    """With coerce strings are numbers, fractions are cut off, and an empty string is no value (None)."""
    low, high = INTEGER_RANGES[type_name]

    def read(value: Any) -> int | None:
        if type(value) is int and low <= value <= high:
            return value
        if value == "" and coerce:
            return None
        number = _number(value, type_name, coerce)
        whole = _cut(value, number) if abs(number) < 2**70 else None
        if whole is None or not low <= whole <= high:
            raise illegal_argument(f"Value [{_shown(value)}] is out of range for {_with_article(type_name)}")
        if whole != number and not coerce:
            raise illegal_argument(f"Value [{_shown(value)}] has a decimal part")
        return whole

    return read


def _cut(value: Any, number: int | float) -> int:
    """Towards zero. The digits of a text count, as those of 64 bits are more than a double has."""
    if isinstance(value, str) and isinstance(number, float):
        return int(Decimal(value.strip().rstrip("dDfF")))
    return int(number)


def float_reader(type_name: str, coerce: bool, scaling_factor: float = 1.0) -> Callable[[Any], float | None]:
    """Rounds to the precision of the type."""
    to_precision = rounder(type_name, scaling_factor)

    def read(value: Any) -> float | None:
        if value == "" and coerce:
            return None
        number = to_precision(float(_number(value, type_name, coerce)))
        if not np.isfinite(number):
            raise illegal_argument(f"[{type_name}] supports only finite values, but got [{_shown(value)}]")
        return number

    return read


def rounder(type_name: str, scaling_factor: float = 1.0) -> Callable[[float], float]:
    """What rounds a double to the precision that a field of a type keeps; infinite beyond its range."""
    if type_name == "scaled_float":
        return lambda number: (
            round(number * scaling_factor) / scaling_factor if np.isfinite(number) else number
        )
    if type_name == "double":
        return lambda number: number
    narrow = np.float32 if type_name == "float" else np.float16

    def to_precision(number: float) -> float:
        with np.errstate(over="ignore"):
            return float(narrow(number))

    return to_precision


def _number(value: Any, type_name: str, coerce: bool) -> int | float:
    """Errors: illegal_argument_exception, number_format_exception for decimals as Elasticsearch has it."""
    if isinstance(value, bool):
        token = "VALUE_TRUE" if value else "VALUE_FALSE"
        raise illegal_argument(f"Current token ({token}) not numeric, can not use numeric value accessors")
    if isinstance(value, int | float):
        return value if abs(value) < 2**1023 else float("inf")
    if not isinstance(value, str):
        raise illegal_argument("Cannot parse object as number")
    if not coerce:
        raise illegal_argument(f"{type_name.capitalize()} value passed as String")
    number = parse_number(value)
    if number is None or number != number:
        kind = "number_format_exception" if type_name in FLOAT_TYPES else "illegal_argument_exception"
        raise SearchError(kind, f'For input string: "{value[:200]}"')
    return number


def _shown(value: Any) -> str:
    return str(value)[:100]


def _with_article(type_name: str) -> str:
    if type_name == "unsigned_long":
        return "unsigned long"
    return f"an {type_name}" if type_name == "integer" else f"a {type_name}"


# Points on earth in all forms that a document or a query may give them in.

Point = tuple[float, float]
"""Latitude and longitude in degrees."""

_WKT = re.compile(r"\s*POINT\s*Z?\s*\(\s*(\S+)\s+([^\s)]+)(?:\s+([^\s)]+))?\s*\)\s*", re.IGNORECASE)
_GEOHASH_DIGITS = "0123456789bcdefghjkmnpqrstuvwxyz"
_GEOHASH_LENGTH_MAX = 12
_POINT_LENGTH_MAX = 200
_NUMBER_MAX = 1e9  # far beyond any coordinate, and no NaN is below it


def points_of(value: Any, name: str = "", ignore_z: bool = True) -> list[Point]:
    """One point, or an array of points; an array of numbers is one point, [longitude, latitude].

    Errors: parse_exception, illegal_argument_exception; name is the field's, for their text.
    """
    if isinstance(value, list) and not (value and _is_number(value[0])):
        return [point for item in value if item is not None for point in points_of(item, name, ignore_z)]
    return [point_of(value, name, ignore_z)]


def point_of(value: Any, name: str = "", ignore_z: bool = True) -> Point:
    """An object with lat and lon or GeoJSON's, "lat,lon", `POINT (lon lat)`, a geohash, or [lon, lat]."""
    if isinstance(value, dict):
        point = _from_object(value, ignore_z)
    elif isinstance(value, list):
        point = _from_array(value, ignore_z)
    elif isinstance(value, str):
        point = _from_text(value, ignore_z)
    else:
        raise _parse_error("geo_point expected")
    latitude, longitude = point
    if not -90 <= latitude <= 90:
        raise illegal_argument(f"illegal latitude value [{latitude}] for {name}")
    if not -180 <= longitude <= 180:
        raise illegal_argument(f"illegal longitude value [{longitude}] for {name}")
    return point


def _from_object(value: dict[str, Any], ignore_z: bool) -> Point:
    if set(value) == {"type", "coordinates"}:
        if str(value["type"]).lower() != "point" or not isinstance(value["coordinates"], list):
            raise _parse_error("type must be [Point] and coordinates an array")
        return _from_array(value["coordinates"], ignore_z)
    if set(value) == {"geohash"} and isinstance(value["geohash"], str):
        return _from_geohash(value["geohash"])
    for name in value:
        if name not in ("lat", "lon", "z"):
            raise _parse_error("field must be either [lat|lon], [type|coordinates], or [geohash]")
    for name in ("lat", "lon"):
        if name not in value:
            raise _parse_error(f"field [{name}] missing")
    _check_z(value.get("z"), ignore_z)
    return _coordinate(value["lat"], "latitude"), _coordinate(value["lon"], "longitude")


def _from_array(value: list[Any], ignore_z: bool) -> Point:
    if not 2 <= len(value) <= 3:
        raise _parse_error("[geo_point] field type does not accept less than 2 or more than 3 values")
    _check_z(value[2] if len(value) == 3 else None, ignore_z)
    return _coordinate(value[1], "latitude"), _coordinate(value[0], "longitude")


def _from_text(text: str, ignore_z: bool) -> Point:
    if len(text) > _POINT_LENGTH_MAX:
        raise _parse_error("geo_point is too long")
    if wkt := _WKT.fullmatch(text):
        _check_z(wkt[3], ignore_z)
        return _coordinate(wkt[2], "latitude"), _coordinate(wkt[1], "longitude")
    if "," not in text:
        return _from_geohash(text)
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3:
        raise _parse_error(f"failed to parse [{text}], expected 2 or 3 coordinates but found: [{len(parts)}]")
    _check_z(parts[2] if len(parts) == 3 else None, ignore_z)
    return _coordinate(parts[0], "latitude"), _coordinate(parts[1], "longitude")


def _check_z(z: Any, ignore_z: bool) -> None:
    if z is not None and not ignore_z:
        raise _parse_error(
            f"Exception parsing coordinates: found Z value [{z}] but [ignore_z_value] parameter is [false]"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _coordinate(value: Any, name: str) -> float:
    number = parse_number(value) if isinstance(value, str) else value
    if not isinstance(number, int | float) or isinstance(number, bool) or not abs(number) < _NUMBER_MAX:
        raise _parse_error(f"[{name}] must be a valid double value")
    return float(number)


def _from_geohash(text: str) -> Point:
    south_west, north_east = geohash_cell(text)
    return (south_west[0] + north_east[0]) / 2, (south_west[1] + north_east[1]) / 2


def geohash_cell(text: str) -> tuple[Point, Point]:
    """The corners of a cell, south-west and north-east; each digit halves it five times, longitude first.

    Errors: parse_exception.
    """
    if not 1 <= len(text) <= _GEOHASH_LENGTH_MAX:
        raise _parse_error(f"unsupported geohash [{text[:50]}]")
    low, high = [-180.0, -90.0], [180.0, 90.0]
    for at, char in enumerate(text.lower()):
        digit = _GEOHASH_DIGITS.find(char)
        if digit < 0:
            raise _parse_error(f"unsupported symbol [{char}] in geohash [{text}]")
        for bit in range(5):
            axis = (at * 5 + bit) % 2
            middle = (low[axis] + high[axis]) / 2
            (low if digit >> (4 - bit) & 1 else high)[axis] = middle
    return (low[1], low[0]), (high[1], high[0])


def _parse_error(reason: str) -> SearchError:
    return SearchError("parse_exception", reason)


# What all of these readers are, and how a value that is no text is read as one.

Read = Callable[[Any], Any]
"""None is the answer for a value that counts as none. Errors: SearchError, the cause of the document's."""


def text_of(value: Any) -> str:
    """A value as text, as it stands in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        token = "START_OBJECT" if isinstance(value, dict) else "START_ARRAY"
        raise SearchError("illegal_state_exception", f"Can't get text on a {token}")
    return json.dumps(value)


def checked_nanos(nanos: int) -> int:
    """Nanoseconds since 1970, given that date_nanos has them: from 1970 to 2262.

    Source: Elasticsearch's DateUtils.toLong.
    """
    if 0 <= nanos < 2**63:
        return nanos
    where = "before the epoch in 1970" if nanos < 0 else "after 2262-04-11T23:47:16.854775807"
    text = date_format(DEFAULT_NANOS_FORMAT).write_nanos(nanos)
    raise illegal_argument(f"date[{text}] is {where} and cannot be stored in nanosecond resolution")
