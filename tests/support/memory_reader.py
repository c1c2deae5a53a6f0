"""`MemoryReaders`: queries that may take long, each on a thread of its own, within the limits of real ones.

What native code is at cannot be interrupted here: a query that has been ended stops when it next writes.
"""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from secrets import token_hex
from typing import TypeAlias

from graphdb.errors import QueryCancelled, QueryTimeout
from graphdb.node import QueryRequest, RunningQuery, ValidationRequest
from graphdb.rdf.pieces import Sink

__all__ = ["MemoryReaders", "MemoryStream", "Write"]

CHUNKS_MAX = 4


class _Ended(Exception):
    """Raised on the thread: nobody reads any more."""


class MemoryStream:
    """One answer on its way from its thread to the event loop that asked for it."""

    def __init__(self, request: QueryRequest | ValidationRequest) -> None:
        self.query_id = token_hex(8)
        self.snapshot_index, self.is_exact, self.where = 0, True, "thread"
        self.request = request
        self.ended = threading.Event()
        self.started_at = datetime.now(UTC)
        self._began = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = self._loop.create_future()
        self._pieces: deque[bytes | BaseException | None] = deque()
        self._changed = asyncio.Event()
        self._room = threading.Semaphore(CHUNKS_MAX)
        self._failure: Exception | None = None
        self.on_close: Callable[[], None] = lambda: None

    def evaluate(self, begin: "Begin") -> None:
        """On the thread: the whole answer, or what went wrong."""
        last: BaseException | None = None
        try:
            begin(self)(self._write)
        except _Ended:
            return
        except BaseException as error:  # noqa: BLE001 it belongs to whoever reads
            # anew: the frames of this one hold the engine's rows, which must not end on another thread
            last = type(error)(*error.args)
        self._pass_on(last)

    def has_begun(self, index: int) -> None:
        """On the thread: the query is about to see exactly the state of this index."""
        self.snapshot_index = index
        self._on_loop(self._say_begun)

    def _say_begun(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    def _write(self, chunk: bytes) -> None:
        while not self._room.acquire(timeout=0.05):
            if self.ended.is_set():
                raise _Ended
        if self.ended.is_set():
            raise _Ended
        self._pass_on(chunk)

    def _pass_on(self, piece: bytes | BaseException | None) -> None:
        def put() -> None:
            self._pieces.append(piece)
            self._changed.set()

        self._on_loop(put)

    def _on_loop(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads
            self._loop.call_soon_threadsafe(call)

    async def read(self) -> bytes | None:
        left_s = self._began + self.request.timeout_s - time.monotonic()
        try:
            async with asyncio.timeout(left_s):
                piece = await self._next() if left_s > 0 else self._time_out()
        except TimeoutError:
            piece = self._time_out()
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def _time_out(self) -> QueryTimeout:
        self.ended.set()
        return QueryTimeout(f"the query took longer than {self.request.timeout_s:g} s")

    async def _next(self) -> bytes | BaseException | None:
        while True:
            if self._failure is not None:
                return self._failure
            if self._pieces:
                self._room.release()
                return self._pieces.popleft()
            self._changed.clear()
            await self._changed.wait()

    def cancel(self) -> None:
        """On the loop: whoever reads meets QueryCancelled."""
        self.ended.set()
        self._failure = QueryCancelled("the query was cancelled")
        self._changed.set()

    def close(self) -> None:
        self.ended.set()
        self.on_close()

    def shown(self) -> RunningQuery:
        request = self.request
        if isinstance(request, QueryRequest):
            text, form = request.query.text, request.query.form
        else:
            text, form = request.text, "VALIDATE"
        return RunningQuery(
            id=self.query_id,
            text=text,
            form=form,
            state="running",
            where=self.where,
            started_at=self.started_at.isoformat(),
            age_seconds=time.monotonic() - self._began,
            principal=request.principal,
        )


Write: TypeAlias = Callable[[Sink], None]  # evaluates, and hands the answer on piece by piece
Begin: TypeAlias = Callable[[MemoryStream], Write]


class MemoryReaders:
    """The streams that are open."""

    def __init__(self) -> None:
        self.streams: dict[str, MemoryStream] = {}

    async def start(self, stream: MemoryStream, begin: Begin) -> MemoryStream:
        """Run what begin gives, which is called on the stream's thread: the engine's rows stay there."""
        self.streams[stream.query_id] = stream
        stream.on_close = lambda: self._forget(stream)
        threading.Thread(target=stream.evaluate, args=(begin,), daemon=True).start()
        try:
            await stream.begun
        except BaseException:
            stream.close()
            raise
        return stream

    def cancel(self, query_id: str) -> bool:
        stream = self.streams.get(query_id)
        if stream is not None:
            stream.cancel()
        return stream is not None

    def _forget(self, stream: MemoryStream) -> None:
        self.streams.pop(stream.query_id, None)
