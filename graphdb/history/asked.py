"""`AskedChanges`: which quads of the past are asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.transactions.read_pattern import ReadPattern, terms_of_triple

__all__ = ["EVERYTHING", "AskedChanges", "Term"]

Term = NamedNode | BlankNode | Literal | Triple


@dataclass(frozen=True, slots=True)
class AskedChanges:
    """None: any. A resource stands anywhere in a statement, also in a triple term, or names the graph."""

    resource: NamedNode | BlankNode | None = None
    subject: NamedNode | BlankNode | None = None
    predicate: NamedNode | None = None
    object: NamedNode | BlankNode | Literal | None = None
    graph: GraphName | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self == EVERYTHING

    @property
    def needle(self) -> bytes:
        """What the line of each such quad has in it; the longest such text is the rarest, most likely."""
        terms = (self.resource, self.subject, self.predicate, self.object, self.graph)
        named = (str(term) for term in terms if term is not None and not isinstance(term, DefaultGraph))
        return max(named, key=len, default="").encode()

    @property
    def read_patterns(self) -> tuple[ReadPattern, ...]:
        """What of the graph decides about these changes."""
        pattern = ReadPattern(self.subject, self.predicate, self.object, self.graph)
        if self.resource is None:
            return (pattern,)
        places = [replace(pattern, graph=self.resource), replace(pattern, object=self.resource)]
        places.append(replace(pattern, subject=self.resource))
        places.append(replace(pattern, within=self.resource))
        if isinstance(self.resource, NamedNode):
            places.append(replace(pattern, predicate=self.resource))
        return tuple(places)

    def part_of(self, change: ChangeSet) -> ChangeSet:
        """What of a change is asked for; the name of a graph is, if no statement is."""
        if self.is_everything:
            return change
        return change.part(self.takes, self.takes_graph)

    def takes(self, quad: Quad) -> bool:
        """Whether a quad is asked for."""
        return (
            (self.subject is None or quad.subject == self.subject)
            and (self.predicate is None or quad.predicate == self.predicate)
            and (self.object is None or quad.object == self.object)
            and (self.graph is None or quad.graph_name == self.graph)
            and (self.resource is None or self.resource in _terms(quad))
        )

    def takes_graph(self, name: NamedGraph) -> bool:
        """Whether it is asked for that a graph of this name is there or not."""
        return (
            (self.subject, self.predicate, self.object) == (None, None, None)
            and self.graph in (None, name)
            and self.resource in (None, name)
        )


EVERYTHING = AskedChanges()


def _terms(quad: Quad) -> Iterator[Term | GraphName]:
    yield from terms_of_triple(quad.triple)
    yield quad.graph_name
