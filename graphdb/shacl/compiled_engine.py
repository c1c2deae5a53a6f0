"""The shapes as queries to the engine: a few for each shape, over all focus nodes at once.

What a constraint says of one value becomes an expression, and all of them together a query; counts and
comparisons have queries of their own; shapes within others are expressions where they are small and simple,
else sets of nodes that do not conform, from below. Nothing is asked node by node.
"""

from collections.abc import Iterator

from graphdb.shacl.conditions import ConditionWriter
from graphdb.shacl.data_graph import DataGraph
from graphdb.shacl.findings import Finding
from graphdb.shacl.node_sets import NodeSets
from graphdb.shacl.pairs import Pairs, Planner
from graphdb.shacl.prebinding import PreboundQueries
from graphdb.shacl.shape_tree import (
    ClassConstraint,
    ClassTarget,
    ClosedConstraint,
    ComponentConstraint,
    Constraint,
    CountConstraint,
    EqualsConstraint,
    ExpressionConstraint,
    HasValueConstraint,
    LessThanConstraint,
    PropertyConstraint,
    QualifiedConstraint,
    Shape,
    SparqlConstraint,
    UniqueLangConstraint,
    Validator,
    query_of,
)
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.sources import ListSource, Source, ValuesSource
from graphdb.shacl.targets import Targets
from graphdb.shacl.value_queries import (
    class_findings,
    closed_findings,
    condition_findings,
    count_findings,
    equals_findings,
    has_value_findings,
    less_than_findings,
    qualified_findings,
    unique_lang_findings,
)
from graphdb.shacl.vocabulary import Node, Term

__all__ = ["CompiledEngine", "is_compilable"]

_SOURCES_DEEP_MAX = 3  # within each other; what is deeper is a list of nodes
_FEW = 100  # values, for which it is not worth while to count
_INSTANCES_PER_VALUE = 4  # of a class, up to which enumerating them is quicker than asking for each value


def is_compilable(constraint: Constraint) -> bool:
    """Whether a constraint by itself can be made into queries, whatever shapes it refers to."""
    query = query_of(constraint)
    return not isinstance(constraint, ExpressionConstraint) and (query is None or not query.calls_declared)


