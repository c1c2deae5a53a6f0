"""Distances, areas and lengths in a given unit.

Where positions are longitudes and latitudes, metres are those on the ellipsoid, and degrees those of the
plane that the coordinates span. Elsewhere everything is measured in the plane of the reference system.
Source: GeoSPARQL 1.1, section 8.7.

Lengths and areas on the ellipsoid follow Karney's formulas in PROJ. Edges are geodesics between vertices,
with one exception: an edge of a surface that spans half the globe or more is followed as it is drawn in the
plane, since the geodesic would go the other way round.
Source: C. F. F. Karney, Algorithms for geodesics, J. Geodesy 87 (2013).
"""

import math

import numpy as np
import shapely
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry.geodesic_distance import geodesic_distance
from graphdb.geometry.geometry import Geometry, in_degrees, in_system
from graphdb.geometry.reference_systems import ReferenceSystem
from graphdb.geometry.shapes import Positions, check_on_globe, edges_of, polygons_of, simple_parts
from graphdb.geometry.units import METRE, Quantity, Unit, unit

__all__ = ["area", "distance", "length", "metric_area", "metric_distance", "metric_length", "planar_factor"]


def distance(one: Geometry, other: Geometry, unit_iri: str) -> float:
    """The distance between the nearest points of the two, in a unit of length or angle.

    Raises InvalidParameter (unit), and BadGeometry if one is empty or lies beyond the poles.
    """
    return _distance(one, other, unit(unit_iri))


def metric_distance(one: Geometry, other: Geometry) -> float:
    """As distance, in metres."""
    return _distance(one, other, METRE)


def area(geometry: Geometry, unit_iri: str) -> float:
    """The area of its surfaces, in a unit of area, or in the square of a unit of length or angle.

    Raises InvalidParameter (unit), and BadGeometry if it lies beyond the poles.
    """
    return _area(geometry, unit(unit_iri))


def metric_area(geometry: Geometry) -> float:
    """As area, in square metres."""
    return _area(geometry, METRE)


def length(geometry: Geometry, unit_iri: str) -> float:
    """The length of its curves and of the boundaries of its surfaces, in a unit of length or angle.

    It is also the perimeter. Raises InvalidParameter (unit), and BadGeometry if it lies beyond the poles.
    """
    return _length(geometry, unit(unit_iri))


def metric_length(geometry: Geometry) -> float:
    """As length, in metres."""
    return _length(geometry, METRE)


def planar_factor(system: ReferenceSystem, unit: Unit) -> float | None:
    """One unit of the system's axes, in this unit; None if the measure needs the ellipsoid.

    Raises InvalidParameter if the unit does not fit the system.
    """
    if unit.quantity is Quantity.AREA:
        raise InvalidParameter("unit", "is one of area, where one of length is needed")
    if (unit.quantity is Quantity.ANGLE) == system.is_geographic:
        return system.unit_factor / unit.factor
    if system.is_geographic:
        return None
    raise InvalidParameter("unit", f"is one of angle, but coordinates in <{system.iri}> are lengths")


def _distance(one: Geometry, other: Geometry, unit: Unit) -> float:
    factor = planar_factor(one.system, unit)
    other = in_system(other, one.system)
    if one.shape.is_empty or other.shape.is_empty:
        raise BadGeometry("an empty geometry has no distance")
    if factor is None:
        return geodesic_distance(in_degrees(one), in_degrees(other), one.system.geod) / unit.factor
    return float(shapely.distance(one.shape, other.shape)) * factor


def _area(geometry: Geometry, unit: Unit) -> float:
    system = geometry.system
    if unit.quantity is Quantity.AREA:
        if system.is_geographic:
            return _geodesic_area(in_degrees(geometry), system.geod) / unit.factor
        return float(shapely.area(geometry.shape)) * system.unit_factor**2 / unit.factor
    factor = planar_factor(system, unit)
    if factor is None:
        return _geodesic_area(in_degrees(geometry), system.geod) / unit.factor**2
    return float(shapely.area(geometry.shape)) * factor**2


def _length(geometry: Geometry, unit: Unit) -> float:
    factor = planar_factor(geometry.system, unit)
    if factor is None:
        return _geodesic_length(in_degrees(geometry), geometry.system.geod) / unit.factor
    return float(shapely.length(geometry.shape)) * factor


_HALF_ROUND = 180.0
_STEP = 1.0  # degrees between the vertices that are added to such an edge


def _geodesic_length(shape: BaseGeometry, geod: Geod) -> float:
    """In metres: its curves and all rings of its surfaces. Raises BadGeometry."""
    check_on_globe(shape)
    rings = shapely.get_rings(polygons_of(shape))
    around = [_followed(shapely.get_coordinates(ring)) for ring in rings]
    edges = [edges_of(curve) for curve in simple_parts(shape) if curve.geom_type != "Polygon"]
    edges += [np.hstack((vertices[:-1], vertices[1:])) for vertices in around]
    return sum(float(np.sum(geod.inv(*run.T)[2])) for run in edges)


def _geodesic_area(shape: BaseGeometry, geod: Geod) -> float:
    """In square metres: its surfaces without their holes. Raises BadGeometry."""
    check_on_globe(shape)
    return sum(_polygon_area(polygon, geod) for polygon in polygons_of(shape))


def _surface_of(geod: Geod) -> float:
    """The area of the whole ellipsoid, in square metres."""
    e = math.sqrt(geod.es)
    flattened = math.atanh(e) / e if e else 1.0
    return 2 * math.pi * geod.a**2 * (1 + (1 - geod.es) * flattened)


def _polygon_area(polygon: BaseGeometry, geod: Geod) -> float:
    outer, *holes = (_ring_area(ring, geod) for ring in shapely.get_rings(polygon))
    return max(0.0, outer - sum(holes))


def _ring_area(ring: BaseGeometry, geod: Geod) -> float:
    """PROJ's area may be wrong by multiples of the whole ellipsoid. A rough area decides which multiple."""
    vertices = _followed(shapely.get_coordinates(ring))
    area, _ = geod.polygon_area_perimeter(*vertices.T)
    heights = np.sin(np.radians(vertices[:, 1]))
    steps = np.radians(np.diff(vertices[:, 0]))
    rough = -float(np.sum((heights[1:] + heights[:-1]) / 2 * steps)) * geod.a**2
    whole = _surface_of(geod)
    return abs(area + round((rough - area) / whole) * whole)


def _followed(vertices: Positions) -> Positions:
    """A ring with more vertices in the edges that span half the globe or more."""
    spans = np.abs(np.diff(vertices[:, 0]))
    if not (spans >= _HALF_ROUND).any():
        return vertices
    counts = np.where(spans >= _HALF_ROUND, np.ceil(spans / _STEP), 1).astype(np.int64)
    pieces = [
        np.linspace(begin, end, count, endpoint=False)
        for begin, end, count in zip(vertices[:-1], vertices[1:], counts, strict=True)
    ]
    return np.concatenate([*pieces, vertices[-1:]])
