"""`EditPlanner`: edits of resources and a state of the store in, the one change that they make out.

`EditCheck` validates the edits against the shapes that the store holds, in whatever graphs.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pyoxigraph import NamedNode, Quad, Triple

from graphdb.config.limits import GateLimits
from graphdb.errors import EditRefused, LimitExceeded
from graphdb.graphql.edits import EditKind, Edits, ResourceEdit
from graphdb.graphql.failures import CONFLICT, NOT_FOUND, VALIDATION_FAILED
from graphdb.graphql.schema_triples import touches_schema
from graphdb.model import ChangeSet, GraphName
from graphdb.shacl.affected import Neighbourhood, TooMuch
from graphdb.shacl.change_check import ChangeCheck, Report, is_advice
from graphdb.shacl.data_graph import UNION_GRAPH, DataGraphName, graph_of_quads
from graphdb.shacl.scattered_shapes import scattered_shapes
from graphdb.shacl.shacl_names import RDF_TYPE, RDFS_SUBCLASS_OF, Term
from graphdb.shacl.shapes import MeaninglessShape, Shapes, readable_shapes
from graphdb.store.overlay import BaseNotApplied, Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import Subject
from graphdb.updates.graph_operations import change_of

__all__ = ["EditCheck", "EditPlanner", "LastChanges", "ValidateApart", "forgotten"]

ValidateApart: TypeAlias = Callable[[QuadStore, DataGraphName, Shapes, Iterable[Term] | None], Report]
"""Validates these nodes of a graph of the store, or for None all targets, within bounds of its own."""

_LOOKUPS_MAX = 100_000  # for which edits are concerned by shapes that mean nothing: some tenths of a second
_NO_SHAPES = Shapes((), {})
_SHOWN = ("focusNode", "resultPath", "value", "sourceShape", "sourceConstraintComponent", "severity")


class EditCheck:
    """Keeps the shapes as it read them last. For one thread at a time.

    A shape that means nothing refuses what edits leave as a target of it, and nothing else.
    Each graph is validated by itself, but that a class is a subclass may stand in any graph, as an ontology
    does. The shapes are those of the state before, as far as whoever edits sees them.
    """

    def __init__(
        self,
        limits: GateLimits,
        clock: Callable[[], float],
        schema_state: Callable[[], object],
        validate_apart: ValidateApart,
        *,
        union_default_graph: bool,
    ) -> None:
        """limits are for SPARQL in the shapes; clock tells seconds; schema_state is that of the store
        (`SchemaWatch.state`), which knows nothing of what is pending.
        """
        self._limits, self._clock = limits, clock
        self._schema_state, self._validate_apart = schema_state, validate_apart
        self._default: DataGraphName = UNION_GRAPH if union_default_graph else None
        self._known: ChangeCheck | None = None
        self._meaningless: tuple[MeaninglessShape, ...] = ()
        self._triples: tuple[Triple, ...] = ()  # that both were read from
        self._state: object = None  # of the schema, that `_known` is of; None: of none for long

    def check(self, before: Overlay, after: Overlay, edits: Edits) -> None:
        """Raises EditRefused with all that is more than advice; BaseNotApplied, and what validate_apart
        raises.
        """
        try:
            shapes = self._shapes(before)
        except LimitExceeded as error:
            message = f"Nothing can be written until there are fewer shapes: {error}"
            raise EditRefused(({"edit": None, "code": VALIDATION_FAILED, "message": message},)) from None
        problems: list[Mapping[str, Any]] = []
        for graph in dict.fromkeys(one.graph for one in edits.edits):
            problems += self._not_enforceable(after, edits, graph)
            report = self._report(shapes, before, after, graph or self._default)
            if report is not None:
                problems += _problems(report, edits, graph)
        if problems:
            raise EditRefused(tuple(problems))

    def _shapes(self, before: Overlay) -> ChangeCheck:
        if touches_schema(before.unapplied):
            raise BaseNotApplied
        # what somebody sees of the schema may change by more than the schema
        state = self._schema_state() if before.underlying is before else None
        if self._known is None or state is None or self._state is not state:
            found = scattered_shapes(before.quads_matching)
            triples = tuple(sorted(found.triples, key=str))
            if self._known is None or self._triples != triples:
                shapes, self._meaningless = readable_shapes(triples, self._limits)
                self._known, self._triples = ChangeCheck(shapes, self._clock), triples
            self._state = state if found.is_plain else None
        return self._known

    def _not_enforceable(
        self, after: Overlay, edits: Edits, graph: NamedNode | None
    ) -> Iterator[Mapping[str, Any]]:
        """What is edited in a graph, and is a target now of a shape that means nothing."""
        if not self._meaningless:
            return
        numbers = {one.subject: at for at, one in enumerate(edits.edits) if one.graph == graph}
        left = {subject for subject, at in numbers.items() if edits.edits[at].kind is not EditKind.DELETE}
        data_graph = graph or self._default
        around = Neighbourhood(_NO_SHAPES, _WithHierarchy(after), data_graph, lookups_max=_LOOKUPS_MAX)
        for each in self._meaningless:
            try:
                targets = around.targets_among(each.shape, left)
            except TooMuch:
                targets = set[Term](left)
            left -= targets
            for subject in sorted(targets, key=numbers.__getitem__):  # type: ignore[arg-type]
                yield _not_enforced(subject, numbers[subject], each)  # type: ignore[arg-type, index]

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


def _not_enforced(subject: NamedNode, edit: int, by: MeaninglessShape) -> Mapping[str, Any]:
    place = by.shape.node.value if isinstance(by.shape.node, NamedNode) else str(by.shape.node)
    return {
        "edit": edit,
        "code": VALIDATION_FAILED,
        "message": f"{subject.value}: cannot be validated, so it is not stored: {by.error}",
        "details": {"focusNode": subject.value, "sourceShape": place},
    }


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


class LastChanges:
    """Where the log has changed the resources that must not have changed: told what stands behind the first
    index that counts, up to the state that is planned on.
    """

    def __init__(self, edits: Edits) -> None:
        guarded = [one for one in edits.edits if one.unchanged_since is not None]
        self._last: dict[tuple[Subject, GraphName], int] = {
            (one.subject, one.graph_name): 0 for one in guarded
        }

    @property
    def resources(self) -> Collection[tuple[Subject, GraphName]]:
        """Those that must not have changed, in their graphs."""
        return self._last.keys()

    def note(self, index: int, change: ChangeSet) -> None:
        """An entry of the log, or a piece of it; as whoever edits saw it."""
        for key in _touched(change):
            if key in self._last:
                self._last[key] = index

    def of(self, edit: ResourceEdit) -> int:
        """The log index of the last change; 0 where there was none."""
        return self._last[edit.subject, edit.graph_name]


class EditPlanner:
    """Keeps the shapes of the state that it planned on last, so it is used by one thread at a time."""

    def __init__(self, check: EditCheck) -> None:
        self._check = check

    def plan(self, edits: Edits, state: Overlay, last: LastChanges) -> ChangeSet:
        """Evaluate edits one after the other against the state, which is left as it was; their net effect.

        Raises EditRefused, of what the first that cannot be is refused for, or of all that the shapes say;
        BaseNotApplied; and what validating elsewhere raises.
        """
        _check_unchanged(edits, state.unapplied, last)
        with state.request() as after:
            for number, edit in enumerate(edits.edits):
                after.push(_planned(number, edit, after))
            change = after.pending
            if edits.by_shapes and change:
                self._check.check(state, after, edits)
        return change


def forgotten(edits: Edits) -> EditRefused:
    """Where the log does not tell any more what has changed behind the first index that counts."""
    since = edits.unchanged_since
    number = next(at for at, one in enumerate(edits.edits) if one.unchanged_since == since)
    message = f"What has changed since snapshot {since} cannot be told any more: read the resource again."
    return _refused(number, CONFLICT, message, ifSnapshot=since)


def _refused(number: int, code: str, message: str, **details: Any) -> EditRefused:
    """A refusal for the sake of one edit."""
    problem: dict[str, Any] = {"edit": number, "code": code, "message": message}
    return EditRefused(({**problem, "details": details} if details else problem,))


def _check_unchanged(edits: Edits, pending: ChangeSet, last: LastChanges) -> None:
    """pending: of other requests, behind all that anybody can have seen."""
    touched = set(_touched(pending)) if edits.unchanged_since is not None else set()
    for number, edit in enumerate(edits.edits):
        if edit.unchanged_since is None:
            continue
        if (edit.subject, edit.graph_name) in touched or last.of(edit) > edit.unchanged_since:
            message = f"{edit.subject.value} has changed since snapshot {edit.unchanged_since}."
            raise _refused(number, CONFLICT, message, ifSnapshot=edit.unchanged_since)


def _touched(change: ChangeSet) -> Iterator[tuple[Subject, GraphName]]:
    for quads in (change.removed, change.added):
        for quad in quads:
            yield quad.subject, quad.graph_name


def _planned(number: int, edit: ResourceEdit, state: Overlay) -> ChangeSet:
    if edit.kind is EditKind.CREATE:
        if _is_there(state, edit, None):
            raise _refused(number, CONFLICT, f"{edit.subject.value} exists already.")
        typed = (Quad(edit.subject, RDF_TYPE, one, edit.graph_name) for one in edit.classes)
        return change_of(state, (), [*typed, *_quads(edit.subject, edit.values, edit.graph_name)])
    if not any(_is_there(state, edit, one) for one in edit.classes):
        raise _refused(number, NOT_FOUND, f"There is no {edit.subject.value} of this type.")
    if edit.kind is EditKind.DELETE:
        return ChangeSet(removed=tuple(_of(state, edit, None)))
    replaced = [quad for path in edit.values for quad in _of(state, edit, path)]
    return change_of(state, replaced, _quads(edit.subject, edit.values, edit.graph_name))


def _quads(subject: NamedNode, values: Mapping[NamedNode, Iterable[Any]], graph: GraphName) -> Iterator[Quad]:
    for path, terms in values.items():
        for term in terms:
            yield Quad(subject, path, term, graph)


def _of(state: Overlay, edit: ResourceEdit, path: NamedNode | None) -> list[Quad]:
    return list(state.quads_matching(edit.subject, path, None, edit.graph_name))


def _is_there(state: Overlay, edit: ResourceEdit, cls: NamedNode | None) -> bool:
    """Whether the resource is of a class; None: whether anything is said of it at all."""
    path = RDF_TYPE if cls is not None else None
    return any(True for _ in state.quads_matching(edit.subject, path, cls, edit.graph_name))
