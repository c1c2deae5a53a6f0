"""`Inbox`: what has come for the driver, mail and requests, since its last turn."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from graphdb.raft.messages import Append, Envelope, SnapshotChunk

__all__ = ["Inbox", "Job"]

_TURN_MAX = 256  # of mail and of requests: a turn must be over well before the next heartbeat
_MAIL_MAX = 8192
_MAIL_BYTES_MAX = 256 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """What a request does on the driver's thread, or that it never will be done. perform may raise only what
    ends the driver.
    """

    perform: Callable[[], None]
    abandon: Callable[[], None]


class Inbox:
    """Bounded for mail: what does not fit is dropped, for peers send again what matters."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """loop is the driver's."""
        self._loop = loop
        self._filled = asyncio.Event()
        self._lock = Lock()
        self._mail: deque[Envelope] = deque()
        self._mail_bytes = 0
        self._jobs: deque[Job] = deque()
        self._closed = False
        self.dropped_count = 0

    def put_mail(self, envelope: Envelope) -> None:
        """Add a message, or drop it. On the loop's thread."""
        size = _payload_bytes(envelope)
        with self._lock:
            full = len(self._mail) >= _MAIL_MAX or self._mail_bytes + size > _MAIL_BYTES_MAX
            if self._closed or (full and self._mail):
                self.dropped_count += 1
                return
            self._mail.append(envelope)
            self._mail_bytes += size
        self._filled.set()

    def put_job(self, job: Job) -> None:
        """Add a request; where nobody takes any more, it is abandoned."""
        with self._lock:
            if not self._closed:
                self._jobs.append(job)
                if len(self._jobs) == 1:
                    self._loop.call_soon_threadsafe(self._filled.set)
                return
        job.abandon()

    async def take(self, timeout_s: float) -> tuple[list[Envelope], deque[Job]]:
        """What has come, in order, but no more than a turn should hold; waits for something, yet no longer
        than that.
        """
        alarm = self._loop.call_later(timeout_s, self._filled.set)
        await asyncio.sleep(0)  # waiting for what is there already would not let others have their turn
        await self._filled.wait()
        alarm.cancel()
        with self._lock:
            mail = [self._mail.popleft() for _ in range(min(len(self._mail), _TURN_MAX))]
            self._mail_bytes -= sum(map(_payload_bytes, mail))
            jobs = deque(self._jobs.popleft() for _ in range(min(len(self._jobs), _TURN_MAX)))
            if not self._mail and not self._jobs:
                self._filled.clear()
            return mail, jobs

    def close(self) -> None:
        """Take nothing more, and abandon the requests that wait."""
        with self._lock:
            self._closed = True
            jobs, self._jobs = self._jobs, deque()
        for job in jobs:
            job.abandon()


def _payload_bytes(envelope: Envelope) -> int:
    body = envelope.body
    if isinstance(body, Append):
        return sum(len(entry.payload) for entry in body.entries)
    return len(body.data) if isinstance(body, SnapshotChunk) else 0
