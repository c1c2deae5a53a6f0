"""`ShapeGuard`: has every write satisfy the SHACL shapes that a named graph holds (`shacl.enforce_graph`).

It looks at the nodes that a change may have made invalid (`graphdb.shacl.change_check`); what may take long
is for a reader.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import TypeAlias

from pyoxigraph import NamedNode, Quad

from actors.readers.write_evaluation import WriteChecks
from graphdb.config.limits import GateLimits
from graphdb.config.service import Shacl
from graphdb.errors import MalformedShapes, ShapesViolated
from graphdb.model import ChangeSet
from graphdb.public_text import fault_text
from graphdb.shacl.answering import data_graph_named
from graphdb.shacl.change_check import ChangeCheck, Report, first_refusing
from graphdb.shacl.shapes import Shapes, read_shapes
from graphdb.shacl.vocabulary import Term
from graphdb.store.overlay import BaseNotApplied, Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["ShapeGuard", "shape_guard"]

logger = logging.getLogger(__name__)

# of these nodes, or for None of all targets, by the shapes in this graph of the store, or by others
ValidateApart: TypeAlias = Callable[[NamedNode | Shapes, QuadStore, Iterable[Term] | None], Report]


def shape_guard(enforced: Shacl, checks: WriteChecks) -> "ShapeGuard | None":
    """What checks writes, where shapes are enforced."""
    if enforced.enforce_graph is None:
        return None
    shapes_graph = NamedNode(enforced.enforce_graph)

    def validate_apart(shapes: NamedNode | Shapes, store: QuadStore, nodes: Iterable[Term] | None) -> Report:
        return checks.validate(shapes, enforced.enforce_on, store, nodes)

    return ShapeGuard(shapes_graph, enforced.enforce_on, checks.limits, validate_apart)


class ShapeGuard:
    """See `actors.shard.write_batch.WriteGuard`.

    The shapes are those of the state that a write is planned on; for a write that changes the shapes they are
    those that it leaves behind, and then everything has to satisfy them.

    Whoever does not see everything is judged by what he sees, else a refusal would tell of the rest; but by
    all shapes, those that he does not see too, unless he changes them.
    """

    def __init__(
        self, shapes_graph: NamedNode, data_graph: str, limits: GateLimits, validate_apart: ValidateApart
    ) -> None:
        """data_graph is "default", "union" or an IRI; limits are for SPARQL in the shapes."""
        self._shapes_graph, self._data_graph = shapes_graph, data_graph_named(data_graph)
        self._limits, self._validate_apart = limits, validate_apart
        self._index: int | None = None  # the shapes are those of this log index; None: not known
        self._quads: dict[Quad, None] | None = None  # what the shapes were read from
        self._shapes: ChangeCheck | MalformedShapes | None = None
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
                self._check_all(state, after)
                self._has_changed_shapes = True
            else:
                self._check_affected(state, after, change)

    def check_parts(self, state: Overlay, plan: Callable[[], Iterator[ChangeSet]]) -> None:
        """All of the data: of a large change it is not worth while to find out what it has affected."""
        shapes = None if any(map(self._concerns_shapes, plan())) else self._readable().shapes
        if shapes is not None and not shapes.targeted:
            return
        with state.applied_store().scratch() as after:
            after.apply_many(plan())
            self._refuse(state, self._validate_apart(self._shapes_for(state, shapes), after, None))

    def note(self, change: ChangeSet, index: int) -> None:
        self._index = None if self._concerns_shapes(change) else index

    def _read(self, state: Overlay) -> None:
        quads = dict.fromkeys(state.quads_matching(None, None, None, self._shapes_graph))
        if quads == self._quads:
            return
        self._quads = quads
        try:
            self._shapes = ChangeCheck(self._shapes_of(quads), monotonic)
        except MalformedShapes as error:
            self._shapes = error.with_traceback(None)
        except Exception as error:
            logger.exception("the shapes of %s cannot be read", self._shapes_graph)
            self._shapes = MalformedShapes(
                str(self._shapes_graph), "", f"reading it failed: {fault_text(error)}"
            )

    def _shapes_of(self, quads: Iterable[Quad]) -> Shapes:
        return read_shapes((quad.triple for quad in quads), self._limits)

    def _readable(self) -> ChangeCheck:
        if isinstance(self._shapes, MalformedShapes):
            raise ShapesViolated(
                f"nothing can be written until the shapes of {self._shapes_graph} are mended: {self._shapes}"
            )
        assert self._shapes is not None
        return self._shapes

    def _concerns_shapes(self, change: ChangeSet) -> bool:
        graph = self._shapes_graph
        return any(quad.graph_name == graph for quads in (change.removed, change.added) for quad in quads)

    def _check_all(self, state: Overlay, after: Overlay) -> None:
        shapes = self._shapes_of(after.quads_matching(None, None, None, self._shapes_graph))
        if shapes.targeted:
            self._refuse(state, self._validate_apart(self._shapes_graph, after.applied_store(), None))

    def _shapes_for(self, state: Overlay, shapes: Shapes | None) -> NamedNode | Shapes:
        """What a reader is to validate by: a store of what somebody sees may be without the shapes' graph."""
        return self._shapes_graph if shapes is None or state.underlying is state else shapes

    def _hides_shapes(self, state: Overlay) -> bool:
        """Whether some of the shapes that were there before the write are hidden from its writer."""
        shapes = state.underlying.quads_matching(None, None, None, self._shapes_graph)
        seen = set(state.quads_matching(None, None, None, self._shapes_graph))
        return state.underlying is not state and not seen.issuperset(shapes)

    def _check_affected(self, state: Overlay, after: Overlay, change: ChangeSet) -> None:
        shapes = self._shapes_for(state, self._readable().shapes)

        def validate_apart(nodes: Iterable[Term] | None) -> Report:
            return self._validate_apart(shapes, after.applied_store(), nodes)

        report = self._readable().report(after, change, self._data_graph, validate_apart)
        if report is not None:
            self._refuse(state, report)

    def _refuse(self, state: Overlay, report: Report) -> None:
        if (first := first_refusing(report)) is not None:
            if self._hides_shapes(state):
                raise ShapesViolated("the write violates shapes that whoever writes does not see")
            place, message = first["focusNode"], first["message"]
            raise ShapesViolated(
                f"the write violates the shapes of {self._shapes_graph}, at {place}: {message}", report
            )
