"""`LogAppender`: takes planned writes into the log, and finds out what has become of them."""

import asyncio
from collections.abc import Callable, Sequence

from actors.log.client import LogAccess
from actors.shard.log_follower import LogFollower
from actors.shard.write_batch import WriteJob
from actors.shard.write_queue import WriteQueue
from graphdb.errors import (
    CorruptionError,
    GraphDBError,
    KeyReused,
    LogUnavailable,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    StorageFull,
    UnavailableError,
)
from graphdb.log.replay import Replayer
from graphdb.model import Confirmation, LogEntry

__all__ = ["LogAppender"]


class LogAppender:
    """Owned by a `ShardWriter`, on its event loop; one call at a time.

    Every append says that it goes behind what the store holds, with nothing between that concerns quads.
    After one that failed the store follows the log until it is plain what the log has taken: jobs that are
    found there are answered, the others wait anew in the queue. Nothing else is appended meanwhile.
    """

    def __init__(
        self,
        log: LogAccess,
        replayer: Replayer,
        follower: LogFollower,
        queue: WriteQueue,
        *,
        wait_s: float,
        on_logged: Callable[[Sequence[LogEntry]], None],
        on_trouble: Callable[[GraphDBError], None],
    ) -> None:
        """wait_s: how long a job waits for a log that fails. on_logged as for `ShardWriter`;
        on_trouble is told why the store is behind the log.
        """
        self._log = log
        self._replayer = replayer
        self._follower = follower
        self._queue = queue
        self._wait_s = wait_s
        self._on_logged = on_logged
        self._on_trouble = on_trouble

    async def append(
        self, entries: list[LogEntry], jobs: Sequence[WriteJob], decided: Sequence[WriteJob]
    ) -> int:
        """Log entries behind applied_index, and nothing that concerns quads between; the index of the first.

        0: the jobs are answered, or wait anew.
        decided are the jobs that the entries store, one each.
        """
        before, quad_entries = self._replayer.applied_index, self._replayer.quad_entries
        try:
            for job in decided:
                job.note_sent(before)
            index = await self._log.append(entries, before + 1)
        except (StorageFull, NotLeader, Overloaded) as error:
            self.fail(jobs, error)
            return 0
        except UnavailableError as error:
            await self._recover_lost(jobs, decided, quad_entries, error)
            return 0
        if index == 0:
            await self._recover(jobs, lambda: self._replayer.applied_index > before, None)
            return 0
        for job in decided:
            job.maybe_stored = True
        self._on_logged(entries)
        return index

    async def confirm_newest(self, jobs: Sequence[WriteJob]) -> bool:
        """Whether these jobs, none of which needs the log, have seen the newest state.

        False: they are answered, or wait anew.
        """
        before = self._replayer.applied_index
        try:
            if await self._log.confirm(before):
                return True
        except NotLeader as error:
            self.fail(jobs, error)
        except UnavailableError as error:
            await self._recover(jobs, lambda: True, error)
        else:
            await self._recover(jobs, lambda: self._replayer.applied_index > before, None)
        return False

    def answer_known(self, job: WriteJob) -> bool:
        """Answer a job that the log has seen already, or of which that can no longer be told."""
        if job.is_new:
            return False
        requests = self._replayer.requests
        found = requests.find(job.request_id)
        if found is None:
            if job.since is None or requests.complete_since(job.request_id) <= job.since + 1:
                return False
            job.fail(OutcomeUnknown("too much was written since to tell whether the write was stored"))
        elif found.request_id != job.request_id:
            job.fail(KeyReused())
        elif found.log_index > self._replayer.applied_index:
            return False  # heard of before a restart; the log, which holds it, will not take it again
        else:
            message = "update applied" if job.sent else "applied before"
            job.succeed(Confirmation(found.log_index, found.affected_triples, message))
        return True

    def fail(self, jobs: Sequence[WriteJob], error: GraphDBError) -> None:
        """Answer those that are not found in the log."""
        for job in jobs:
            if self.answer_known(job):
                continue
            if job.maybe_stored and not isinstance(error, CorruptionError):
                job.fail(OutcomeUnknown(f"the write may have been stored, and will show if so: {error}", 5))
            elif isinstance(error, OutcomeUnknown):
                job.fail(LogUnavailable(f"the write was not stored: {error}", error.retry_after_s))
            else:
                job.fail(error)

    async def _recover_lost(
        self, jobs: Sequence[WriteJob], decided: Sequence[WriteJob], before: int, error: UnavailableError
    ) -> None:
        """After an append of which it is not known whether it was, or will be, stored.

        before: how many entries that concern quads had been fed before it.
        """
        at_once = self._log.settles_at_once
        for job in decided:
            job.maybe_stored = isinstance(error, OutcomeUnknown) or not at_once
        await self._recover(jobs, lambda: at_once or self._is_settled(decided, before), error)

    def _is_settled(self, decided: Sequence[WriteJob], before: int) -> bool:
        """Whether each job is stored or never will be: all are found, or there is an entry that concerns
        quads and is none of theirs.

        Where it stands before them, they were refused for it. Where it stands behind some of them, the others
        are lost: they were to stand side by side.
        """
        found = sum(self._is_found(job) for job in decided)
        return found == len(decided) or self._replayer.quad_entries - before > found

    def _is_found(self, job: WriteJob) -> bool:
        found = self._replayer.requests.find(job.request_id)
        return found is not None and found.request_id == job.request_id

    async def _recover(
        self, jobs: Sequence[WriteJob], is_settled: Callable[[], bool], error: UnavailableError | None
    ) -> None:
        """After an append that failed: find out what the log holds, then let the jobs not found there wait
        anew.
        """
        try:
            settled = await self._follower.follow(is_settled, pause=error is not None)
        except (UnavailableError, CorruptionError) as trouble:
            self._on_trouble(trouble)
            self.fail(jobs, trouble)
            return
        if settled:
            self._queue_again(jobs, error)
        else:
            self.fail(jobs, error or LogUnavailable("what the log holds last is not decided yet", 5))

    def _queue_again(self, jobs: Sequence[WriteJob], error: UnavailableError | None) -> None:
        now = asyncio.get_running_loop().time()
        again: list[WriteJob] = []
        for job in jobs:
            job.maybe_stored = False  # if it is not found now, it never will be
            if job.give_up_at is None:
                job.give_up_at = now + self._wait_s
            if error is not None and job.give_up_at < now:
                self.fail([job], error)
            elif not self.answer_known(job):
                again.append(job)
        self._queue.put_back(again)
