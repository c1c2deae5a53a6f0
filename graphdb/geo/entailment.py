"""`Entailment`: what a query's triple patterns match beside stated triples, as its sender asks for."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any

from graphdb.geo.class_hierarchy import is_class, is_geometry_property
from graphdb.geo.derived_triples import MARK, is_derived
from graphdb.geo.vocabulary import RDF_TYPE
from graphdb.sparql.algebra import EMPTY, Algebra, Bgp, Path, join
from graphdb.sparql.patterns import InversePath, TriplePattern
from graphdb.sparql.printing import written_query
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import Iri
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import rewritten

__all__ = ["Entailment", "asked_text"]


class Entailment(Enum):
    """The value is what a request calls it."""

    SIMPLE = "simple"
    """Stated triples, and nothing else."""
    GEOSPARQL = "geosparql"
    """Topology properties too where geometries say so; what a query means that says nothing of this."""
    RDFS = "geosparql-rdfs"
    """And instances of what the store says is below GeoSPARQL's classes and its properties of features."""


def asked_text(query: Query, entailment: Entailment) -> str:
    """A query that means the same where nothing is said of entailment."""
    if entailment is Entailment.GEOSPARQL:
        return query.text
    change = _as_stated if entailment is Entailment.SIMPLE else _as_entailed
    asked = abstract_query(query)
    pattern = rewritten(asked.pattern, lambda node: _with_triples(node, change))
    return query.text if pattern is asked.pattern else written_query(replace(asked, pattern=pattern))


def _with_triples(node: Any, change: Callable[[TriplePattern], Algebra]) -> Any:
    if not isinstance(node, Bgp):
        return node
    made: Algebra = EMPTY
    for triple in node.triples:
        made = join(made, change(triple))
    return node if made == node else made


def _as_stated(triple: TriplePattern) -> Algebra:
    """A path matches stated triples only, and this one is the property itself."""
    if not is_derived(triple):
        return Bgp((triple,))
    assert isinstance(triple.predicate, Iri)
    return Path(triple.subject, InversePath(InversePath(triple.predicate)), triple.object)


def _as_entailed(triple: TriplePattern) -> Algebra:
    match triple.predicate, triple.object:
        case Iri(value=verb), _ if is_geometry_property(verb):
            return Bgp((replace(triple, predicate=Iri(MARK + verb)),))
        case Iri(value=verb), Iri(value=class_) if verb == RDF_TYPE and is_class(class_):
            return Bgp((replace(triple, object=Iri(MARK + class_)),))
    return Bgp((triple,))
