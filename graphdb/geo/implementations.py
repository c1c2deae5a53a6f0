"""Which function of this room does what a name of GeoSPARQL says, with arguments as `signatures` has them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from graphdb.geo import buffers, constructions, measures, properties
from graphdb.geo.geometry import Geometry, Notation, Syntax
from graphdb.geo.gml_writing import gml_profile
from graphdb.geo.relations import RELATIONS, relate

__all__ = ["IMPLEMENTATIONS", "Value"]

Value: TypeAlias = Geometry | bool | int | float | str
"""What a function answers; a str is an IRI."""


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
"""By the name within the namespace geof:. What they raise is a RequestError."""
