"""The Unix domain socket that a `ColumnView` listens on: a connection for each request."""

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar, cast

import duckdb

from actors.columns.column_query import WHERE, ColumnQuery, NotTaken, Unsuited
from actors.columns.protocol import ColumnStatus, ColumnTask, Load, Message, Taken
from actors.columns.view_keeper import ViewKeeper
from actors.error_codec import encode_error
from actors.frames import Frame, FrameReader, encode_frame
from actors.freed_memory import give_back
from graphdb.config.limits import GateLimits
from graphdb.config.service import Columns
from graphdb.errors import GraphDBError, QueryTimeout

__all__ = ["ColumnServer"]

T = TypeVar("T")
logger = logging.getLogger(__name__)
_OUTGOING_BYTES = 128 << 10  # of an answer that wait here for a slow client; then its query waits
_INTERRUPT_S = 0.1  # an interrupt that comes between two statements of a query is lost, so it is repeated
_QUIET_S = 1.0
_GRACE_S = 2.0  # for a query to end once it is interrupted; then its process ends


class ColumnServer:
    """Answers queries on a view, on the event loop that its keeper lives on.

    Only the same user can reach the socket: its directory has mode 0700.
    """

    def __init__(self, keeper: ViewKeeper, settings: Columns, limits: GateLimits, path: str) -> None:
        self.keeper, self.settings, self.limits = keeper, settings, limits
        self.threads = ThreadPoolExecutor(settings.queries_max, "column-query")
        self.connections: set[_Connection] = set()
        self._path = path
        self._server: asyncio.AbstractServer | None = None
        self._tidying: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen."""
        with contextlib.suppress(FileNotFoundError):  # left by a process that was killed
            os.unlink(self._path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Connection(self), self._path)

    async def close(self) -> None:
        """Stop listening and end the connections, and with them the queries."""
        assert self._server is not None
        self._server.close()
        ending = tuple(self.connections)
        for connection in ending:
            connection.abort()
        await asyncio.gather(*(connection.ended.wait() for connection in ending))
        if self._tidying is not None:
            self._tidying.cancel()
        self.threads.shutdown()
        os.unlink(self._path)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Meanwhile a query runs. When none has run for a second, what they had is given back."""
        self.keeper.running += 1
        try:
            yield
        finally:
            self.keeper.running -= 1
            if self._tidying is not None:
                self._tidying.cancel()
            self._tidying = asyncio.get_running_loop().call_later(_QUIET_S, self._tidy)

    def _tidy(self) -> None:
        self._tidying = None
        if self.keeper.running == 0:
            self.threads.submit(give_back)

    def give_up(self, reason: str) -> None:
        """End this process, for another to be started: what it does cannot be ended otherwise."""
        logger.warning("the column view is started again: %s", reason)
        os.kill(os.getpid(), signal.SIGKILL)


