"""`EditRunner`: the way of edits of resources (GraphQL's mutations) to a node's writer."""

import asyncio
from collections.abc import Iterable
from time import monotonic

from actors.live.change_log import ChangeLog
from actors.node.changes_since import JUDGED_QUADS_MAX, REACHED_S, READ_S, TURN_S, read_changes
from actors.node.visible_writer import VisibleWriter
from actors.readers.write_evaluation import WriteChecks
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import seen_changes
from graphdb.config import Settings
from graphdb.errors import ChangesForgotten
from graphdb.graphql.editing import EditCheck, EditPlanner, LastChanges, forgotten
from graphdb.graphql.edits import Edits
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.live.changes import LoggedChange
from graphdb.model import ChangeSet, Confirmation
from graphdb.shacl.change_check import Report
from graphdb.shacl.data_graph import DataGraphName
from graphdb.shacl.shacl_names import Term
from graphdb.shacl.shapes import Shapes
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["EditRunner"]

_SNAPSHOT = "the snapshot of `ifSnapshot`"


class EditRunner:
    """Owned by a node's `StoreWriting`, on its event loop."""

    def __init__(self, settings: Settings, changes: ChangeLog) -> None:
        self._changes = changes
        self._checks: WriteChecks | None = None  # of the store that is open,
        self._schema = SchemaWatch()  # which this one listens to
        union = settings.server.union_default_graph
        check = EditCheck(
            settings.security,
            monotonic,
            lambda: self._schema.state,
            self._validate_apart,
            union_default_graph=union,
        )
        self._planner = EditPlanner(check)

    async def run(
        self,
        edits: Edits,
        writer: VisibleWriter,
        checks: WriteChecks,
        schema: SchemaWatch,
        visibility: Visibility,
    ) -> Confirmation:
        """See `GraphWrites.edit`. checks and schema are those of the writer's store; what of a change was not
        seen by whoever edits, with this visibility, is no matter.
        """
        self._checks, self._schema = checks, schema
        last = LastChanges(edits)
        if edits.unchanged_since is None:
            return await writer.write(lambda state: self._plan(edits, state, last))
        loop = asyncio.get_running_loop()
        try:
            stream = await self._changes.open(edits.unchanged_since, REACHED_S)
        except ChangesForgotten:

            def refuse(state: Overlay) -> Iterable[ChangeSet]:
                raise forgotten(edits)

            # in its turn, for the log may know the request, and then it is confirmed
            return await writer.write(refuse)
        try:
            taken = _Taken(visibility, last)
            await read_changes(stream, taken.take, writer.applied_index, READ_S, _SNAPSHOT)

            def plan(state: Overlay) -> Iterable[ChangeSet]:
                rest = read_changes(stream, taken.take, writer.applied_index, TURN_S, _SNAPSHOT)
                asyncio.run_coroutine_threadsafe(rest, loop).result()
                taken.judge(state.underlying, writer.applied_index)
                return self._plan(edits, state, last)

            return await writer.write(plan)
        except ChangesForgotten:
            raise forgotten(edits) from None
        finally:
            stream.close()

    def _plan(self, edits: Edits, state: Overlay, last: LastChanges) -> Iterable[ChangeSet]:
        return (self._planner.plan(edits, state, last),)

    def _validate_apart(
        self, store: QuadStore, graph: DataGraphName, shapes: Shapes, nodes: Iterable[Term] | None
    ) -> Report:
        assert self._checks is not None
        name = "default" if graph is None else graph.value
        return self._checks.validate(shapes, name, store, nodes)


class _Taken:
    """What the log tells on the way to what a writer saw of it."""

    def __init__(self, visibility: Visibility, last: LastChanges) -> None:
        self._visibility, self._last = visibility, last
        self._changes: list[LoggedChange] = []  # which only the state that they led to tells how to judge
        self._quads = 0

    def take(self, change: LoggedChange) -> None:
        """One after the other. Raises ChangesForgotten where there are too many."""
        if self._visibility.is_whole:
            return self._last.note(change.index, change.change)
        self._changes.append(change)
        self._quads += 1 + change.change.affected_triples
        if self._quads > JUDGED_QUADS_MAX:
            raise ChangesForgotten(self._changes[0].index, change.index)
        return None

    def judge(self, state: Overlay, index: int) -> None:
        """All that was taken, up to index; and what the state has pending there, as one change more."""
        if self._visibility.is_whole:
            return
        changes = [one for one in self._changes if one.index <= index]
        changes.append(LoggedChange(index + 1, 0, state.pending))
        for at, change in seen_changes(self._visibility, state, changes, self._last.resources):
            self._last.note(at, change)
