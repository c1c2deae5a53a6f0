"""`Entailment`: what a query's triple patterns match in addition to stated triples.

By the query rewrite extension of GeoSPARQL, a triple with a topology property (`?a geo:sfWithin ?b`) holds if
it is stated, or if the function of the same name holds for the geometries of its ends. An end is a geometry,
or a feature, which stands for its default geometry.

By the RDFS entailment extension, instances of subclasses are instances of GeoSPARQL's classes, and values of
subproperties are values of `geo:hasGeometry`. A client requests this. Then the class or property is marked in
the text of the query. `graphdb.geo.derived_triples` rewrites both kinds of patterns for the engine.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from graphdb.geometry.geosparql_names import (
    GEO,
    GEOF,
    GEOMETRY_PROPERTIES,
    RDF_TYPE,
    RELATIONS,
    SERIALIZATIONS,
    SF,
)
from graphdb.sparql.algebra import EMPTY, Algebra, Bgp, Path, join
from graphdb.sparql.patterns import InversePath, TriplePattern
from graphdb.sparql.printing import written_query
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import BlankNodeLabel, Iri, Variable
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import rewritten

__all__ = ["MARK", "READ_PROPERTIES", "TOPOLOGY", "Entailment", "asked_text", "at_or_below", "is_derived"]

MARK: Final = "urn:graphdb:entailed:"
"""The prefix of the IRI of a class or property that marks RDFS entailment."""

TOPOLOGY: Final = {GEO + name: GEOF + name for name in RELATIONS}
"""The function of each topology property."""

READ_PROPERTIES: Final = (*SERIALIZATIONS, *GEOMETRY_PROPERTIES)
"""The properties that a pattern with a topology property reads in addition to that property."""


class Entailment(Enum):
    """The value is its name in requests."""

    SIMPLE = "simple"
    """Only stated triples."""
    GEOSPARQL = "geosparql"
    """Also topology properties that follow from geometries. The default."""
    RDFS = "geosparql-rdfs"
    """In addition, subclasses and subproperties, by GeoSPARQL's ontologies and by the store."""


def asked_text(query: Query, entailment: Entailment) -> str:
    """The text of a query that means the same under the default entailment."""
    if entailment is Entailment.GEOSPARQL:
        return query.text
    change = _as_stated if entailment is Entailment.SIMPLE else _as_entailed
    asked = abstract_query(query)
    pattern = rewritten(asked.pattern, lambda node: _with_triples(node, change))
    return query.text if pattern is asked.pattern else written_query(replace(asked, pattern=pattern))


def is_derived(triple: TriplePattern) -> bool:
    """Whether more than stated triples match the pattern."""
    match triple:
        case TriplePattern(predicate=Iri(value=verb), object=Iri(value=class_)) if verb == RDF_TYPE:
            return class_.startswith(MARK)
        case TriplePattern(predicate=Iri(value=verb)) if verb in TOPOLOGY:
            ends = triple.subject, triple.object  # a literal is neither a feature nor a geometry
            return all(isinstance(end, Iri | Variable | BlankNodeLabel) for end in ends)
        case TriplePattern(predicate=Iri(value=verb)):
            return verb.startswith(MARK)
    return False


def _with_triples(node: Any, change: Callable[[TriplePattern], Algebra]) -> Any:
    if not isinstance(node, Bgp):
        return node
    made: Algebra = EMPTY
    for triple in node.triples:
        made = join(made, change(triple))
    return node if made == node else made


def _as_stated(triple: TriplePattern) -> Algebra:
    """As a path, which matches stated triples only: ^^property is the property itself."""
    if not is_derived(triple):
        return Bgp((triple,))
    assert isinstance(triple.predicate, Iri)
    return Path(triple.subject, InversePath(InversePath(triple.predicate)), triple.object)


def _as_entailed(triple: TriplePattern) -> Algebra:
    match triple.predicate, triple.object:
        case Iri(value=verb), _ if _is_geometry_property(verb):
            return Bgp((replace(triple, predicate=Iri(MARK + verb)),))
        case Iri(value=verb), Iri(value=class_) if verb == RDF_TYPE and _is_class(class_):
            return Bgp((replace(triple, object=Iri(MARK + class_)),))
    return Bgp((triple,))


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


def _is_class(iri: str) -> bool:
    """Whether it is one of GeoSPARQL's classes of features and geometries."""
    return iri.startswith((SF, _GML)) or iri in (GEO + "SpatialObject", GEO + "Feature", GEO + "Geometry")


def _is_geometry_property(iri: str) -> bool:
    """Whether it leads from features to geometries."""
    return iri in (GEO + "hasGeometry", GEO + "hasDefaultGeometry", GEO + "defaultGeometry")


def at_or_below(iri: str) -> list[str]:
    """A class or property, and all that is below it."""
    found = [iri]
    for each in found:  # which grows
        found += (below for below, above in _ABOVE.items() if above == each)
    return found
