"""`Shapes`: the shapes of a shapes graph, read and checked; `read_shapes` makes them from triples."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from pyoxigraph import Literal, NamedNode, Triple

from graphdb.config.limits import GateLimits
from graphdb.errors import MalformedShapes
from graphdb.shacl.component_reading import Component, component_nodes, own_parameters, read_expressions
from graphdb.shacl.nesting import leading_to, nested
from graphdb.shacl.parameter_reading import PARAMETERS, SHAPE_LISTS, SHAPE_VALUES, read_parameters
from graphdb.shacl.paths import Path, read_path
from graphdb.shacl.query_reading import QueryReader
from graphdb.shacl.shacl_names import RDF_TYPE, Node, sh
from graphdb.shacl.shape_tree import (
    ClassTarget,
    Constraint,
    NodeTarget,
    ObjectsTarget,
    Shape,
    SparqlConstraint,
    SparqlTarget,
    SubjectsTarget,
    Target,
)
from graphdb.shacl.shapes_graph import ShapesGraph, short_name

__all__ = ["TARGETS", "MeaninglessShape", "Shapes", "read_shapes", "readable_shapes"]

_USUAL_LIMITS = GateLimits()
TARGETS = ("targetNode", "targetClass", "targetSubjectsOf", "targetObjectsOf", "target")


@dataclass(frozen=True)
class Shapes:
    """All shapes of a shapes graph by their nodes, and copies of those that are recursive (`nesting.py`); so
    none refers to itself, by whatever way.

    triples are those of the shapes graph, as they were given. Pickled, it is its triples, read again.
    """

    triples: tuple[Triple, ...] = field(repr=False)
    by_node: Mapping[Node, Shape]
    limits: GateLimits = field(default=_USUAL_LIMITS, repr=False)

    @cached_property
    def targeted(self) -> tuple[Shape, ...]:
        """Those that look for their focus nodes themselves: with targets, and not deactivated."""
        return tuple(shape for shape in self.by_node.values() if shape.targets and not shape.deactivated)

    def only(self, nodes: Collection[Node]) -> "Shapes":
        """The same shapes, of which no others than these look for their focus nodes."""
        narrowed = replace(self)
        narrowed.__dict__["targeted"] = tuple(shape for shape in self.targeted if shape.node in nodes)
        return narrowed

    def __getitem__(self, node: Node) -> Shape:
        return self.by_node[node]

    def __reduce__(self) -> tuple[Callable[..., "Shapes"], tuple[object, ...]]:
        return read_shapes, (self.triples, self.limits)


@dataclass(frozen=True, slots=True)
class MeaninglessShape:
    """A shape that cannot be validated against, by its own fault or that of one that it refers to.

    shape has its targets, as far as they can be told, and nothing else.
    """

    shape: Shape
    error: MalformedShapes


def read_shapes(triples: Iterable[Triple], limits: GateLimits = _USUAL_LIMITS) -> Shapes:
    """The shapes of a shapes graph. limits bound the SPARQL in it.

    Raises MalformedShapes for what SHACL's syntax rules forbid (appendix B of the specification), for shapes
    whose recursion has no meaning, and for what is not offered.
    """
    given = tuple(triples)
    shapes = _ShapesReader(ShapesGraph(given), limits).shapes()
    return Shapes(given, shapes, limits)


def readable_shapes(
    triples: Iterable[Triple], limits: GateLimits = _USUAL_LIMITS
) -> tuple[Shapes, tuple[MeaninglessShape, ...]]:
    """What `read_shapes` makes of the triples without the shapes that it raises for; and those that have
    targets.
    """
    given = tuple(triples)
    try:
        return read_shapes(given, limits), ()
    except MalformedShapes:
        graph = ShapesGraph(given)
        errors: dict[Node, MalformedShapes] = {}
        reader = _ShapesReader(graph, limits, errors)
        reader.shapes()
        left_out = errors.keys() | reader.meaningless_components.keys()
        defining = reader.defining()
        rest = (each for each in given if each.subject not in left_out or each.predicate not in defining)
        return read_shapes(rest, limits), tuple(reader.meaningless())


class _ShapesReader:
    """errors takes what is wrong with a shape, in place of raising it."""

    def __init__(
        self, graph: ShapesGraph, limits: GateLimits, errors: dict[Node, MalformedShapes] | None = None
    ) -> None:
        self._graph, self._limits, self._errors = graph, limits, errors
        self._queries = QueryReader(graph, limits)
        self._components: list[Component] = []
        self.meaningless_components: dict[Node, MalformedShapes] = {}
        for node in component_nodes(graph):
            try:
                self._components.append(Component(graph, self._queries, node))
            except MalformedShapes as error:
                if errors is None:
                    raise
                self.meaningless_components[node] = error

    def shapes(self) -> dict[Node, Shape]:
        """Every shape, each after the shapes that it refers to."""
        found: dict[Node, Shape] = {}
        waiting = list(self._nodes())
        for node in waiting:
            if node in found:
                continue
            try:
                found[node] = self._shape(node)
                waiting.extend(self._inner_nodes(node))
            except MalformedShapes as error:
                found[node] = self._without_meaning(node)
                self._note(node, error)
        self._note_uses_of_components(found)
        made = nested(found, lambda node, reason: self._note(node, self._graph.malformed(node, "", reason)))
        if self._errors:
            for node, origin in leading_to(found, self._errors).items():
                self._errors.setdefault(node, self._errors[origin])
        return made

    def meaningless(self) -> Iterator[MeaninglessShape]:
        """Those with errors that have targets."""
        for node, error in (self._errors or {}).items():
            shape = self._without_meaning(node)
            if shape.targets:
                yield MeaninglessShape(shape, error)

    def _note(self, node: Node, error: MalformedShapes) -> None:
        if self._errors is None:
            raise error
        self._errors.setdefault(node, error.with_traceback(None))

    def _note_uses_of_components(self, shapes: Iterable[Node]) -> None:
        for component, error in self.meaningless_components.items():
            parameters = [*own_parameters(self._graph, component)]
            for node in shapes:
                if any(self._graph.objects(node, each) for each in parameters):
                    self._note(node, error)

    def _without_meaning(self, node: Node) -> Shape:
        """A shape of which nothing but its targets can be told."""
        deactivated = Literal(True) in self._graph.objects(node, sh("deactivated"))
        targets = () if deactivated else tuple(dict.fromkeys(self._plain_targets(node)))
        return Shape(node, None, None, targets, (), sh("Violation"), (), deactivated)

    def _plain_targets(self, node: Node) -> Iterator[Target]:
        """The targets that can be told, but for those in SPARQL."""
        for value in self._graph.objects(node, sh("targetNode")):
            yield NodeTarget(value)
        classes = [node] if self._graph.is_class(node) else []
        for cls in (*classes, *self._graph.objects(node, sh("targetClass"))):
            if isinstance(cls, NamedNode):
                yield ClassTarget(cls)
        for predicate in self._graph.objects(node, sh("targetSubjectsOf")):
            if isinstance(predicate, NamedNode):
                yield SubjectsTarget(predicate)
        for predicate in self._graph.objects(node, sh("targetObjectsOf")):
            if isinstance(predicate, NamedNode):
                yield ObjectsTarget(predicate)

    def defining(self) -> frozenset[NamedNode]:
        """The properties by which something is a shape or a component."""
        return frozenset({RDF_TYPE, *self._parameters()})

    def _nodes(self) -> Iterator[Node]:
        """What is a shape by its type, its targets or its parameters (SHACL section 2.1)."""
        yield from self._graph.instances(sh("NodeShape"))
        yield from self._graph.instances(sh("PropertyShape"))
        yield from self._graph.subjects_with(self._parameters())

    def _parameters(self) -> Iterator[NamedNode]:
        yield from (sh(name) for name in (*TARGETS, *PARAMETERS))
        for component in self._components:
            yield from (each.predicate for each in component.parameters if not each.optional)

    def _inner_nodes(self, node: Node) -> Iterator[Node]:
        """The shapes that one refers to."""
        for name in SHAPE_VALUES:
            yield from self._graph.nodes(node, name)
        for name in SHAPE_LISTS:
            for value in self._graph.objects(node, sh(name)):
                for member in self._graph.members(value, node, name):
                    yield self._graph.node(member, node, name)

    def _shape(self, node: Node) -> Shape:
        found = read_path(self._graph, node, self._limits)
        path, path_node = found if found is not None else (None, None)
        self._check_kind(node, path)
        severity = self._graph.only(node, "severity")
        if severity is not None:
            severity = self._graph.expect(severity, NamedNode, node, "severity", "an IRI")
        return Shape(
            node=node,
            path=path,
            path_node=path_node,
            targets=tuple(dict.fromkeys(self._targets(node))),
            constraints=tuple(self._constraints(node, path)),
            severity=severity or sh("Violation"),
            messages=self._graph.strings(node, "message"),
            deactivated=self._graph.boolean(node, "deactivated"),
        )

    def _check_kind(self, node: Node, path: Path | None) -> None:
        types = self._graph.objects(node, RDF_TYPE)
        if path is None and sh("PropertyShape") in types:
            raise self._graph.malformed(node, "path", "is missing, and a property shape needs one")
        if path is not None and sh("NodeShape") in types:
            raise self._graph.malformed(node, "path", "is for property shapes, and this is a node shape")

    def _targets(self, node: Node) -> Iterator[Target]:
        for value in self._graph.objects(node, sh("targetNode")):
            if not isinstance(value, NamedNode | Literal):
                raise self._graph.malformed(node, "targetNode", f"cannot be {short_name(value)}")
            yield NodeTarget(value)
        for cls in self._graph.iris(node, "targetClass"):
            yield ClassTarget(cls)
        if isinstance(node, NamedNode) and self._graph.is_class(node):
            yield ClassTarget(node)
        for predicate in self._graph.iris(node, "targetSubjectsOf"):
            yield SubjectsTarget(predicate)
        for predicate in self._graph.iris(node, "targetObjectsOf"):
            yield ObjectsTarget(predicate)
        for target in self._graph.nodes(node, "target"):
            yield self._sparql_target(node, target)

    def _sparql_target(self, node: Node, target: Node) -> SparqlTarget:
        """sh:SPARQLTarget, or an instance of a sh:SPARQLTargetType (SHACL-AF section 3)."""
        if self._graph.objects(target, sh("select")):
            return SparqlTarget(self._queries.target(target, target, ()))
        for kind in self._graph.objects(target, RDF_TYPE):
            if isinstance(kind, NamedNode) and self._graph.objects(kind, sh("select")):
                bindings = Component(self._graph, self._queries, kind).bindings(target)
                if bindings is not None:
                    return SparqlTarget(self._queries.target(kind, target, bindings))
        raise self._graph.malformed(node, "target", "is none that is offered: those with sh:select are")

    def _constraints(self, node: Node, path: Path | None) -> Iterator[Constraint]:
        yield from read_parameters(self._graph, node, path is not None)
        yield from read_expressions(self._graph, self._queries, node)
        for source in self._graph.nodes(node, "sparql"):
            if not self._graph.boolean(source, "deactivated"):
                query = self._queries.select(source, node, path)
                yield SparqlConstraint(source, query, self._graph.strings(source, "message"))
        for component in self._components:
            yield from component.uses(node, path)
