"""`CommitRunner`: the way of a transaction's commit to a node's writer."""

import asyncio
from collections.abc import Iterable

from actors.live.change_log import ChangeLog
from actors.node.changes_since import JUDGED_QUADS_MAX, REACHED_S, READ_S, TURN_S, read_changes
from actors.node.visible_writer import VisibleWriter
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import seen_touched
from graphdb.errors import ChangesForgotten, IndexNotReached
from graphdb.live.changes import LoggedChange
from graphdb.model import ChangeSet, Confirmation
from graphdb.store.overlay import Overlay
from graphdb.transactions.changes import TransactionCommit, conflict

__all__ = ["CommitRunner"]

_BEGIN = "the begin of the transaction"


class CommitRunner:
    """Owned by a node's `StoreWriting`, on its event loop."""

    def __init__(self, changes: ChangeLog) -> None:
        self._changes = changes

    async def run(
        self, commit: TransactionCommit, writer: VisibleWriter, visibility: Visibility
    ) -> Confirmation:
        """See `GraphWrites.commit`. What of a change was not seen with this visibility is no matter."""
        if not commit.reads:
            return await writer.write(lambda state: (commit.plan(state),))
        loop = asyncio.get_running_loop()
        try:
            stream = await self._changes.open(commit.read_at, REACHED_S)
        except (ChangesForgotten, IndexNotReached):

            def refuse(state: Overlay) -> Iterable[ChangeSet]:
                raise conflict()

            # in its turn, for the log may know the request, and then it is confirmed
            return await writer.write(refuse)
        try:
            since = _Since(commit, visibility)
            await read_changes(stream, since.take, writer.applied_index, READ_S, _BEGIN)

            def plan(state: Overlay) -> Iterable[ChangeSet]:
                rest = read_changes(stream, since.take, writer.applied_index, TURN_S, _BEGIN)
                asyncio.run_coroutine_threadsafe(rest, loop).result()
                since.check(state.underlying, writer.applied_index)
                return (commit.plan(state),)

            return await writer.write(plan)
        except ChangesForgotten:
            raise conflict() from None
        finally:
            stream.close()


class _Since:
    """What has changed since the begin of a transaction, as far as it matters to it."""

    def __init__(self, commit: TransactionCommit, visibility: Visibility) -> None:
        self._reads, self._visibility = commit.read_set, visibility
        self._is_touched = False
        self._changes: list[LoggedChange] = []  # which only the state that they led to tells how to judge
        self._quads = 0

    def take(self, change: LoggedChange) -> None:
        """One after the other. Raises ChangesForgotten where there are too many."""
        if self._visibility.is_whole:
            self._is_touched = self._is_touched or self._reads.is_touched_by(change.change)
            return
        self._changes.append(change)
        self._quads += 1 + change.change.affected_triples
        if self._quads > JUDGED_QUADS_MAX:
            raise ChangesForgotten(self._changes[0].index, change.index)

    def check(self, state: Overlay, index: int) -> None:
        """Raises TransactionConflict. state is that of index, with what is pending there laid over it."""
        if self._visibility.is_whole:
            is_touched = self._is_touched or self._reads.is_touched_by(state.pending)
        else:
            changes = [one for one in self._changes if one.index <= index]
            changes.append(LoggedChange(index + 1, 0, state.pending))
            reads = self._reads
            is_touched = seen_touched(self._visibility, state, changes, reads.concerns, reads.concerns_graph)
        if is_touched:
            raise conflict()
