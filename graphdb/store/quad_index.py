"""`QuadIndex`: a few quads in memory, found by their terms."""

from collections.abc import Iterable, Iterator

from pyoxigraph import NamedNode, Quad

from graphdb.model import GraphName
from graphdb.store.view import Subject, Term

__all__ = ["QuadIndex"]


class QuadIndex:
    """A set of quads in the order in which they came. A find costs what has its subject, else its object."""

    def __init__(self, quads: Iterable[Quad] = ()) -> None:
        self._all: dict[Quad, None] = {}
        self._by_subject: dict[object, dict[Quad, None]] = {}
        self._by_object: dict[object, dict[Quad, None]] = {}
        for quad in quads:
            self.add(quad)

    def add(self, quad: Quad) -> None:
        """Take it in; twice is once."""
        for quads in self._places(quad):
            quads[quad] = None

    def discard(self, quad: Quad) -> None:
        """Let go of it, if it is there."""
        for quads in self._places(quad):
            quads.pop(quad, None)

    def matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """The quads with these terms, None standing for any."""
        for quad in self._narrowed(subject, object_):
            if (
                (subject is None or quad.subject == subject)
                and (predicate is None or quad.predicate == predicate)
                and (object_ is None or quad.object == object_)
                and (graph is None or quad.graph_name == graph)
            ):
                yield quad

    def _narrowed(self, subject: Subject | None, object_: Term | None) -> Iterable[Quad]:
        if subject is not None:
            return self._by_subject.get(subject, {})
        return self._all if object_ is None else self._by_object.get(object_, {})

    def _places(self, quad: Quad) -> tuple[dict[Quad, None], ...]:
        by_subject = self._by_subject.setdefault(quad.subject, {})
        return self._all, by_subject, self._by_object.setdefault(quad.object, {})
