"""`EditRunner`: the way of edits of resources (GraphQL's mutations) to a node's writer."""

import asyncio
from collections.abc import Iterable
from time import monotonic

from actors.live.change_log import ChangeLog, ChangeStream
from actors.node.visible_writer import VisibleWriter
from actors.readers.write_evaluation import WriteChecks
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import seen_changes
from graphdb.config import Settings
from graphdb.errors import ChangesForgotten, LogUnavailable, Overloaded
from graphdb.graphql.edit_check import EditCheck
from graphdb.graphql.editing import EditPlanner, LastChanges, forgotten
from graphdb.graphql.edits import Edits
from graphdb.graphql.vocabulary import SchemaWatch
from graphdb.live.changes import LoggedChange
from graphdb.model import ChangeSet, Confirmation
from graphdb.shacl.change_check import Report
from graphdb.shacl.data_graph import DataGraphName
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.vocabulary import Term
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["EditRunner"]

_REACHED_S = 2.0  # so long a snapshot may be ahead of this node
_READ_S = 10.0  # for what has changed since a snapshot, before the writer's turn
_JUDGED_QUADS_MAX = 100_000  # of changes that are judged, in the writer's turn, as a writer saw them
_TURN_S = 2.0  # for what has been added to that when it comes


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
            stream = await self._changes.open(edits.unchanged_since, _REACHED_S)
        except ChangesForgotten:

            def refuse(state: Overlay) -> Iterable[ChangeSet]:
                raise forgotten(edits)

            # in its turn, for the log may know the request, and then it is confirmed
            return await writer.write(refuse)
        try:
            taken = _Taken(visibility, last)
            await _read(stream, taken, writer.applied_index, _READ_S)

            def plan(state: Overlay) -> Iterable[ChangeSet]:
                rest = _read(stream, taken, writer.applied_index, _TURN_S)
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
        if self._quads > _JUDGED_QUADS_MAX:
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


async def _read(stream: ChangeStream, taken: _Taken, index: int, within_s: float) -> None:
    """Tell what stands in the log up to index. Raises ChangesForgotten, Overloaded, LogUnavailable."""
    try:
        async with asyncio.timeout(within_s):
            while stream.through < index:
                changes = await stream.read(within_s)
                if changes is None:
                    raise LogUnavailable("the node is stopping")
                for one in changes:
                    taken.take(one)
    except TimeoutError:
        raise Overloaded("too much has changed since the snapshot of `ifSnapshot`") from None
