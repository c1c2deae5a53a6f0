"""A call of a function with RDF terms: arguments are read by its signature, its result becomes a literal."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import shapely
from pyoxigraph import BlankNode, Literal, NamedNode, Triple
from shapely import GEOSException
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry import buffers, constructions, measures, properties
from graphdb.geometry.geometry import Geometry, Notation, Syntax, in_system, read_geometry, write_geometry
from graphdb.geometry.geosparql_names import SIGNATURES, Kind
from graphdb.geometry.gml import gml_profile
from graphdb.geometry.relations import RELATIONS, relate

__all__ = ["AGGREGATES", "IMPLEMENTATIONS", "Group", "Term", "Value", "call", "check_count"]

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple
Value: TypeAlias = Geometry | bool | int | float | str
"""What a function returns; a str is an IRI."""

_XSD = "http://www.w3.org/2001/XMLSchema#"
_ANY_URI = NamedNode(_XSD + "anyURI")
_INTEGERS = {_XSD + name for name in ("integer", "int", "long", "short", "byte", "nonNegativeInteger")}
_INTEGERS |= {_XSD + name for name in ("positiveInteger", "unsignedInt", "unsignedLong", "unsignedShort")}
_NUMBERS = _INTEGERS | {_XSD + name for name in ("double", "float", "decimal")}
_TEXTS = {_XSD + "string", _XSD + "anyURI"}


def call(name: str, terms: Sequence[Term]) -> Literal:
    """Call the function of this name in geof:, which has to be one of SIGNATURES.

    Raises InvalidParameter, BadGeometry, LimitExceeded.
    """
    check_count(name, len(terms))
    kinds = SIGNATURES[name].parameters
    with np.errstate(all="ignore"):  # numbers that overflow become infinite, without a warning
        arguments = [_READERS[kind](term) for kind, term in zip(kinds, terms, strict=False)]
        try:
            return _literal(IMPLEMENTATIONS[name](*arguments))
        except GEOSException as error:
            raise BadGeometry(f"cannot be computed: {error}") from None


def check_count(name: str, count: int) -> None:
    """Raises InvalidParameter for too few or too many arguments."""
    signature = SIGNATURES[name]
    if not signature.takes(count):
        raise InvalidParameter("args", f"geof:{name} takes {signature}, not {count}")


def _literal(value: Value) -> Literal:
    match value:
        case Geometry():
            return write_geometry(value)
        case str():
            return Literal(value, datatype=_ANY_URI)
        case _:
            return Literal(value)


def _read_geometry(term: Term) -> Geometry:
    if not isinstance(term, Literal):
        raise InvalidParameter("args", f"{term} is no literal, where a geometry is needed")
    return read_geometry(term)


def _read_iri(term: Term) -> str:
    if isinstance(term, NamedNode):
        return term.value
    return _lexical(term, _TEXTS, "the IRI")


def _read_number(term: Term) -> float:
    try:
        number = float(_lexical(term, _NUMBERS, "the number"))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidParameter("args", f"{term} is no finite number")
    return number


def _read_integer(term: Term) -> int:
    number = _read_number(term)
    if number != int(number):
        raise InvalidParameter("args", f"{number:g} is no integer")
    return int(number)


def _read_text(term: Term) -> str:
    return _lexical(term, _TEXTS, "the string")


def _lexical(term: Term, datatypes: set[str], wanted: str) -> str:
    if isinstance(term, Literal) and term.datatype.value in datatypes:
        return term.value
    raise InvalidParameter("args", f"{str(term)[:200]} is not {wanted} that is needed")


_READERS: dict[Kind, Callable[[Term], Any]] = {
    Kind.GEOMETRY: _read_geometry,
    Kind.UNIT: _read_iri,
    Kind.SYSTEM: _read_iri,
    Kind.NUMBER: _read_number,
    Kind.INTEGER: _read_integer,
    Kind.TEXT: _read_text,
}


def _as_wkt(geometry: Geometry) -> Geometry:
    if geometry.notation.syntax is Syntax.WKT:
        return geometry
    return replace(geometry, notation=Notation(Syntax.WKT))


def _as_gml(geometry: Geometry, profile: str = "3.2") -> Geometry:
    return replace(geometry, notation=Notation(Syntax.GML, profile=gml_profile(profile)))


def _as(syntax: Syntax) -> Callable[[Geometry], Geometry]:
    return lambda geometry: replace(geometry, notation=Notation(syntax))


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        **RELATIONS,
        "relate": relate,
        "dimension": properties.dimension,
        "coordinateDimension": properties.coordinate_dimension,
        "spatialDimension": properties.spatial_dimension,
        "isEmpty": properties.is_empty,
        "isSimple": properties.is_simple,
        "is3D": properties.is_3d,
        "isMeasured": properties.is_measured,
        "geometryType": properties.geometry_type,
        "numGeometries": properties.num_geometries,
        "geometryN": properties.geometry_n,
        "getSRID": properties.system_iri,
        **{f"min{name}": partial(properties.lowest, axis=axis) for axis, name in enumerate("XYZ")},
        **{f"max{name}": partial(properties.highest, axis=axis) for axis, name in enumerate("XYZ")},
        "distance": measures.distance,
        "metricDistance": measures.metric_distance,
        "area": measures.area,
        "metricArea": measures.metric_area,
        "length": measures.length,
        "metricLength": measures.metric_length,
        "perimeter": measures.length,
        "metricPerimeter": measures.metric_length,
        "buffer": buffers.buffer,
        "metricBuffer": buffers.metric_buffer,
        "boundary": constructions.boundary,
        "boundingCircle": constructions.bounding_circle,
        "centroid": constructions.centroid,
        "concaveHull": constructions.concave_hull,
        "convexHull": constructions.convex_hull,
        "envelope": constructions.envelope,
        "intersection": constructions.intersection,
        "union": constructions.union,
        "difference": constructions.difference,
        "symDifference": constructions.symmetric_difference,
        "transform": constructions.transform,
        "asWKT": _as_wkt,
        "asGML": _as_gml,
        "asGeoJSON": _as(Syntax.GEOJSON),
        "asKML": _as(Syntax.KML),
    }
)
"""By the local name in the namespace geof:. They raise RequestError."""


class Group:
    """The geometries of a group so far, in the reference system of the first."""

    def __init__(self) -> None:
        self._first: Geometry | None = None
        self._shapes: list[BaseGeometry] = []

    def add(self, geometry: Geometry) -> None:
        """Raises BadGeometry if it cannot be converted to the system of the first."""
        if self._first is None:
            self._first = geometry
        self._shapes.append(in_system(geometry, self._first.system).shape)

    def together(self) -> Geometry | None:
        """All geometries as one collection, in the notation of the first; None for an empty group."""
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
"""By the local name in the namespace geof:. Each takes a group as one collection."""
