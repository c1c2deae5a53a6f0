"""The names of GeoSPARQL: its namespaces and the datatypes of its literals."""

from typing import Final

__all__ = ["CRS84", "DGGS", "GEO", "GEOF", "GEOJSON", "GML", "KML", "LITERALS", "RDF_TYPE", "SF", "WKT"]

GEO: Final = "http://www.opengis.net/ont/geosparql#"
GEOF: Final = "http://www.opengis.net/def/function/geosparql/"
SF: Final = "http://www.opengis.net/ont/sf#"

RDF_TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

WKT: Final = GEO + "wktLiteral"
GML: Final = GEO + "gmlLiteral"
GEOJSON: Final = GEO + "geoJSONLiteral"
KML: Final = GEO + "kmlLiteral"
DGGS: Final = GEO + "dggsLiteral"
LITERALS: Final = (WKT, GML, GEOJSON, KML)
"""The datatypes that are read and written."""

CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
"""What a literal is in that names no reference system: WGS 84, longitude before latitude."""
