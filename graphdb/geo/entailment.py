"""`Entailment`: what a query's triple patterns match beside stated triples, as its sender asks for."""

from collections.abc import Iterator
from enum import Enum

from graphdb.geo.class_hierarchy import is_class, is_geometry_property
from graphdb.geo.derived_triples import MARK, is_derived
from graphdb.geo.vocabulary import RDF_TYPE
from graphdb.sparql.construct_where import is_short, lengthen
from graphdb.sparql.patterns import TriplePattern, TriplesBlock
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import Iri, Span
from graphdb.sparql.text_edits import TextEdits
from graphdb.sparql.tree_walk import nodes_below

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
    """The query in words that mean the same where nothing is said of entailment."""
    if entailment is Entailment.GEOSPARQL:
        return query.text
    edits = TextEdits(query.text)
    change = _as_stated if entailment is Entailment.SIMPLE else _as_entailed
    changes = [each for triple in _patterns(query) for each in change(triple)]
    if changes and is_short(query):
        lengthen(query, edits)
    for span, new in changes:
        edits.replace(span, new)
    return edits.written(Span(0, len(query.text)))


def _patterns(query: Query) -> Iterator[TriplePattern]:
    roots = [query.where] if query.where is not None else []
    for node in nodes_below(*roots):
        if isinstance(node, TriplesBlock):
            yield from node.triples


def _as_stated(triple: TriplePattern) -> Iterator[tuple[Span, str]]:
    """A path matches stated triples only, and this one is the property itself."""
    if is_derived(triple):
        assert isinstance(triple.predicate, Iri)
        yield triple.predicate.span, f"^(^<{triple.predicate.value}>)"


def _as_entailed(triple: TriplePattern) -> Iterator[tuple[Span, str]]:
    match triple.predicate, triple.object:
        case Iri(value=verb, span=span), _ if is_geometry_property(verb):
            yield span, f"<{MARK}{verb}>"
        case Iri(value=verb), Iri(value=class_, span=span) if verb == RDF_TYPE and is_class(class_):
            yield span, f"<{MARK}{class_}>"
