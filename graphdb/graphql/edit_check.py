"""`EditCheck`: edits of resources against the shapes that the store holds, in whatever graphs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pyoxigraph import NamedNode, Quad

from graphdb.config.limits import GateLimits
from graphdb.errors import EditRefused, LimitExceeded, MalformedShapes
from graphdb.graphql.edits import Edits
from graphdb.graphql.failures import VALIDATION_FAILED
from graphdb.graphql.vocabulary import touches_schema
from graphdb.model import GraphName
from graphdb.shacl.change_check import ChangeCheck, Report
from graphdb.shacl.data_graph import UNION_GRAPH, DataGraphName, graph_of_quads
from graphdb.shacl.scattered_shapes import scattered_shapes
from graphdb.shacl.shapes import Shapes, read_shapes
from graphdb.shacl.vocabulary import RDFS_SUBCLASS_OF, Term
from graphdb.shacl.write_check import is_advice
from graphdb.sparql.graph_operations import change_of
from graphdb.store.overlay import BaseNotApplied, Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import Subject

__all__ = ["EditCheck", "ValidateApart"]

ValidateApart: TypeAlias = Callable[[QuadStore, DataGraphName, Shapes, Iterable[Term] | None], Report]
"""Validates these nodes of a graph of the store, or for None all targets, within bounds of its own."""

_SHOWN = ("focusNode", "resultPath", "value", "sourceShape", "sourceConstraintComponent", "severity")


class EditCheck:
    """Keeps the shapes as it read them last. For one thread at a time.

    Each graph is validated by itself, but that a class is a subclass may stand in any graph, as an ontology
    does. The shapes are those of the state before, as far as whoever edits sees them.
    """

    def __init__(
        self,
        limits: GateLimits,
        clock: Callable[[], float],
        validate_apart: ValidateApart,
        *,
        union_default_graph: bool,
    ) -> None:
        """limits are for SPARQL in the shapes; clock tells seconds."""
        self._limits, self._clock, self._validate_apart = limits, clock, validate_apart
        self._default: DataGraphName = UNION_GRAPH if union_default_graph else None
        self._known: ChangeCheck | None = None
        self._state: object = None  # of the schema, that `_known` is of; None: of none for long

    def check(self, before: Overlay, after: Overlay, edits: Edits) -> None:
        """Raises EditRefused with all that is more than advice; BaseNotApplied, and what validate_apart
        raises.
        """
        try:
            shapes = self._shapes(before)
        except (MalformedShapes, LimitExceeded) as error:
            message = f"Nothing can be written until the shapes are mended: {error}"
            raise EditRefused(({"edit": None, "code": VALIDATION_FAILED, "message": message},)) from None
        if not shapes.shapes.targeted:
            return
        problems: list[Mapping[str, Any]] = []
        for graph in dict.fromkeys(one.graph for one in edits.edits):
            report = self._report(shapes, before, after, graph or self._default)
            if report is not None:
                problems += _problems(report, edits, graph)
        if problems:
            raise EditRefused(tuple(problems))

    def _shapes(self, before: Overlay) -> ChangeCheck:
        if touches_schema(before.unapplied):
            raise BaseNotApplied
        # what somebody sees of the schema may change by more than the schema
        state = before.schema_state() if before.underlying is before else None
        if self._known is None or state is None or self._state is not state:
            found = scattered_shapes(before.quads_matching)
            triples = tuple(sorted(found.triples, key=str))
            if self._known is None or self._known.shapes.triples != triples:
                self._known = ChangeCheck(read_shapes(triples, self._limits), self._clock)
            self._state = state if found.is_plain else None
        return self._known

    def _report(
        self, shapes: ChangeCheck, before: Overlay, after: Overlay, graph: DataGraphName
    ) -> Report | None:
        def validate_apart(nodes: Iterable[Term] | None) -> Report:
            with before.request() as whole:  # not after: of a scratch copy there is no other
                whole.push(after.pending)
                whole.push(change_of(whole, (), _hierarchy(whole, graph)))
                return self._validate_apart(whole.applied_store(), graph, shapes.shapes, nodes)

        return shapes.report(_WithHierarchy(after), after.pending, graph, validate_apart)


class _WithHierarchy:
    """A state in which each graph says which classes are subclasses of which."""

    def __init__(self, state: Overlay) -> None:
        self._state = state

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `StoreView.quads_matching`."""
        graphs = None if predicate == RDFS_SUBCLASS_OF else graph
        return self._state.quads_matching(subject, predicate, object_, graphs)


def _hierarchy(state: Overlay, graph: DataGraphName) -> Iterator[Quad]:
    name = graph_of_quads(graph)
    if name is not None:
        for quad in state.quads_matching(None, RDFS_SUBCLASS_OF, None, None):
            yield Quad(quad.subject, quad.predicate, quad.object, name)


def _problems(report: Report, edits: Edits, graph: NamedNode | None) -> Iterator[Mapping[str, Any]]:
    numbers = {one.subject.value: number for number, one in enumerate(edits.edits) if one.graph == graph}
    alone = 0 if len(edits.edits) == 1 else None
    for result in report["results"]:
        if not is_advice(result):
            yield {
                "edit": numbers.get(result["focusNode"], alone),
                "code": VALIDATION_FAILED,
                "message": f"{result['focusNode']}: {result['message']}",
                "details": {name: result[name] for name in _SHOWN if result.get(name) is not None},
            }
