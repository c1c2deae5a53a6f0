"""`EvaluatorPool`: the evaluators of a `StoreReader`, and the queue for them. `EvaluatorProcess`: one
evaluator from its parent's side.
"""

import asyncio
import logging
import socket
import subprocess
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from actors.bounded_process import BoundedProcess, spawn
from actors.readers.protocol import (
    EVALUATOR_MESSAGES,
    Begun,
    EvaluatorStatus,
    ReaderStatus,
    ReleaseCheckpoint,
    Task,
)
from actors.wire.connection import Stream, stream_over
from actors.wire.messages import Done
from graphdb.config.service import Readers
from graphdb.errors import GraphDBError, Overloaded, QueryMemoryExceeded, UnavailableError

__all__ = ["EvaluatorEnded", "EvaluatorPool", "EvaluatorProcess"]


class EvaluatorEnded(Exception):
    """The process is gone. failure is what to tell whoever asked; by_kill: for no reason of its own;
    had_begun: it had read what it was to evaluate.
    """

    def __init__(self, failure: GraphDBError, by_kill: bool, had_begun: bool) -> None:
        super().__init__(failure, by_kill, had_begun)
        self.failure, self.by_kill, self.had_begun = failure, by_kill, had_begun


class EvaluatorProcess(BoundedProcess):
    """A child process with a socket to it. One request at a time; is_busy holds from evaluate() until its
    last message was received, and so long its memory is looked at.
    """

    def __init__(
        self,
        number: int,
        memory_limit_mb: int,
        process: "subprocess.Popen[bytes]",
        stream: Stream,
    ) -> None:
        super().__init__(process, memory_limit_mb)
        self.number = number
        self.checkpoint: str | None = None  # what it has open, or is about to open
        self.query_id: str | None = None  # who has it leased
        self.is_busy = False
        self._has_begun = False
        self._stream = stream

    @classmethod
    async def start(cls, number: int, memory_limit_mb: int) -> "EvaluatorProcess":
        """Start one; it is of use once wait_ready() has returned. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            stream = await stream_over(EVALUATOR_MESSAGES, ours)
            try:
                process = spawn("actors.readers.evaluator", theirs, [str(memory_limit_mb)])
                return cls(number, memory_limit_mb, process, stream)
            except BaseException:
                stream.close()
                raise

    async def wait_ready(self) -> None:
        """Raises EvaluatorEnded."""
        await self.next_message()

    @property
    def where(self) -> str:
        """What `GET /queries` and the log call it."""
        return f"reader {self.number} (process {self.pid})"

    @property
    def is_watched(self) -> bool:
        return self.is_busy

    def let_go(self) -> None:
        self._stream.close()

    def evaluate(self, task: Task) -> None:
        """Begin; the answer comes as messages."""
        self.is_busy, self._has_begun = True, False
        self.checkpoint = task.checkpoint or self.checkpoint
        self._stream.send(task)  # to one that has ended meanwhile too: next_message() tells
        self.watch_memory()

    async def release(self) -> None:
        """Have it close its checkpoint. Raises EvaluatorEnded."""
        assert self.checkpoint is not None
        assert not self.is_busy
        self._stream.send(ReleaseCheckpoint(self.checkpoint))
        self.checkpoint = None
        await self.next_message()

    async def next_message(self) -> Any:
        """Raises EvaluatorEnded, and the error that is the answer."""
        try:
            message = await self._stream.read()
            if isinstance(message, Begun):
                self._has_begun = True
                message = await self._stream.read()
        except GraphDBError:
            self.is_busy = False
            raise
        if message is None:
            await self.ended.wait()
            raise EvaluatorEnded(self._failure(), self.is_killed_by_others(), self._has_begun)
        if isinstance(message, Done):
            self.is_busy = False
        return message

    def _failure(self) -> GraphDBError:
        if self.has_filled_memory():
            return QueryMemoryExceeded(
                f"the query took more than the {self._memory_limit_mb} MB that readers.memory_limit_mb allows"
            )
        if self._is_to_end:
            return UnavailableError("the query was ended")
        return UnavailableError(f"the process that evaluated this query ended ({self.how()})")


logger = logging.getLogger(__name__)
_AT_WORK = 2  # evaluators from the first query on, so that one is free; one takes 13 MB, and 0.1 s to start
_KEPT_MB = 256  # an evaluator that keeps more than this after a query is replaced
_RETRY_S, _RETRY_S_MAX = 0.1, 10.0  # between attempts to start an evaluator that does not start


class EvaluatorPool:
    """For one event loop. As many evaluators as have been needed at a time, up to what the settings say, each
    idle, leased, or on its way out while the next one in its place starts already. Leases are given in the
    order of asking.
    """

    def __init__(self, settings: Readers) -> None:
        self._settings = settings
        self._idle: list[EvaluatorProcess] = []  # last used last
        self._present: set[EvaluatorProcess] = set()  # ready, and not leaving
        self._alive: set[EvaluatorProcess] = set()  # every process that exists, or did so of late
        self._waiting: deque[asyncio.Future[EvaluatorProcess]] = deque()
        self._places: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Have the first evaluator started; leases wait for it."""
        self._add_place()

    async def close(self) -> None:
        """Kill them all; return when they are gone."""
        for place in self._places:
            place.cancel()
        await asyncio.gather(*self._places, return_exceptions=True)
        for evaluator in self._alive:
            evaluator.kill()
        await asyncio.gather(*(evaluator.ended.wait() for evaluator in self._alive))

    @asynccontextmanager
    async def leased(self, query_id: str, *, again: bool = False) -> AsyncIterator[EvaluatorProcess]:
        """An evaluator for one query; killed if it is still busy at the end.

        again: the query was in the queue before, and goes to its head. Raises Overloaded.
        """
        evaluator = self._take_idle() or await self._wait(again)
        if len(self._places) < min(_AT_WORK, self._settings.count):
            self._add_place()
        evaluator.query_id = query_id
        try:
            yield evaluator
        finally:
            evaluator.query_id = None
            self._take_back(evaluator)

    async def release_checkpoint(self, path: str) -> None:
        """Have the idle evaluators that hold it open close it."""
        holders = [evaluator for evaluator in self._idle if evaluator.checkpoint == path]
        self._idle = [evaluator for evaluator in self._idle if evaluator.checkpoint != path]
        await asyncio.gather(*map(self._release, holders))

    def status(self) -> ReaderStatus:
        evaluators = tuple(
            EvaluatorStatus(each.number, each.pid, "busy" if each.query_id else "idle", each.query_id)
            for each in sorted(self._present, key=lambda each: each.number)
        )
        running = sum(each.state == "busy" for each in evaluators)
        return ReaderStatus(running, len(self._waiting), evaluators)

    def _add_place(self) -> None:
        self._places.append(asyncio.create_task(self._fill(len(self._places) + 1)))

    async def _fill(self, number: int) -> None:
        """Keep an evaluator in this place: the next one starts as soon as one is killed or ends."""
        failures = 0
        while True:
            try:
                evaluator = await self._start(number)
            except (OSError, EvaluatorEnded) as error:
                pause = min(_RETRY_S * 2**failures, _RETRY_S_MAX)
                failures += 1
                logger.error("reader %d does not start, again in %.1f s: %s", number, pause, error)
                await asyncio.sleep(pause)
                continue
            failures = 0
            self._present.add(evaluator)
            self._offer(evaluator)
            await evaluator.leaving.wait()
            self._present.discard(evaluator)

    async def _start(self, number: int) -> EvaluatorProcess:
        """Raises OSError, EvaluatorEnded."""
        evaluator = await EvaluatorProcess.start(number, self._settings.memory_limit_mb)
        self._alive = {each for each in self._alive if not each.ended.is_set()} | {evaluator}
        await evaluator.wait_ready()
        return evaluator

    def _take_idle(self) -> EvaluatorProcess | None:
        while self._idle:
            evaluator = self._idle.pop()
            if not evaluator.leaving.is_set():
                return evaluator
        return None

    async def _wait(self, again: bool) -> EvaluatorProcess:
        if len(self._waiting) >= self._settings.queue_max and not again:
            raise Overloaded(f"{len(self._waiting)} queries wait for a reader already (readers.queue_max)")
        starting = len(self._places) - len(self._present)
        if len(self._waiting) >= starting and len(self._places) < self._settings.count:
            self._add_place()
        place: asyncio.Future[EvaluatorProcess] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if again else self._waiting.append)(place)
        wait_s = self._settings.queue_timeout_seconds
        try:
            async with asyncio.timeout(wait_s):
                return await asyncio.shield(place)
        except BaseException as error:
            if place.done():
                self._take_back(place.result())
            else:
                self._waiting.remove(place)
            if isinstance(error, TimeoutError):
                raise Overloaded(
                    f"no reader was free for {wait_s:g} s (readers.queue_timeout_seconds)"
                ) from None
            raise

    def _offer(self, evaluator: EvaluatorProcess) -> None:
        """To who has waited longest."""
        if self._waiting:
            self._waiting.popleft().set_result(evaluator)
        else:
            self._idle.append(evaluator)

    def _take_back(self, evaluator: EvaluatorProcess) -> None:
        if evaluator.is_busy or evaluator.memory_mb() > _KEPT_MB:
            evaluator.kill()
        elif not evaluator.leaving.is_set():
            self._offer(evaluator)

    async def _release(self, evaluator: EvaluatorProcess) -> None:
        try:
            await evaluator.release()
        except EvaluatorEnded:
            return
        except BaseException:  # its answer, still to come, would be taken for the next query's
            evaluator.kill()
            raise
        self._take_back(evaluator)
