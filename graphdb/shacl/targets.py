"""Focus nodes: which nodes the targets of a shape stand for (SHACL section 2.1.3)."""

from collections.abc import Iterable, Iterator

from pyoxigraph import NamedNode

from graphdb.shacl.data_graph import UNION_GRAPH, DataGraph
from graphdb.shacl.paths import PathWalk, PredicatePath, RepeatedPath
from graphdb.shacl.prebinding import PreboundQueries
from graphdb.shacl.shacl_names import RDF_TYPE, RDFS_SUBCLASS_OF, Node, Term
from graphdb.shacl.shape_tree import (
    ClassTarget,
    NodeTarget,
    ObjectsTarget,
    Shape,
    SparqlTarget,
    SubjectsTarget,
)
from graphdb.shacl.sources import ListSource, PatternTarget, Source, TargetSource

__all__ = ["Targets"]

_COUNTED_TOGETHER_MAX = 100  # targets in one query
_ASKED_ONE_BY_ONE_MAX = 20  # nodes
_SUBCLASSES = RepeatedPath(PredicatePath(RDFS_SUBCLASS_OF), "*")


class Targets:
    """Those of one validation. The methods raise EvaluationFailed, for targets in SPARQL."""

    def __init__(self, graph: DataGraph, prebound: PreboundQueries, focus: Iterable[Term] | None) -> None:
        """focus are the only nodes that are to be focus nodes, if any are given."""
        self._graph, self._prebound = graph, prebound
        self._focus = None if focus is None else ListSource(focus, graph.functions)
        self._subclasses: dict[Node, list[Term]] = {}

    def source(self, shape: Shape) -> Source:
        """The focus nodes of a shape."""
        if self._focus is not None and len(self._focus.nodes) <= _ASKED_ONE_BY_ONE_MAX and _is_plain(shape):
            found = [node for node in self._focus.nodes if self._is_target(node, shape)]
            return ListSource(found, self._graph.functions)
        wanted = self._wanted(shape)
        if self._focus is None:
            return wanted
        text = f"SELECT ?this {{ {self._focus.enumerated('?this')} {wanted.tested('?this')} }}"
        return ListSource(self._nodes(text), self._graph.functions)

    def is_empty(self, source: Source) -> bool:
        """Whether a source has no nodes."""
        if isinstance(source, ListSource):
            return not source.nodes
        return next(self._nodes(f"SELECT ?this {{ {source.enumerated('?this')} }} LIMIT 1"), None) is None

    def count(self, sources: Iterable[Source]) -> int:
        """How many nodes the sources have together."""
        given = list(sources)
        patterns = [source for source in given if isinstance(source, TargetSource)]
        targets = tuple(dict.fromkeys(target for source in patterns for target in source.targets))
        if len(patterns) < len(given) or len(targets) > _COUNTED_TOGETHER_MAX:
            return len(frozenset().union(*map(self.nodes, given)))
        if not targets:
            return 0
        pattern = self.of_patterns(targets).pattern("?this")
        return self._graph.number(f"SELECT (COUNT(DISTINCT ?this) AS ?n) {{ {pattern} }}")

    def nodes(self, source: Source) -> frozenset[Term]:
        """The nodes of a source."""
        if isinstance(source, ListSource):
            return frozenset(source.nodes)
        return frozenset(self._nodes(f"SELECT ?this {{ {source.enumerated('?this')} }}"))

    def of_patterns(self, targets: tuple[PatternTarget, ...]) -> TargetSource:
        """The focus nodes of some targets that are not in SPARQL."""
        classes = {target.cls for target in targets if isinstance(target, ClassTarget)}
        subclassed = frozenset(cls for cls in classes if len(self.subclasses(cls)) > 1)
        return TargetSource(targets, subclassed, self._graph.name is UNION_GRAPH)

    def subclasses(self, cls: Node) -> list[Term]:
        """A class and its subclasses in the data."""
        found = self._subclasses.get(cls)
        if found is None:
            below = PathWalk(self._graph, self._graph.name).along(_SUBCLASSES, (cls,), inverse=True)
            found = self._subclasses[cls] = [cls, *sorted(below - {cls}, key=str)]
        return found

    def _is_target(self, node: Term, shape: Shape) -> bool:
        """For a few nodes and targets that are not in SPARQL, quicker than a query."""
        for target in shape.targets:
            match target:
                case NodeTarget():
                    found = node == target.node
                case ClassTarget():
                    found = not self._objects(node, RDF_TYPE).isdisjoint(self.subclasses(target.cls))
                case SubjectsTarget():
                    found = bool(self._objects(node, target.predicate))
                case ObjectsTarget():
                    found = bool(self._objects(node, target.predicate, inverse=True))
                case SparqlTarget():
                    raise AssertionError(target)
            if found:
                return True
        return False

    def _objects(self, node: Term, predicate: NamedNode, *, inverse: bool = False) -> set[Term]:
        return PathWalk(self._graph, self._graph.name).step(predicate, (node,), inverse=inverse)

    def _wanted(self, shape: Shape) -> Source:
        patterns = tuple(target for target in shape.targets if not isinstance(target, SparqlTarget))
        queries = [target.query for target in shape.targets if isinstance(target, SparqlTarget)]
        if not queries:
            return self.of_patterns(patterns)
        nodes = set(self.nodes(self.of_patterns(patterns))) if patterns else set()
        for query in queries:
            nodes.update(self._prebound.targets(query))
        return ListSource(nodes, self._graph.functions)

    def _nodes(self, text: str) -> Iterator[Term]:
        for (node,) in self._graph.select(text):
            if node is not None:
                yield node


def _is_plain(shape: Shape) -> bool:
    """Whether none of its targets is in SPARQL."""
    return not any(isinstance(target, SparqlTarget) for target in shape.targets)
