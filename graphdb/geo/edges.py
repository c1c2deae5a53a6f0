"""The edges that a shape is drawn with: straight in the plane of its coordinates, from vertex to vertex."""

from typing import TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

__all__ = ["Edges", "edges_of", "polygons_of", "simple_parts"]

Edges: TypeAlias = NDArray[np.float64]
"""(n, 4): where each begins, x and y, and where it ends; the same place twice for a point."""

_POINT, _POLYGON, _FIRST_MULTI = 0, 3, 4  # GEOS's numbers of types; those from 4 on are collections


def simple_parts(shape: BaseGeometry) -> NDArray[np.object_]:
    """Its points, line strings and polygons, out of all collections; none that is empty."""
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
    """Those of its curves, of the rings of its surfaces, and its points, each as an edge without length."""
    parts = simple_parts(shape)
    kinds = shapely.get_type_id(parts)
    points = shapely.get_coordinates(parts[kinds == _POINT])
    curves = (parts[(kinds != _POINT) & (kinds != _POLYGON)], shapely.get_rings(parts[kinds == _POLYGON]))
    vertices, numbers = shapely.get_coordinates(np.concatenate(curves), return_index=True)
    goes_on = numbers[1:] == numbers[:-1]
    edges = np.hstack((vertices[:-1][goes_on], vertices[1:][goes_on]))
    return np.concatenate((edges, np.hstack((points, points))))
