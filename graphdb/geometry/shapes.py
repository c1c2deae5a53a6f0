"""Shapes of shapely: their limits, building them, moving their vertices, and taking them apart."""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry, LimitExceeded

__all__ = [
    "CHARACTERS_MAX",
    "NESTING_MAX",
    "NO_POSITIONS",
    "VERTICES_MAX",
    "Edges",
    "Positions",
    "check_brackets",
    "check_length",
    "check_on_globe",
    "check_vertices",
    "collection",
    "edges_of",
    "line_string",
    "point",
    "polygon",
    "polygons_of",
    "simple_parts",
    "with_positions",
]

CHARACTERS_MAX: Final = 64 << 20
"""Characters in the text of one geometry."""
VERTICES_MAX: Final = 1_000_000
NESTING_MAX: Final = 32
"""Collections within collections, and brackets. GEOS overflows its stack at some ten thousand."""


def check_length(text: str) -> None:
    """Raises LimitExceeded."""
    if len(text) > CHARACTERS_MAX:
        raise LimitExceeded("the length of a geometry in characters", len(text), CHARACTERS_MAX)


def check_vertices(count: int) -> None:
    """Raises LimitExceeded."""
    if count > VERTICES_MAX:
        raise LimitExceeded("the number of vertices of a geometry", count, VERTICES_MAX)


def check_brackets(text: str, opening: str, closing: str) -> None:
    """Raises BadGeometry if brackets of these kinds are nested too deeply."""
    if sum(map(text.count, opening)) <= NESTING_MAX:
        return
    brackets = re.findall(f"[{re.escape(opening + closing)}]", text)
    if max(accumulate(1 if bracket in opening else -1 for bracket in brackets)) > NESTING_MAX:
        raise BadGeometry(f"the geometry is nested more than {NESTING_MAX} deep")


_LONGITUDE_MAX: Final = 720.0


def check_on_globe(shape: BaseGeometry) -> None:
    """Raises BadGeometry for latitudes beyond the poles, and longitudes beyond two rounds of the globe."""
    if shape.is_empty:
        return
    if isinstance(shape, shapely.Point):  # bounds would take longer than the distance between two
        west = east = shape.x
        south = north = shape.y
    else:
        west, south, east, north = shapely.bounds(shape)
    if south < -90 or north > 90:
        worst = south if -south > north else north
        raise BadGeometry(f"the latitude {worst:g} lies beyond the poles: are the axes in another order?")
    if west < -_LONGITUDE_MAX or east > _LONGITUDE_MAX:
        raise BadGeometry(f"a longitude is not from -{_LONGITUDE_MAX:g} to {_LONGITUDE_MAX:g}")


Positions: TypeAlias = NDArray[np.float64]
"""(n, 2): easting and northing, or longitude and latitude."""


def with_positions(shape: BaseGeometry, change: Callable[[Positions], Positions]) -> BaseGeometry:
    """The shape with each vertex moved. Heights and measures stay the same.

    change receives all positions in the order of the vertices, and returns as many.
    """
    if shape.has_m:
        return _through_wkb(shape, change)
    if shape.has_z:
        return shapely.transform(
            shape,
            lambda vertices: np.column_stack((change(vertices[:, :2]), vertices[:, 2])),
            include_z=True,
        )
    return shapely.transform(shape, change)


def _through_wkb(shape: BaseGeometry, change: Callable[[Positions], Positions]) -> BaseGeometry:
    """The same through well-known binary, because shapely's transform loses measures."""
    data = bytearray(shapely.to_wkb(shape, flavor="iso", byte_order=1))
    views: list[NDArray[np.float64]] = []
    _find_vertices(data, 0, views)
    positions = np.concatenate([view[:, :2] for view in views])
    there = ~np.isnan(positions[:, 0])  # an empty point is written so
    positions[there] = change(positions[there])
    begins = np.cumsum([0, *map(len, views)])
    for view, begin in zip(views, begins, strict=False):
        view[:, :2] = positions[begin : begin + len(view)]
    return shapely.from_wkb(bytes(data))


_DIMENSIONS = {0: 2, 1: 3, 2: 3, 3: 4}  # by the thousands of the type: plain, Z, M, ZM
_WKB_POINT, _WKB_LINE_STRING, _WKB_POLYGON = 1, 2, 3


