"""Lengths and areas on the ellipsoid of shapes in longitudes and latitudes, by Karney's formulas in PROJ.

Edges are geodesics between vertices, with one exception: an edge of a surface that spans half the globe or
more is followed as it is drawn in the plane, since the geodesic would go the other way round.
Source: C. F. F. Karney, Algorithms for geodesics, J. Geodesy 87 (2013).
"""

import math

import numpy as np
import shapely
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry
from graphdb.geo.edges import edges_of, polygons_of, simple_parts
from graphdb.geo.positions import Positions

__all__ = ["check_on_globe", "geodesic_area", "geodesic_length", "surface_of"]

_HALF_ROUND = 180.0
_LONGITUDE_MAX = 720.0
_STEP = 1.0  # degrees between the vertices that are put into an edge around half the globe


def check_on_globe(shape: BaseGeometry) -> None:
    """Raises BadGeometry for latitudes beyond the poles, and for longitudes that nobody means."""
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


def geodesic_length(shape: BaseGeometry, geod: Geod) -> float:
    """In metres: of its curves and of all rings of its surfaces. Raises BadGeometry."""
    check_on_globe(shape)
    rings = shapely.get_rings(polygons_of(shape))
    around = [_followed(shapely.get_coordinates(ring)) for ring in rings]
    edges = [edges_of(curve) for curve in simple_parts(shape) if curve.geom_type != "Polygon"]
    edges += [np.hstack((vertices[:-1], vertices[1:])) for vertices in around]
    return sum(float(np.sum(geod.inv(*run.T)[2])) for run in edges)


def geodesic_area(shape: BaseGeometry, geod: Geod) -> float:
    """In square metres, of its surfaces; holes do not count. Raises BadGeometry."""
    check_on_globe(shape)
    return sum(_polygon_area(polygon, geod) for polygon in polygons_of(shape))


def surface_of(geod: Geod) -> float:
    """The area of the whole ellipsoid, in square metres."""
    e = math.sqrt(geod.es)
    flattened = math.atanh(e) / e if e else 1.0
    return 2 * math.pi * geod.a**2 * (1 + (1 - geod.es) * flattened)


def _polygon_area(polygon: BaseGeometry, geod: Geod) -> float:
    outer, *holes = (_ring_area(ring, geod) for ring in shapely.get_rings(polygon))
    return max(0.0, outer - sum(holes))


def _ring_area(ring: BaseGeometry, geod: Geod) -> float:
    """PROJ knows the area but for multiples of that of the whole ellipsoid; which, a rough one decides."""
    vertices = _followed(shapely.get_coordinates(ring))
    area, _ = geod.polygon_area_perimeter(*vertices.T)
    heights = np.sin(np.radians(vertices[:, 1]))
    steps = np.radians(np.diff(vertices[:, 0]))
    rough = -float(np.sum((heights[1:] + heights[:-1]) / 2 * steps)) * geod.a**2
    whole = surface_of(geod)
    return abs(area + round((rough - area) / whole) * whole)


def _followed(vertices: Positions) -> Positions:
    """A ring with vertices put into the edges that span half the globe or more."""
    spans = np.abs(np.diff(vertices[:, 0]))
    if not (spans >= _HALF_ROUND).any():
        return vertices
    counts = np.where(spans >= _HALF_ROUND, np.ceil(spans / _STEP), 1).astype(np.int64)
    pieces = [
        np.linspace(begin, end, count, endpoint=False)
        for begin, end, count in zip(vertices[:-1], vertices[1:], counts, strict=True)
    ]
    return np.concatenate([*pieces, vertices[-1:]])
