"""A request body, which arrives on the event loop, as a file for a parser that reads it on a thread."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from actors.worker_thread import call_once
from graphdb.errors import Overloaded

__all__ = ["SMALL_BODY_BYTES", "BodySource", "BodyThreads", "read_small"]

T = TypeVar("T")

SMALL_BODY_BYTES = 64 << 10
_CHUNK_BYTES = 256 << 10  # handed over at once: each hand-over costs a tenth of a millisecond


async def read_small(body: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    """The beginning of a body, about SMALL_BODY_BYTES, and whether that is all of it."""
    return await _gather(body, SMALL_BODY_BYTES)


async def _gather(body: AsyncIterator[bytes], size: int) -> tuple[bytes, bool]:
    gathered = bytearray()
    async for chunk in body:
        gathered += chunk
        if len(gathered) >= size:
            return bytes(gathered), False
    return bytes(gathered), True


class BodySource:
    """A `ByteSource` over the rest of a body. read is called on a thread other than the loop's."""

    def __init__(self, beginning: bytes, rest: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._buffer = beginning
        self._place = 0
        self._rest = rest
        self._loop = loop
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """At most size bytes, none only at the end. Raises what the body raises."""
        if self._place == len(self._buffer) and not self._ended:
            gathering = asyncio.run_coroutine_threadsafe(_gather(self._rest, _CHUNK_BYTES), self._loop)
            (self._buffer, self._ended), self._place = gathering.result(), 0
        piece = self._buffer[self._place : self._place + size]
        self._place += len(piece)
        return piece


class BodyThreads:
    """Where bodies are parsed while they arrive. A thread waits for its client for as long as that takes, so
    nothing else may wait for one of these.
    """

    def __init__(self, at_once_max: int) -> None:
        self._at_once_max = at_once_max
        self._threads = ThreadPoolExecutor(at_once_max, thread_name_prefix="body")
        self._running = 0

    async def run(self, parse: Callable[[], T]) -> T:
        """Call parse on a thread. Raises Overloaded where all are taken, and what parse raises."""
        if self._running >= self._at_once_max:
            raise Overloaded(f"{self._running} large bodies are being read")
        work = asyncio.get_running_loop().run_in_executor(self._threads, call_once(parse))
        self._running += 1
        work.add_done_callback(self._note_done)
        return await asyncio.shield(work)  # cancelled or not, the thread is taken until parse returns

    def close(self) -> None:
        """Take no more."""
        self._threads.shutdown(wait=False)

    def _note_done(self, work: "asyncio.Future[T]") -> None:
        self._running -= 1
        if not work.cancelled():
            work.exception()  # who was cancelled does not ask
