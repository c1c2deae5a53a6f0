"""New geometries in the plane of the reference system: hulls, circles, boundaries and set operations.

Source: GeoSPARQL 1.1, section 8.7. The second geometry is converted to the system of the first.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry.geometry import Geometry, Notation, Syntax, in_system
from graphdb.geometry.reference_systems import crs84, reference_system

__all__ = [
    "QUARTER_SEGMENTS",
    "boundary",
    "bounding_circle",
    "centroid",
    "concave_hull",
    "convex_hull",
    "difference",
    "envelope",
    "intersection",
    "reasons_of_geos",
    "symmetric_difference",
    "transform",
    "union",
]

QUARTER_SEGMENTS: Final = 32
"""Segments of a quarter of a circle. The area of the circle is then accurate to 0.05 %."""

_CONCAVENESS = 0.3  # the default ratio: 0 is the most concave hull, 1 the convex hull


def boundary(geometry: Geometry) -> Geometry:
    """The boundary: the rings of a surface, the ends of a curve, empty for points.

    Raises BadGeometry for a collection of several kinds, which has no boundary.
    """
    shape = shapely.boundary(geometry.shape)
    if shape is None:
        raise BadGeometry("a collection of several kinds of geometry has no boundary")
    return geometry.like(shape)


def bounding_circle(geometry: Geometry) -> Geometry:
    """A polygon that encloses the smallest circle around the geometry; for a point, the point."""
    shape = geometry.shape
    radius = float(shapely.minimum_bounding_radius(shape))
    if not radius:
        return geometry.like(shapely.centroid(shape))
    centre = shapely.centroid(shapely.minimum_bounding_circle(shape))
    around = radius / math.cos(math.pi / (4 * QUARTER_SEGMENTS))
    return geometry.like(shapely.buffer(centre, around, quad_segs=QUARTER_SEGMENTS))


def centroid(geometry: Geometry) -> Geometry:
    """The centre of mass."""
    return geometry.like(shapely.centroid(geometry.shape))


def convex_hull(geometry: Geometry) -> Geometry:
    """The smallest convex geometry that contains the geometry."""
    return geometry.like(shapely.convex_hull(geometry.shape))


def concave_hull(geometry: Geometry, ratio: float = _CONCAVENESS) -> Geometry:
    """A polygon around the geometry without the longest outer edges. ratio 1 is the convex hull.

    Raises InvalidParameter if ratio is not from 0 to 1.
    """
    if not 0 <= ratio <= 1:
        raise InvalidParameter("ratio", f"{ratio:g} is not from 0 to 1")
    with reasons_of_geos(geometry):
        return geometry.like(shapely.concave_hull(geometry.shape, ratio=ratio))


def envelope(geometry: Geometry) -> Geometry:
    """The smallest rectangle along the axes that contains the geometry."""
    return geometry.like(shapely.envelope(geometry.shape))


def intersection(one: Geometry, other: Geometry) -> Geometry:
    """The points in both. Raises BadGeometry."""
    return _overlay(shapely.intersection, one, other)


def union(one: Geometry, other: Geometry) -> Geometry:
    """The points in one or both. Raises BadGeometry."""
    return _overlay(shapely.union, one, other)


def difference(one: Geometry, other: Geometry) -> Geometry:
    """The points in one, but not in the other. Raises BadGeometry."""
    return _overlay(shapely.difference, one, other)


def symmetric_difference(one: Geometry, other: Geometry) -> Geometry:
    """The points in exactly one of them. Raises BadGeometry."""
    return _overlay(shapely.symmetric_difference, one, other)


def transform(geometry: Geometry, system: str) -> Geometry:
    """The geometry in another reference system, given by its IRI.

    If the notation of the geometry allows only CRS84, the result is written in WKT.

    Raises InvalidParameter, BadGeometry.
    """
    target = reference_system(system)
    moved = in_system(geometry, target)
    if geometry.notation.syntax in (Syntax.GEOJSON, Syntax.KML) and not target.is_like(crs84()):
        return replace(moved, notation=Notation(Syntax.WKT))
    return moved


@contextmanager
def reasons_of_geos(*geometries: Geometry) -> Iterator[None]:
    """Raise errors of GEOS as BadGeometry. The reason names where a geometry is invalid, if one is."""
    try:
        yield
    except shapely.GEOSException as error:
        for geometry in geometries:
            reason = shapely.is_valid_reason(geometry.shape)
            if reason != "Valid Geometry":
                raise BadGeometry(f"the geometry is not valid: {reason}") from None
        raise BadGeometry(f"cannot be computed: {str(error).rpartition('Exception: ')[2]}") from None


def _overlay(
    operation: Callable[[BaseGeometry, BaseGeometry], BaseGeometry], one: Geometry, other: Geometry
) -> Geometry:
    other = in_system(other, one.system)
    with reasons_of_geos(one, other):
        return one.like(operation(one.shape, other.shape))