class CompiledEngine:
    """For one validation of one graph."""

    def __init__(self, graph: DataGraph, shapes: Shapes, targets: Targets, prebound: PreboundQueries) -> None:
        self._graph, self._shapes, self._targets, self._prebound = graph, shapes, targets, prebound
        self._planner = Planner(graph)
        self._conditions = ConditionWriter(shapes, targets.subclasses, graph.functions)
        self._sets = NodeSets(graph, targets, self._nonconforming)
        self._known: dict[tuple[Node, Source], frozenset[Term]] = {}

    def findings(self, shape: Shape, source: Source) -> Iterator[Finding]:
        """What a report says of the nodes of a source: by a shape, and by the property shapes in it.

        What is wrong with a value node is said once for each focus node that has it.
        """
        for _, finding in self._findings_below(shape, source):
            yield finding

    def _findings_below(self, shape: Shape, source: Source) -> Iterator[tuple[Term, Finding]]:
        """With the node of the source that each is said for."""
        if shape.deactivated:
            return
        for finding in self._own_findings(shape, source):
            yield finding.focus, finding
        for constraint in shape.constraints:
            if isinstance(constraint, PropertyConstraint):
                values = self._values(source, shape)
                below = list(self._findings_below(self._shapes[constraint.shape], values))
                yield from self._for_focus_nodes(below, shape, source) if below else ()

    def _for_focus_nodes(
        self, findings: list[tuple[Term, Finding]], shape: Shape, source: Source
    ) -> Iterator[tuple[Term, Finding]]:
        """What is said for value nodes of a shape, for the focus nodes that have them."""
        if shape.path is None:
            yield from findings
            return
        pairs = self._planner.pairs(source, shape.path)
        focus_nodes: dict[Term, list[Term]] = {}
        for focus, value in self._sets.pairs_to(frozenset(value for value, _ in findings), pairs):
            focus_nodes.setdefault(value, []).append(focus)
        for value, finding in findings:
            for focus in focus_nodes[value]:
                yield focus, finding

    def _nonconforming(self, node: Node, source: Source) -> frozenset[Term]:
        """The nodes of a source that do not conform to a shape."""
        found = self._known.get((node, source))
        if found is None:
            findings = self._conformance_findings(self._shapes[node], source)
            found = self._known[node, source] = frozenset(finding.focus for finding in findings)
        return found

    def _conformance_findings(self, shape: Shape, source: Source) -> Iterator[Finding]:
        """As `findings`, all at nodes of the source."""
        if shape.deactivated:
            return
        inner = [each for each in shape.constraints if isinstance(each, PropertyConstraint)]
        yield from self._own_findings(shape, source)
        if inner:
            pairs, values = self._planner.pairs(source, shape.path), self._values(source, shape)
            for constraint in inner:
                yield from self._sets.findings(shape, constraint, pairs, values)

    def _own_findings(self, shape: Shape, source: Source) -> Iterator[Finding]:
        """Without those of sh:property."""
        own = [each for each in shape.constraints if not isinstance(each, PropertyConstraint)]
        if not own:
            return
        pairs = self._planner.pairs(source, shape.path)
        conditions: list[tuple[Constraint, str]] = []
        for constraint in own:
            found = self._by_own_query(shape, constraint, pairs)
            if found is not None:
                yield from found
            elif (condition := self._conditions.condition(constraint, "?value")) is not None:
                conditions.append((constraint, condition))
            else:
                yield from self._sets.findings(shape, constraint, pairs, self._values(source, shape))
        yield from condition_findings(self._graph, shape, pairs, conditions)

    def _by_own_query(self, shape: Shape, constraint: Constraint, pairs: Pairs) -> Iterator[Finding] | None:
        """For a constraint that is not a condition on each value by itself; None for the others."""
        match constraint:
            case CountConstraint():
                return count_findings(self._graph, shape, constraint, pairs)
            case UniqueLangConstraint():
                return unique_lang_findings(self._graph, shape, constraint, pairs)
            case HasValueConstraint() if shape.path is not None:
                return has_value_findings(self._graph, shape, constraint, pairs)
            case EqualsConstraint():
                return equals_findings(self._graph, shape, constraint, pairs, self._planner)
            case LessThanConstraint():
                return less_than_findings(self._graph, shape, constraint, pairs, self._planner)
            case ClosedConstraint():
                return closed_findings(self._graph, shape, constraint, pairs)
            case ClassConstraint() if self._enumerates(constraint, pairs):
                return class_findings(self._graph, shape, constraint, pairs, self._instances(constraint))
            case QualifiedConstraint() if (condition := self._conditions.qualified(constraint)) is not None:
                return qualified_findings(self._graph, shape, constraint, pairs, condition)
            case ComponentConstraint(validator=Validator(ask=True)):
                return self._prebound.ask_findings(shape, constraint, pairs)
            case SparqlConstraint() | ComponentConstraint():
                return self._prebound.select_findings(shape, constraint, pairs.source)
            case _:
                return None

    def _enumerates(self, constraint: ClassConstraint, pairs: Pairs) -> bool:
        """Whether that is quicker than to ask of each value."""
        return (
            pairs.size > _FEW
            and self._planner.size(self._instances(constraint)) <= _INSTANCES_PER_VALUE * pairs.size
        )

    def _instances(self, constraint: ClassConstraint) -> Source:
        return self._targets.of_patterns((ClassTarget(constraint.cls),))

    def _values(self, source: Source, shape: Shape) -> Source:
        """The value nodes of a shape."""
        if shape.path is None:
            return source
        values = ValuesSource(source, shape.path)
        if values.depth <= _SOURCES_DEEP_MAX:
            return values
        return ListSource(self._targets.nodes(values), self._graph.functions)
