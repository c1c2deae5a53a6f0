"""The aggregate functions: one geometry from all those of a group."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.geo import constructions
from graphdb.geo.geometry import Geometry, in_system

__all__ = ["AGGREGATES", "Group"]


class Group:
    """The geometries so far, in the reference system of the first."""

    def __init__(self) -> None:
        self._first: Geometry | None = None
        self._shapes: list[BaseGeometry] = []

    def add(self, geometry: Geometry) -> None:
        """Raises BadGeometry where it cannot be in the system of the first."""
        if self._first is None:
            self._first = geometry
        self._shapes.append(in_system(geometry, self._first.system).shape)

    def together(self) -> Geometry | None:
        """All as one collection, written as the first is; None of none."""
        return None if self._first is None else self._first.like(shapely.GeometryCollection(self._shapes))


def _union(collection: Geometry) -> Geometry:
    with constructions.reasons_of_geos(collection):
        return collection.like(shapely.union_all(shapely.get_parts(collection.shape)))


AGGREGATES: Mapping[str, Callable[[Geometry], Geometry]] = MappingProxyType(
    {
        "aggBoundingBox": constructions.envelope,
        "aggBoundingCircle": constructions.bounding_circle,
        "aggCentroid": constructions.centroid,
        "aggConcaveHull": constructions.concave_hull,
        "aggConvexHull": constructions.convex_hull,
        "aggUnion": _union,
    }
)
"""By the name within the namespace geof:: what becomes of a group, given as one collection."""
