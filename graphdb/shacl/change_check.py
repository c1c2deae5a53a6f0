"""`ChangeCheck`: what shapes say of the nodes that a change has affected, in the state behind the change.

What decides about a few of them is gathered and validated here, in a millisecond or two; all else is for
whoever can end it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from pyoxigraph import Quad, Store

from graphdb.model import ChangeSet
from graphdb.shacl.affected import ALL, Affected, affected
from graphdb.shacl.data_graph import DataGraphName
from graphdb.shacl.neighbourhood import Neighbourhood, TooMuch, is_local
from graphdb.shacl.path_walk import QuadSource
from graphdb.shacl.shape_cost import shape_costs
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.vocabulary import Node, Term
from graphdb.shacl.write_check import check_report

__all__ = ["ChangeCheck", "Report"]

_FOCUS_MAX = 200  # nodes that are validated here
_LOOKUPS_MAX = 2_000  # for what decides about them
_QUADS_MAX = 5_000
_TESTS_MAX = 200  # of constraints, each some 0.1 ms
_ROWS_MAX = 500_000  # that a query may find at worst, some tenths of a second
_FOCUS_APART_MAX = 50_000  # of more than these, all targets are validated

Report: TypeAlias = Mapping[str, Any]  # as `graphdb.shacl.write_check.check_report` makes it


class ChangeCheck:
    """Made once for shapes, then asked of many changes."""

    def __init__(self, shapes: Shapes, clock: Callable[[], float]) -> None:
        """clock tells seconds."""
        self.shapes, self._clock = shapes, clock
        self._is_local = is_local(shapes.by_node.values())
        self._costs = shape_costs(shapes)

    def report(
        self,
        after: QuadSource,
        change: ChangeSet,
        data_graph: DataGraphName,
        validate_apart: Callable[[Iterable[Term] | None], Report],
    ) -> Report | None:
        """The report of the nodes that the change, of which `after` is the state behind, may have made
        invalid; None where there are none.

        validate_apart validates these nodes, or for None all targets, where that may take long.
        """
        nodes = affected(self.shapes, change, after, data_graph) if self.shapes.targeted else ()
        if not nodes:
            return None
        report = self._report_here(after, nodes, data_graph)
        if report is None:
            report = validate_apart(None if nodes == ALL or len(nodes) > _FOCUS_APART_MAX else nodes)
        return report

    def _report_here(self, after: QuadSource, nodes: Affected, data_graph: DataGraphName) -> Report | None:
        """The report of a few nodes; None where too much decides about them, or nobody knows what."""
        if nodes == ALL or len(nodes) > _FOCUS_MAX or not self._is_local:
            return None
        around = Neighbourhood(self.shapes, after, data_graph, lookups_max=_LOOKUPS_MAX, quads_max=_QUADS_MAX)
        targets: dict[Node, set[Term]] = {}
        try:
            for shape in self.shapes.targeted:
                if found := around.targets_among(shape, nodes):
                    targets[shape.node] = found
                    around.add(shape, found)
        except TooMuch:
            return None
        quads = [Quad(quad.subject, quad.predicate, quad.object) for quad in around.quads]
        if not self._is_quick(targets, len(quads)):
            return None
        store = Store()
        store.extend(quads)
        focus = set().union(*targets.values())
        return check_report(store, None, self.shapes.only(targets), focus, self._clock)

    def _is_quick(self, shapes: Iterable[Node], quads: int) -> bool:
        """Whether validating so many quads against these shapes surely ends soon."""
        costs = [self._costs[node] for node in shapes]
        steps = max((cost.steps for cost in costs), default=0)
        return sum(cost.tests for cost in costs) <= _TESTS_MAX and quads ** (steps / 2) <= _ROWS_MAX
