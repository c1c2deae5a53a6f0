"""`EvaluatorProcess`: one evaluator from its parent's side: started, talked to, watched, killed."""

import asyncio
import socket
import subprocess

from actors.bounded_process import BoundedProcess, spawn
from actors.frames import Frame, encode_frame, read_frame
from actors.readers.protocol import Message, Task
from graphdb.errors import GraphDBError, QueryMemoryExceeded, UnavailableError

__all__ = ["EvaluatorEnded", "EvaluatorProcess"]

_INCOMING_BYTES = 64 << 10  # of an answer that wait here, about; with more waiting the evaluator blocks


class EvaluatorEnded(Exception):
    """The process is gone. failure is what to tell whoever asked; by_kill: for no reason of its own;
    had_begun: it had read what it was to evaluate.
    """

    def __init__(self, failure: GraphDBError, by_kill: bool, had_begun: bool) -> None:
        super().__init__(failure, by_kill, had_begun)
        self.failure, self.by_kill, self.had_begun = failure, by_kill, had_begun


class EvaluatorProcess(BoundedProcess):
    """A child process with a socket to it. One request at a time; is_busy holds from evaluate() until its
    last frame was received, and so long its memory is looked at.
    """

    def __init__(
        self,
        number: int,
        memory_limit_mb: int,
        process: "subprocess.Popen[bytes]",
        incoming: asyncio.StreamReader,
        outgoing: asyncio.StreamWriter,
    ) -> None:
        super().__init__(process, memory_limit_mb)
        self.number = number
        self.checkpoint: str | None = None  # what it has open, or is about to open
        self.query_id: str | None = None  # who has it leased
        self.is_busy = False
        self._has_begun = False
        self._incoming, self._outgoing = incoming, outgoing

    @classmethod
    async def start(cls, number: int, memory_limit_mb: int) -> "EvaluatorProcess":
        """Start one; it is of use once wait_ready() has returned. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            incoming, outgoing = await asyncio.open_unix_connection(sock=ours, limit=_INCOMING_BYTES)
            try:
                process = spawn("actors.readers.evaluator", theirs, [str(memory_limit_mb)])
                return cls(number, memory_limit_mb, process, incoming, outgoing)
            except BaseException:
                outgoing.transport.abort()
                raise

    async def wait_ready(self) -> None:
        """Raises EvaluatorEnded."""
        await self.next_frame()

    @property
    def where(self) -> str:
        """What `GET /queries` and the log call it."""
        return f"reader {self.number} (process {self.pid})"

    @property
    def is_watched(self) -> bool:
        return self.is_busy

    def let_go(self) -> None:
        self._outgoing.transport.abort()

    def evaluate(self, task: Task) -> None:
        """Begin; the answer comes as frames."""
        self.is_busy, self._has_begun = True, False
        self.checkpoint = task.checkpoint or self.checkpoint
        self._send(task.message, task.encode())
        self.watch_memory()

    async def release(self) -> None:
        """Have it close its checkpoint. Raises EvaluatorEnded."""
        assert self.checkpoint is not None
        assert not self.is_busy
        self._send(Message.RELEASE, self.checkpoint.encode())
        self.checkpoint = None
        await self.next_frame()

    async def next_frame(self) -> Frame:
        """Raises EvaluatorEnded."""
        frame = await read_frame(self._incoming)
        if frame is not None and frame.code == Message.BEGUN:
            self._has_begun = True
            frame = await read_frame(self._incoming)
        if frame is None:
            await self.ended.wait()
            raise EvaluatorEnded(self._failure(), self.is_killed_by_others(), self._has_begun)
        if frame.code in (Message.END, Message.ERROR):
            self.is_busy = False
        return frame

    def _send(self, message: Message, body: bytes) -> None:
        """To one that has ended meanwhile too: next_frame() tells. (uvloop refuses what is closed.)"""
        if not self._outgoing.is_closing():
            self._outgoing.write(encode_frame(message, 0, body))

    def _failure(self) -> GraphDBError:
        if self.has_filled_memory():
            return QueryMemoryExceeded(
                f"the query took more than the {self._memory_limit_mb} MB that readers.memory_limit_mb allows"
            )
        if self._is_to_end:
            return UnavailableError("the query was ended")
        return UnavailableError(f"the process that evaluated this query ended ({self.how()})")
