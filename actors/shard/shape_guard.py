"""`ShapeGuard`: has every write satisfy the SHACL shapes that a named graph holds (`shacl.enforce_graph`).

It looks at the nodes that a change may have made invalid, in the state behind the change. What decides about
a few of them is gathered and validated here, in a millisecond or two; all else is for a reader.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from time import monotonic
from typing import Any, TypeAlias

from pyoxigraph import NamedNode, Quad, Store

from actors.readers.write_checks import WriteChecks
from graphdb.config.limits import GateLimits
from graphdb.config.service import Shacl
from graphdb.errors import MalformedShapes, ShapesViolated
from graphdb.model import ChangeSet
from graphdb.shacl.affected import ALL, Affected, affected
from graphdb.shacl.answering import data_graph_named
from graphdb.shacl.neighbourhood import Neighbourhood, TooMuch, is_local
from graphdb.shacl.shape_cost import ShapeCost, shape_costs
from graphdb.shacl.shapes import Shapes, read_shapes
from graphdb.shacl.vocabulary import Node, Term
from graphdb.shacl.write_check import check_report, first_refusing
from graphdb.store.overlay import BaseNotApplied, Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["ShapeGuard", "shape_guard"]

logger = logging.getLogger(__name__)
_FOCUS_MAX = 200  # nodes that are validated here
_LOOKUPS_MAX = 2_000  # for what decides about them
_QUADS_MAX = 5_000
_TESTS_MAX = 200  # of constraints, each some 0.1 ms
_ROWS_MAX = 500_000  # that a query may find at worst, some tenths of a second
_FOCUS_APART_MAX = 50_000  # of more than these, all targets are validated

Report: TypeAlias = Mapping[str, Any]  # as `graphdb.shacl.write_check.check_report` makes it
# of these nodes, or for None of all targets, by the shapes that the store holds
ValidateApart: TypeAlias = Callable[[QuadStore, Iterable[Term] | None], Report]


def shape_guard(enforced: Shacl, checks: WriteChecks) -> "ShapeGuard | None":
    """What checks writes, where shapes are enforced."""
    if enforced.enforce_graph is None:
        return None
    shapes_graph = NamedNode(enforced.enforce_graph)
    validate_apart = partial(checks.validate, shapes_graph, enforced.enforce_on)
    return ShapeGuard(shapes_graph, enforced.enforce_on, checks.limits, validate_apart)


class ShapeGuard:
    """See `actors.shard.write_guard.WriteGuard`.

    The shapes are those of the state that a write is planned on; for a write that changes the shapes they are
    those that it leaves behind, and then everything has to satisfy them.
    """

    def __init__(
        self, shapes_graph: NamedNode, data_graph: str, limits: GateLimits, validate_apart: ValidateApart
    ) -> None:
        """data_graph is "default", "union" or an IRI; limits are for SPARQL in the shapes."""
        self._shapes_graph, self._data_graph = shapes_graph, data_graph_named(data_graph)
        self._limits, self._validate_apart = limits, validate_apart
        self._index: int | None = None  # the shapes are those of this log index; None: not known
        self._quads: dict[Quad, None] | None = None  # what the shapes were read from
        self._shapes: Shapes | MalformedShapes | None = None
        self._is_local = False
        self._costs: Mapping[Node, ShapeCost] = {}
        self._has_changed_shapes = False  # an earlier write of this batch

    def begin(self, state: Overlay, index: int) -> None:
        self._has_changed_shapes = False
        if index != self._index:
            self._read(state)
            self._index = index

    def check(self, state: Overlay, change: ChangeSet) -> None:
        """Raises ShapesViolated, MalformedShapes, BaseNotApplied; and what validate_apart raises."""
        if self._has_changed_shapes:
            raise BaseNotApplied
        with state.request() as after:
            after.push(change)
            if self._concerns_shapes(change):
                self._check_all(after)
                self._has_changed_shapes = True
            else:
                self._check_affected(after, change)

    def check_parts(self, state: Overlay, plan: Callable[[], Iterator[ChangeSet]]) -> None:
        """All of the data: of a large change it is not worth while to find out what it has affected."""
        shapes = self._readable_shapes() if not any(map(self._concerns_shapes, plan())) else None
        if shapes is not None and not shapes.targeted:
            return
        with state.applied_store().scratch() as after:
            after.apply_many(plan())
            self._refuse(self._validate_apart(after, None))

    def note(self, change: ChangeSet, index: int) -> None:
        self._index = None if self._concerns_shapes(change) else index

    def _read(self, state: Overlay) -> None:
        quads = dict.fromkeys(state.quads_matching(None, None, None, self._shapes_graph))
        if quads == self._quads:
            return
        self._quads = quads
        try:
            shapes = self._shapes_of(quads)
        except MalformedShapes as error:
            self._shapes = error.with_traceback(None)
        except Exception as error:
            logger.exception("the shapes of %s cannot be read", self._shapes_graph)
            self._shapes = MalformedShapes(str(self._shapes_graph), "", f"reading it failed: {error!r}")
        else:
            self._shapes, self._is_local = shapes, is_local(shapes.by_node.values())
            self._costs = shape_costs(shapes)

    def _shapes_of(self, quads: Iterable[Quad]) -> Shapes:
        return read_shapes((quad.triple for quad in quads), self._limits)

    def _readable_shapes(self) -> Shapes:
        if isinstance(self._shapes, MalformedShapes):
            raise ShapesViolated(
                f"nothing can be written until the shapes of {self._shapes_graph} are mended: {self._shapes}"
            )
        assert self._shapes is not None
        return self._shapes

    def _concerns_shapes(self, change: ChangeSet) -> bool:
        graph = self._shapes_graph
        return any(quad.graph_name == graph for quads in (change.removed, change.added) for quad in quads)

    def _check_all(self, after: Overlay) -> None:
        shapes = self._shapes_of(after.quads_matching(None, None, None, self._shapes_graph))
        if shapes.targeted:
            self._refuse(self._validate_apart(after.applied_store(), None))

    def _check_affected(self, after: Overlay, change: ChangeSet) -> None:
        shapes = self._readable_shapes()
        nodes = affected(shapes, change, after, self._data_graph) if shapes.targeted else ()
        if not nodes:
            return
        report = self._report_here(shapes, after, nodes)
        if report is None:
            few = None if nodes == ALL or len(nodes) > _FOCUS_APART_MAX else nodes
            report = self._validate_apart(after.applied_store(), few)
        self._refuse(report)

    def _report_here(self, shapes: Shapes, after: Overlay, nodes: Affected) -> Report | None:
        """The report of a few nodes; None where too much decides about them, or nobody knows what."""
        if nodes == ALL or len(nodes) > _FOCUS_MAX or not self._is_local:
            return None
        around = Neighbourhood(
            shapes, after, self._data_graph, lookups_max=_LOOKUPS_MAX, quads_max=_QUADS_MAX
        )
        targets: dict[Node, set[Term]] = {}
        try:
            for shape in shapes.targeted:
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
        return check_report(store, None, shapes.only(targets), set().union(*targets.values()), monotonic)

    def _is_quick(self, shapes: Iterable[Node], quads: int) -> bool:
        """Whether validating so many quads against these shapes surely ends soon."""
        costs = [self._costs[node] for node in shapes]
        steps = max((cost.steps for cost in costs), default=0)
        return sum(cost.tests for cost in costs) <= _TESTS_MAX and quads ** (steps / 2) <= _ROWS_MAX

    def _refuse(self, report: Report) -> None:
        if (first := first_refusing(report)) is not None:
            place, message = first["focusNode"], first["message"]
            raise ShapesViolated(
                f"the write violates the shapes of {self._shapes_graph}, at {place}: {message}", report
            )
