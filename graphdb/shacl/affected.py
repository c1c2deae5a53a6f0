"""Which focus nodes an update may have made invalid.

From each changed quad back: along the paths of the shapes that look at it, through shapes within shapes, to
the nodes that may be targets. One state of the graph is enough for that, before the update or behind it: of
the links between a focus node and something changed, those nearer than the first changed one are in both
states.
"""

from collections.abc import Iterable
from typing import Final
from typing import Literal as OneOf

from pyoxigraph import NamedNode, Quad

from graphdb.model import ChangeSet
from graphdb.shacl.data_graph import DataGraphName, graph_of_quads
from graphdb.shacl.neighbourhood import is_local
from graphdb.shacl.nesting import nodes_in
from graphdb.shacl.path_walk import PathWalk, QuadSource, TooMuch
from graphdb.shacl.paths import (
    AlternativePath,
    InversePath,
    Path,
    PredicatePath,
    RepeatedPath,
    SequencePath,
)
from graphdb.shacl.shape_tree import (
    ClassConstraint,
    ClassTarget,
    ClosedConstraint,
    Constraint,
    EqualsConstraint,
    LessThanConstraint,
    ObjectsTarget,
    Shape,
    SparqlTarget,
    SubjectsTarget,
)
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.vocabulary import RDF_TYPE, RDFS_SUBCLASS_OF, Node, Term

__all__ = ["ALL", "Affected", "affected"]

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
