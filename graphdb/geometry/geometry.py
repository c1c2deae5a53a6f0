"""`Geometry`: a shape in a reference system; reading it from literals and writing it to them."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np
import shapely
from pyoxigraph import Literal, NamedNode
from shapely.geometry.base import BaseGeometry

from graphdb.bounded_cache import BoundedCache
from graphdb.errors import BadGeometry, InvalidParameter, RequestError
from graphdb.geometry import geosparql_names
from graphdb.geometry.geojson import read_geojson, write_geojson
from graphdb.geometry.geosparql_names import CRS84
from graphdb.geometry.gml import GML_3_2, GmlProfile, read_gml, write_gml
from graphdb.geometry.kml import read_kml, write_kml
from graphdb.geometry.reference_systems import ReferenceSystem, crs84, reference_system, transformation
from graphdb.geometry.shapes import with_positions
from graphdb.geometry.wkt import read_wkt, write_wkt

__all__ = [
    "Geometry",
    "Notation",
    "Syntax",
    "from_degrees",
    "in_degrees",
    "in_system",
    "read_geometry",
    "write_geometry",
]


class Syntax(Enum):
    """The kinds of literals; the value is the IRI of the datatype."""

    WKT = geosparql_names.WKT
    GML = geosparql_names.GML
    GEOJSON = geosparql_names.GEOJSON
    KML = geosparql_names.KML


@dataclass(frozen=True, slots=True)
class Notation:
    """How one geometry is written."""

    syntax: Syntax = Syntax.WKT
    names_system: bool = False  # WKT: also if it is CRS84
    profile: GmlProfile = GML_3_2


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """A shape in a reference system, with its notation. Results have the notation of the first argument.

    The coordinates of the shape always have the east first, whatever the order in literals.
    """

    shape: BaseGeometry
    system: ReferenceSystem
    notation: Notation = Notation()

    def like(self, shape: BaseGeometry) -> "Geometry":
        """Another shape in the same system and notation."""
        return replace(self, shape=shape)


_CACHE_ENTRIES: Final = 50_000
_CACHE_CHARACTERS: Final = 16 << 20
_CHARACTERS_A_VERTEX: Final = 8  # at least: the text of an arc is far shorter than its vertices
_read: BoundedCache[Geometry] = BoundedCache(_CACHE_ENTRIES, _CACHE_CHARACTERS)
# the errors of literals that are not geometries: a constant is read again for each solution
_refused: BoundedCache[RequestError] = BoundedCache(_CACHE_ENTRIES, _CACHE_CHARACTERS)


def read_geometry(literal: Literal) -> Geometry:
    """The geometry of a literal with one of GeoSPARQL's datatypes. Recently read geometries are cached.

    Raises BadGeometry, LimitExceeded.
    """
    text, datatype = literal.value, literal.datatype.value
    geometry = _read.get(text, datatype)
    if geometry is None:
        geometry = _read_or_refused(text, datatype)
        vertices = int(shapely.get_num_coordinates(geometry.shape))
        _read.put(text, datatype, geometry, _CHARACTERS_A_VERTEX * vertices)
    return geometry


def write_geometry(geometry: Geometry) -> Literal:
    """The literal, in the geometry's notation. GeoJSON and KML are always in CRS84.

    Raises BadGeometry if the geometry cannot be converted to CRS84.
    """
    notation, system = geometry.notation, geometry.system
    if notation.syntax in (Syntax.GEOJSON, Syntax.KML):
        shape = in_system(geometry, crs84()).shape
        text = write_geojson(shape) if notation.syntax is Syntax.GEOJSON else write_kml(shape)
    else:
        shape = _in_order_of_axes(geometry.shape, system)
        if notation.syntax is Syntax.GML:
            text = write_gml(shape, system.iri, notation.profile)
        else:
            text = write_wkt(shape, system.iri if notation.names_system or system.iri != CRS84 else None)
    return Literal(text, datatype=NamedNode(notation.syntax.value))


def in_system(geometry: Geometry, system: ReferenceSystem) -> Geometry:
    """The geometry in another reference system. Raises BadGeometry if it cannot be converted."""
    if geometry.system is system:
        return geometry
    if geometry.system.is_like(system):
        return replace(geometry, system=system)
    source = geometry.system
    shape = with_positions(geometry.shape, lambda positions: transformation(source, system, positions))
    return replace(geometry, shape=shape, system=system)


def in_degrees(geometry: Geometry) -> BaseGeometry:
    """The shape of a geometry in a geographic system, in degrees."""
    factor = geometry.system.degrees
    return geometry.shape if factor == 1 else _scaled(geometry.shape, factor)


def from_degrees(shape: BaseGeometry, like: Geometry) -> Geometry:
    """The reverse of in_degrees: a geometry in the system and notation of another."""
    factor = like.system.degrees
    return like.like(shape if factor == 1 else _scaled(shape, 1 / factor))


def _scaled(shape: BaseGeometry, factor: float) -> BaseGeometry:
    return with_positions(shape, lambda positions: positions * factor)


def _read_or_refused(text: str, datatype: str) -> Geometry:
    known = _refused.get(text, datatype)
    if known is not None:
        raise type(known)(*known.args)
    try:
        return _read_anew(text, datatype)
    except RequestError as error:
        _refused.put(text, datatype, type(error)(*error.args))
        raise


def _read_anew(text: str, datatype: str) -> Geometry:
    iri, shape, notation = _parse(text, datatype)
    if not np.isfinite(shapely.get_coordinates(shape, include_z=True)[:, :2]).all():
        raise BadGeometry("a coordinate is no finite number")
    system = _named_system(iri)
    return Geometry(_in_order_of_axes(shape, system), system, notation)


def _parse(text: str, datatype: str) -> tuple[str | None, BaseGeometry, Notation]:
    """The name of the reference system, or None; the shape with its numbers as written; the notation."""
    match datatype:
        case geosparql_names.WKT:
            iri, shape = read_wkt(text)
            return iri, shape, Notation(names_system=iri is not None)
        case geosparql_names.GML:
            read = read_gml(text)
            profile = GmlProfile(read.namespace) if read.namespace else GML_3_2
            return read.system, read.shape, Notation(Syntax.GML, profile=profile)
        case geosparql_names.GEOJSON:
            return None, read_geojson(text), Notation(Syntax.GEOJSON)
        case geosparql_names.KML:
            return None, read_kml(text), Notation(Syntax.KML)
        case geosparql_names.DGGS:
            raise BadGeometry("discrete global grids are not offered: each of them is a system of its own")
    raise BadGeometry(f"a literal of type <{datatype}> is no geometry")


def _named_system(iri: str | None) -> ReferenceSystem:
    if iri is None:
        return crs84()
    try:
        return reference_system(iri)
    except InvalidParameter as error:
        raise BadGeometry(str(error)) from None


def _in_order_of_axes(shape: BaseGeometry, system: ReferenceSystem) -> BaseGeometry:
    """From the order of the system's axes to east first, or back."""
    return with_positions(shape, lambda positions: positions[:, ::-1]) if system.is_north_first else shape
