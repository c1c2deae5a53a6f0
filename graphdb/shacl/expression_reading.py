"""sh:expression (SHACL-AF section 5): what of the graph a node expression looks at. pySHACL evaluates it."""

from collections.abc import Iterator
from typing import Any

from pyoxigraph import BlankNode, NamedNode

from graphdb.shacl.path_reading import parse_path
from graphdb.shacl.paths import Path
from graphdb.shacl.query_reading import QueryReader
from graphdb.shacl.shape_tree import ExpressionConstraint
from graphdb.shacl.shapes_graph import ShapesGraph
from graphdb.shacl.vocabulary import RDF_FIRST, Node, Term, sh
from graphdb.sparql.patterns import TriplesBlock
from graphdb.sparql.syntax import Query
from graphdb.sparql.tree_walk import parts_of

__all__ = ["read_expressions"]

_PARTS_MAX = 1_000


def read_expressions(graph: ShapesGraph, queries: QueryReader, shape: Node) -> Iterator[ExpressionConstraint]:
    """Those of a shape. Raises MalformedShapes."""
    for expression in graph.objects(shape, sh("expression")):
        reach = _Reach(graph, queries, shape)
        reach.add(expression)
        yield ExpressionConstraint(expression, tuple(dict.fromkeys(reach.paths)), reach.is_bounded)


class _Reach:
    """Paths that are followed from a value node; is_bounded is False where more is looked at than these."""

    def __init__(self, graph: ShapesGraph, queries: QueryReader, shape: Node) -> None:
        self._graph, self._queries, self._shape = graph, queries, shape
        self.paths: list[Path] = []
        self.is_bounded = True

    def add(self, expression: Term) -> None:
        """Raises MalformedShapes."""
        waiting = [expression]
        for part in waiting:
            if isinstance(part, BlankNode):
                waiting += self._parts(part)
            if len(waiting) > _PARTS_MAX:
                raise self._graph.malformed(self._shape, "expression", f"has more than {_PARTS_MAX} parts")

    def _parts(self, node: BlankNode) -> Iterator[Term]:
        for predicate in self._graph.predicates(node):
            values = self._graph.objects(node, predicate)
            if predicate == sh("path"):
                self.paths += (parse_path(self._graph, self._shape, value) for value in values)
            elif predicate in (sh("filterShape"), sh("nodes")):
                self.is_bounded = False
            elif any(isinstance(each, BlankNode) and self._graph.objects(each, RDF_FIRST) for each in values):
                if predicate not in (sh("union"), sh("intersection")):
                    self._call(predicate)
                for value in values:
                    yield from self._graph.members(value, self._shape, "expression")

    def _call(self, function: NamedNode) -> None:
        """A function looks at what its query looks at."""
        query = self._queries.body(function)
        if query is None or _has_triples(query):
            self.is_bounded = False


def _has_triples(query: Query) -> bool:
    waiting: list[Any] = [query]
    while waiting:
        node = waiting.pop()
        if isinstance(node, TriplesBlock):
            return True
        waiting.extend(parts_of(node))
    return False
