"""Distances, areas and lengths in the unit that is asked for.

Where positions are longitudes and latitudes, metres are those on the ellipsoid, and degrees those of the
plane that the coordinates span. Elsewhere everything is measured in the plane of the reference system.
Source: GeoSPARQL 1.1, section 8.7.
"""

import shapely

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geo.geodesic import geodesic_area, geodesic_length
from graphdb.geo.geodesic_distance import geodesic_distance
from graphdb.geo.geometry import Geometry, in_degrees, in_system
from graphdb.geo.reference_systems import ReferenceSystem
from graphdb.geo.units import METRE, Quantity, Unit, unit

__all__ = [
    "area",
    "distance",
    "length",
    "metric_area",
    "metric_distance",
    "metric_length",
    "planar_factor",
]


def distance(one: Geometry, other: Geometry, unit_iri: str) -> float:
    """Between the nearest points of the two, in a unit of length or angle.

    Raises InvalidParameter (unit), BadGeometry for what is empty or lies beyond the poles.
    """
    return _distance(one, other, unit(unit_iri))


def metric_distance(one: Geometry, other: Geometry) -> float:
    """As distance, in metres."""
    return _distance(one, other, METRE)


def area(geometry: Geometry, unit_iri: str) -> float:
    """Of its surfaces, in a unit of area, or in the square of a unit of length or angle.

    Raises InvalidParameter (unit), BadGeometry for what lies beyond the poles.
    """
    return _area(geometry, unit(unit_iri))


def metric_area(geometry: Geometry) -> float:
    """As area, in square metres."""
    return _area(geometry, METRE)


def length(geometry: Geometry, unit_iri: str) -> float:
    """Of its curves and of the boundaries of its surfaces, in a unit of length or angle; the perimeter too.

    Raises InvalidParameter (unit), BadGeometry for what lies beyond the poles.
    """
    return _length(geometry, unit(unit_iri))


def metric_length(geometry: Geometry) -> float:
    """As length, in metres."""
    return _length(geometry, METRE)


def planar_factor(system: ReferenceSystem, unit: Unit) -> float | None:
    """What one unit of the system's axes is in this one; None where that takes the ellipsoid.

    Raises InvalidParameter where it cannot be told.
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
            return geodesic_area(in_degrees(geometry), system.geod) / unit.factor
        return float(shapely.area(geometry.shape)) * system.unit_factor**2 / unit.factor
    factor = planar_factor(system, unit)
    if factor is None:
        return geodesic_area(in_degrees(geometry), system.geod) / unit.factor**2
    return float(shapely.area(geometry.shape)) * factor**2


def _length(geometry: Geometry, unit: Unit) -> float:
    factor = planar_factor(geometry.system, unit)
    if factor is None:
        return geodesic_length(in_degrees(geometry), geometry.system.geod) / unit.factor
    return float(shapely.length(geometry.shape)) * factor
