"""`CommandWriter`: takes commands into the log, several in an entry (`SharedEntry`), and answers them
(`SearchJob`).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from actors.log.client import LogAccess
from actors.log.group_commit import GroupCommit
from actors.log.view_runner import ViewRunner
from actors.search.catalog_view import Applied
from actors.search.log_reading import OwnEntries
from graphdb.errors import (
    GraphDBError,
    LogUnavailable,
    OutcomeUnknown,
    Overloaded,
    StorageFull,
    UnavailableError,
)
from graphdb.model import EntryKind, LogEntry
from graphdb.public_text import fault_text
from graphdb.search.catalog.catalog_commands import Command, DocumentWrite, Outcome, WriteDocuments
from graphdb.search.catalog.command_codec import encode_command
from graphdb.search.errors import SearchError
from graphdb.search.pool_use import PoolCounter, PoolUse

__all__ = [
    "ENTRY_BYTES_MAX",
    "ENTRY_WRITES_MAX",
    "CommandWriter",
    "CommitConfig",
    "SearchJob",
    "SharedEntry",
    "Submitted",
    "Told",
    "join",
    "write_bytes",
]

ENTRY_BYTES_MAX = 1 << 20  # of documents in one entry, unless one alone is larger
ENTRY_WRITES_MAX = 1000
_WRITE_BYTES = 64  # what a write takes beside its texts, about


def write_bytes(write: DocumentWrite) -> int:
    """What a write takes in an entry, about."""
    operation = write.operation
    return _WRITE_BYTES + len(operation.body) + len(operation.doc_id) + len(write.index)


class Told(Protocol):
    """Who is told what comes of a command, such as a future; its methods do not raise."""

    def done(self) -> bool:
        """Whether it is told, or does not wait any more."""
        ...

    def set_result(self, result: Outcome, /) -> None: ...
    def set_exception(self, exception: Exception, /) -> None: ...


@dataclass(frozen=True, eq=False, slots=True)
class Submitted:
    """A command on its way. logged: it is in the log, for good; outcome: it has taken effect here."""

    logged: "asyncio.Future[None]"
    outcome: "asyncio.Future[Outcome]"


@dataclass(eq=False, slots=True)
class SearchJob:
    """One caller's command. release: is called once, when it is answered."""

    command: Command
    size_bytes: int
    told: Told
    release: Callable[[int], None]
    logged: "asyncio.Future[None] | None" = None  # where the caller waits for that, too
    is_answered: bool = False

    def fail(self, error: Exception) -> None:
        """Answer it so, unless it is answered or nobody waits any more."""
        if self.logged is not None and not self.logged.done():
            _fail_future(self.logged, error)
        if not self._ends():
            return
        if isinstance(self.told, asyncio.Future):
            _fail_future(self.told, error)
        else:
            self.told.set_exception(error)

    def note_logged(self) -> None:
        if self.logged is not None and not self.logged.done():
            self.logged.set_result(None)

    def succeed(self, outcome: Outcome) -> None:
        self.note_logged()
        if self._ends():
            self.told.set_result(outcome)

    def _ends(self) -> bool:
        """Whether it is answered now, by somebody who waits."""
        if not self.is_answered:
            self.is_answered = True
            self.release(self.size_bytes)
        return not self.told.done()


def _fail_future(future: "asyncio.Future[Any]", error: Exception) -> None:
    future.set_exception(error)
    future.exception()  # who waits for the one does not look at the other


