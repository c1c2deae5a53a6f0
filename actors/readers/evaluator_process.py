"""`EvaluatorProcess`: one evaluator from its parent's side: started, talked to, watched, killed."""

import socket
import subprocess
from typing import Any

from actors.bounded_process import BoundedProcess, spawn
from actors.readers.protocol import EVALUATOR_MESSAGES, Begun, ReleaseCheckpoint, Task
from actors.wire.connection import Stream, stream_over
from actors.wire.messages import Done
from graphdb.errors import GraphDBError, QueryMemoryExceeded, UnavailableError

__all__ = ["EvaluatorEnded", "EvaluatorProcess"]


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
