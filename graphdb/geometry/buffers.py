"""Buffers: all points within a distance of a geometry, in the plane or on the ellipsoid.

On the ellipsoid, a piece of the shape at a time is drawn in the azimuthal equidistant projection around it,
which keeps lengths from its centre. The buffers of the pieces are united in longitude and latitude again.
"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
import shapely
from pyproj import Geod, Proj
from shapely import affinity
from shapely.geometry.base import BaseGeometry

from graphdb.errors import InvalidParameter
from graphdb.geometry.constructions import QUARTER_SEGMENTS, reasons_of_geos
from graphdb.geometry.geometry import Geometry, from_degrees, in_degrees
from graphdb.geometry.measures import planar_factor
from graphdb.geometry.shapes import Positions, check_on_globe, check_vertices, polygons_of, simple_parts
from graphdb.geometry.units import METRE, Unit, unit

__all__ = ["RADIUS_MAX_M", "buffer", "metric_buffer"]


def buffer(geometry: Geometry, radius: float, unit_iri: str) -> Geometry:
    """All points within a radius, in a unit of length or angle. A negative radius shrinks a surface.

    For longitudes and latitudes, a unit of length is measured on the ellipsoid, as in `measures`.
    Raises InvalidParameter, BadGeometry.
    """
    return _buffer(geometry, radius, unit(unit_iri))


def metric_buffer(geometry: Geometry, radius: float) -> Geometry:
    """As buffer, in metres."""
    return _buffer(geometry, radius, METRE)


def _buffer(geometry: Geometry, radius: float, unit: Unit) -> Geometry:
    if not math.isfinite(radius):
        raise InvalidParameter("radius", f"{radius} is no finite number")
    factor = planar_factor(geometry.system, unit)
    with reasons_of_geos(geometry):
        if factor is not None:
            return geometry.like(shapely.buffer(geometry.shape, radius / factor, quad_segs=QUARTER_SEGMENTS))
        radius_m = radius * unit.factor
        if abs(radius_m) > RADIUS_MAX_M:
            raise InvalidParameter("radius", f"is over {RADIUS_MAX_M / 1000:,.0f} km, a quarter of the globe")
        around = _geodesic_buffer(in_degrees(geometry), radius_m, geometry.system.geod)
        return from_degrees(around, like=geometry)


RADIUS_MAX_M: Final = 10_000_000.0
_PIECE_M: Final = 200_000.0  # about the length of a piece: lengths within it are accurate to 0.02 %
_DEVIATION: Final = 1e-3  # how far an edge may be from its true course, as a share of the radius
_DEVIATION_M: Final = 0.01
_POLE: Final = 90.0


def _geodesic_buffer(shape: BaseGeometry, radius_m: float, geod: Geod) -> BaseGeometry:
    """All points within a radius of at most RADIUS_MAX_M metres. A negative radius shrinks a surface.

    The buffer is cut at the antimeridian, so that longitudes are from -180 to 180.
    Raises BadGeometry, LimitExceeded.
    """
    check_on_globe(shape)
    surface = shapely.union_all(polygons_of(shape))
    if shape.is_empty or (radius_m <= 0 and surface.is_empty):
        return shapely.Polygon()
    if not radius_m:
        return _within_one_round(surface)
    step = _edge_degrees(shape, abs(radius_m), geod)
    pieces = list(_pieces(_margin(shape) if radius_m > 0 else surface.boundary, step, geod))
    around = shapely.union_all([_around(piece, abs(radius_m), geod) for piece in pieces])
    surface = _within_one_round(surface)
    return shapely.union(surface, around) if radius_m > 0 else shapely.difference(surface, around)


def _margin(shape: BaseGeometry) -> BaseGeometry:
    """What the buffer is drawn around: points, curves, and the boundaries of surfaces."""
    parts = [part.boundary if part.geom_type == "Polygon" else part for part in simple_parts(shape)]
    return shapely.GeometryCollection(parts)


def _edge_degrees(shape: BaseGeometry, radius_m: float, geod: Geod) -> float:
    """The longest edge, in degrees, that may be drawn straight in the projection.

    A parallel deviates from a straight line by its length squared, times the tangent of its latitude, divided
    by 8 radii of the earth.
    """
    _, south, _, north = shapely.bounds(shape)
    steepness = math.tan(math.radians(min(max(abs(south), abs(north)), 89.9)))
    off_m = max(radius_m * _DEVIATION, _DEVIATION_M)
    return math.degrees(math.sqrt(8 * off_m / geod.a / max(steepness, 0.1)))


def _pieces(shape: BaseGeometry, step: float, geod: Geod) -> Iterator[BaseGeometry]:
    """Points, and runs of edges, each small enough for one projection. No edge is longer than step."""
    parts = simple_parts(shape)
    check_vertices(sum(math.ceil(part.length / step) for part in parts))
    points = parts[shapely.get_type_id(parts) == 0]
    for part in parts[shapely.get_type_id(parts) != 0]:
        vertices = shapely.get_coordinates(shapely.segmentize(part, step))
        along = np.cumsum(np.append(0, geod.inv(*vertices[:-1].T, *vertices[1:].T)[2]))
        numbers = (along[:-1] // _PIECE_M).astype(np.int64)
        begins = np.flatnonzero(np.append(True, np.diff(numbers) > 0))
        for begin, end in zip(begins, [*begins[1:], len(numbers)], strict=True):
            yield shapely.LineString(vertices[begin : end + 1])
    yield from points


def _around(piece: BaseGeometry, radius_m: float, geod: Geod) -> BaseGeometry:
    """The buffer of a small piece, in longitude and latitude."""
    west, south, east, north = shapely.bounds(piece)
    longitude, latitude = (west + east) / 2, (south + north) / 2
    projection = Proj(proj="aeqd", lon_0=longitude, lat_0=latitude, a=geod.a, b=geod.b)
    drawn = shapely.transform(piece, lambda vertices: np.column_stack(projection(*vertices.T)))
    buffered = shapely.buffer(drawn, radius_m, quad_segs=QUARTER_SEGMENTS)
    north_pole = projection(longitude, _POLE)

    def back(ring: BaseGeometry) -> BaseGeometry:
        x, y = shapely.get_coordinates(ring).T
        vertices = np.column_stack(projection(x, y, inverse=True))
        is_north = shapely.covers(shapely.Polygon(np.column_stack((x, y))), shapely.Point(north_pole))
        pole = _POLE if is_north else -_POLE
        return shapely.make_valid(shapely.Polygon(_unrolled(vertices, longitude, pole)))

    parts = []
    for part in shapely.get_parts(buffered):  # by rounding, a sliver may lie apart from the rest
        outer, *holes = map(back, shapely.get_rings(part))
        parts.append(shapely.difference(outer, shapely.union_all(holes)))
    return _within_one_round(shapely.union_all(parts))


def _unrolled(ring: Positions, longitude: float, pole: float) -> Positions:
    """A ring whose longitudes continue beyond 180. A ring around a pole is extended to the pole and back."""
    longitudes = np.unwrap(ring[:, 0], period=360)
    longitudes += 360 * round((longitude - longitudes[0]) / 360)
    unrolled = np.column_stack((longitudes, ring[:, 1]))
    if abs(longitudes[-1] - longitudes[0]) < 180:
        return unrolled
    return np.concatenate((unrolled, [[longitudes[-1], pole], [longitudes[0], pole]], unrolled[:1]))


def _within_one_round(shape: BaseGeometry) -> BaseGeometry:
    """The same area, with longitudes from -180 to 180."""
    if shape.is_empty:
        return shape
    west, _, east, _ = shapely.bounds(shape)
    if west >= -180 and east <= 180:
        return shape
    rounds = range(math.floor((west + 180) / 360), math.ceil((east - 180) / 360) + 1)
    cut = [
        shapely.intersection(affinity.translate(shape, -360 * number), shapely.box(-180, -90, 180, 90))
        for number in rounds
    ]
    return shapely.union_all(cut)
