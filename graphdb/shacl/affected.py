"""Which focus nodes a change may affect, and the neighbourhood that decides it."""

from collections.abc import Iterable
from typing import Final
from typing import Literal as OneOf

from pyoxigraph import NamedNode, Quad

from graphdb.model import ChangeSet
from graphdb.shacl.data_graph import DataGraphName, graph_of_quads
from graphdb.shacl.nesting import nodes_in
from graphdb.shacl.paths import (
    AlternativePath,
    InversePath,
    Path,
    PathWalk,
    PredicatePath,
    QuadSource,
    RepeatedPath,
    SequencePath,
    TooMuch,
)
from graphdb.shacl.shacl_names import RDF_TYPE, RDFS_SUBCLASS_OF, Node, Term
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

__all__ = ["ALL", "Affected", "Neighbourhood", "TooMuch", "affected", "is_bounded", "is_local"]

# The part of a graph that a validation looks at: from focus nodes along the paths of shapes.
#
# Both what goes to pySHACL and what an update is checked on are cut out so.

_SUPERCLASSES = RepeatedPath(PredicatePath(RDFS_SUBCLASS_OF), "*")


def is_bounded(shapes: Iterable[Shape]) -> bool:
    """Whether what these shapes look at, themselves, can be told: SPARQL may look anywhere."""
    return not any(_reads_any_graph(constraint) for shape in shapes for constraint in shape.constraints)


def is_local(shapes: Iterable[Shape]) -> bool:
    """Whether it can be told, and is looked at by queries alone, without pySHACL."""
    given = list(shapes)
    has_expressions = any(
        isinstance(each, ExpressionConstraint) for shape in given for each in shape.constraints
    )
    return is_bounded(given) and not has_expressions


def _reads_any_graph(constraint: Constraint) -> bool:
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


# Which focus nodes an update may have made invalid.
#
# From each changed quad back: along the paths of the shapes that look at it, through shapes within shapes,
# to the nodes that may be targets. One state of the graph is enough for that, before the update or behind
# it: of the links between a focus node and something changed, those nearer than the first changed one are
# in both states.

ALL: Final = "all"
Affected = frozenset[Term] | OneOf["all"]

_LOOKUPS_MAX = 10_000  # in the graph; where more are needed, it is quicker to validate everything
_SUBCLASSES = RepeatedPath(PredicatePath(RDFS_SUBCLASS_OF), "*")


def affected(
    shapes: Shapes, change: ChangeSet, view: QuadSource, data_graph: DataGraphName = None
) -> Affected:
    """The nodes whose results the change may have changed, and perhaps others; "all" where that cannot be
    told, as with SPARQL, or takes too long to find.

    view is the state before the change or behind it, data_graph the graph that is validated.
    """
    graph = graph_of_quads(data_graph)
    quads = [
        quad
        for quads in (change.removed, change.added)
        for quad in quads
        if graph is None or quad.graph_name == graph
    ]
    if not quads or not shapes.targeted:
        return frozenset()
    try:
        return _Backwards(shapes, quads, PathWalk(view, data_graph, lookups_max=_LOOKUPS_MAX)).focus_nodes()
    except TooMuch:
        return ALL


class _Backwards:
    def __init__(self, shapes: Shapes, quads: Iterable[Quad], walk: PathWalk) -> None:
        self._shapes, self._walk = shapes, walk
        self._changed: dict[NamedNode, list[Quad]] = {}
        for quad in quads:
            self._changed.setdefault(quad.predicate, []).append(quad)
        self._found: dict[Node, set[Term]] = {}
        self._retyped: set[Term] | None = None

    def focus_nodes(self) -> frozenset[Term]:
        """Raises TooMuch."""
        found: set[Term] = set()
        for shape in self._shapes.targeted:
            found |= self._of_shape(shape) | self._new_targets(shape)
        return frozenset(found)

    def _of_shape(self, shape: Shape) -> set[Term]:
        """The nodes that may be another thing to a shape than they were."""
        known = self._found.get(shape.node)
        if known is None:
            known = self._found[shape.node] = set() if shape.deactivated else self._traced(shape)
        return known

    def _traced(self, shape: Shape) -> set[Term]:
        if not is_local((shape,)):
            raise TooMuch
        found: set[Term] = set()
        values: set[Term] = set()
        for constraint in shape.constraints:
            values |= self._values(constraint)
            if isinstance(constraint, EqualsConstraint | LessThanConstraint):
                found |= self._ends(constraint.predicate)
        if shape.path is None:
            return found | values
        if shape.constraints:
            found |= self._starts(shape.path)
        return found | self._walk.along(shape.path, values, inverse=True)

    def _values(self, constraint: Constraint) -> set[Term]:
        """The value nodes that may satisfy a constraint no longer, other than because of the path to them."""
        match constraint:
            case ClassConstraint():
                return self._retyped_nodes()
            case ClosedConstraint():
                return {quad.subject for quads in self._changed.values() for quad in quads}
            case _:
                return set().union(*(self._of_shape(self._shapes[node]) for node in nodes_in(constraint)))

    def _new_targets(self, shape: Shape) -> set[Term]:
        """The nodes that may be focus nodes only now."""
        found: set[Term] = set()
        for target in shape.targets:
            match target:
                case ClassTarget():
                    found |= self._retyped_nodes()
                case SubjectsTarget():
                    found |= self._ends(target.predicate)
                case ObjectsTarget():
                    found |= self._ends(target.predicate, inverse=True)
                case SparqlTarget():
                    raise TooMuch
        return found

    def _retyped_nodes(self) -> set[Term]:
        """The nodes whose classes may have changed."""
        if self._retyped is None:
            classes = self._walk.along(_SUBCLASSES, self._ends(RDFS_SUBCLASS_OF), inverse=True)
            self._retyped = self._ends(RDF_TYPE) | self._walk.step(RDF_TYPE, classes, inverse=True)
        return self._retyped

    def _starts(self, path: Path, *, inverse: bool = False) -> set[Term]:
        """The nodes from which a path leads over something changed; inverse: to which."""
        match path:
            case PredicatePath():
                return self._ends(path.predicate, inverse=inverse)
            case InversePath():
                return self._starts(path.path, inverse=not inverse)
            case AlternativePath():
                return set().union(*(self._starts(each, inverse=inverse) for each in path.paths))
            case RepeatedPath():
                starts = self._starts(path.path, inverse=inverse)
                if path.sign == "?":
                    return starts
                return self._walk.along(RepeatedPath(path.path, "*"), starts, inverse=not inverse)
            case SequencePath():
                found: set[Term] = set()
                for step in path.steps if inverse else reversed(path.steps):
                    found = self._walk.along(step, found, inverse=not inverse)
                    found |= self._starts(step, inverse=inverse)
                return found

    def _ends(self, predicate: NamedNode, *, inverse: bool = False) -> set[Term]:
        """The subjects of changed quads with this predicate; inverse: the objects."""
        return {quad.object if inverse else quad.subject for quad in self._changed.get(predicate, ())}
