"""Which of GeoSPARQL's classes and properties are below which, as its own ontologies have it."""

from graphdb.geo.vocabulary import GEO, SF

__all__ = ["at_or_below", "is_class", "is_geometry_property"]

_GML = "http://www.opengis.net/ont/gml#"
_ABOVE = {
    GEO + "Feature": GEO + "SpatialObject",
    GEO + "Geometry": GEO + "SpatialObject",
    SF + "Geometry": GEO + "Geometry",
    **{SF + name: SF + "Geometry" for name in ("Point", "Curve", "Surface", "GeometryCollection")},
    SF + "LineString": SF + "Curve",
    **{SF + name: SF + "LineString" for name in ("Line", "LinearRing")},
    **{SF + name: SF + "Surface" for name in ("Polygon", "PolyhedralSurface")},
    SF + "Triangle": SF + "Polygon",
    SF + "TIN": SF + "PolyhedralSurface",
    **{SF + name: SF + "GeometryCollection" for name in ("MultiPoint", "MultiCurve", "MultiSurface")},
    SF + "MultiLineString": SF + "MultiCurve",
    SF + "MultiPolygon": SF + "MultiSurface",
    _GML + "LineString": _GML + "Curve",
    _GML + "Polygon": _GML + "Surface",
    GEO + "hasDefaultGeometry": GEO + "hasGeometry",
    GEO + "defaultGeometry": GEO + "hasGeometry",
}


def is_class(iri: str) -> bool:
    """Whether it is one of GeoSPARQL's classes: of features, geometries, and their kinds."""
    return iri.startswith((SF, _GML)) or iri in (GEO + "SpatialObject", GEO + "Feature", GEO + "Geometry")


def is_geometry_property(iri: str) -> bool:
    """Whether it leads from features to geometries."""
    return iri in (GEO + "hasGeometry", GEO + "hasDefaultGeometry", GEO + "defaultGeometry")


def at_or_below(iri: str) -> list[str]:
    """A class or property, and all that is below it."""
    found = [iri]
    for each in found:  # which grows
        found += (below for below, above in _ABOVE.items() if above == each)
    return found
