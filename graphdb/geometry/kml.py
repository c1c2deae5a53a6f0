"""Geometries in KML (OGC 12-007r2, section 10): always in CRS84, with heights if there are any."""

import re
from collections.abc import Iterator

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry
from graphdb.geometry.shapes import (
    NESTING_MAX,
    NO_POSITIONS,
    Positions,
    check_length,
    check_vertices,
    collection,
    line_string,
    point,
    polygon,
)
from graphdb.geometry.xml_document import Element, numbers_text, read_xml

__all__ = ["read_kml", "write_kml"]

_KML = "http://www.opengis.net/kml/2.2"
_NAMESPACE = re.compile(r"https?://(?:www\.opengis\.net|earth\.google\.com)/kml/2\.\d")


def read_kml(text: str) -> BaseGeometry:
    """The geometry of an element; for an empty text, an empty one. Raises BadGeometry, LimitExceeded."""
    check_length(text)
    text = text.strip()
    if not text:
        return shapely.GeometryCollection()
    root = read_xml(text)
    if not _NAMESPACE.fullmatch(root.namespace):
        raise BadGeometry(f"the element {root.name} is in the namespace <{root.namespace}>, not in KML's")
    try:
        return _shape(root, 0)
    except (shapely.GEOSException, ValueError) as error:
        raise BadGeometry(f"malformed KML: {str(error).rpartition('Exception: ')[2].strip()}") from None


def write_kml(shape: BaseGeometry) -> str:
    """The element; measures are left out."""
    return _written(shape, f' xmlns="{_KML}"')


def _shape(element: Element, depth: int) -> BaseGeometry:
    if depth > NESTING_MAX:
        raise BadGeometry(f"the geometry is nested more than {NESTING_MAX} deep")
    match element.name:
        case "Point":
            return point(_vertices(element))
        case "LineString" | "LinearRing":
            return line_string(_vertices(element))
        case "Polygon":
            return polygon([_vertices(ring) for ring in _rings_of(element)])
        case "MultiGeometry":
            parts = [_shape(child, depth + 1) for child in element.children]
            kinds = {part.geom_type for part in parts}
            return collection(kinds.pop() if len(kinds) == 1 else "Geometry", parts)
    raise BadGeometry(f"the KML element {element.name} is not read")


def _rings_of(element: Element) -> Iterator[Element]:
    for name in ("outerBoundaryIs", "innerBoundaryIs"):
        for boundary in element.named(name):
            yield from boundary.named("LinearRing")


def _vertices(element: Element) -> Positions:
    coordinates = element.first("coordinates")
    rows = [row.split(",") for row in coordinates.text.split()] if coordinates is not None else []
    check_vertices(len(rows))
    if not rows:
        return NO_POSITIONS
    if len({len(row) for row in rows}) > 1 or len(rows[0]) not in (2, 3):
        raise BadGeometry("a position is two numbers or three, with commas between, as many as the others")
    return np.array(rows, dtype=np.float64)


def _written(shape: BaseGeometry, attributes: str = "") -> str:
    if shape.geom_type.startswith("Multi") or shape.geom_type == "GeometryCollection":
        parts = "".join(_written(part) for part in shapely.get_parts(shape))
        return f"<MultiGeometry{attributes}>{parts}</MultiGeometry>"
    if shape.geom_type == "Polygon":
        return f"<Polygon{attributes}>{_rings_text(shape)}</Polygon>"
    return f"<{shape.geom_type}{attributes}>{_positions(shape)}</{shape.geom_type}>"


def _rings_text(surface: BaseGeometry) -> str:
    written = []
    for number, ring in enumerate(shapely.get_rings(surface)):
        name = "innerBoundaryIs" if number else "outerBoundaryIs"
        written.append(f"<{name}>{_written(ring)}</{name}>")
    return "".join(written)


def _positions(shape: BaseGeometry) -> str:
    rows = shapely.get_coordinates(shape, include_z=shape.has_z).tolist()
    text = " ".join(",".join(numbers_text(row)) for row in rows)
    return f"<coordinates>{text}</coordinates>" if rows else ""