@dataclass(eq=False, slots=True)
class SharedEntry:
    """One log entry, and those whose commands are in it."""

    request_id: bytes
    command: Command
    jobs: Sequence[SearchJob]
    answered: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    maybe_stored: bool = False  # see `actors.log.group_commit.Job`
    give_up_at: float | None = None

    def try_encode(self) -> bytes | None:
        """Its payload; None where some command in it cannot be written down."""
        try:
            return encode_command(self.command)
        except SearchError:
            return None

    def fail_culprits(self) -> list[SearchJob]:
        """After try_encode has failed: answer those at whom it lay; the others."""
        innocent = []
        for job in self.jobs:
            try:
                encode_command(job.command)
            except SearchError as error:
                job.fail(error)
            else:
                innocent.append(job)
        return innocent

    def fail(self, error: Exception) -> None:
        """Answer all of the jobs so."""
        for job in self.jobs:
            job.fail(error)

    def note_logged(self) -> None:
        for job in self.jobs:
            job.note_logged()

    def succeed(self, outcome: Outcome) -> None:
        """Give each job its part of what has come of the entry."""
        if not self.answered.done():
            self.answered.set_result(None)
        if len(self.jobs) == 1 or outcome.error is not None:
            for job in self.jobs:
                job.succeed(outcome)
            return
        results: Sequence[Any] = outcome.value
        start = 0
        for job in self.jobs:
            assert isinstance(job.command, WriteDocuments)
            stop = start + len(job.command.writes)
            job.succeed(Outcome(list(results[start:stop])))
            start = stop


def join(queue: deque[SearchJob]) -> tuple[Command, list[SearchJob]]:
    """Take the first job, and those right behind it that can share its entry; the command of them all."""
    jobs = [queue.popleft()]
    size_bytes, count = jobs[0].size_bytes, _count(jobs[0])
    while queue and _may_share(jobs[0]) and _may_share(queue[0]):
        size_bytes += queue[0].size_bytes
        count += _count(queue[0])
        if size_bytes > ENTRY_BYTES_MAX or count > ENTRY_WRITES_MAX:
            break
        jobs.append(queue.popleft())
    first = jobs[0].command
    if len(jobs) == 1 or not isinstance(first, WriteDocuments):
        return first, jobs
    commands = [job.command for job in jobs if isinstance(job.command, WriteDocuments)]
    writes = tuple(write for command in commands for write in command.writes)
    return replace(first, writes=writes, refresh=any(command.refresh for command in commands)), jobs


def _may_share(job: SearchJob) -> bool:
    return isinstance(job.command, WriteDocuments) and job.command.cursor is None


def _count(job: SearchJob) -> int:
    return len(job.command.writes) if isinstance(job.command, WriteDocuments) else 1


_SMALL_BYTES = 64 << 10  # so little is encoded on the event loop


@dataclass(frozen=True, slots=True)
class CommitConfig:
    """How commands are gathered, and how long they wait."""

    waiting_bytes_max: int = 128 << 20  # of commands that are not answered yet; more are refused
    append_bytes: int = 4 << 20  # in one append, about
    in_flight_max: int = 4  # appends under way
    full_bytes: int = 256 << 10  # with appends under way, so much is gathered before the next begins
    log_wait_s: float = 15.0  # how long a command waits for a log that is away, or for its unknown outcome
    log_poll_s: float = 0.05


