"""Geometries from texts, as the tests of this room write them."""

from pyoxigraph import Literal, NamedNode

from graphdb.geometry import geosparql_names
from graphdb.geometry.geometry import Geometry, read_geometry

EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
UOM = "http://www.opengis.net/def/uom/OGC/1.0/"


def wkt(text: str, epsg: int | None = None) -> Geometry:
    """A geometry in WKT, in CRS84 unless said otherwise."""
    prefix = f"<{EPSG}{epsg}> " if epsg is not None else ""
    return read(prefix + text, geosparql_names.WKT)


def read(text: str, datatype: str) -> Geometry:
    return read_geometry(Literal(text, datatype=NamedNode(datatype)))
