"""`geo_shape`: shapes on earth, given in GeoJSON or WKT, kept as well-known binary in hexadecimal digits.

The shapes of a document in one field are one term: a collection, where there are several. Edges are straight
in degrees, as in Elasticsearch. shapely is imported with the first shape.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from graphdb.errors import BadGeometry, LimitExceeded
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.leaf_reader import Doubles

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["POSITIONS_MAX", "box_of", "shape_of", "shape_term", "shown_shape"]

POSITIONS_MAX = 100_000
"""Of one shape, in a document or a query."""

_LENGTH_MAX = 64 * POSITIONS_MAX
_DEPTH_MAX = 32
_KINDS = "Point LineString Polygon MultiPoint MultiLineString MultiPolygon"
_NAMES = {name.lower(): name for name in _KINDS.split()}


def shape_of(value: Any, ignore_z: bool = True) -> "BaseGeometry":
    """One shape: an object of GeoJSON, with the type `envelope` besides its own, or WKT, with `BBOX`.

    Longitudes beyond 180 degrees are the other side of the date line.
    Errors: parse_exception, illegal_argument_exception.
    """
    import shapely

    if not isinstance(value, dict | str):
        raise _unreadable("shape must be an object consisting of type and coordinates, or WKT")
    try:
        shape = _from_text(value) if isinstance(value, str) else _from_object(value, 0)
    except (BadGeometry, LimitExceeded) as error:
        raise _unreadable(str(error)) from None
    if shape.has_z and not ignore_z:
        raise _unreadable("found Z value but [ignore_z_value] parameter is [false]")
    shape = shapely.force_2d(shape)
    count = int(shapely.get_num_coordinates(shape))
    if count > POSITIONS_MAX:
        raise illegal_argument(f"a shape has at most {POSITIONS_MAX} positions, got [{count}]")
    if shape.is_empty:
        raise _unreadable("a shape must not be empty")
    if not shapely.is_valid(shape):
        raise illegal_argument(f"the shape is not valid: {shapely.is_valid_reason(shape)}")
    return _within_degrees(shape)


def shape_term(shapes: "list[BaseGeometry]") -> str:
    """What is stored for the shapes of one document."""
    import shapely

    shape = shapes[0] if len(shapes) == 1 else shapely.GeometryCollection(shapes)
    return str(shapely.to_wkb(shape, hex=True))


def shown_shape(value: Any, format: str | None) -> Any:
    """A shape of a document in GeoJSON, or with the format `wkt` in WKT. Errors: as of `shape_of`."""
    shape = shape_of(value)
    if format == "wkt":
        return shape.wkt
    import shapely

    return orjson.loads(shapely.to_geojson(shape))


def box_of(west: float, north: float, east: float, south: float) -> "BaseGeometry":
    """A box; with west > east it crosses the date line."""
    import shapely

    if north < south:
        raise illegal_argument(f"top is below bottom corner: {north} vs. {south}")
    if west <= east:
        return shapely.box(west, south, east, north)
    return shapely.MultiPolygon([shapely.box(west, south, 180, north), shapely.box(-180, south, east, north)])


def _from_text(text: str) -> "BaseGeometry":
    from graphdb.geometry.wkt import read_wkt

    if len(text) > _LENGTH_MAX:
        raise illegal_argument(f"a shape has at most {_LENGTH_MAX} characters, got [{len(text)}]")
    if text.strip()[:4].upper() == "BBOX":
        return _envelope(text.strip()[4:].strip().strip("()").split(","), "BBOX takes four numbers", _of_bbox)
    system, shape = read_wkt(text)
    if system is not None:
        raise _unreadable("WKT of a shape names no reference system")
    return shape


def _from_object(value: dict[str, Any], depth: int) -> "BaseGeometry":
    from graphdb.geometry.geojson import read_geojson

    kind = str(value.get("type")).lower()
    if kind == "envelope":
        given = value.get("coordinates")
        corners = [corner for corner in given if isinstance(corner, list)] if isinstance(given, list) else []
        numbers = [number for corner in corners for number in corner] if len(corners) == 2 else []
        return _envelope(numbers, "an envelope has two corners, top left and bottom right", _of_corners)
    if kind == "geometrycollection":
        return _collection(value.get("geometries"), depth)
    if kind not in _NAMES:
        raise _unreadable(f"unknown geometry type: {kind[:50]}")
    text = orjson.dumps({"type": _NAMES[kind], "coordinates": value.get("coordinates")}).decode()
    return read_geojson(text)


def _collection(members: Any, depth: int) -> "BaseGeometry":
    import shapely

    if not isinstance(members, list) or depth >= _DEPTH_MAX:
        raise _unreadable(f"[geometries] must be an array, nested at most {_DEPTH_MAX} deep")
    if not all(isinstance(member, dict) for member in members):
        raise _unreadable("shape must be an object consisting of type and coordinates")
    return shapely.GeometryCollection([_from_object(member, depth + 1) for member in members])


_Sides = Callable[[list[float]], tuple[float, float, float, float]]


def _of_bbox(numbers: list[float]) -> tuple[float, float, float, float]:
    west, east, north, south = numbers
    return west, north, east, south


def _of_corners(numbers: list[float]) -> tuple[float, float, float, float]:
    west, north, east, south = numbers
    return west, north, east, south


def _envelope(given: list[Any], reason: str, sides: _Sides) -> "BaseGeometry":
    try:
        numbers = [float(number) for number in given]
    except (TypeError, ValueError):
        raise _unreadable(reason) from None
    if len(numbers) != 4 or not all(abs(number) <= 180 for number in numbers):
        raise _unreadable(reason)
    return box_of(*sides(numbers))


def _within_degrees(shape: "BaseGeometry") -> "BaseGeometry":
    """With longitudes from -180 to 180: what is beyond is cut off and put on the other side."""
    import shapely

    west, south, east, north = shapely.bounds(shape)
    if south < -90 or north > 90 or not west >= -540 or not east <= 540:
        raise illegal_argument(
            "a shape is within 90 degrees of latitude and 540 of longitude, got "
            f"[{west}, {south}, {east}, {north}]"
        )
    if west >= -180 and east <= 180:
        return shape
    pieces = []
    for turn in (-360, 0, 360):
        piece = shapely.intersection(shape, shapely.box(turn - 180, -90, turn + 180, 90))
        if not piece.is_empty:
            pieces.append(shapely.transform(piece, partial(_moved, turn)))
    return shapely.union_all(pieces)


def _moved(turn: float, positions: Doubles) -> Doubles:
    return positions - (turn, 0)


def _unreadable(reason: str) -> SearchError:
    return SearchError("parse_exception", reason)
