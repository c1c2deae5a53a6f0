"""`EvaluatorProcess`: one evaluator from its parent's side: started, talked to, watched, killed."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from actors.frames import Frame, encode_frame, read_frame
from actors.readers.protocol import Message, Task
from graphdb.errors import GraphDBError, QueryMemoryExceeded, UnavailableError

__all__ = ["EvaluatorEnded", "EvaluatorProcess"]

logger = logging.getLogger(__name__)
_LOOK_S = 0.05  # between two looks at the memory of a busy evaluator; it can fill some 100 MB meanwhile
_INCOMING_BYTES = 64 << 10  # of an answer that wait here, about; with more waiting the evaluator blocks
_LAST_WORDS_BYTES = 2000
_ALLOCATION_FAILED = (b"memory allocation of", b"bad_alloc")  # Rust's words, and those of C++
# Measured with four runaway queries on two cores: at 0 point queries take three times as long, at 10 about as
# long as without; at 19 a query would get next to nothing where others keep the processors busy.
_NICENESS = 10
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_ROOT = Path(__file__).resolve().parents[2]  # where `actors` is found, also when it is not installed


class EvaluatorEnded(Exception):
    """The process is gone. failure is what to tell whoever asked; by_kill: for no reason of its own;
    had_begun: it had read what it was to evaluate.
    """

    def __init__(self, failure: GraphDBError, by_kill: bool, had_begun: bool) -> None:
        super().__init__(failure, by_kill, had_begun)
        self.failure, self.by_kill, self.had_begun = failure, by_kill, had_begun


class EvaluatorProcess:
    """A child process with a socket to it, for one event loop. Whoever starts it kills it at last.

    One request at a time; is_busy holds from evaluate() until its last frame was received. leaving is set
    once it is killed or gone by itself, ended when the process exists no more.
    """

    def __init__(
        self,
        number: int,
        memory_limit_mb: int,
        process: "subprocess.Popen[bytes]",
        incoming: asyncio.StreamReader,
        outgoing: asyncio.StreamWriter,
    ) -> None:
        self.number = number
        self.checkpoint: str | None = None  # what it has open, or is about to open
        self.query_id: str | None = None  # who has it leased
        self.is_busy = False
        self._has_begun = False
        self.leaving = asyncio.Event()
        self.ended = asyncio.Event()
        self._memory_limit_mb = memory_limit_mb
        self._process, self._incoming, self._outgoing = process, incoming, outgoing
        self._verdict: GraphDBError | None = None
        self._last_words = b""
        self._loop = asyncio.get_running_loop()
        self._next_look: asyncio.TimerHandle | None = None
        self._watch()

    @classmethod
    async def start(cls, number: int, memory_limit_mb: int) -> "EvaluatorProcess":
        """Start one; it is of use once wait_ready() has returned. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            incoming, outgoing = await asyncio.open_unix_connection(sock=ours, limit=_INCOMING_BYTES)
            try:
                return cls(number, memory_limit_mb, _spawn(theirs, memory_limit_mb), incoming, outgoing)
            except BaseException:
                outgoing.transport.abort()
                raise

    async def wait_ready(self) -> None:
        """Raises EvaluatorEnded."""
        await self.next_frame()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def where(self) -> str:
        """What `GET /queries` and the log call it."""
        return f"reader {self.number} (process {self.pid})"

    def evaluate(self, task: Task) -> None:
        """Begin; the answer comes as frames."""
        self.is_busy, self._has_begun = True, False
        self.checkpoint = task.checkpoint or self.checkpoint
        self._send(task.message, task.encode())
        if self._next_look is None:  # else that of the query before comes soon
            self._look_at_memory()

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
            raise EvaluatorEnded(self._failure(), self._is_killed_by_others(), self._has_begun)
        if frame.code in (Message.END, Message.ERROR):
            self.is_busy = False
        return frame

    def _send(self, message: Message, body: bytes) -> None:
        """To one that has ended meanwhile too: next_frame() tells. (uvloop refuses what is closed.)"""
        if not self._outgoing.is_closing():
            self._outgoing.write(encode_frame(message, 0, body))

    def memory_mb(self) -> float:
        """What it has to itself, in MB: neither files that are mapped nor what is shared count."""
        try:
            _, resident, shared, *_ = Path(f"/proc/{self.pid}/statm").read_text().split()
        except OSError:
            return 0
        return (int(resident) - int(shared)) * _PAGE_BYTES / (1 << 20)

    def kill(self, verdict: GraphDBError | None = None) -> None:
        """End it, whatever it does. verdict is what whoever waits for it is told."""
        if not self.leaving.is_set():
            self._verdict = verdict or UnavailableError("the query was ended")
            self.leaving.set()
            self._process.kill()

    def _look_at_memory(self) -> None:
        self._next_look = None
        if not self.is_busy or self.leaving.is_set():
            return
        if self.memory_mb() > self._memory_limit_mb:
            self.kill(self._memory_exceeded())
        else:
            self._next_look = self._loop.call_later(_LOOK_S, self._look_at_memory)

    def _watch(self) -> None:
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._note_end)
        assert self._process.stderr is not None
        self._stderr = self._process.stderr.fileno()
        os.set_blocking(self._stderr, False)
        self._loop.add_reader(self._stderr, self._listen)

    def _listen(self) -> None:
        """Keep the last that it has written to standard error; that it may write is why all is read."""
        while piece := self._read_stderr():
            self._last_words = (self._last_words + piece)[-_LAST_WORDS_BYTES:]

    def _read_stderr(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            if piece := os.read(self._stderr, 4096):
                return piece
            self._loop.remove_reader(self._stderr)
        return b""

    def _note_end(self) -> None:
        self._listen()
        self._process.wait()
        for descriptor in (self._pidfd, self._stderr):
            self._loop.remove_reader(descriptor)
        os.close(self._pidfd)
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._outgoing.transport.abort()
        if self._verdict is None:
            logger.warning(
                "%s ended by itself (%s) %s",
                self.where,
                self._how(),
                self._last_words.decode(errors="replace"),
            )
        self.ended.set()
        self.leaving.set()

    def _failure(self) -> GraphDBError:
        if self._verdict is not None:
            return self._verdict
        if self._process.returncode == -signal.SIGABRT and any(
            words in self._last_words for words in _ALLOCATION_FAILED
        ):
            return self._memory_exceeded()
        return UnavailableError(f"the process that evaluated this query ended ({self._how()})")

    def _how(self) -> str:
        code = self._process.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _is_killed_by_others(self) -> bool:
        return self._verdict is None and self._process.returncode == -signal.SIGKILL

    def _memory_exceeded(self) -> QueryMemoryExceeded:
        return QueryMemoryExceeded(
            f"the query took more than the {self._memory_limit_mb} MB that readers.memory_limit_mb allows"
        )


def _spawn(connection: socket.socket, memory_limit_mb: int) -> "subprocess.Popen[bytes]":
    """Without Python code between fork and exec, for the parent has threads. It gives way from the start."""
    process = subprocess.Popen(
        [sys.executable, "-m", "actors.readers.evaluator", str(connection.fileno()), str(memory_limit_mb)],
        pass_fds=(connection.fileno(),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=_ROOT,
        env=os.environ | {"RUST_BACKTRACE": "0"},  # it would drown the last words, and needs memory itself
    )
    os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(process.pid, os.SCHED_BATCH, os.sched_param(0))
    return process
