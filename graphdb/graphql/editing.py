"""`EditPlanner`: edits of resources and a state of the store in, the one change that they make out."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pyoxigraph import NamedNode, Quad

from graphdb.errors import EditRefused
from graphdb.graphql.edit_check import EditCheck
from graphdb.graphql.edits import EditKind, Edits, ResourceEdit
from graphdb.graphql.failures import CONFLICT, NOT_FOUND
from graphdb.model import ChangeSet, GraphName
from graphdb.shacl.vocabulary import RDF_TYPE
from graphdb.store.overlay import Overlay
from graphdb.store.view import Subject
from graphdb.updates.graph_operations import change_of

__all__ = ["EditPlanner", "LastChanges", "forgotten"]


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
