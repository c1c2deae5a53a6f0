"""Geometries in GeoJSON (RFC 7946, section 3.1): always in CRS84."""

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry
from graphdb.geometry.shapes import (
    NESTING_MAX,
    NO_POSITIONS,
    Positions,
    check_brackets,
    check_length,
    check_vertices,
    collection,
    line_string,
    point,
    polygon,
)

__all__ = ["read_geojson", "write_geojson"]


def read_geojson(text: str) -> BaseGeometry:
    """The geometry of an object; for null or no text, an empty one. Raises BadGeometry, LimitExceeded."""
    check_length(text)
    if not text.strip():
        return shapely.GeometryCollection()
    check_brackets(text, "[{", "]}")
    check_vertices(text.count(",") // 2)
    try:
        return _shape(orjson.loads(text), 0)
    except orjson.JSONDecodeError as error:
        raise BadGeometry(f"malformed JSON: {error}") from None
    except (shapely.GEOSException, ValueError, TypeError) as error:
        raise BadGeometry(f"malformed GeoJSON: {str(error).rpartition('Exception: ')[2].strip()}") from None


def write_geojson(shape: BaseGeometry) -> str:
    """The object. Outer rings are counterclockwise, as the standard requires. Measures are left out."""
    text: str = shapely.to_geojson(shapely.orient_polygons(shape))
    return text


def _shape(value: object, depth: int) -> BaseGeometry:
    if value is None:
        return shapely.GeometryCollection()
    if not isinstance(value, dict):
        raise BadGeometry("a GeoJSON geometry is an object")
    kind = value.get("type")
    if kind == "GeometryCollection":
        return _collection(value.get("geometries"), depth)
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise BadGeometry(f"{str(kind)[:50]!r} is no type of GeoJSON geometry")
    return reader(_array(value.get("coordinates")))


def _collection(members: object, depth: int) -> BaseGeometry:
    if not isinstance(members, list):
        raise BadGeometry("the geometries of a GeometryCollection are an array")
    if depth >= NESTING_MAX:
        raise BadGeometry(f"the geometry is nested more than {NESTING_MAX} deep")
    return collection("Geometry", [_shape(member, depth + 1) for member in members])


def _vertices(rows: object) -> Positions:
    """(n, 2) or (n, 3). Further numbers of a position are ignored (RFC 7946, section 3.1.1)."""
    rows = _array(rows)
    for row in rows:
        if (
            not isinstance(row, list)
            or len(row) < 2
            or any(type(number) not in (int, float) for number in row)
        ):
            raise BadGeometry("a position is an array of two numbers or more")
    if not rows:
        return NO_POSITIONS
    dimension = min(3, *map(len, rows))
    return np.array([row[:dimension] for row in rows], dtype=np.float64)


def _array(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise BadGeometry("coordinates are arrays of arrays of numbers")
    return value


def _point(coordinates: object) -> BaseGeometry:
    return point(_vertices([coordinates]) if coordinates else NO_POSITIONS)


def _line(coordinates: object) -> BaseGeometry:
    return line_string(_vertices(coordinates))


def _polygon(coordinates: object) -> BaseGeometry:
    return polygon([_vertices(ring) for ring in _array(coordinates)])


def _several(kind: str) -> Callable[[object], BaseGeometry]:
    return lambda coordinates: collection(kind, [_READERS[kind](part) for part in _array(coordinates)])


_READERS: dict[str, Callable[[object], BaseGeometry]] = {
    "Point": _point,
    "LineString": _line,
    "Polygon": _polygon,
    "MultiPoint": _several("Point"),
    "MultiLineString": _several("LineString"),
    "MultiPolygon": _several("Polygon"),
}