def _find_vertices(data: bytearray, at: int, views: list[NDArray[np.float64]]) -> int:
    """Append a view of each run of vertices in little-endian ISO WKB; returns where the geometry ends."""
    modifier, kind = divmod(_count_at(data, at + 1), 1000)
    dimensions, at = _DIMENSIONS[modifier], at + 5

    def run(count: int, at: int) -> int:
        view = np.frombuffer(data, "<f8", count * dimensions, at).reshape(count, dimensions)
        views.append(view)
        return at + view.nbytes

    if kind == _WKB_POINT:
        return run(1, at)
    count, at = _count_at(data, at), at + 4
    if kind == _WKB_LINE_STRING:
        return run(count, at)
    for _ in range(count):
        at = run(_count_at(data, at), at + 4) if kind == _WKB_POLYGON else _find_vertices(data, at, views)
    return at


def _count_at(data: bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


NO_POSITIONS: Positions = np.empty((0, 2))

_COLLECTIONS: dict[str, Any] = {
    "Point": (shapely.MultiPoint, shapely.multipoints),
    "LineString": (shapely.MultiLineString, shapely.multilinestrings),
    "Polygon": (shapely.MultiPolygon, shapely.multipolygons),
}


def point(vertices: Positions) -> BaseGeometry:
    """A point of one position, or empty. vertices is (n, 2) or (n, 3), as in the functions below."""
    if len(vertices) > 1:
        raise BadGeometry("a point has one position")
    return shapely.Point(vertices[0]) if len(vertices) else shapely.Point()


def line_string(vertices: Positions) -> BaseGeometry:
    """A line of two positions or more, or empty."""
    if len(vertices) == 1:
        raise BadGeometry("a line has two positions or more")
    return shapely.LineString(vertices)


def polygon(rings: Sequence[Positions]) -> BaseGeometry:
    """A polygon whose first ring is the outer one. It is empty if that ring is missing or empty."""
    if not rings or not len(rings[0]):
        return shapely.Polygon()
    for ring in rings:
        if len(ring) < 4 or not np.array_equal(ring[0], ring[-1]):
            raise BadGeometry("a ring is not closed, or has fewer than four positions")
    return shapely.Polygon(rings[0], list(rings[1:]))


def collection(kind: str, parts: Sequence[BaseGeometry]) -> BaseGeometry:
    """A collection of parts of one kind: "Point", "LineString" or "Polygon". Any other word allows all kinds.

    A part may be empty, as in WKT. The constructors of shapely's classes refuse such a part.
    """
    if kind not in _COLLECTIONS:
        return shapely.GeometryCollection(list(parts))
    if any(part.geom_type != kind for part in parts):
        raise BadGeometry(f"a part is no {kind}")
    empty, joined = _COLLECTIONS[kind]
    made: BaseGeometry = joined(list(parts)) if parts else empty()
    return made


Edges: TypeAlias = NDArray[np.float64]
"""(n, 4): x and y of the begin, then of the end. A point is an edge with equal ends."""

_POINT, _POLYGON, _FIRST_MULTI = 0, 3, 4  # GEOS's numbers of types; those from 4 on are collections


def simple_parts(shape: BaseGeometry) -> NDArray[np.object_]:
    """Its points, line strings and polygons, out of all collections, without empty ones."""
    parts = np.array([shape], dtype=object)
    while (shapely.get_type_id(parts) >= _FIRST_MULTI).any():
        parts = shapely.get_parts(parts)
    return parts[~shapely.is_empty(parts)]


def polygons_of(shape: BaseGeometry) -> NDArray[np.object_]:
    """Its polygons, out of all collections."""
    parts = simple_parts(shape)
    polygons: NDArray[np.object_] = parts[shapely.get_type_id(parts) == _POLYGON]
    return polygons


def edges_of(shape: BaseGeometry) -> Edges:
    """The edges of its curves and of the rings of its surfaces; and its points, as edges without length."""
    parts = simple_parts(shape)
    kinds = shapely.get_type_id(parts)
    points = shapely.get_coordinates(parts[kinds == _POINT])
    curves = (parts[(kinds != _POINT) & (kinds != _POLYGON)], shapely.get_rings(parts[kinds == _POLYGON]))
    vertices, numbers = shapely.get_coordinates(np.concatenate(curves), return_index=True)
    goes_on = numbers[1:] == numbers[:-1]
    edges = np.hstack((vertices[:-1][goes_on], vertices[1:][goes_on]))
    return np.concatenate((edges, np.hstack((points, points))))
