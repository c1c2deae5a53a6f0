"""Geometries in GML 2 and 3: points, curves of lines and arcs, surfaces of such curves, and collections.

They are written in the simple features profile of 3.2, or with the elements of GML 2.
Sources: OGC 02-069 (GML 2.1.2), 03-105r1 (3.1.1), 07-036 (3.2.1), the simple features of 10-100r3.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import quoteattr

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry.arcs import arc_string, circle
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

__all__ = ["GML_3_2", "GmlProfile", "GmlText", "gml_profile", "read_gml", "write_gml"]

_NAMESPACE = re.compile(r"https?://www\.opengis\.net/(?:ont/)?gml(?:/[\d.]+)?")


@dataclass(frozen=True, slots=True)
class GmlText:
    """The content of a text: the name of the reference system, or None; the shape; the namespace."""

    system: str | None
    shape: BaseGeometry
    namespace: str


def read_gml(text: str) -> GmlText:
    """The geometry of an element, with its coordinates as written; for an empty text, an empty one.

    Raises BadGeometry, LimitExceeded.
    """
    check_length(text)
    text = text.strip()
    if not text:
        return GmlText(None, shapely.GeometryCollection(), "")
    root = read_xml(text)
    if not _NAMESPACE.fullmatch(root.namespace):
        raise BadGeometry(f"the element {root.name} is in the namespace <{root.namespace}>, not in GML's")
    system = _system(root)
    try:
        shape = _shape(root, _Context(2, 0))
    except (shapely.GEOSException, ValueError) as error:
        raise BadGeometry(f"malformed GML: {str(error).rpartition('Exception: ')[2].strip()}") from None
    return GmlText(system, shape, root.namespace)


@dataclass(frozen=True, slots=True)
class _Context:
    dimension: int  # of positions, unless an element has a srsDimension
    depth: int

    def within(self, element: Element) -> "_Context":
        if self.depth >= NESTING_MAX:
            raise BadGeometry(f"the geometry is nested more than {NESTING_MAX} deep")
        return _Context(_dimension(element, self.dimension), self.depth + 1)


def _system(root: Element) -> str | None:
    """The reference system, which may be named at any element; None if none is named."""
    names = {element.attributes["srsName"] for element in _all(root) if "srsName" in element.attributes}
    if len(names) > 1:
        raise BadGeometry(f"a geometry of several reference systems: {', '.join(sorted(names))}")
    return names.pop() if names else None


def _all(element: Element) -> Iterator[Element]:
    yield element
    for child in element.children:
        yield from _all(child)


def _shape(element: Element, around: _Context) -> BaseGeometry:
    reader = _READERS.get(element.name)
    if reader is None:
        raise BadGeometry(f"the GML element {element.name} is not read")
    return reader(element, around.within(element))


def _point(element: Element, context: _Context) -> BaseGeometry:
    return point(_vertices(element, context))


def _line(element: Element, context: _Context) -> BaseGeometry:
    return line_string(_vertices(element, context))


def _curve(element: Element, context: _Context) -> BaseGeometry:
    segments = element.first("segments")
    runs = [_SEGMENTS[child.name](_vertices(child, context)) for child in _segments(segments)]
    return line_string(_joined(runs))


def _segments(segments: Element | None) -> list[Element]:
    children = segments.children if segments is not None else []
    for child in children:
        if child.name not in _SEGMENTS:
            raise BadGeometry(f"the GML element {child.name} is not read")
    return children


def _joined(runs: list[Positions]) -> Positions:
    """Runs of vertices as one run. Each has to begin where the previous one ends."""
    if not runs:
        return NO_POSITIONS
    for before, after in pairwise(runs):
        if not np.array_equal(before[-1], after[0]):
            raise BadGeometry("the parts of a curve do not follow each other")
    return np.concatenate([runs[0], *(run[1:] for run in runs[1:])])


def _ring(element: Element, context: _Context) -> BaseGeometry:
    """A Ring or CompositeCurve: consecutive curves."""
    runs = [shapely.get_coordinates(curve, include_z=curve.has_z) for curve in _members(element, context)]
    return line_string(_joined([run for run in runs if len(run)]))


def _polygon(element: Element, context: _Context) -> BaseGeometry:
    outer = element.first("exterior", "outerBoundaryIs")
    if outer is None or not outer.children:
        return polygon([])
    boundaries = (outer, *element.named("interior", "innerBoundaryIs"))
    return polygon([_ring_vertices(boundary, context) for boundary in boundaries])


def _ring_vertices(boundary: Element, context: _Context) -> Positions:
    if len(boundary.children) != 1:
        raise BadGeometry(f"{boundary.name} holds {len(boundary.children)} rings, not one")
    ring = _shape(boundary.children[0], context)
    return shapely.get_coordinates(ring, include_z=ring.has_z)


def _surface(element: Element, context: _Context) -> BaseGeometry:
    """A Surface or similar: a polygon for one patch, otherwise a collection of polygons."""
    patches = [
        _shape(patch, context)
        for holder in element.named("patches", "polygonPatches", "trianglePatches")
        for patch in holder.children
    ]
    return patches[0] if len(patches) == 1 else collection("Polygon", patches)


def _oriented(element: Element, context: _Context) -> BaseGeometry:
    base = element.first("baseCurve", "baseSurface")
    if base is None or len(base.children) != 1:
        raise BadGeometry(f"{element.name} has no base")
    shape = _shape(base.children[0], context)
    return shapely.reverse(shape) if element.attributes.get("orientation") == "-" else shape


def _envelope(element: Element, context: _Context) -> BaseGeometry:
    corners = [corner for name in ("lowerCorner", "upperCorner") for corner in element.named(name)]
    vertices = (
        _stacked([_numbers(corner.text) for corner in corners]) if corners else _vertices(element, context)
    )
    if len(vertices) != 2:
        raise BadGeometry(f"{element.name} has two corners")
    return shapely.box(*vertices[0, :2], *vertices[1, :2])


def _collection(kind: str) -> Callable[[Element, _Context], BaseGeometry]:
    """A collection of members of one kind. A member of several parts, such as a Surface, is taken apart."""

    def read(element: Element, context: _Context) -> BaseGeometry:
        return collection(kind, list(shapely.get_parts(_members(element, context))))

    return read


def _mixed(element: Element, context: _Context) -> BaseGeometry:
    return collection("Geometry", _members(element, context))


def _members(element: Element, context: _Context) -> list[BaseGeometry]:
    return [
        _shape(child, context)
        for member in element.children
        if member.name.endswith(("Member", "Members"))
        for child in member.children
    ]


def _vertices(element: Element, context: _Context) -> Positions:
    """(n, 2) or (n, 3): the positions of an element, in any of the ways in which GML writes them."""
    for child in element.children:
        match child.name:
            case "posList":
                return _rows(_numbers(child.text), _dimension(child, context.dimension))
            case "coordinates":
                return _old_coordinates(child)
    runs = [_numbers(child.text) for child in element.named("pos")]
    runs += [_old_coord(child) for child in element.named("coord")]
    for child in element.named("pointProperty", "pointRep"):
        runs += [_vertices(point, context).ravel() for point in child.children]
    return _stacked(runs)


def _stacked(runs: list[Positions]) -> Positions:
    check_vertices(len(runs))
    if not runs:
        return NO_POSITIONS
    if len({len(run) for run in runs}) > 1 or len(runs[0]) not in (2, 3):
        raise BadGeometry("a position is two numbers or three, as many as the others")
    return np.stack(runs)


def _rows(numbers: Positions, dimension: int) -> Positions:
    if len(numbers) % dimension:
        raise BadGeometry(f"{len(numbers)} numbers are no positions of {dimension}")
    check_vertices(len(numbers) // dimension)
    return numbers.reshape(-1, dimension)


def _numbers(text: str) -> Positions:
    return np.array(text.split(), dtype=np.float64)


def _old_coordinates(element: Element) -> Positions:
    """gml:coordinates, whose attributes name the separators of numbers and positions."""
    decimal, between, after = (element.attributes.get(name) for name in ("decimal", "cs", "ts"))
    text = element.text if decimal in (None, ".") else element.text.replace(decimal, ".")
    tuples = text.split() if after in (None, "", " ") else text.strip(f"{after} \t\r\n").split(after)
    return _stacked(
        [np.array(numbers.split(between or ","), dtype=np.float64) for numbers in tuples if numbers]
    )


def _old_coord(element: Element) -> Positions:
    return np.array([float(child.text) for child in element.named("X", "Y", "Z")])


def _dimension(element: Element, otherwise: int) -> int:
    said = element.attributes.get("srsDimension")
    if said is None:
        return otherwise
    if said not in ("2", "3"):
        raise BadGeometry(f"the srsDimension {said[:20]!r} is neither 2 nor 3")
    return int(said)


def _arcs(vertices: Positions) -> Positions:
    if len(vertices) < 3 or not len(vertices) % 2:
        raise BadGeometry(f"{len(vertices)} positions are no arcs: they are 3, 5, 7 and so on")
    return arc_string(vertices)


def _circle(vertices: Positions) -> Positions:
    if len(vertices) != 3:
        raise BadGeometry(f"{len(vertices)} positions are no Circle: it has 3")
    return circle(vertices[:, :2])


_SEGMENTS: dict[str, Callable[[Positions], Positions]] = {
    "LineStringSegment": lambda vertices: vertices,
    "Arc": _arcs,
    "ArcString": _arcs,
    "Circle": _circle,
}
_READERS: dict[str, Callable[[Element, _Context], BaseGeometry]] = {
    "Point": _point,
    **dict.fromkeys(("LineString", "LinearRing"), _line),
    "Curve": _curve,
    **dict.fromkeys(("Ring", "CompositeCurve"), _ring),
    **dict.fromkeys(("OrientableCurve", "OrientableSurface"), _oriented),
    **dict.fromkeys(("Polygon", "PolygonPatch", "Rectangle", "Triangle"), _polygon),
    **dict.fromkeys(("Surface", "PolyhedralSurface", "TriangulatedSurface", "Tin"), _surface),
    **dict.fromkeys(("Envelope", "Box"), _envelope),
    "MultiPoint": _collection("Point"),
    **dict.fromkeys(("MultiCurve", "MultiLineString"), _collection("LineString")),
    **dict.fromkeys(("MultiSurface", "MultiPolygon", "CompositeSurface", "Shell"), _collection("Polygon")),
    **dict.fromkeys(("MultiGeometry", "GeometricComplex"), _mixed),
}


_GML: Final = "http://www.opengis.net/gml"
_VERSION = re.compile(r"(?:GML[ /]?)?(2|3)(?:\.(\d))?(?:\.\d)*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GmlProfile:
    """The namespace to write in, and whether with the elements of GML 2."""

    namespace: str
    is_gml_2: bool = False


GML_3_2: Final = GmlProfile(f"{_GML}/3.2")


def gml_profile(text: str) -> GmlProfile:
    """The profile by its version, such as "3.2.1" or "GML 3.1.1"; or by GML's namespace.

    Raises InvalidParameter.
    """
    if text in (_GML, GML_3_2.namespace):
        return GmlProfile(text)
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise InvalidParameter("gmlProfile", f'{text[:50]!r} is no version of GML such as "3.2"')
    if match[1] == "2":
        return GmlProfile(_GML, is_gml_2=True)
    return GmlProfile(_GML) if match[2] in ("0", "1") else GML_3_2


def write_gml(shape: BaseGeometry, system: str, profile: GmlProfile) -> str:
    """The element, with the coordinates in the order of the shape. Measures are left out."""
    attributes = f" xmlns:gml={quoteattr(profile.namespace)} srsName={quoteattr(system)}"
    if shape.has_z and not profile.is_gml_2:
        attributes += ' srsDimension="3"'
    return _written(shape, profile.is_gml_2, attributes)


_MEMBERS = {
    "MultiPoint": ("MultiPoint", "pointMember"),
    "MultiLineString": ("MultiCurve", "curveMember"),
    "MultiPolygon": ("MultiSurface", "surfaceMember"),
    "GeometryCollection": ("MultiGeometry", "geometryMember"),
}
_OLD_MEMBERS = {
    "MultiLineString": ("MultiLineString", "lineStringMember"),
    "MultiPolygon": ("MultiPolygon", "polygonMember"),
}


def _written(shape: BaseGeometry, is_gml_2: bool, attributes: str = "") -> str:
    kind = shape.geom_type
    if kind in _MEMBERS:
        name, member = (_OLD_MEMBERS if is_gml_2 else _MEMBERS).get(kind, _MEMBERS[kind])
        parts = "".join(_element(member, _written(part, is_gml_2)) for part in shapely.get_parts(shape))
        return _element(name, parts, attributes)
    if kind == "Polygon":
        return _element("Polygon", _rings(shape, is_gml_2), attributes)
    return _element(kind, _positions(shape, is_gml_2), attributes)


def _rings(polygon: BaseGeometry, is_gml_2: bool) -> str:
    outer, inner = ("outerBoundaryIs", "innerBoundaryIs") if is_gml_2 else ("exterior", "interior")
    return "".join(
        _element(inner if number else outer, _written(ring, is_gml_2))
        for number, ring in enumerate(shapely.get_rings(polygon))
    )


def _positions(shape: BaseGeometry, is_gml_2: bool) -> str:
    vertices: Positions = shapely.get_coordinates(shape, include_z=shape.has_z)
    if not len(vertices):
        return ""
    if is_gml_2:
        return _element("coordinates", " ".join(",".join(numbers_text(row)) for row in vertices.tolist()))
    name = "pos" if shape.geom_type == "Point" else "posList"
    return _element(name, " ".join(numbers_text(vertices.ravel().tolist())))


def _element(name: str, content: str, attributes: str = "") -> str:
    return f"<gml:{name}{attributes}>{content}</gml:{name}>"
