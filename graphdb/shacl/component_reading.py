"""Reading constraint components and node expressions from the shapes graph."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyoxigraph import BlankNode, NamedNode

from graphdb.shacl.paths import Path, parse_path
from graphdb.shacl.query_reading import QueryReader
from graphdb.shacl.shacl_names import RDF_FIRST, SH, Node, Term, sh
from graphdb.shacl.shape_tree import ComponentConstraint, ExpressionConstraint, ShapeQuery, Validator
from graphdb.shacl.shapes_graph import ShapesGraph
from graphdb.sparql.patterns import TriplesBlock
from graphdb.sparql.syntax import Query
from graphdb.sparql.tree_walk import parts_of
from graphdb.store.stored_form import stored_term

__all__ = ["Component", "component_nodes", "own_parameters", "read_expressions"]

# sh:expression (SHACL-AF section 5): what of the graph a node expression looks at. pySHACL evaluates it.

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


# Constraint components that a shapes graph declares itself, in SPARQL (SHACL section 6).

_RESERVED = {"this", "shapesGraph", "currentShape", "path", "PATH", "value"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """predicate is what a shape says it by, name what the queries call it."""

    predicate: NamedNode
    name: str
    optional: bool


class Component:
    """One sh:ConstraintComponent."""

    def __init__(self, graph: ShapesGraph, queries: QueryReader, node: NamedNode) -> None:
        """Raises MalformedShapes."""
        self._graph, self._queries, self.node = graph, queries, node
        self.parameters = tuple(self._parameter(each) for each in graph.nodes(node, "parameter"))
        if all(parameter.optional for parameter in self.parameters):
            raise graph.malformed(node, "parameter", "needs one parameter at least that is not optional")

    def uses(self, shape: Node, path: Path | None) -> list[ComponentConstraint]:
        """The constraints that a shape makes of the component: none where a parameter is missing.

        Raises MalformedShapes.
        """
        if len(self.parameters) == 1:
            [parameter] = self.parameters
            given = self._graph.objects(shape, parameter.predicate)
            return [self._use(shape, path, ((parameter.name, stored_term(value)),)) for value in given]
        bindings = self.bindings(shape)
        return [] if bindings is None else [self._use(shape, path, bindings)]

    def bindings(self, node: Node) -> tuple[tuple[str, Term], ...] | None:
        """What a node that uses the component gives for its parameters; None where it does not give all.

        Raises MalformedShapes.
        """
        values = {each: self._graph.objects(node, each.predicate) for each in self.parameters}
        if any(not given and not parameter.optional for parameter, given in values.items()):
            return None
        for parameter, given in values.items():
            if len(given) > 1:
                reason = f"{parameter.predicate} has {len(given)} values, at most one is allowed"
                raise self._graph.malformed(node, "", reason)
        return tuple((each.name, stored_term(given[0])) for each, given in values.items() if given)

    def _use(
        self, shape: Node, path: Path | None, bindings: tuple[tuple[str, Term], ...]
    ) -> ComponentConstraint:
        validator, name = self._validator(path)
        messages = self._graph.strings(validator, "message") or self._graph.strings(self.node, "message")
        query: ShapeQuery
        if name == "validator" or self._graph.objects(validator, sh("ask")):
            query = self._queries.ask(validator, shape, path, bindings)
            return ComponentConstraint(self.node, Validator(True, query, messages))
        query = self._queries.select(validator, shape, path, bindings)
        return ComponentConstraint(self.node, Validator(False, query, messages))

    def _validator(self, path: Path | None) -> tuple[Node, str]:
        """The validator for this kind of shape, and the property that names it (SHACL section 6.2.3)."""
        for name in ("nodeValidator" if path is None else "propertyValidator", "validator"):
            found = self._graph.nodes(self.node, name)
            if len(found) > 1:
                raise self._graph.malformed(self.node, name, "has more than one value")
            if found:
                return found[0], name
        kind = "node" if path is None else "property"
        raise self._graph.malformed(self.node, "validator", f"there is none for {kind} shapes")

    def _parameter(self, node: Node) -> Parameter:
        predicate = self._graph.only(node, "path")
        if not isinstance(predicate, NamedNode):
            raise self._graph.malformed(node, "path", "of a parameter must be one IRI")
        name = predicate.value.rpartition("#")[2].rpartition("/")[2].rpartition(":")[2]
        if not name.isidentifier() or name in _RESERVED:
            raise self._graph.malformed(node, "path", f"{name!r} cannot be a variable's name")
        return Parameter(predicate, name, self._graph.boolean(node, "optional"))


def component_nodes(graph: ShapesGraph) -> Iterator[NamedNode]:
    """The components of the shapes graph but SHACL's own."""
    for node in graph.instances(sh("ConstraintComponent")):
        if isinstance(node, NamedNode) and not node.value.startswith(SH):
            yield node


def own_parameters(graph: ShapesGraph, component: Node) -> Iterator[NamedNode]:
    """What shapes use a component by, as far as it can be told."""
    for parameter in graph.objects(component, sh("parameter")):
        if isinstance(parameter, Node):
            for path in graph.objects(parameter, sh("path")):
                if isinstance(path, NamedNode):
                    yield path
