"""`SingleEntries`: what a `ShardWriter` logs entry by entry, and replays as on a follower: entries of other
kinds than changes, and the parts of a large change.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from actors.log.view_runner import ViewRunner
from actors.shard.checkpointer import engine_bytes
from actors.shard.log_appender import LogAppender
from actors.shard.write_batch import LargeWrite
from actors.shard.write_queue import EntryPlan, WriteJob
from graphdb.errors import CorruptionError, GraphDBError, StorageFull, UnavailableError
from graphdb.log.payloads import encode_close
from graphdb.log.replay import Replayer
from graphdb.model import Confirmation, EntryKind, LogEntry

__all__ = ["Admit", "Perform", "SingleEntries"]

Admit: TypeAlias = Callable[[bool, int], Awaitable[None]]
Perform: TypeAlias = Callable[..., Awaitable[Any]]


class SingleEntries:
    """Owned by a `ShardWriter`, on its event loop, in its turns."""

    def __init__(
        self,
        appender: LogAppender,
        runner: ViewRunner[LogEntry, None],
        replayer: Replayer,
        admit: Admit | None,
        clock_ms: Callable[[], int],
        change: Perform,
        on_thread: Perform,
    ) -> None:
        """admit: see `ShardWriter`. change calls a function that changes what readers see, on_thread another
        one, both on the writer's thread.
        """
        self._appender, self._runner, self._replayer = appender, runner, replayer
        self._admit, self._clock_ms = admit, clock_ms
        self._change, self._on_thread = change, on_thread

    async def commit_entry(self, job: WriteJob) -> None:
        """Log an entry of another kind than changes, let it take its effect, answer it."""
        if self._appender.answer_known(job):
            return
        assert isinstance(job.plan, EntryPlan)
        try:
            plan = job.plan
            payload = await self._on_thread(plan.payload) if plan.is_slow else plan.payload()
        except GraphDBError as refused:
            if await self._appender.confirm_newest([job]):  # else the reason may be gone
                job.fail(refused)
            return
        if self._admit is not None:
            try:
                await self._admit(False, len(payload))
            except StorageFull as error:
                return self._appender.fail([job], error)
        if await self._append_and_replay(job, job.plan.kind, payload):
            job.succeed(Confirmation(self._replayer.applied_index, 0))

    async def commit_large(self, large: LargeWrite) -> None:
        """Log a large change part by part; the entry that closes it makes it visible, at once."""
        job, parts, last_part, size = large.attempt.job, 0, 0, 0
        try:
            while (payload := await self._on_thread(large.next_payload)) is not None:
                if self._admit is not None:  # all of it: it is applied at once, when it is closed
                    size += sum(engine_bytes((payload,)))
                    await self._admit(large.adds, size)
                if not await self._append_and_replay(job, EntryKind.PART, payload):
                    self._abandon_parts(job, last_part)
                    return
                parts, last_part = parts + 1, self._replayer.applied_index
        except Exception as error:  # noqa: BLE001 planning failed; whoever asked gets it
            job.fail(error)
            self._abandon_parts(job, last_part)
            return
        finally:
            await self._on_thread(large.close)
        kind = EntryKind.CLOSE_CLEARED if large.cleared_graphs else EntryKind.CLOSE
        if await self._append_and_replay(job, kind, encode_close(parts, large.cleared_graphs)):
            job.succeed(Confirmation(self._replayer.applied_index, large.attempt.affected_triples))
        else:
            self._abandon_parts(job, last_part)

    def _abandon_parts(self, job: WriteJob, last_part: int) -> None:
        """Where a change will surely not be closed, let go of its parts now: the disk may be full of them.

        If the log was followed since its last part, the parts that are open may be another writer's.
        """
        if not job.maybe_stored:
            self._replayer.forget_open_parts(last_part)

    async def _append_and_replay(self, job: WriteJob, kind: EntryKind, payload: bytes) -> bool:
        """Log one entry that is no change of a batch and let it take its effect. False: the job is answered
        or waits anew.
        """
        entry = LogEntry(0, 0, kind, job.request_id, self._clock_ms(), payload, job.author)
        # PART entries alone store nothing
        index = await self._appender.append([entry], [job], [] if kind is EntryKind.PART else [job])
        if not index:
            return False
        self._appender.note_logged([entry])
        try:
            await self._change(self._replayer.replay, [entry.at(index)])
        except (UnavailableError, CorruptionError) as error:
            self._runner.fall_behind(error)
            self._appender.fail([job], error)
            return False
        return True
