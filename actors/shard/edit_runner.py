"""`EditRunner`: the way of edits of resources (GraphQL's mutations) to a `StoreShard`'s writer."""

import asyncio
from collections.abc import Iterable
from time import monotonic

from actors.live.change_log import ChangeLog, ChangeStream
from actors.readers.write_checks import WriteChecks
from actors.shard.shard_writer import ShardWriter
from graphdb.config import Settings
from graphdb.errors import ChangesForgotten, LogUnavailable, Overloaded
from graphdb.graphql.edit_check import EditCheck
from graphdb.graphql.editing import EditPlanner, LastChanges, forgotten
from graphdb.graphql.edits import Edits
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
_TURN_S = 2.0  # for what has been added to that when it comes


class EditRunner:
    """Owned by a `StoreShard`, on its event loop."""

    def __init__(self, settings: Settings, changes: ChangeLog) -> None:
        self._changes = changes
        self._checks: WriteChecks | None = None  # of the store that is open
        union = settings.server.union_default_graph
        check = EditCheck(settings.security, monotonic, self._validate_apart, union_default_graph=union)
        self._planner = EditPlanner(check)

    async def run(
        self,
        edits: Edits,
        writer: ShardWriter,
        checks: WriteChecks,
        request_id: bytes | None = None,
        since: int | None = None,
    ) -> Confirmation:
        """See `Backend.edit`, `ShardWriter.write`. checks are those of the writer's store."""
        self._checks = checks
        last = LastChanges(edits)
        if edits.unchanged_since is None:
            return await writer.write(
                lambda state: self._plan(edits, state, last), request_id=request_id, since=since
            )
        loop = asyncio.get_running_loop()
        try:
            stream = await self._changes.open(edits.unchanged_since, _REACHED_S)
        except ChangesForgotten:

            def refuse(state: Overlay) -> Iterable[ChangeSet]:
                raise forgotten(edits)

            # in its turn, for the log may know the request, and then it is confirmed
            return await writer.write(refuse, request_id=request_id, since=since)
        try:
            await _read(stream, last, writer.applied_index, _READ_S)

            def plan(state: Overlay) -> Iterable[ChangeSet]:
                rest = _read(stream, last, writer.applied_index, _TURN_S)
                asyncio.run_coroutine_threadsafe(rest, loop).result()
                return self._plan(edits, state, last)

            return await writer.write(plan, request_id=request_id, since=since)
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


async def _read(stream: ChangeStream, last: LastChanges, index: int, within_s: float) -> None:
    """Tell what stands in the log up to index. Raises ChangesForgotten, Overloaded, LogUnavailable."""
    try:
        async with asyncio.timeout(within_s):
            while stream.through < index:
                changes = await stream.read(within_s)
                if changes is None:
                    raise LogUnavailable("the node is stopping")
                for one in changes:
                    last.note(one.index, one.change)
    except TimeoutError:
        raise Overloaded("too much has changed since the snapshot of `ifSnapshot`") from None