class CommandWriter:
    """The `Outcomes` of a node's search, for one event loop.

    An answered command is in the log, durably, and has taken effect here. One that failed has had none, but
    OutcomeUnknown may have, or will have, taken effect.
    """

    refusals: tuple[type[UnavailableError], ...] = (StorageFull, Overloaded)

    def __init__(
        self,
        log: LogAccess,
        own: OwnEntries,
        runner: ViewRunner[LogEntry, list[Applied]],
        config: CommitConfig,
        *,
        clock_ms: Callable[[], int],
        fresh_request_id: Callable[[], bytes],
        note_logged: Callable[[], None] = lambda: None,
    ) -> None:
        """The entries that are logged are kept in own, which the runner reads. note_logged: is called before
        the runner hears of them.
        """
        self._log, self._own, self._runner, self._config = log, own, runner, config
        self._commit = GroupCommit[SharedEntry](self, config.log_wait_s)
        self._clock_ms, self._fresh_request_id = clock_ms, fresh_request_id
        self._note_logged = note_logged
        self._gathers = False  # an append has been begun that has not taken its commands yet
        self._queue: deque[SearchJob] = deque()
        self._queued_bytes = self._waiting_bytes = self._taken_bytes = 0
        self._logging: dict[bytes, SharedEntry] = {}  # whose outcome is awaited, by request_id
        self._in_flight: set[asyncio.Task[None]] = set()
        self._closing: GraphDBError | None = None
        self._counter = PoolCounter()

    def submit(self, command: Command, size_bytes: int) -> Submitted:
        """Have a command logged; size_bytes is about what it takes. Raises SearchError (429),
        LogUnavailable.
        """
        loop = asyncio.get_running_loop()
        submitted = Submitted(loop.create_future(), loop.create_future())
        self.begin(command, size_bytes, submitted.outcome, submitted.logged)
        return submitted

    def begin(
        self, command: Command, size_bytes: int, told: Told, logged: "asyncio.Future[None] | None" = None
    ) -> None:
        """`submit` for whoever needs no future; told is not told within the call. Raises the same."""
        if self._closing is not None:
            raise self._closing
        if self._waiting_bytes and self._waiting_bytes + size_bytes > self._config.waiting_bytes_max:
            self._counter.rejected += 1
            raise SearchError(
                "es_rejected_execution_exception",
                "rejected execution of coordinating operation [coordinating_and_primary_bytes="
                f"{self._waiting_bytes}, operation_bytes={size_bytes}, "
                f"max_coordinating_and_primary_bytes={self._config.waiting_bytes_max}]",
                429,
            )
        self._waiting_bytes += size_bytes
        self._taken_bytes += size_bytes
        self._queue.append(SearchJob(command, size_bytes, told, self._release, logged))
        self._queued_bytes += size_bytes
        self._pump()

    def use(self) -> PoolUse:
        """Entries under way count as active, commands that no entry has yet as waiting."""
        use = self._counter.use(self._config.in_flight_max, -1, len(self._in_flight), len(self._queue))
        return replace(
            use,
            waiting_bytes=self._waiting_bytes,
            taken_bytes=self._taken_bytes,
            bytes_max=self._config.waiting_bytes_max,
        )

    def take(self, applied: Iterable[Applied]) -> None:
        """These entries have taken effect: answer those that are ours."""
        for one in applied:
            shared = self._logging.pop(one.request_id, None)
            if shared is not None:
                shared.succeed(one.outcome)

    async def close(self, reason: GraphDBError) -> None:
        """Refuse what comes from now on; answer what waits, by what is known of it."""
        self._closing = reason
        while self._queue:
            self._queue.popleft().fail(reason)
        for task in list(self._in_flight):
            task.cancel()
        await asyncio.gather(*self._in_flight, return_exceptions=True)
        for shared in self._logging.values():
            shared.fail(OutcomeUnknown(f"the change may have been stored: {reason}"))
        self._logging.clear()

    def _release(self, size_bytes: int) -> None:
        self._counter.completed += 1
        self._waiting_bytes -= size_bytes

    def _pump(self) -> None:
        """Begin an append where there is reason for it. One by itself does not wait; those of the same turn
        of the event loop share it, others the next.
        """
        if not self._queue or self._gathers or len(self._in_flight) >= self._config.in_flight_max:
            return
        if self._in_flight and self._queued_bytes < self._config.full_bytes:
            return
        self._gathers = True
        task = asyncio.get_running_loop().create_task(self._send_waiting())
        self._in_flight.add(task)
        self._counter.note_active(len(self._in_flight))
        task.add_done_callback(self._sent)

    async def _send_waiting(self) -> None:
        self._gathers = False
        batch = self._take_batch()
        self._pump()
        await self._send(batch)

    def _sent(self, task: "asyncio.Task[None]") -> None:
        self._in_flight.discard(task)
        if self._closing is None:
            self._pump()

    def _take_batch(self) -> list[SharedEntry]:
        batch: list[SharedEntry] = []
        size_bytes = 0
        while self._queue and (
            not batch or size_bytes + self._queue[0].size_bytes <= self._config.append_bytes
        ):
            command, jobs = join(self._queue)
            joined_bytes = sum(job.size_bytes for job in jobs)
            size_bytes += joined_bytes
            self._queued_bytes -= joined_bytes
            shared = SharedEntry(self._fresh_request_id(), command, jobs)
            self._logging[shared.request_id] = shared
            batch.append(shared)
        return batch

    async def _send(self, batch: Sequence[SharedEntry]) -> None:
        """Log a batch; when it is applied it is answered. Whatever goes wrong, its jobs are answered."""
        try:
            await self._log_encoded(await self._encode(batch))
        except GraphDBError as error:
            self._fail(batch, error)
        except Exception as error:  # noqa: BLE001 a mistake of ours; those who wait are told
            self._fail(batch, LogUnavailable(f"logging failed: {fault_text(error)}", 5))

    def _fail(self, batch: Iterable[SharedEntry], error: Exception) -> None:
        for shared in batch:
            if self._logging.pop(shared.request_id, None) is not None:
                shared.fail(error)

    async def _encode(self, batch: Sequence[SharedEntry]) -> dict[SharedEntry, bytes]:
        """The payloads of those that can be logged; the others are answered, or queued without culprits."""
        if sum(job.size_bytes for shared in batch for job in shared.jobs) <= _SMALL_BYTES:
            tried = [shared.try_encode() for shared in batch]
        else:
            tried = await asyncio.to_thread(lambda: [shared.try_encode() for shared in batch])
        for shared, payload in zip(batch, tried, strict=True):
            if payload is None:
                del self._logging[shared.request_id]
                innocent = shared.fail_culprits()
                self._queue.extendleft(reversed(innocent))
                self._queued_bytes += sum(job.size_bytes for job in innocent)
        return {shared: payload for shared, payload in zip(batch, tried, strict=True) if payload is not None}

    async def _log_encoded(self, payloads: Mapping[SharedEntry, bytes]) -> None:
        """Append, again what certainly is not in the log, until all are in it or answered."""
        left = list(payloads)
        while left:
            entries = [self._entry(shared, payloads[shared]) for shared in left]
            appended = await self._commit.append(
                partial(self._log.append_unconditionally, entries), left, left, partial(self._settle, left)
            )
            if appended.first_index:
                commands = [shared.command for shared in left]
                last_index = self._own.keep(appended.first_index, entries, commands)
                self._note_logged()
                self._runner.hear(last_index)
                for shared in payloads:
                    shared.note_logged()
            else:
                for shared in set(left).difference(appended.again):
                    self._logging.pop(shared.request_id, None)
            left = list(appended.again)

    def _entry(self, shared: SharedEntry, payload: bytes) -> LogEntry:
        return LogEntry(0, 0, EntryKind.SEARCH, shared.request_id, self._clock_ms(), payload)

    def may_be_stored(self, error: UnavailableError) -> bool:
        """See `Outcomes.may_be_stored`."""
        return isinstance(error, OutcomeUnknown)

    def answer_known(self, job: SharedEntry) -> bool:
        """See `Outcomes.answer_known`: `take` has answered it."""
        return job.request_id not in self._logging

    def fall_behind(self, error: GraphDBError) -> None:
        """See `Outcomes.fall_behind`: the runner follows the log by itself, and reports."""

    async def _settle(self, sent: Iterable[SharedEntry], error: UnavailableError | None) -> bool:
        """See `Settle`: until those that the log has are answered."""
        if not isinstance(error, OutcomeUnknown):
            await asyncio.sleep(self._config.log_poll_s)
            return True
        try:
            async with asyncio.timeout(self._config.log_wait_s):
                if self._log.settles_at_once:
                    await self._runner.applied.wait_for(await self._last_index())
                else:
                    await asyncio.wait([shared.answered for shared in sent])
        except TimeoutError:
            return False
        return True

    async def _last_index(self) -> int:
        while True:
            try:
                last_index = (await self._log.status()).last_index
            except UnavailableError:
                await asyncio.sleep(self._config.log_poll_s)
            else:
                self._runner.hear(last_index)
                return last_index
