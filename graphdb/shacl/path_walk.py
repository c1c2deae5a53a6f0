"""`PathWalk`: following property paths quad by quad, either way, within bounds."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from pyoxigraph import NamedNode, Quad

from graphdb.model import GraphName
from graphdb.shacl.data_graph import DataGraphName, graph_of_quads
from graphdb.shacl.paths import (
    AlternativePath,
    InversePath,
    Path,
    PredicatePath,
    RepeatedPath,
    SequencePath,
)
from graphdb.shacl.vocabulary import Node, Term
from graphdb.store.view import Subject

__all__ = ["PathWalk", "QuadSource", "TooMuch"]


class QuadSource(Protocol):
    """What `graphdb.store.view.StoreView` offers of it."""

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """The quads with these terms, None standing for any."""


class TooMuch(Exception):
    """More is needed than whoever asked wants to look at."""


class PathWalk:
    """Collects the quads that it meets, each once."""

    def __init__(
        self,
        source: QuadSource,
        graph: DataGraphName,
        *,
        lookups_max: int | None = None,
        quads_max: int | None = None,
    ) -> None:
        """Past one of the bounds, where they are given, the methods raise TooMuch."""
        self._source, self._graph = source, graph_of_quads(graph)
        self._lookups_left, self._quads_max = lookups_max, quads_max
        self.quads: dict[Quad, None] = {}

    def along(self, path: Path, nodes: Iterable[Term], *, inverse: bool = False) -> set[Term]:
        """The nodes at the other end of a path."""
        start = set(nodes)
        match path:
            case PredicatePath():
                return self.step(path.predicate, start, inverse=inverse)
            case InversePath():
                return self.along(path.path, start, inverse=not inverse)
            case SequencePath():
                for each in reversed(path.steps) if inverse else path.steps:
                    start = self.along(each, start, inverse=inverse)
                return start
            case AlternativePath():
                return set().union(*(self.along(each, start, inverse=inverse) for each in path.paths))
            case RepeatedPath():
                return self._repeated(path, start, inverse)

    def step(self, predicate: NamedNode | None, nodes: Iterable[Term], *, inverse: bool = False) -> set[Term]:
        """The objects of the nodes, or with inverse their subjects; None stands for any predicate."""
        found: set[Term] = set()
        for node in nodes:
            for quad in self._matching(node, predicate, inverse):
                self.quads[quad] = None
                found.add(quad.subject if inverse else quad.object)
        return found

    def _repeated(self, path: RepeatedPath, nodes: set[Term], inverse: bool) -> set[Term]:
        found = set() if path.sign == "+" else set(nodes)
        new = self.along(path.path, nodes, inverse=inverse)
        while path.sign != "?" and not new <= found:
            new -= found
            found |= new
            new = self.along(path.path, new, inverse=inverse)
        return found | new

    def _matching(self, node: Term, predicate: NamedNode | None, inverse: bool) -> Iterator[Quad]:
        if self._lookups_left is not None:
            self._lookups_left -= 1
            if self._lookups_left < 0:
                raise TooMuch
        if inverse:
            quads = self._source.quads_matching(None, predicate, node, self._graph)
        elif isinstance(node, Node):
            quads = self._source.quads_matching(node, predicate, None, self._graph)
        else:
            return
        for quad in quads:
            if self._quads_max is not None and len(self.quads) >= self._quads_max:
                raise TooMuch
            yield quad
