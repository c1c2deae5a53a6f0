"""`ReadPattern`: which quads were asked for, by their terms. It needs nothing of SPARQL."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from graphdb.model import GraphName
from graphdb.store.view import Subject, Term

__all__ = ["ReadPattern", "terms_of_triple"]


@dataclass(frozen=True, slots=True)
class ReadPattern:
    """Quads that were asked for: those with these terms, in this graph; None stands for any.

    within: a term of the triple term that is the object.
    """

    subject: Subject | None = None
    predicate: NamedNode | None = None
    object: Term | None = None
    graph: GraphName | None = None
    within: Subject | None = None

    def matches(self, quad: Quad) -> bool:
        return (
            (self.predicate is None or quad.predicate == self.predicate)
            and (self.subject is None or quad.subject == self.subject)
            and (self.object is None or quad.object == self.object)
            and (self.graph is None or quad.graph_name == self.graph)
            and (self.within is None or _is_within(self.within, quad.object))
        )

    @property
    def has_terms(self) -> bool:
        """Whether it is narrower than a graph."""
        terms = (self.subject, self.predicate, self.object, self.within)
        return any(term is not None for term in terms)


def terms_of_triple(triple: Triple) -> Iterator[NamedNode | BlankNode | Literal | Triple]:
    """Its own, and those of the triple terms in it."""
    yield from (triple.subject, triple.predicate, triple.object)
    if isinstance(triple.object, Triple):
        yield from terms_of_triple(triple.object)


def _is_within(term: Subject, object_: Term) -> bool:
    return isinstance(object_, Triple) and term in terms_of_triple(object_)
