"""Buffers: all that is within a distance of a geometry, in the plane or on the ellipsoid."""

import math

import shapely

from graphdb.errors import InvalidParameter
from graphdb.geo.constructions import QUARTER_SEGMENTS, reasons_of_geos
from graphdb.geo.geodesic_buffer import RADIUS_MAX_M, geodesic_buffer
from graphdb.geo.geometry import Geometry, from_degrees, in_degrees
from graphdb.geo.measures import planar_factor
from graphdb.geo.units import METRE, Unit, unit

__all__ = ["buffer", "metric_buffer"]


def buffer(geometry: Geometry, radius: float, unit_iri: str) -> Geometry:
    """All within a radius, in a unit of length or angle; a negative one takes the margin from a surface.

    A unit of length with longitudes and latitudes is one on the ellipsoid, as in `measures`.
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
        around = geodesic_buffer(in_degrees(geometry), radius_m, geometry.system.geod)
        return from_degrees(around, like=geometry)
