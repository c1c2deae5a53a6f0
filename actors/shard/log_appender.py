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
from graphdb.log.codec import entry_bytes
from graphdb.log.replay import Replayer
from graphdb.model import Confirmation, LogEntry

__all__ = ["LogAppender"]


class LogAppender:
    """Owned by a `ShardWriter`, on its event loop; one call at a time.

    Every append says that it goes right behind what the store holds. After one that failed the store follows
    the log until it is plain what the log has taken: jobs that are found there are answered, the others wait
    anew in the queue. Nothing else is appended meanwhile.
    """

    def __init__(
        self,
        log: LogAccess,
        replayer: Replayer,
        follower: LogFollower,
        queue: WriteQueue,
        *,
        wait_s: float,
        has_room: Callable[[], bool],
        on_logged: Callable[[int], None],
        on_trouble: Callable[[GraphDBError], None],
    ) -> None:
        """wait_s: how long a job waits for a log that fails. has_room and on_logged as for `ShardWriter`;
        on_trouble is told why the store is behind the log.
        """
        self._log = log
        self._replayer = replayer
        self._follower = follower
        self._queue = queue
        self._wait_s = wait_s
        self._has_room = has_room
        self._on_logged = on_logged
        self._on_trouble = on_trouble

    async def append(
        self, entries: list[LogEntry], jobs: Sequence[WriteJob], decided: Sequence[WriteJob]
    ) -> bool:
        """Log entries right behind applied_index. False: the jobs are answered, or wait anew.

        decided are the jobs that the entries store, one each.
        """
        before = self._replayer.applied_index
        try:
            if not self._has_room():
                raise StorageFull("the disk is almost full", 5)
            for job in decided:
                job.note_sent(before)
            index = await self._log.append(entries, before + 1)
        except (StorageFull, NotLeader, Overloaded) as error:
            self.fail(jobs, error)
            return False
        except UnavailableError as error:
            await self._recover_lost(jobs, decided, error)
            return False
        if index == 0:
            await self._recover(jobs, lambda: self._replayer.applied_index > before, None)
            return False
        for job in decided:
            job.maybe_stored = True
        self._on_logged(sum(entry_bytes(len(entry.payload)) for entry in entries))
        return True

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
        self, jobs: Sequence[WriteJob], decided: Sequence[WriteJob], error: UnavailableError
    ) -> None:
        """After an append of which it is not known whether it was, or will be, stored."""
        at_once, before = self._log.settles_at_once, self._replayer.applied_index
        for job in decided:
            job.maybe_stored = isinstance(error, OutcomeUnknown) or not at_once
        await self._recover(jobs, lambda: at_once or self._is_settled(decided, before), error)

    def _is_settled(self, decided: Sequence[WriteJob], before: int) -> bool:
        """Whether the places behind before are taken, so that each job is stored or never will be.

        Entries are stored side by side: where something else stands, none of those behind it can follow.
        """
        for place, job in enumerate(decided, before + 1):
            if place > self._replayer.applied_index:
                return False
            found = self._replayer.requests.find(job.request_id)
            if found is None or (found.request_id, found.log_index) != (job.request_id, place):
                return True
        return True

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
