"""`ShardWriter`: the one writer of a node's quads. It plans, logs and applies, a batch of requests at a time.

A batch: each waiting request is planned against the store with the earlier ones of the batch laid over it;
all their entries go into the log with one sync; the net change is applied to the store at once; then all are
answered. Every append says which index it expects to get, so it is stored only if nothing else has been since
planning: what was planned is what is true. If the log says no, or its answer is lost, the writer reads what
the log holds, applies that (its own requests are known by their request ids, and answered), and plans the
others again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from actors.applied_index import AppliedIndex
from actors.log_client import LogAccess
from actors.write_batch import Attempt, Batch, LargeWrite, Plan, WriteJob, plan_batch
from graphdb.errors import (
    CorruptionError,
    GraphDBError,
    LogUnavailable,
    OutcomeUnknown,
    Overloaded,
    StorageFull,
    UnavailableError,
)
from graphdb.log.codec import encode_close, entry_bytes
from graphdb.log.replay import Replayer
from graphdb.model import Confirmation, EntryKind, LogEntry
from graphdb.store.quad_store import QuadStore

__all__ = ["ShardWriter", "WriterConfig"]

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WriterConfig:
    """How the writer batches and how long it waits."""

    waiting_requests_max: int = 10_000  # more are refused as Overloaded
    batch_requests_max: int = 256  # planned together, logged with one sync, applied at once
    part_bytes_max: int = 4 << 20  # a change encoded larger than this is logged in parts of about this size
    log_wait_s: float = 15.0  # how long a request waits for a log that has gone away, before it is refused
    log_poll_s: float = 0.05  # how often a log that has gone away is tried meanwhile
    retry_s: float = 1.0  # how often applying is tried again while the store cannot take what the log holds
    inline_requests_max: int = 16  # so many quick ones are planned on the event loop: a thread costs 0.1 ms
    inline_quads_max: int = 64  # so few are applied there too


@dataclass(slots=True)
class _TurnJob:
    """Something to do between two batches, on a thread, with the index that the store is at."""

    perform: Callable[[int], Any]
    answer: "asyncio.Future[Any]"

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class ShardWriter:
    """Owned by a `StoreShard`, on its event loop.

    Whatever happens, the store holds the effects of the log's entries up to applied_index, wholly and in
    order. An answered request is among them. A request that failed has left nothing, but OutcomeUnknown may
    have, or will have, been stored.
    """

    def __init__(
        self,
        quads: QuadStore,
        log: LogAccess,
        replayer: Replayer,
        config: WriterConfig,
        *,
        clock_ms: Callable[[], int],
        fresh_request_id: Callable[[], bytes],
        has_room: Callable[[], bool] = lambda: True,
        on_logged: Callable[[int], None] = lambda logged_bytes: None,
    ) -> None:
        """replayer feeds quads; on_logged is told how many bytes the log has grown by.

        While has_room says no, writes are refused before they are logged: the log might take them still, and
        then the store not.
        """
        self._quads = quads
        self._log = log
        self._replayer = replayer
        self._config = config
        self._clock_ms = clock_ms
        self._fresh_request_id = fresh_request_id
        self._has_room = has_room
        self._on_logged = on_logged
        # one thread, and always the same: pyoxigraph's iterators end the process when used on another than
        # their own
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
        self._attempts: dict[bytes, Attempt] = {}  # under way, by request id
        self._jobs: deque[WriteJob | _TurnJob] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self.applied = AppliedIndex(lambda: replayer.applied_index)
        # why the store is behind the log, or cannot go on (CorruptionError)
        self.trouble: GraphDBError | None = None

    @property
    def applied_index(self) -> int:
        """The log index of the last entry that readers see. Any thread."""
        return self._replayer.applied_index

    def start(self) -> None:
        """Begin to take requests."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def write(self, plan: Plan, *, quick: bool = False) -> Confirmation:
        """Have a request planned, logged and applied.

        plan yields the parts of one net change for the state that it is given. It is called in the writer's
        turn, on a thread (or, if quick, on the event loop), perhaps more than once. A request without effect
        is not logged, and confirmed with the index that it saw.
        Raises what plan raises, UnavailableError, CorruptionError.
        """
        job = WriteJob(plan, quick, asyncio.get_running_loop().create_future())
        confirmation: Confirmation = await self._wait_for(job)
        return confirmation

    async def in_turn(self, perform: Callable[[int], T]) -> T:
        """Call perform, with the index that the store is at, on a thread while nothing is written."""
        result: T = await self._wait_for(_TurnJob(perform, asyncio.get_running_loop().create_future()))
        return result

    async def _wait_for(self, job: WriteJob | _TurnJob) -> Any:
        if self._closing:
            raise LogUnavailable("the node is stopping")
        if len(self._jobs) >= self._config.waiting_requests_max:
            raise Overloaded(f"{len(self._jobs)} writes are waiting")
        self._jobs.append(job)
        self._wake.set()
        return await job.answer

    async def close(self) -> None:
        """Finish what is waiting, and stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        self._replayer.forget_open_parts()
        self._thread.shutdown()

    async def _on_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    async def catch_up(self, progress: Callable[[int], None] = lambda applied_index: None) -> None:
        """Apply what the log holds and the store does not, and answer the requests that are found there.

        Raises LogUnavailable, StorageFull, CorruptionError; what was applied before that stays.
        """
        while entries := await self._log.read(self.applied_index + 1):
            if entries[0].log_index != self.applied_index + 1:
                raise CorruptionError(f"the entry {self.applied_index + 1} is missing", "update log")
            with self.applied.changing():
                await self._on_thread(self._replayer.replay, entries)
            self._answer_found(entries)
            progress(self.applied_index)
        self._attempts.clear()

    def _answer_found(self, entries: list[LogEntry]) -> None:
        for entry in entries:
            if entry.kind is not EntryKind.PART and (attempt := self._attempts.get(entry.request_id)):
                attempt.job.succeed(entry.log_index, attempt.affected_triples)

    async def _run(self) -> None:
        while self._jobs or not self._closing:
            if self.trouble is not None:
                await self._overcome()
            elif self._jobs:
                await self._guarded_turn()
            if not self._jobs and not self._closing:
                await self._sleep()

    async def _sleep(self) -> None:
        """Until there is work: a request, or trouble to try to overcome."""
        self._wake.clear()
        try:
            await asyncio.wait_for(self._wake.wait(), self._config.retry_s if self.trouble else None)
        except TimeoutError:
            return

    async def _guarded_turn(self) -> None:
        """A turn; a mistake of ours in it does not end the writer, for what the log holds is what counts."""
        try:
            await self._turn()
        except Exception as error:
            logger.exception("a turn of the writer failed")
            trouble = LogUnavailable(f"the writer failed: {error!r}", 5)
            self._fall_behind(trouble)
            self._fail(list(self._attempts.values()), trouble)

    async def _turn(self) -> None:
        first = self._jobs[0]
        if isinstance(first, _TurnJob):
            self._jobs.popleft()
            await self._perform(first)
            return
        batch = await self._plan(self._take_writes())
        await self._commit(batch)
        if batch.large is not None:
            await self._commit_large(batch.large)

    async def _perform(self, job: _TurnJob) -> None:
        try:
            result = await self._on_thread(job.perform, self.applied_index)
        except Exception as error:  # noqa: BLE001 the caller gets it
            job.fail(error)
        else:
            if not job.answer.done():
                job.answer.set_result(result)

    def _take_writes(self) -> list[WriteJob]:
        jobs: list[WriteJob] = []
        while self._jobs and len(jobs) < self._config.batch_requests_max:
            job = self._jobs[0]
            if not isinstance(job, WriteJob):
                break
            self._jobs.popleft()
            if not job.answer.done():
                jobs.append(job)
        return jobs

    async def _plan(self, jobs: list[WriteJob]) -> Batch:
        arguments = (jobs, self._quads, self._config.part_bytes_max, self._fresh_request_id)
        quick = len(jobs) <= self._config.inline_requests_max and all(job.quick for job in jobs)
        batch = plan_batch(*arguments) if quick else await self._on_thread(plan_batch, *arguments)
        self._jobs.extendleft(reversed(batch.deferred))
        return batch

    async def _commit(self, batch: Batch) -> None:
        """Log a batch, apply it, answer it."""
        before = self.applied_index
        entries = batch.entries(self._clock_ms())
        if not entries:
            batch.succeed(before)
            return
        if not await self._append(entries, batch.attempts):
            return
        change = batch.overlay.pending
        try:
            with self.applied.changing():
                if change.affected_triples <= self._config.inline_quads_max:
                    self._quads.apply(change)
                else:
                    await self._on_thread(self._quads.apply, change)
                self._replayer.note_applied(before + len(entries))
        except (UnavailableError, CorruptionError) as error:
            self._fall_behind(error)
            self._fail(batch.attempts, error)
            return
        batch.succeed(before)

    async def _commit_large(self, large: LargeWrite) -> None:
        """Log a large change part by part; the entry that closes it makes it visible, at once."""
        attempt, parts = large.attempt, 0
        try:
            while (payload := await self._on_thread(large.next_payload)) is not None:
                if not await self._append_and_replay(attempt, EntryKind.PART, payload):
                    return
                parts += 1
        except Exception as error:  # noqa: BLE001 planning failed; whoever asked gets it
            self._replayer.forget_open_parts()
            attempt.job.fail(error)
            return
        finally:
            await self._on_thread(large.close)
        if await self._append_and_replay(attempt, EntryKind.CLOSE, encode_close(parts)):
            attempt.job.succeed(self.applied_index, attempt.affected_triples)

    async def _append_and_replay(self, attempt: Attempt, kind: EntryKind, payload: bytes) -> bool:
        """Log one entry of a large change and let it take its effect. False: the job is answered or waits
        anew.
        """
        entry = LogEntry(self.applied_index + 1, 0, kind, attempt.request_id, self._clock_ms(), payload)
        if not await self._append([entry], [attempt]):
            return False
        try:
            with self.applied.changing():
                await self._on_thread(self._replayer.replay, [entry])
        except (UnavailableError, CorruptionError) as error:
            self._fall_behind(error)
            self._fail([attempt], error)
            return False
        return True

    async def _append(self, entries: list[LogEntry], attempts: list[Attempt]) -> bool:
        """Log entries right behind applied_index. False: the jobs are answered, or wait anew."""
        self._attempts = {attempt.request_id: attempt for attempt in attempts}
        decisive = entries[-1].kind is not EntryKind.PART  # PART entries alone store nothing
        try:
            if not self._has_room():
                raise StorageFull("the disk is almost full", 5)
            index = await self._log.append(entries, self.applied_index + 1)
        except StorageFull as error:
            self._replayer.forget_open_parts()
            self._fail(attempts, error)
            return False
        except UnavailableError as error:
            for attempt in attempts:
                attempt.job.maybe_stored = decisive and isinstance(error, OutcomeUnknown)
            await self._recover(attempts, error)
            return False
        if index == 0:
            await self._recover(attempts, None)
            return False
        for attempt in attempts:
            attempt.job.maybe_stored = decisive
        self._on_logged(sum(entry_bytes(len(entry.payload)) for entry in entries))
        return True

    async def _recover(self, attempts: list[Attempt], error: UnavailableError | None) -> None:
        """After an append that failed: find out what the log holds, then let the jobs not found there wait
        anew.
        """
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self._config.log_wait_s
        while True:
            if error is not None:
                await asyncio.sleep(self._config.log_poll_s)
            try:
                await self.catch_up()
                break
            except LogUnavailable as still:
                error = still
                if clock() < give_up_at:
                    continue
                trouble: GraphDBError = still
            except (UnavailableError, CorruptionError) as other:
                trouble = other
            self._fall_behind(trouble)
            self._fail(attempts, trouble)
            return
        self._replayer.forget_open_parts()
        self._queue_again(attempts, error, clock())

    def _queue_again(self, attempts: list[Attempt], error: UnavailableError | None, now: float) -> None:
        again: list[WriteJob] = []
        for job in (attempt.job for attempt in attempts):
            job.maybe_stored = False  # the log was asked, and it is not there
            if job.give_up_at is None:
                job.give_up_at = now + self._config.log_wait_s
            if job.give_up_at < now and error is not None:
                job.fail(error)
            elif not job.answer.done():
                again.append(job)
        self._jobs.extendleft(reversed(again))

    async def _overcome(self) -> None:
        """Try to catch up with the log; while that fails nothing can be written."""
        assert self.trouble is not None
        if not isinstance(self.trouble, CorruptionError):
            try:
                await self.catch_up()
            except (UnavailableError, CorruptionError) as still:
                self.trouble = _bare(still)
            else:
                self._replayer.forget_open_parts()
                self.trouble = None
                return
        while self._jobs:
            self._jobs.popleft().fail(self.trouble)

    def _fall_behind(self, error: GraphDBError) -> None:
        logger.error("the store is behind the log at %d: %s", self.applied_index, str(error))
        self.trouble = _bare(error)

    def _fail(self, attempts: list[Attempt], error: GraphDBError) -> None:
        for job in (attempt.job for attempt in attempts):
            if job.maybe_stored and not isinstance(error, CorruptionError):
                job.fail(OutcomeUnknown(f"the write may have been stored, and will show if so: {error}", 5))
            else:
                job.fail(error)


def _bare(error: GraphDBError) -> GraphDBError:
    """The error without its traceback, whose frames would hold the engine open for as long as it is kept."""
    return type(error)(*error.args)
