"""Shapes from the positions that literals hold, checked for what GEOS mends in silence or refuses oddly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry
from graphdb.geo.positions import Positions

__all__ = ["NO_POSITIONS", "collection", "line_string", "point", "polygon"]

NO_POSITIONS: Positions = np.empty((0, 2))

_COLLECTIONS: dict[str, Any] = {
    "Point": (shapely.MultiPoint, shapely.multipoints),
    "LineString": (shapely.MultiLineString, shapely.multilinestrings),
    "Polygon": (shapely.MultiPolygon, shapely.multipolygons),
}


def point(vertices: Positions) -> BaseGeometry:
    """Of one position, or empty. vertices is (n, 2) or (n, 3), as in what follows."""
    if len(vertices) > 1:
        raise BadGeometry("a point has one position")
    return shapely.Point(vertices[0]) if len(vertices) else shapely.Point()


def line_string(vertices: Positions) -> BaseGeometry:
    """Of two positions or more, or empty."""
    if len(vertices) == 1:
        raise BadGeometry("a line has two positions or more")
    return shapely.LineString(vertices)


def polygon(rings: Sequence[Positions]) -> BaseGeometry:
    """The first ring is the outer one; without any, or where that is empty, so is the polygon."""
    if not rings or not len(rings[0]):
        return shapely.Polygon()
    for ring in rings:
        if len(ring) < 4 or not np.array_equal(ring[0], ring[-1]):
            raise BadGeometry("a ring is not closed, or has fewer than four positions")
    return shapely.Polygon(rings[0], list(rings[1:]))


def collection(kind: str, parts: Sequence[BaseGeometry]) -> BaseGeometry:
    """Of parts of this kind: "Point", "LineString", "Polygon"; with any other word, of whatever kinds.

    A part may be empty, as in WKT. The constructors of shapely's classes refuse such a part.
    """
    if kind not in _COLLECTIONS:
        return shapely.GeometryCollection(list(parts))
    if any(part.geom_type != kind for part in parts):
        raise BadGeometry(f"a part is no {kind}")
    empty, joined = _COLLECTIONS[kind]
    made: BaseGeometry = joined(list(parts)) if parts else empty()
    return made
