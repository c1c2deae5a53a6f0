"""Points on earth in all forms that a document or a query may give them in."""

import re
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.numbers import parse_number

__all__ = ["geohash_cell", "point_of", "points_of"]

Point = tuple[float, float]
"""Latitude and longitude in degrees."""

_WKT = re.compile(r"\s*POINT\s*Z?\s*\(\s*(\S+)\s+([^\s)]+)(?:\s+([^\s)]+))?\s*\)\s*", re.IGNORECASE)
_GEOHASH_DIGITS = "0123456789bcdefghjkmnpqrstuvwxyz"
_GEOHASH_LENGTH_MAX = 12
_TEXT_LENGTH_MAX = 200
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
    if len(text) > _TEXT_LENGTH_MAX:
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
