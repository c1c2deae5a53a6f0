"""Geometries written in GML, as the simple features profile of 3.2 has them, or in the words of GML 2."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import quoteattr

import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import InvalidParameter
from graphdb.geo.positions import Positions

__all__ = ["GML_3_2", "GmlProfile", "gml_profile", "numbers_text", "write_gml"]

_GML: Final = "http://www.opengis.net/gml"
_VERSION = re.compile(r"(?:GML[ /]?)?(2|3)(?:\.(\d))?(?:\.\d)*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GmlProfile:
    """In which namespace, and whether in the words of GML 2."""

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
    """The element, with the coordinates as they stand in the shape. Measures are left out."""
    attributes = f" xmlns:gml={quoteattr(profile.namespace)} srsName={quoteattr(system)}"
    if shape.has_z and not profile.is_gml_2:
        attributes += ' srsDimension="3"'
    return _written(shape, profile.is_gml_2, attributes)


def numbers_text(numbers: Iterable[float]) -> list[str]:
    """Each with as many digits as it takes to read it back."""
    return [repr(number).removesuffix(".0") for number in numbers]


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
