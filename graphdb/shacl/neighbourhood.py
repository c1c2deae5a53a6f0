"""The part of a graph that a validation looks at: from focus nodes along the paths of shapes.

Both what goes to pySHACL and what an update is checked on are cut out so.
"""

from collections.abc import Iterable

from pyoxigraph import Quad

from graphdb.shacl.data_graph import DataGraphName
from graphdb.shacl.nesting import nodes_in
from graphdb.shacl.path_walk import PathWalk, QuadSource, TooMuch
from graphdb.shacl.paths import PredicatePath, RepeatedPath
from graphdb.shacl.shape_tree import (
    ClassConstraint,
    ClassTarget,
    ClosedConstraint,
    Constraint,
    EqualsConstraint,
    ExpressionConstraint,
    LessThanConstraint,
    NodeTarget,
    ObjectsTarget,
    Shape,
    SparqlTarget,
    SubjectsTarget,
    Target,
    query_of,
)
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.vocabulary import RDF_TYPE, RDFS_SUBCLASS_OF, Node, Term

__all__ = ["Neighbourhood", "TooMuch", "is_bounded", "is_local"]

_SUPERCLASSES = RepeatedPath(PredicatePath(RDFS_SUBCLASS_OF), "*")


def is_bounded(shapes: Iterable[Shape]) -> bool:
    """Whether what these shapes look at, themselves, can be told: SPARQL may look anywhere."""
    return not any(_looks_anywhere(constraint) for shape in shapes for constraint in shape.constraints)


def is_local(shapes: Iterable[Shape]) -> bool:
    """Whether it can be told, and is looked at by queries alone, without pySHACL."""
    given = list(shapes)
    has_expressions = any(
        isinstance(each, ExpressionConstraint) for shape in given for each in shape.constraints
    )
    return is_bounded(given) and not has_expressions


def _looks_anywhere(constraint: Constraint) -> bool:
    if isinstance(constraint, ExpressionConstraint):
        return not constraint.is_bounded
    return query_of(constraint) is not None


class Neighbourhood:
    """Collects quads. The same shape and node are visited once."""

    def __init__(
        self,
        shapes: Shapes,
        source: QuadSource,
        graph: DataGraphName,
        *,
        lookups_max: int | None = None,
        quads_max: int | None = None,
    ) -> None:
        """Within the bounds, if any are given; past one of them the methods raise TooMuch."""
        self._shapes = shapes
        self._walk = PathWalk(source, graph, lookups_max=lookups_max, quads_max=quads_max)
        self._seen: dict[Node, set[Term]] = {}
        self._typed: set[Term] = set()
        self._classes_of: dict[Term, set[Term]] = {}

    @property
    def quads(self) -> Iterable[Quad]:
        """What was collected, each once."""
        return self._walk.quads

    def add(self, shape: Shape, nodes: Iterable[Term]) -> None:
        """Collect all that validating the nodes against a shape looks at, but for what SPARQL does."""
        seen = self._seen.setdefault(shape.node, set())
        new = set(nodes) - seen
        if not new or shape.deactivated:
            return
        seen |= new
        values = new if shape.path is None else self._walk.along(shape.path, new)
        for constraint in shape.constraints:
            self._add_for(constraint, new, values)

    def add_targets(self, shape: Shape, nodes: Iterable[Term]) -> None:
        """Collect what makes some of the nodes targets of a shape, but for what SPARQL does."""
        given = set(nodes)
        for target in shape.targets:
            match target:
                case ClassTarget():
                    self._add_types(given)
                case SubjectsTarget():
                    self._walk.step(target.predicate, given)
                case ObjectsTarget():
                    self._walk.step(target.predicate, given, inverse=True)

    def targets_among(self, shape: Shape, nodes: Iterable[Term]) -> set[Term]:
        """Those that are targets of a shape, which has none in SPARQL; collects what makes them so."""
        return {node for node in nodes if any([self._is_target(node, target) for target in shape.targets])}

    def _is_target(self, node: Term, target: Target) -> bool:
        match target:
            case NodeTarget():
                return node == target.node
            case ClassTarget():
                return target.cls in self._classes(node)
            case SubjectsTarget():
                return bool(self._walk.step(target.predicate, (node,)))
            case ObjectsTarget():
                return bool(self._walk.step(target.predicate, (node,), inverse=True))
            case SparqlTarget():
                raise ValueError("a target in SPARQL")

    def _classes(self, node: Term) -> set[Term]:
        known = self._classes_of.get(node)
        if known is None:
            types = self._walk.step(RDF_TYPE, (node,))
            known = self._classes_of[node] = self._walk.along(_SUPERCLASSES, types)
        return known

    def _add_types(self, nodes: set[Term]) -> None:
        """Collect what says which classes the nodes are instances of."""
        new = nodes - self._typed
        self._typed |= new
        self._walk.along(_SUPERCLASSES, self._walk.step(RDF_TYPE, new))

    def _add_for(self, constraint: Constraint, focus: set[Term], values: set[Term]) -> None:
        match constraint:
            case ClassConstraint():
                self._add_types(values)
            case EqualsConstraint() | LessThanConstraint():
                self._walk.step(constraint.predicate, focus)
            case ClosedConstraint():
                self._walk.step(None, values)
            case ExpressionConstraint():
                for path in constraint.paths:
                    self._walk.along(path, values)
        for node in nodes_in(constraint):
            self.add(self._shapes[node], values)
