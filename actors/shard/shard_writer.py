"""`ShardWriter`: the one writer of a node's quads. It plans, logs and applies, a batch of requests at a time.

A batch: each waiting request is planned against the store with the earlier ones of the batch laid over it;
all their entries go into the log with one sync; the net change is applied to the store at once, and all are
answered. What is quick to plan and comes meanwhile is planned upon the batch that is in the log, as the next
one. Every append says what it was planned upon, so it is stored only if nothing else that concerns quads
has been since: what was planned is what is true. Entries of other writers may stand between, and are passed
over. If the log says no, or its answer is lost, the writer reads what the log holds, applies that (its own
requests are known by their request ids, and answered), and plans the others again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from actors.gathering import Gathering
from actors.log.applied_index import AppliedIndex
from actors.log.client import LogAccess
from actors.log.view_runner import ViewRunner
from actors.log.view_sources import LogReading, Pace
from actors.shard.batch_commit import BatchCommit, OnChanges
from actors.shard.graph_removal import GraphRemoval
from actors.shard.log_appender import LogAppender, OnLogged
from actors.shard.planning_ahead import PlanningAhead
from actors.shard.single_entries import Admit, SingleEntries
from actors.shard.write_batch import Batch, WriteGuard, plan_batch
from actors.shard.write_queue import EntryPlan, Plan, Seeing, TurnJob, WriteJob, WriteQueue
from graphdb.access.writer_state import WholeState
from graphdb.errors import GraphDBError, LogUnavailable, Overloaded
from graphdb.log.recent_requests import RecentRequests
from graphdb.log.replay import Replayer
from graphdb.log.views import QUADS, ViewStatus
from graphdb.model import UNKNOWN_AUTHOR, Author, Confirmation, LogEntry, Outcome
from graphdb.public_text import fault_text
from graphdb.sparql.plain_data import OneTriple
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["Admit", "ShardWriter", "WriterConfig"]

T = TypeVar("T")
logger = logging.getLogger(__name__)
_IDLE_STEPS = 2  # from a request's bytes to its place in the queue the event loop takes a few steps


@dataclass(frozen=True, slots=True)
class WriterConfig:
    """How the writer batches and how long it waits."""

    waiting_requests_max: int = 10_000  # more are refused as Overloaded
    batch_requests_max: int = 256  # planned together, logged with one sync, applied at once
    part_bytes_max: int = 4 << 20  # a change encoded larger than this is logged in parts of about this size
    log_wait_s: float = 15.0  # how long a request waits for a log that has gone away, before it is refused
    log_poll_s: float = 0.05  # how often a log that has gone away is tried meanwhile
    retry_s: float = 1.0  # how often applying is tried again while the store cannot take what the log holds
    follow_s: float = 2.0  # how often what others write is followed, at most
    gather_s: float = 0.03  # what others write is applied together, unless anybody waits for it
    # so many quick ones are planned on the event loop, in a millisecond mostly: a thread costs 0.1 ms more,
    # and the loop its time all the same, for it holds the interpreter
    inline_requests_max: int = 64
    inline_quads_max: int = 64  # so few are applied there too
    polls_s: float = 0.0  # how long the event loop polls for the log's answer to a client that is alone


class _QuadsView:
    """The store's quads, and what is kept beside them, as a `View`."""

    def __init__(self, replayer: Replayer) -> None:
        self._replayer = replayer

    @property
    def index(self) -> int:
        return self._replayer.applied_index

    def apply(self, entries: Sequence[LogEntry]) -> None:
        self._replayer.replay(entries)

    def check(self) -> None:
        """What is wrong with the store, `apply` raises."""


