"""`BoundedProcess`: a child process that may be killed at any moment, from its parent's side.

It is started, its memory watched, its end noticed. `process_bounds` is the child's side.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from actors.process_bounds import NICENESS

__all__ = ["BoundedProcess", "read_to_end", "spawn"]

logger = logging.getLogger(__name__)
_LAST_WORDS_BYTES = 2000
_ALLOCATION_FAILED = (b"memory allocation of", b"bad_alloc")  # Rust's words, and those of C++
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_ROOT = Path(__file__).resolve().parents[1]  # where `actors` is found, also when it is not installed


async def read_to_end(connection: socket.socket) -> bytes:
    """All that a process writes to a socket, which does not block here."""
    loop, pieces = asyncio.get_running_loop(), list[bytes]()
    while piece := await loop.sock_recv(connection, 65_536):
        pieces.append(piece)
    return b"".join(pieces)


class BoundedProcess:
    """For one event loop. Whoever starts it kills it at last.

    leaving is set once it is killed or gone by itself, ended when the process exists no more.
    """

    look_s = 0.05  # between two looks at its memory; it can fill some 100 MB meanwhile

    def __init__(self, process: "subprocess.Popen[bytes]", memory_limit_mb: int) -> None:
        """process is of `spawn`. Its memory is looked at from watch_memory() on."""
        self.leaving = asyncio.Event()
        self.ended = asyncio.Event()
        self._memory_limit_mb = memory_limit_mb
        self._process = process
        self._is_to_end = self._took_too_much = False  # for a reason that its parent has
        self._last_words = b""
        self._loop = asyncio.get_running_loop()
        self._next_look: asyncio.TimerHandle | None = None
        self._watch_end()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def where(self) -> str:
        """What the log calls it."""
        return f"process {self.pid}"

    @property
    def is_watched(self) -> bool:
        """Whether its memory is to be looked at once more."""
        return True

    def watch_memory(self) -> None:
        """Kill it when it takes more than its limit, as long as is_watched."""
        if self._next_look is None:  # else the next look comes soon
            self._look_at_memory()

    def memory_mb(self) -> float:
        """What it has to itself, in MB: neither files that are mapped nor what is shared count."""
        try:
            _, resident, shared, *_ = Path(f"/proc/{self.pid}/statm").read_text().split()
        except OSError:
            return 0
        return (int(resident) - int(shared)) * _PAGE_BYTES / (1 << 20)

    def kill(self) -> None:
        """End it, whatever it does."""
        if not self.leaving.is_set():
            self._is_to_end = True
            self.leaving.set()
            self._process.kill()

    def has_filled_memory(self) -> bool:
        """Whether it is gone because of its memory: killed, or an allocation failed."""
        has_failed = self._process.returncode == -signal.SIGABRT and any(
            words in self._last_words for words in _ALLOCATION_FAILED
        )
        return self._took_too_much or has_failed

    def is_killed_by_others(self) -> bool:
        """Whether it is gone for no reason of its own."""
        return not self._is_to_end and self._process.returncode == -signal.SIGKILL

    def let_go(self) -> None:
        """It is gone: close what led to it."""

    def how(self) -> str:
        """How it ended."""
        code = self._process.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _look_at_memory(self) -> None:
        self._next_look = None
        if not self.is_watched or self.leaving.is_set():
            return
        if self.memory_mb() > self._memory_limit_mb:
            self._took_too_much = True
            self.kill()
        else:
            self._next_look = self._loop.call_later(self.look_s, self._look_at_memory)

    def _watch_end(self) -> None:
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._note_end)
        self._stderr = self._process.stderr
        if self._stderr is not None:
            os.set_blocking(self._stderr.fileno(), False)
            self._loop.add_reader(self._stderr, self._listen)

    def _listen(self) -> None:
        """Keep the last that it has written to standard error; that it may write is why all is read."""
        while piece := self._read_stderr():
            self._last_words = (self._last_words + piece)[-_LAST_WORDS_BYTES:]

    def _read_stderr(self) -> bytes:
        assert self._stderr is not None
        with contextlib.suppress(BlockingIOError):
            if piece := os.read(self._stderr.fileno(), 4096):
                return piece
            self._loop.remove_reader(self._stderr)
        return b""

    def _note_end(self) -> None:
        self._process.wait()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        if self._stderr is not None:
            self._listen()
            self._loop.remove_reader(self._stderr)
            self._stderr.close()
        if not self._is_to_end:
            words = self._last_words.decode(errors="replace")
            logger.warning("%s ended by itself (%s) %s", self.where, self.how(), words)
        self.let_go()
        self.ended.set()
        self.leaving.set()


def spawn(
    module: str,
    connection: socket.socket,
    arguments: Sequence[str],
    *,
    stderr: int | None = subprocess.PIPE,
    niceness: int = NICENESS,
    gives_way: bool = True,
) -> "subprocess.Popen[bytes]":
    """`python -m MODULE FD ARGUMENTS`, FD the number of the socket, which it inherits. Raises OSError.

    stderr: a pipe, whose last words tell why it ended, or None, this process's own.
    gives_way: to all others, from the start, beside its niceness.
    Without Python code between fork and exec, for the parent has threads.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, str(connection.fileno()), *arguments],
        pass_fds=(connection.fileno(),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        cwd=_ROOT,
        env=os.environ | {"RUST_BACKTRACE": "0"},  # it would drown the last words, and needs memory itself
    )
    os.setpriority(os.PRIO_PROCESS, process.pid, niceness)
    with contextlib.suppress(OSError):
        if gives_way:
            os.sched_setscheduler(process.pid, os.SCHED_BATCH, os.sched_param(0))
    return process
