"""The names that GeoSPARQL defines: namespaces, datatypes, properties, and functions with their arguments.

This module imports no library for geometries, so that every process can import it quickly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

__all__ = [
    "AGGREGATES",
    "CRS84",
    "DGGS",
    "GEO",
    "GEOF",
    "GEOJSON",
    "GEOMETRY_PROPERTIES",
    "GML",
    "KML",
    "LITERALS",
    "RDF_TYPE",
    "RELATIONS",
    "SERIALIZATIONS",
    "SF",
    "SIGNATURES",
    "WKT",
    "Kind",
    "Signature",
]

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
"""The datatypes that are supported."""

SERIALIZATIONS: Final = tuple(GEO + name for name in ("asWKT", "asGML", "asGeoJSON"))
"""The properties whose values are the literals of a geometry."""
GEOMETRY_PROPERTIES: Final = (GEO + "hasDefaultGeometry", GEO + "hasGeometry")
"""From a feature to its geometries."""

CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
"""The reference system of literals that name none: WGS 84, longitude before latitude."""


class Kind(Enum):
    """The kind of an argument; the value is its name in messages."""

    GEOMETRY = "a geometry"
    UNIT = "the IRI of a unit"
    SYSTEM = "the IRI of a reference system"
    NUMBER = "a number"
    INTEGER = "an integer"
    TEXT = "a string"


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments in their order. The last `optional` ones may be left out."""

    parameters: tuple[Kind, ...]
    optional: int = 0

    def takes(self, count: int) -> bool:
        """Whether a call may have this many arguments."""
        return len(self.parameters) - self.optional <= count <= len(self.parameters)

    def __str__(self) -> str:
        """Such as "2 or 3 (a geometry, a number, the IRI of a unit)"."""
        most = len(self.parameters)
        counts = f"{most - self.optional} or {most}" if self.optional else f"{most}"
        return f"{counts} ({', '.join(kind.value for kind in self.parameters)})"


_ONE = Signature((Kind.GEOMETRY,))
_TWO = Signature((Kind.GEOMETRY, Kind.GEOMETRY))
_IN_UNIT = Signature((Kind.GEOMETRY, Kind.UNIT))

RELATIONS = (
    *("sfEquals", "sfDisjoint", "sfIntersects", "sfTouches"),
    *("sfCrosses", "sfWithin", "sfContains", "sfOverlaps"),
    *("ehEquals", "ehDisjoint", "ehMeet", "ehOverlap", "ehCovers", "ehCoveredBy", "ehInside", "ehContains"),
    *("rcc8eq", "rcc8dc", "rcc8ec", "rcc8po", "rcc8tppi", "rcc8tpp", "rcc8ntpp", "rcc8ntppi"),
)
"""The functions that decide whether two geometries are related."""

_OF_ONE = (
    *("dimension", "coordinateDimension", "spatialDimension", "isEmpty", "isSimple", "is3D", "isMeasured"),
    *("geometryType", "numGeometries", "minX", "maxX", "minY", "maxY", "minZ", "maxZ", "getSRID"),
    *("metricArea", "metricLength", "metricPerimeter"),
    *("boundary", "boundingCircle", "centroid", "convexHull", "envelope"),
    *("asWKT", "asGeoJSON", "asKML"),
)
_OF_TWO = ("metricDistance", "intersection", "union", "difference", "symDifference")
_MEASURED = ("area", "length", "perimeter")

SIGNATURES: Mapping[str, Signature] = MappingProxyType(
    dict.fromkeys(RELATIONS, _TWO)
    | dict.fromkeys(_OF_ONE, _ONE)
    | dict.fromkeys(_OF_TWO, _TWO)
    | dict.fromkeys(_MEASURED, _IN_UNIT)
    | {
        "relate": Signature((Kind.GEOMETRY, Kind.GEOMETRY, Kind.TEXT)),
        "distance": Signature((Kind.GEOMETRY, Kind.GEOMETRY, Kind.UNIT)),
        "buffer": Signature((Kind.GEOMETRY, Kind.NUMBER, Kind.UNIT)),
        "metricBuffer": Signature((Kind.GEOMETRY, Kind.NUMBER)),
        "concaveHull": Signature((Kind.GEOMETRY, Kind.NUMBER), optional=1),
        "geometryN": Signature((Kind.GEOMETRY, Kind.INTEGER)),
        "transform": Signature((Kind.GEOMETRY, Kind.SYSTEM)),
        "asGML": Signature((Kind.GEOMETRY, Kind.TEXT), optional=1),
    }
)
"""By the local name in the namespace geof:."""

AGGREGATES = (
    *("aggBoundingBox", "aggBoundingCircle", "aggCentroid", "aggConcaveHull", "aggConvexHull", "aggUnion"),
)
"""The names of the aggregate functions; each takes geometries."""