class ShardWriter:
    """Owned by an open store, on its event loop.

    Whatever happens, the store holds the effects of the log's entries up to applied_index, wholly and in
    order. An answered request is among them before anything else runs on the event loop; where the store
    could not take it, `lacks_confirmed` is true until it has. A request that failed has left nothing, but
    OutcomeUnknown may have, or will have, been stored.
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
        admit: Admit | None = None,
        on_logged: OnLogged = lambda entries, later_bytes: None,
        guard: WriteGuard | None = None,
        on_changes: OnChanges = lambda before, first_index, timestamp_ms, changes: None,
        on_heard: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """replayer feeds quads; on_logged is told what was written to the log, or followed, on_changes what
        this writer itself has changed: see `ChangeLog.note`.

        admit is asked before a write is logged (`Checkpointer.admit`): whether it adds, its `engine_bytes`.
        What it refuses with StorageFull the log might take still, and then the store not.
        on_heard is awaited when others have written; None: then nobody looks, and whoever knows calls `hear`.
        """
        self._quads = quads
        self._replayer = replayer
        self._config = config
        self._fresh_request_id = fresh_request_id
        self._guard = guard
        # one thread, and always the same: pyoxigraph's iterators end the process when used on another than
        # their own
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
        self._queue = WriteQueue()
        self._under_way: list[WriteJob] = []  # of the present turn
        self._was_alone = False  # the last batch had one request
        self._gathering = Gathering()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._removal = GraphRemoval(quads, self._queue, self._fail_removal, self._wake.set)
        self._runner = ViewRunner(
            QUADS,
            _QuadsView(replayer),
            LogReading(log),
            perform=self._change,
            on_applied=lambda entries, _: on_logged(entries, None),
            applied=AppliedIndex(lambda: replayer.applied_index),
            on_heard=self._note_heard,
            pace=Pace(
                again_s=config.retry_s,
                again_s_max=config.retry_s,
                watch_pause_s=config.follow_s,
                gather_s=config.gather_s,
            ),
        )
        self._on_heard = on_heard
        self._watching: asyncio.Task[None] | None = None
        self._appender = LogAppender(
            log,
            replayer,
            self._runner,
            self._queue,
            wait_s=config.log_wait_s,
            poll_s=config.log_poll_s,
            on_logged=on_logged,
            on_fault=self._runner.fall_behind,
            on_again=lambda: self._ahead.drop(),
        )
        self._ahead = PlanningAhead(
            quads,
            self._queue,
            replayer,
            self._appender.answer_known,
            requests_max=config.batch_requests_max,
            part_bytes_max=config.part_bytes_max,
        )
        self._single = SingleEntries(
            self._appender, self._runner, replayer, admit, clock_ms, self._change, self._on_thread
        )
        self._batches = BatchCommit(
            quads,
            replayer,
            self._runner,
            self._queue,
            self._appender,
            self._ahead,
            self._gathering,
            self._on_thread,
            clock_ms=clock_ms,
            admit=admit,
            guard=guard,
            on_changes=on_changes,
            inline_quads_max=config.inline_quads_max,
            polls_s=config.polls_s,
        )

    @property
    def fault(self) -> GraphDBError | None:
        """Why the store is behind the log, or cannot go on (CorruptionError, LogCompacted)."""
        return self._runner.fault

    @property
    def applied(self) -> AppliedIndex:
        """How far the store has followed the log."""
        return self._runner.applied

    @property
    def applied_index(self) -> int:
        """The log index of the last entry that readers see. Any thread."""
        return self._replayer.applied_index

    @property
    def lacks_confirmed(self) -> bool:
        """Whether the store could not take what was answered already: its readers would miss a write that
        they know of.
        """
        return self._batches.lacks_confirmed

    @property
    def is_guarded(self) -> bool:
        """Whether every change is checked before it is logged."""
        return self._guard is not None

    def view_status(self) -> ViewStatus:
        """How the store follows the log."""
        return self._runner.status()

    @property
    def has_open_parts(self) -> bool:
        """Whether the log holds parts of a large change that may be closed still."""
        return self._replayer.has_open_parts

    @property
    def requests(self) -> RecentRequests:
        """Which requests the log has seen lately."""
        return self._replayer.requests

    def start(self) -> None:
        """Begin to take requests."""
        loop = asyncio.get_running_loop()
        self._quads.hides_cleared = True
        self._task = loop.create_task(self._run())
        if self._on_heard is not None:
            self._watching = loop.create_task(self._runner.watch())

    async def write(
        self,
        plan: Plan | EntryPlan | OneTriple,
        *,
        quick: bool = False,
        request_id: bytes | None = None,
        since: int | None = None,
        seeing: Seeing = WholeState,
        author: Author = UNKNOWN_AUTHOR,
    ) -> Confirmation:
        """Have a request planned, logged and applied.

        plan yields the parts of one net change for the state that it is given, which is as seeing shows it,
        or is an EntryPlan or one triple. It is called in the writer's turn, on a thread, or, if quick, on the
        event loop, then also for the state that the batch in the log will make; perhaps more than once. A
        request without effect is not logged, and confirmed with the index that it saw. One whose request_id
        the log has seen lately is not planned, but confirmed as it was then. since is for whoever may have
        sent it before: a log index behind which its entries would be. Where too much stands there to tell
        whether they do, OutcomeUnknown is raised. author is what its entries say of who wrote them.
        Raises what plan raises, KeyReused, UnavailableError, CorruptionError.
        """
        answer: asyncio.Future[Confirmation] = asyncio.get_running_loop().create_future()
        self.begin(
            plan, answer, quick=quick, request_id=request_id, since=since, seeing=seeing, author=author
        )
        return await answer

    def begin(
        self,
        plan: Plan | EntryPlan | OneTriple,
        answer: Outcome,
        *,
        quick: bool = False,
        request_id: bytes | None = None,
        since: int | None = None,
        seeing: Seeing = WholeState,
        author: Author = UNKNOWN_AUTHOR,
    ) -> None:
        """`write`, whose outcome goes to answer, after this call. Raises LogUnavailable, Overloaded."""
        is_new = request_id is None
        own_id = request_id or self._fresh_request_id()
        self._enqueue(WriteJob(plan, quick, own_id, since, is_new, answer, seeing, author))

    async def in_turn(self, perform: Callable[[int], T]) -> T:
        """Call perform, with the index that the store is at, on a thread while nothing is written."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._enqueue(TurnJob(perform, answer))
        return await answer

    async def hold_turn(self, perform: Callable[[int], Awaitable[T]]) -> T:
        """Await perform, with the index that the store is at, on the event loop; nothing is written until
        it is done.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._enqueue(TurnJob(perform, answer, on_loop=True))
        return await answer

    def _enqueue(self, job: WriteJob | TurnJob) -> None:
        if self._closing:
            raise LogUnavailable("the node is stopping")
        before = len(self._queue)
        if (waiting := before + self._removal.parked) >= self._config.waiting_requests_max:
            raise Overloaded(f"{waiting} writes are waiting")
        self._queue.add(job)
        if not before:  # else that was done for the first
            self._ahead.note_request()
            self._wake.set()
            self._runner.hurry()
        self._gathering.note_request()

    async def reach(self, index: int, timeout_s: float) -> bool:
        """Have what others have written applied; whether the store has come to index in time."""
        return await self._runner.reach(index, timeout_s)

    def hear(self, committed_index: int) -> None:
        """The log can be read up to committed_index; the store follows between two turns."""
        self._runner.hear(committed_index)
        if self.fault is None:
            self._wake.set()

    def _fail_removal(self, error: GraphDBError) -> None:
        self._runner.fall_behind(error)

    async def _note_heard(self) -> None:
        if self.fault is None:
            self._wake.set()
        if self._on_heard is not None:
            await self._on_heard()

    async def catch_up(self, progress: Callable[[int], None] = lambda applied_index: None) -> None:
        """Apply what the log holds and the store does not, before start(). See `ViewRunner.catch_up`."""
        await self._runner.catch_up(progress)

    async def close(self) -> None:
        """Finish what is waiting, and stop."""
        self._closing = True
        self._removal.stop()
        self._wake.set()
        self._runner.hurry()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        try:
            if self._task is not None:
                await self._task
            await self._removal.close()
        finally:
            # else they would keep this, and with it the store, which may be about to be opened anew
            self.applied.end_waits("the node is starting or stopping")
            self._replayer.close()
            self._thread.shutdown()

    async def _change(self, function: Callable[..., T], *arguments: Any) -> T:
        """What changes what readers see."""
        with self.applied.changing():
            return await self._on_thread(function, *arguments)

    async def _on_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    @property
    def _waiting(self) -> int:
        """How many requests wait for their turn."""
        return len(self._queue) + len(self._ahead)

    async def _run(self) -> None:
        wait_s, poll_s = self._config.log_wait_s, self._config.log_poll_s
        while (waiting := self._waiting) or self._removal.parked or not self._closing:
            is_idle = not waiting and not self._closing
            if not self._runner.is_up and not await self._runner.keep_up(
                wait_s=wait_s, poll_s=poll_s, gather=is_idle
            ):
                assert self.fault is not None
                self._removal.unpark()
                self._ahead.drop()
                self._queue.fail_all(self.fault)
            elif waiting or self._waiting:  # since then, too
                # a client that is alone need not wait for others
                if waiting > 1 or not self._was_alone:
                    await self._gather()
                await self._guarded_turn()
            if self.fault is None:
                self._removal.look()
            if not self._waiting and self._may_sleep():
                await self._sleep()

    def _may_sleep(self) -> bool:
        if self._closing:
            return self._removal.is_under_way
        return self.fault is not None or not self._runner.is_behind

    async def _gather(self) -> None:
        """Let the requests that have been received already come into the queue, as long as more do with each
        step of the event loop: a batch costs the log and the engine almost as much as a single request.
        """
        idle, requests_max = 0, self._config.batch_requests_max
        enough = self._gathering.enough(requests_max)
        while idle < _IDLE_STEPS and self._waiting < enough:
            waiting = self._waiting
            await asyncio.sleep(0)
            idle = idle + 1 if self._waiting == waiting else 0
        await self._gathering.wait(self._waiting, requests_max)

    async def _sleep(self) -> None:
        """Until there is work: a request, more in the log, or a fault that may have passed."""
        self._wake.clear()
        if self._runner.retry_s is None:
            await self._wake.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._runner.retry_s):
                await self._wake.wait()

    async def _guarded_turn(self) -> None:
        """A turn; a mistake of ours in it does not end the writer, for what the log holds is what counts."""
        try:
            await self._turn()
        except Exception as error:
            logger.exception("a turn of the writer failed")
            fault = LogUnavailable(f"the writer failed: {fault_text(error)}", 5)
            self._runner.fall_behind(fault)
            self._appender.fail(self._under_way, fault)
            self._ahead.end()
            self._ahead.drop()

    async def _turn(self) -> None:
        batch = self._ahead.take()
        if batch is None and self._queue.begins_apart:
            return await self._take_turn()
        batch = await self._plan(batch or Batch(Overlay(self._quads)))
        committed = await self._batches.commit(batch, is_alone=self._was_alone)
        if not committed:
            self._ahead.drop()
        if batch.large is None:
            return
        self._under_way = [batch.large.attempt.job]
        if committed:
            await self._single.commit_large(batch.large)
        else:  # what it was planned for may be the past
            await self._on_thread(batch.large.close)
            self._queue.put_back(self._under_way)

    async def _take_turn(self) -> None:
        """That of a job which has one of its own."""
        if (turn := self._queue.take_turn()) is not None:
            if self._removal.holds_turns:
                return self._removal.park(turn)
            await self._perform(turn)
        elif (entry := self._queue.take_entry()) is not None:
            self._under_way = [entry]
            await self._single.commit_entry(entry)

    async def _perform(self, job: TurnJob) -> None:
        try:
            index = self.applied_index
            result = await (job.perform(index) if job.on_loop else self._on_thread(job.perform, index))
        except Exception as error:  # noqa: BLE001 the caller gets it
            job.fail(error)
        else:
            if not job.answer.done():
                job.answer.set_result(result)

    async def _plan(self, batch: Batch) -> Batch:
        """A batch, with what waits planned upon what it has."""
        planned = batch.jobs
        taken = self._queue.take_writes(self._config.batch_requests_max, planned)
        self._was_alone = len(planned) + len(taken) == 1
        jobs = [job for job in taken if job.is_new or not self._appender.answer_known(job)]
        self._under_way = [*planned, *jobs]
        if not jobs:
            return batch
        part_bytes_max = self._config.part_bytes_max
        arguments = (batch, jobs, self._quads, self.applied_index, part_bytes_max, self._guard)
        # a guard may wait for a reader, which is asked on the event loop
        is_short = len(jobs) <= self._config.inline_requests_max and self._guard is None
        if is_short and all(job.quick for job in jobs):
            plan_batch(*arguments)
        else:
            await self._on_thread(plan_batch, *arguments)
        self._under_way = batch.jobs
        self._removal.park(*batch.parked)
        if batch.deferred:
            self._queue.put_back(batch.deferred)
        return batch
