"""Properties of one geometry: its dimensions, kind, parts, bounds and reference system."""

import numpy as np
import shapely

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry.geometry import Geometry
from graphdb.geometry.geosparql_names import SF

__all__ = [
    "coordinate_dimension",
    "dimension",
    "geometry_n",
    "geometry_type",
    "highest",
    "is_3d",
    "is_empty",
    "is_measured",
    "is_simple",
    "lowest",
    "num_geometries",
    "spatial_dimension",
    "system_iri",
]


def dimension(geometry: Geometry) -> int:
    """0 for points, 1 for curves, 2 for surfaces; for a collection the highest, or 0 if it is empty."""
    return max(0, int(shapely.get_dimensions(geometry.shape)))


def coordinate_dimension(geometry: Geometry) -> int:
    """The number of coordinates of a position: 2 to 4."""
    return 2 + geometry.shape.has_z + geometry.shape.has_m


def spatial_dimension(geometry: Geometry) -> int:
    """The same without the measure: 2 or 3."""
    return 2 + geometry.shape.has_z


def is_empty(geometry: Geometry) -> bool:
    """Whether it has no positions."""
    return bool(geometry.shape.is_empty)


def is_simple(geometry: Geometry) -> bool:
    """Whether it meets itself only at its ends; for a collection, whether this holds for each part."""
    shape = geometry.shape
    parts = shapely.get_parts(shape) if shape.geom_type == "GeometryCollection" else shape
    return bool(np.all(shapely.is_simple(parts)))


def is_3d(geometry: Geometry) -> bool:
    """Whether its positions have heights."""
    return bool(geometry.shape.has_z)


def is_measured(geometry: Geometry) -> bool:
    """Whether its positions have measures."""
    return bool(geometry.shape.has_m)


def geometry_type(geometry: Geometry) -> str:
    """The IRI of its class in the vocabulary of Simple Features."""
    return SF + geometry.shape.geom_type


def num_geometries(geometry: Geometry) -> int:
    """The number of its parts; 1 if it is not a collection."""
    return int(shapely.get_num_geometries(geometry.shape))


def geometry_n(geometry: Geometry, number: int) -> Geometry:
    """One of its parts; the first is number 1. Raises InvalidParameter if that part does not exist."""
    count = num_geometries(geometry)
    if not 1 <= number <= count:
        raise InvalidParameter("index", f"{number} is not from 1 to {count}, the number of geometries")
    return geometry.like(shapely.get_parts(geometry.shape)[number - 1])


def system_iri(geometry: Geometry) -> str:
    """The IRI of its reference system."""
    return geometry.system.iri


def lowest(geometry: Geometry, axis: int) -> float:
    """The lowest of the first (axis 0), second (1) or third (2) coordinates, in the order of literals.

    Raises BadGeometry if there are none.
    """
    return float(np.min(_ordinates(geometry, axis)))


def highest(geometry: Geometry, axis: int) -> float:
    """The highest; otherwise as `lowest`."""
    return float(np.max(_ordinates(geometry, axis)))


def _ordinates(geometry: Geometry, axis: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    shape = geometry.shape
    if axis < 2:
        column = 1 - axis if geometry.system.is_north_first else axis
        numbers = shapely.get_coordinates(shape)[:, column]
    else:
        numbers = shapely.get_coordinates(shape, include_z=True)[:, 2]
        numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        raise BadGeometry("the geometry is empty" if shape.is_empty else "the geometry has no heights")
    return numbers
