"""Answers whose bytes a worker thread makes: small ones whole, others streamed with backpressure.

The worker runs native code that blocks; the event loop sends. Between them is a `Pipe` of a few chunks. So an
answer of any length takes constant memory, a slow client slows only its own worker, and a client that
disconnects stops the worker at its next chunk.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphdb.errors import QueryTimeout

__all__ = [
    "STALL_S",
    "AnswerBroken",
    "Pipe",
    "Produce",
    "WorkerAnswer",
    "Workers",
    "client_gone",
    "unless_gone",
]

T = TypeVar("T")
log = logging.getLogger(__name__)

CHUNKS_MAX = 4  # in a pipe, each about 64 kB
STALL_S = 60.0  # how long a client may take to accept one chunk


class AnswerBroken(Exception):
    """An answer failed after its head was sent. The server closes the connection, so that the client
    notices.
    """


class _PipeClosed(Exception):
    """Raised in the worker: the reading end of its pipe is closed."""


@dataclass(frozen=True, slots=True)
class _Piece:
    data: bytes
    is_last: bool


class Pipe:
    """Chunks on their way from one worker thread to the event loop that made the pipe.

    The worker fills `headers`, the head of the answer, before its first chunk.
    """

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[_Piece | BaseException] = asyncio.Queue()
        self._room = threading.Semaphore(CHUNKS_MAX)
        self._closed = threading.Event()
        self._held: bytes | None = None

    def write(self, chunk: bytes) -> None:
        """From the worker: send a chunk; waits while the pipe is full.

        One chunk is held back, so that the last one can be marked as the last.
        """
        if self._held is not None and chunk:
            self._put(_Piece(self._held, is_last=False))
        self._held = chunk or self._held

    def finish(self) -> None:
        """From the worker: the answer is complete."""
        self._put(_Piece(self._held or b"", is_last=True))

    def fail(self, error: BaseException) -> None:
        """From either side: `read` raises this error after the chunks that were sent before."""
        self._loop.call_soon_threadsafe(self._pieces.put_nowait, error)

    def _put(self, piece: _Piece) -> None:
        self._room.acquire()
        if self._closed.is_set():
            raise _PipeClosed
        self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)

    async def read(self) -> _Piece:
        """From the loop: the next piece. Raises what the worker raised."""
        piece = await self._pieces.get()
        if isinstance(piece, BaseException):
            raise piece
        self._room.release()
        return piece

    @property
    def is_closed(self) -> bool:
        """Whether the reading end is closed."""
        return self._closed.is_set()

    def close(self) -> None:
        """From the loop: stop reading; the worker stops at its next write."""
        self._closed.set()
        self._room.release()


Produce: TypeAlias = Callable[[Pipe], None]


class Workers:
    """The worker threads, started as they are needed, and the time limit of one answer. Owned by the
    application, on its event loop.

    The threads are daemons, and the process does not wait for them at its end: native code cannot be
    interrupted, and a running query must not keep the process from stopping.
    """

    def __init__(self, count: int, time_limit_s: float) -> None:
        self.time_limit_s = time_limit_s
        self._jobs: queue.SimpleQueue[tuple[Produce, Pipe] | None] = queue.SimpleQueue()
        self._count_max = count
        self._count = 0  # of the threads that were started
        self._waiting = threading.Semaphore(0)  # threads that have no job, nor will get one that is queued

    def start(self, produce: Produce, pipe: Pipe) -> None:
        """Run produce on a thread as soon as one is free; what it raises is passed to the pipe."""
        self._jobs.put((produce, pipe))
        if self._count < self._count_max and not self._waiting.acquire(blocking=False):
            threading.Thread(target=self._work, name=f"evaluate-{self._count}", daemon=True).start()
            self._count += 1

    def stop(self) -> None:
        """End the threads, each after its present job."""
        for _ in range(self._count):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            _run(*job)
            del job  # a waiting thread must not keep its last answer's memory
            self._waiting.release()


def _run(produce: Produce, pipe: Pipe) -> None:
    if pipe.is_closed:
        return
    try:
        produce(pipe)
        pipe.finish()
    except _PipeClosed:
        log.debug("an answer was abandoned by its client")
    except BaseException as error:  # noqa: BLE001 - the reader of the pipe raises it
        pipe.fail(error)


class WorkerAnswer(Response):
    """A 200 whose body produce() writes on a worker thread.

    An error before the first chunk is raised, so that it gets its own status. An error after it closes the
    connection before the end of the body, so that a truncated answer never looks complete.
    """

    def __init__(self, workers: Workers, produce: Produce) -> None:
        super().__init__()
        self._workers, self._produce = workers, produce
        self._time_left_s = workers.time_limit_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pipe = Pipe()
        watcher = asyncio.create_task(_watch(receive, pipe))
        try:
            self._workers.start(self._produce, pipe)
            first = await self._read(pipe)
            await self._send_head(send, pipe, first)
            await self._send_body(send, pipe, first)
        except ClientDisconnect:
            log.debug("a client went away before its answer was complete")
        finally:
            watcher.cancel()
            pipe.close()

    async def _read(self, pipe: Pipe) -> _Piece:
        """The next piece; the time spent waiting for it counts towards the limit."""
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            async with asyncio.timeout(self._time_left_s):
                return await pipe.read()
        except TimeoutError:
            raise QueryTimeout(
                f"the answer took longer than {self._workers.time_limit_s:g} s and was given up"
            ) from None
        finally:
            self._time_left_s -= clock() - started

    async def _send_head(self, send: Send, pipe: Pipe, first: _Piece) -> None:
        self.headers.update(pipe.headers)
        del self.headers["content-length"]
        if first.is_last:
            self.headers["content-length"] = str(len(first.data))
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

    async def _send_body(self, send: Send, pipe: Pipe, piece: _Piece) -> None:
        try:
            while True:
                async with asyncio.timeout(STALL_S):
                    await send(
                        {"type": "http.response.body", "body": piece.data, "more_body": not piece.is_last}
                    )
                if piece.is_last:
                    return
                piece = await self._read(pipe)
        except ClientDisconnect:
            raise
        except Exception as error:
            raise AnswerBroken(f"the answer broke off: {error}") from error


async def client_gone(receive: Receive) -> None:
    """Return when the client disconnects; the server reports it in no other way."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """The result of work, which is cancelled if the client disconnects. The request has been read.

    Raises what work raises, ClientDisconnect.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(client_gone(request.receive))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _watch(receive: Receive, pipe: Pipe) -> None:
    """Fail the pipe when the client disconnects."""
    await client_gone(receive)
    pipe.fail(ClientDisconnect())
