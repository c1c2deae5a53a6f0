"""The engine that compiles shapes to SPARQL."""

from collections import Counter
from collections.abc import Callable, Iterator

from graphdb.shacl.conditions import ConditionWriter
from graphdb.shacl.data_graph import DataGraph
from graphdb.shacl.findings import Finding
from graphdb.shacl.paths import step_to
from graphdb.shacl.prebinding import PreboundQueries
from graphdb.shacl.shacl_names import Node, Term
from graphdb.shacl.shape_tree import (
    AllOf,
    ClassConstraint,
    ClassTarget,
    ClosedConstraint,
    ComponentConstraint,
    Constraint,
    CountConstraint,
    EqualsConstraint,
    ExactlyOneOf,
    ExpressionConstraint,
    HasValueConstraint,
    LessThanConstraint,
    NodeConstraint,
    NotConstraint,
    OneOf,
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
    Pairs,
    Planner,
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

__all__ = ["CompiledEngine", "is_compilable"]

# Shapes within shapes as sets of nodes: which values do not conform, and what follows from that.


class NodeSets:
    """nonconforming gives those nodes of a source that do not conform to a shape."""

    def __init__(
        self,
        graph: DataGraph,
        targets: Targets,
        nonconforming: Callable[[Node, Source], frozenset[Term]],
    ) -> None:
        self._graph, self._targets, self._nonconforming = graph, targets, nonconforming

    def findings(
        self, shape: Shape, constraint: Constraint, pairs: Pairs, values: Source
    ) -> Iterator[Finding]:
        """values are the value nodes of all pairs."""
        if isinstance(constraint, QualifiedConstraint):
            yield from self._miscounted(shape, constraint, pairs, values)
            return
        wrong = self._wrong(constraint, values)
        if not wrong:
            return
        for focus, value in self.pairs_to(wrong, pairs):
            yield Finding(shape, constraint, focus, value)

    def _wrong(self, constraint: Constraint, values: Source) -> frozenset[Term]:
        """The values that violate a constraint."""
        match constraint:
            case NodeConstraint() | PropertyConstraint():
                return self._nonconforming(constraint.shape, values)
            case NotConstraint():
                return self._targets.nodes(values) - self._nonconforming(constraint.shape, values)
            case AllOf():
                return frozenset().union(*(self._nonconforming(each, values) for each in constraint.shapes))
            case OneOf():
                first, *others = (self._nonconforming(each, values) for each in constraint.shapes)
                return first.intersection(*others)
            case ExactlyOneOf():
                failures = Counter(
                    node for each in constraint.shapes for node in self._nonconforming(each, values)
                )
                allowed = len(constraint.shapes) - 1
                return frozenset(node for node in self._targets.nodes(values) if failures[node] != allowed)
            case _:
                raise AssertionError(constraint)

    def _miscounted(
        self, shape: Shape, constraint: QualifiedConstraint, pairs: Pairs, values: Source
    ) -> Iterator[Finding]:
        """Focus nodes with too few values that conform to the shape and no sibling of it, or too many."""
        counted = self._targets.nodes(values) - self._nonconforming(constraint.shape, values)
        for sibling in constraint.siblings:
            counted &= self._nonconforming(sibling, values)
        counts = Counter(focus for focus, _ in set(self.pairs_to(counted, pairs)))
        if constraint.most is not None:
            wrong = [focus for focus, count in counts.items() if count > constraint.most]
        else:
            assert constraint.least is not None
            least = constraint.least
            wrong = (
                [focus for focus in self._targets.nodes(pairs.source) if counts[focus] < least]
                if least
                else []
            )
        for focus in wrong:
            yield Finding(shape, constraint, focus, None)

    def pairs_to(self, values: frozenset[Term], pairs: Pairs) -> Iterator[tuple[Term, Term]]:
        """The pairs with one of these values, each once."""
        if not values:
            return
        if pairs.path is None:
            yield from ((value, value) for value in values)
            return
        listed = ListSource(values, self._graph.functions)
        step = step_to(pairs.path, "?this", "?value")
        pattern = f"{listed.enumerated('?value')} LATERAL {{ {step} }} {pairs.source.tested('?this')}"
        for focus, value in self._graph.select(f"SELECT DISTINCT ?this ?value {{ {pattern} }}"):
            assert focus is not None
            assert value is not None
            yield focus, value


# The shapes as queries to the engine: a few for each shape, over all focus nodes at once.
#
# What a constraint says of one value becomes an expression, and all of them together a query; counts and
# comparisons have queries of their own; shapes within others are expressions where they are small and
# simple, else sets of nodes that do not conform, from below. Nothing is asked node by node.

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
