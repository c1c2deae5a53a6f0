"""`LogAppender`: takes planned writes into the log, and finds out what has become of them."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

from actors.log.begun import Begun
from actors.log.client import LogAccess
from actors.log.group_commit import GroupCommit
from actors.log.view_runner import ViewRunner
from actors.shard.write_queue import WriteJob, WriteQueue
from graphdb.errors import (
    GraphDBError,
    KeyReused,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    StorageFull,
    UnavailableError,
)
from graphdb.log.replay import Replayer
from graphdb.model import APPLIED_BEFORE, Confirmation, LogEntry

__all__ = ["LogAppender", "OnLogged"]

OnLogged: TypeAlias = Callable[[Sequence[LogEntry], int | None], None]
"""Is told of entries that are in the log, and what the engine writes of them when it is flushed
(`engine_bytes`), where that is known.
"""


class LogAppender:
    """The `Outcomes` of a `ShardWriter`, on its event loop; one call at a time.

    Every append says that it goes behind what the store holds, with nothing between that concerns quads.
    After one that failed the store follows the log until it is plain what the log has taken: jobs that are
    found there are answered, the others wait anew in the queue. Nothing else is appended meanwhile.
    """

    refusals: tuple[type[UnavailableError], ...] = (StorageFull, NotLeader, Overloaded)

    def __init__(
        self,
        log: LogAccess,
        replayer: Replayer,
        runner: ViewRunner[LogEntry, None],
        queue: WriteQueue,
        *,
        wait_s: float,
        poll_s: float,
        on_logged: OnLogged,
        on_fault: Callable[[GraphDBError], None],
        on_again: Callable[[], None],
    ) -> None:
        """wait_s: how long a job waits for a log that fails; poll_s: how often it is tried.
        on_logged as for `ShardWriter`; on_fault is told why the store is behind the log. on_again is called
        before jobs that were sent are the first in the queue again.
        """
        self._log = log
        self._replayer = replayer
        self._runner = runner
        self._queue = queue
        self._wait_s, self._poll_s = wait_s, poll_s
        self._on_logged = on_logged
        self._on_fault, self._on_again = on_fault, on_again
        self._commit = GroupCommit[WriteJob](self, wait_s)

    async def append(
        self,
        entries: list[LogEntry],
        jobs: Sequence[WriteJob],
        decided: Sequence[WriteJob],
        meanwhile: Callable[[], None] | None = None,
    ) -> int:
        """Log entries behind applied_index, and nothing that concerns quads between; the index of the first.

        0: the jobs are answered, or wait anew.
        decided are the jobs that the entries store, one each. meanwhile is called when the entries are on
        their way, unless the log has answered by then. Whoever applies the entries calls `note_logged`.
        """
        before, quad_entries = self._replayer.applied_index, self._replayer.quad_entries
        for job in decided:
            job.note_sent(before)
        settle = partial(self._settle, decided, before, quad_entries)

        def send() -> Awaitable[int]:
            sending = self._log.append(entries, before + 1)
            return sending if meanwhile is None else Begun(sending, meanwhile)

        appended = await self._commit.append(send, jobs, decided, settle)
        if appended.again:
            self._on_again()
            self._queue.put_back(appended.again)
        return appended.first_index

    def note_logged(self, entries: Sequence[LogEntry], later_bytes: int | None = None) -> None:
        """These were logged, and are applied now, or being applied. later_bytes: see `OnLogged`."""
        self._on_logged(entries, later_bytes)

    async def confirm_newest(self, jobs: Sequence[WriteJob]) -> bool:
        """Whether these jobs, none of which needs the log, have seen the newest state.

        False: they are answered, or wait anew.
        """
        before, quad_entries = self._replayer.applied_index, self._replayer.quad_entries

        async def confirm() -> int:
            return int(await self._log.confirm(before))

        settle = partial(self._settle, (), before, quad_entries)
        confirmed = await self._commit.append(confirm, jobs, (), settle)
        self._queue.put_back(confirmed.again)
        return bool(confirmed.first_index)

    def fail(self, jobs: Sequence[WriteJob], error: GraphDBError) -> None:
        """See `GroupCommit.fail`."""
        self._commit.fail(jobs, error)

    def may_be_stored(self, error: UnavailableError) -> bool:
        """See `Outcomes.may_be_stored`. A cluster may decide later for what a leader has refused."""
        return isinstance(error, OutcomeUnknown) or not self._log.settles_at_once

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
            message = "update applied" if job.sent else APPLIED_BEFORE
            job.succeed(Confirmation(found.log_index, found.affected_triples, message))
        return True

    def fall_behind(self, error: GraphDBError) -> None:
        """See `Outcomes.fall_behind`."""
        self._on_fault(error)

    async def _settle(
        self,
        decided: Sequence[WriteJob],
        before: int,
        quad_entries: int,
        error: UnavailableError | None,
    ) -> bool:
        """Follow the log until it is certain what it has taken.

        before: the index that the append was planned upon; quad_entries: how many entries that concern quads
        had been fed then.
        """

        def is_settled() -> bool:
            if error is None:
                return self._replayer.applied_index > before
            return self._log.settles_at_once or self._is_settled(decided, quad_entries)

        return await self._runner.settle(
            is_settled, wait_s=self._wait_s, poll_s=self._poll_s, pause=error is not None
        )

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
