"""Terms and triples as rdflib's, and back to the very terms that they were."""

from collections.abc import Iterable
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.shacl.vocabulary import XSD, Term

__all__ = ["RdflibTerms"]


class RdflibTerms:
    """Remembers what it has translated. What rdflib has no term for becomes a blank node there."""

    def __init__(self) -> None:
        self._theirs: dict[Term, Any] = {}
        self._ours: dict[Any, Term] = {}

    def graph(self, triples: Iterable[Triple]) -> Any:
        """An rdflib Graph of the triples."""
        from rdflib import Graph

        graph = Graph()
        for triple in triples:
            subject = self.theirs(triple.subject)
            graph.add((subject, self.theirs(triple.predicate), self.theirs(triple.object)))
        return graph

    def theirs(self, term: Term) -> Any:
        """The term as rdflib's."""
        found = self._theirs.get(term)
        if found is None:
            found = _translated(term, len(self._theirs))
            self._theirs[term] = found
            self._ours[found] = term
        return found

    def ours(self, term: Any) -> Term:
        """What rdflib's term was made from; for one that came out of nowhere, the like of it."""
        found = self._ours.get(term)
        return _translated_back(term) if found is None else found


def _translated(term: Term, number: int) -> Any:
    import rdflib

    match term:
        case NamedNode():
            return rdflib.URIRef(term.value)
        case BlankNode():
            return rdflib.BNode(term.value)
        case Literal(language=None):
            datatype = term.datatype.value
            if datatype == XSD + "string":
                return rdflib.Literal(term.value)
            return rdflib.Literal(term.value, datatype=rdflib.URIRef(datatype), normalize=False)
        case Literal(direction=None):
            return rdflib.Literal(term.value, lang=term.language)
        case _:
            return rdflib.BNode(f"graphdb-term-{number}")


def _translated_back(term: Any) -> Term:
    import rdflib

    if isinstance(term, rdflib.URIRef):
        return NamedNode(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if term.language:
        return Literal(str(term), language=term.language)
    return Literal(str(term), datatype=NamedNode(str(term.datatype)) if term.datatype else None)