class _Connection(asyncio.Protocol):
    """One request of a client, a query mostly. That the client goes away ends it."""

    def __init__(self, server: ColumnServer) -> None:
        self._server = server
        self._reader = FrameReader()
        self._loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None
        self._query: ColumnQuery | None = None
        self._taken = self._last_piece = b""  # of the answer, as frames that are not sent yet
        self._ends_by: float | None = None  # of the loop's time; once the query is interrupted
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_OUTGOING_BYTES)
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._query is not None:
            self._end_query()
        elif self._task is not None:
            self._task.cancel()
        if self._task is None:
            self.ended.set()
        else:
            self._task.add_done_callback(lambda _: self.ended.set())

    def data_received(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            if self._task is None:
                self._task = self._loop.create_task(self._serve(frame))

    def pause_writing(self) -> None:
        if self._ends_by is None:
            self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def abort(self) -> None:
        self._transport.abort()

    async def _serve(self, frame: Frame) -> None:
        try:
            await self._perform(frame)
        except NotTaken as reason:
            message = Message.UNSUITED if isinstance(reason, Unsuited) else Message.NOT_TAKEN
            self._send(message, str(reason).encode())
        except GraphDBError as error:
            self._send(Message.ERROR, encode_error(error))
        except Exception as error:
            logger.exception("a request to the column view failed")
            self._send(Message.ERROR, encode_error(error))
        finally:
            self._transport.close()  # once all is sent

    async def _perform(self, frame: Frame) -> None:
        keeper = self._server.keeper
        match frame.code:
            case Message.QUERY:
                await self._answer(ColumnTask.decode(frame.body))
            case Message.EXPLAIN:
                await self._explain(ColumnTask.decode(frame.body))
            case Message.FEED:
                await keeper.wanted.wait()
                self._send(Message.WANTED)
            case Message.LOAD:
                await keeper.load(Load.decode(frame.body))
                self._send(Message.END)
            case Message.STATUS:
                status = ColumnStatus(
                    keeper.state, keeper.applied.current, self._server.keeper.running, os.getpid()
                )
                self._send(Message.STATUS, status.encode())

    async def _explain(self, task: ColumnTask) -> None:
        document = await self._performed(task, ColumnQuery.explained)
        self._send(Message.DATA, json.dumps(document).encode())
        self._send(Message.END)

    async def _answer(self, task: ColumnTask) -> None:
        """Raises NotTaken, QueryTimeout, QueryMemoryExceeded, EvaluationFailed, UnavailableError."""
        await self._performed(task, lambda query: query.run(self._begin, self._hand_on))
        self._write(self._taken + self._last_piece + encode_frame(Message.END, 0, b""))

    async def _performed(self, task: ColumnTask, work: Callable[[ColumnQuery], T]) -> T:
        """What work, on a thread, makes of the task's query. It ends when its time or its client is gone."""
        until = self._loop.time() + task.timeout_s
        query = self._query = await self._admitted(task)
        deadline = self._loop.call_at(until, self._end_query)
        try:
            with self._server.running():
                return await self._loop.run_in_executor(self._server.threads, work, query)
        except QueryTimeout:
            raise QueryTimeout(f"the query took longer than {round(task.timeout_s, 2):g} s") from None
        except duckdb.Error as error:
            # what only a damaged database says, or one that refuses all work since an assertion failed in it;
            # a new process looks whether it is whole when it opens it
            self._server.give_up(f"a query met: {error}")
            raise
        finally:
            self._query = None
            deadline.cancel()

    def _end_query(self) -> None:
        """Interrupt it, again and again until it ends; then its process is ended."""
        if self._query is None:
            return
        now = self._loop.time()
        if self._ends_by is None:
            self._ends_by = now + _GRACE_S
            self._writable.set()  # a thread that waits for its turn need not wait any longer
        elif now > self._ends_by:
            self._server.give_up(f"a query does not end {_GRACE_S:g} s after it was interrupted")
        self._query.interrupt()
        self._loop.call_later(_INTERRUPT_S, self._end_query)

    async def _admitted(self, task: ColumnTask) -> ColumnQuery:
        server, settings = self._server, self._server.settings
        if server.keeper.running >= settings.queries_max:
            raise NotTaken("the column view has no place free")
        wait_s = min(settings.wait_seconds, task.timeout_s)
        if not await server.keeper.wait_for(task.min_index, wait_s):
            at = server.keeper.applied.current
            raise NotTaken(f"the column view is {server.keeper.state}, at {at}, not yet at {task.min_index}")
        view = server.keeper.view
        assert view is not None
        return ColumnQuery(view, task, server.limits)

    def _begin(self, log_index: int) -> None:
        """On the query's thread."""
        self._taken = encode_frame(Message.TAKEN, 0, Taken(log_index, WHERE).encode())

    def _hand_on(self, piece: bytes) -> None:
        """On the query's thread, which waits where the client is slow. The last piece is held back: a short
        answer is written once, with its end, and needs no turn of the loop before.
        """
        if self._last_piece:
            frames, self._taken = self._taken + self._last_piece, b""
            asyncio.run_coroutine_threadsafe(self._send_in_turn(frames), self._loop).result()
        self._last_piece = encode_frame(Message.DATA, 0, piece)

    async def _send_in_turn(self, frames: bytes) -> None:
        await self._writable.wait()
        if self._ends_by is not None:
            raise QueryTimeout("the query was interrupted")
        self._write(frames)

    def _send(self, message: Message, body: bytes = b"") -> None:
        self._write(encode_frame(message, 0, body))

    def _write(self, frames: bytes) -> None:
        if not self._transport.is_closing():  # the client has gone; connection_lost() comes soon
            self._transport.write(frames)
