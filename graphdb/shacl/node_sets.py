"""Shapes within shapes as sets of nodes: which values do not conform, and what follows from that."""

from collections import Counter
from collections.abc import Callable, Iterator

from graphdb.shacl.data_graph import DataGraph
from graphdb.shacl.findings import Finding
from graphdb.shacl.pairs import Pairs
from graphdb.shacl.shape_tree import (
    AllOf,
    Constraint,
    ExactlyOneOf,
    NodeConstraint,
    NotConstraint,
    OneOf,
    PropertyConstraint,
    QualifiedConstraint,
    Shape,
)
from graphdb.shacl.sources import ListSource, Source
from graphdb.shacl.steps import step_to
from graphdb.shacl.targets import Targets
from graphdb.shacl.vocabulary import Node, Term

__all__ = ["NodeSets"]


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
