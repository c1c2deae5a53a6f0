"""`BatchCommit`: a planned batch of a `ShardWriter` logged, applied and answered."""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TypeAlias

from actors.busy_polling import BusyPolling
from actors.gathering import Gathering
from actors.log.view_runner import ViewRunner
from actors.shard.checkpointer import engine_bytes
from actors.shard.log_appender import LogAppender
from actors.shard.planning_ahead import PlanningAhead
from actors.shard.single_entries import Admit, Perform
from actors.shard.write_batch import Batch, WriteGuard
from actors.shard.write_queue import WriteQueue
from graphdb.errors import CorruptionError, StorageFull, UnavailableError
from graphdb.log.replay import Replayer
from graphdb.model import ChangeSet, LogEntry
from graphdb.store.quad_store import QuadStore

__all__ = ["BatchCommit", "OnChanges"]

OnChanges: TypeAlias = Callable[[int, int, int, Callable[[], Sequence[ChangeSet]]], None]


class BatchCommit:
    """Owned by a `ShardWriter`, on its event loop, in its turns."""

    def __init__(
        self,
        quads: QuadStore,
        replayer: Replayer,
        runner: ViewRunner[LogEntry, None],
        queue: WriteQueue,
        appender: LogAppender,
        ahead: PlanningAhead,
        gathering: Gathering,
        on_thread: Perform,
        *,
        clock_ms: Callable[[], int],
        admit: Admit | None,
        guard: WriteGuard | None,
        on_changes: OnChanges,
        inline_quads_max: int,
        polls_s: float,
    ) -> None:
        """on_thread calls a function on the writer's thread. The rest: see `ShardWriter`, `WriterConfig`."""
        self._quads, self._replayer, self._runner = quads, replayer, runner
        self._queue, self._appender, self._ahead, self._gathering = queue, appender, ahead, gathering
        self._on_thread, self._clock_ms = on_thread, clock_ms
        self._admit, self._guard, self._on_changes = admit, guard, on_changes
        self._inline_quads_max = inline_quads_max
        self._log_answer = BusyPolling(polls_s)
        self._confirmed_index = 0  # of the last entry whose request was answered before it was applied

    @property
    def lacks_confirmed(self) -> bool:
        """See `ShardWriter.lacks_confirmed`."""
        return self._confirmed_index > self._replayer.applied_index

    async def commit(self, batch: Batch, *, is_alone: bool) -> bool:
        """Log a batch, apply it, answer it. False: its jobs are answered, or wait anew.

        is_alone: its request is the only one, and the client may wait for nothing but the answer.
        """
        before = self._replayer.applied_index
        entries = batch.entries(self._clock_ms())
        if not entries:
            if batch.attempts and not await self._appender.confirm_newest(batch.jobs):
                return False
            batch.succeed(before)
            return True
        if self._admit is not None and not await self._is_admitted(self._admit, batch, entries):
            return False
        logged = batch.logged
        decided = [attempt.job for attempt in logged]
        began = perf_counter()
        first_index = await self._appender.append(
            entries, batch.jobs, decided, partial(self._use_wait, batch, before, is_alone)
        )
        self._log_answer.came()
        self._ahead.end()
        waited_s = perf_counter() - max(began, self._ahead.worked_at)
        if not first_index or not await self._apply(batch, entries, first_index):
            return False
        self._gathering.note(waited_s, len(batch.attempts), len(self._queue) + len(self._ahead))
        self._on_changes(
            before,
            first_index,
            entries[0].timestamp_ms,
            lambda: [attempt.change for attempt in logged],
        )
        if self._guard is not None:
            self._guard.note(batch.change, self._replayer.applied_index)
        return True

    async def _apply(self, batch: Batch, entries: list[LogEntry], first_index: int) -> bool:
        """Apply what is logged from first_index on, and answer. False: the store could not take it."""
        change = batch.change
        is_short = change.affected_triples <= self._inline_quads_max
        if not is_short:  # a checkpoint that is made beside it has to know
            self._appender.note_logged(entries, batch.later_bytes)
        try:
            with self._runner.applied.changing():
                if is_short:
                    # The log has the entries on its disk, and nobody reads before they are applied, for this
                    # is one step of the event loop. So clients whose answers can leave now go on meanwhile.
                    if batch.succeed(first_index - 1, is_applied=False):
                        self._confirmed_index = first_index + len(entries) - 1
                    self._quads.apply(change)
                else:
                    await self._on_thread(self._quads.apply, change)
                self._replayer.note_applied(
                    first_index,
                    [(attempt.job.request_id, attempt.affected_triples) for attempt in batch.logged],
                )
        except (UnavailableError, CorruptionError) as error:
            self._runner.fall_behind(error)
            self._appender.fail(batch.jobs, error)
            return False
        batch.succeed(first_index - 1)
        if is_short:
            self._appender.note_logged(entries, batch.later_bytes)
        return True

    def _use_wait(self, batch: Batch, before: int, is_alone: bool) -> None:
        """A batch is on its way to the log, behind this index, and the port has time meanwhile."""
        batch.foresee(before)
        if self._guard is None and batch.large is None:
            self._ahead.begin(batch)
        if is_alone:
            self._log_answer.expect()

    async def _is_admitted(self, admit: Admit, batch: Batch, entries: list[LogEntry]) -> bool:
        """Whether there is room for a batch. If not, those that add are answered so; the others wait anew."""
        adding = [attempt.job for attempt in batch.logged if attempt.adds]
        try:
            now_bytes, batch.later_bytes = engine_bytes([entry.payload for entry in entries])
            await admit(bool(adding), now_bytes + batch.later_bytes)
        except StorageFull as error:
            refused = adding or batch.jobs
            self._appender.fail(refused, error)
            self._queue.put_back(job for job in batch.jobs if job not in refused)
            return False
        return True
