"""The Unix domain socket that a `ColumnView` listens on: a connection for each request."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import duckdb

from actors.columns.column_query import WHERE, ColumnQuery, NotTaken, Unsuited
from actors.columns.past_query import PastQuery
from actors.columns.protocol import (
    COLUMN_MESSAGES,
    Answered,
    AskStatus,
    ColumnStatus,
    ColumnTask,
    Explain,
    Explanation,
    Feed,
    Load,
    Taken,
    ViewSettings,
    Wanted,
)
from actors.columns.protocol import NotTaken as NotTakenMessage
from actors.columns.view_keeper import ViewKeeper
from actors.freed_memory import give_back
from actors.wire.messages import Done, Piece, expect
from actors.wire.server import Call, WireServer
from graphdb.errors import QueryTimeout
from graphdb.planning.costs import Work

__all__ = ["ColumnServer"]

T = TypeVar("T")
logger = logging.getLogger(__name__)
_INTERRUPT_S = 0.1  # an interrupt that comes between two statements of a query is lost, so it is repeated
_QUIET_S = 1.0
_GRACE_S = 2.0  # for a query to end once it is interrupted; then its process ends


class ColumnServer:
    """Answers queries on a view, on the event loop that its keeper lives on."""

    def __init__(self, keeper: ViewKeeper, settings: ViewSettings, path: str) -> None:
        self.keeper, self.settings = keeper, settings
        self.threads = ThreadPoolExecutor(settings.queries_max, "column-query")
        self._wire = WireServer(COLUMN_MESSAGES, "the column view", path, self._serve)
        self._tidying: asyncio.TimerHandle | None = None
        self._places = asyncio.Semaphore(settings.queries_max)
        self._newest = 0.0  # when the last query got a place, of the loop's time

    async def start(self) -> None:
        """Listen."""
        await self._wire.start()

    async def close(self) -> None:
        """Stop listening and end the connections, and with them the queries."""
        await self._wire.close()
        if self._tidying is not None:
            self._tidying.cancel()
        self.threads.shutdown()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Meanwhile a query runs. When none has run for a second, what they had is given back.

        Raises NotTaken where no place becomes free while the newest of the queries that have one is young:
        queries mostly take milliseconds here, and ten times as long elsewhere.
        """
        view, loop = self.keeper.view, asyncio.get_running_loop()
        if self._places.locked():
            patience_s = self._newest + self.settings.wait_seconds - loop.time()
            try:
                async with asyncio.timeout(patience_s):
                    await self._places.acquire()
            except TimeoutError:
                raise NotTaken("the column view has no place free") from None
        else:
            await self._places.acquire()  # at once
        try:
            if self.keeper.view is not view or self.keeper.state != "following":
                raise NotTaken(f"the column view is {self.keeper.state}")
            self._newest = loop.time()
            self.keeper.running += 1
            try:
                yield
            finally:
                self.keeper.running -= 1
                if self._tidying is not None:
                    self._tidying.cancel()
                self._tidying = loop.call_later(_QUIET_S, self._tidy)
        finally:
            self._places.release()

    def _serve(self, call: Call) -> None:
        task, tried = call.request, None
        if isinstance(task, ColumnTask) and self.keeper.has(task.min_index):
            assert self.keeper.view is not None
            asks = ColumnQuery if task.as_of is None else PastQuery
            tried = asks(self.keeper.view, task, self.settings)
            found = tried.at_once()
            if found is not None:  # a task, and two hand-overs between threads, take as long as a count
                index, pieces = found
                call.answer(Answered(index, WHERE, b"".join(pieces)))
                return
        call.run(_Request(self, call, tried).perform())

    def _tidy(self) -> None:
        self._tidying = None
        if self.keeper.running == 0:
            self.threads.submit(give_back)

    def give_up(self, reason: str) -> None:
        """End this process, for another to be started: what it does cannot be ended otherwise."""
        logger.warning("the column view is started again: %s", reason, exc_info=True)
        os.kill(os.getpid(), signal.SIGKILL)


class _Request:
    """One request of a client, a query mostly. That the client goes away ends it."""

    def __init__(self, server: ColumnServer, call: Call, tried: ColumnQuery | None) -> None:
        """tried: the query, if it could not be answered at once."""
        self._server, self._call, self._tried = server, call, tried
        self._loop = asyncio.get_running_loop()
        self._query: ColumnQuery | None = None
        self._held: list[object] = []  # of the answer, not sent yet: Taken, and the last Piece
        self._began = self._placed = self._loop.time()
        self._ends_by: float | None = None  # of the loop's time; once the query is interrupted

    async def perform(self) -> None:
        """See to the answer, or raise it."""
        keeper = self._server.keeper
        match self._call.request:
            case Explain(task):
                self._call.answer(Explanation(await self._explained(task)))
            case Feed():
                await keeper.wanted.wait()
                self._call.answer(Wanted())
            case Load() as load:
                await keeper.load(load)
                self._call.answer(Done())
            case AskStatus():
                self._call.answer(
                    ColumnStatus(keeper.state, keeper.applied.current, keeper.running, os.getpid())
                )
            case request:
                await self._answer(expect(ColumnTask, request))

    async def _explained(self, task: ColumnTask) -> dict[str, Any]:
        try:
            query = await self._admitted(task)
            return await self._performed(task, query, ColumnQuery.explained)
        except NotTaken as reason:
            return {"path": "reader", "reason": str(reason), "plan": None}

    async def _answer(self, task: ColumnTask) -> None:
        """Raises QueryTimeout, QueryMemoryExceeded, EvaluationFailed, UnavailableError."""
        try:
            query = await self._admitted(task)
            await self._performed(task, query, lambda query: query.run(self._begin, self._hand_on))
        except NotTaken as reason:
            self._call.answer(NotTakenMessage(str(reason), isinstance(reason, Unsuited), reason.work))
        else:
            self._call.answer(*self._held, Done())

    async def _performed(self, task: ColumnTask, query: ColumnQuery, work: Callable[[ColumnQuery], T]) -> T:
        """What work, on a thread, makes of the task's query. It ends when its time or its client is gone."""
        async with self._server.place():
            self._query, self._placed = query, self._loop.time()
            self._call.on_gone = self._end_query
            deadline = self._loop.call_at(self._began + task.timeout_s, self._end_query)
            try:
                return await self._loop.run_in_executor(self._server.threads, work, query)
            except QueryTimeout:
                raise QueryTimeout(f"the query took longer than {round(task.timeout_s, 2):g} s") from None
            except duckdb.Error as error:
                # what only a damaged database says, or one that refuses all work since an assertion failed in
                # it; a new process looks whether it is whole when it opens it
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
            self._call.wait_no_more()  # a thread that waits for its turn need not wait any longer
        elif now > self._ends_by:
            self._server.give_up(f"a query does not end {_GRACE_S:g} s after it was interrupted")
        self._query.interrupt()
        self._loop.call_later(_INTERRUPT_S, self._end_query)

    async def _admitted(self, task: ColumnTask) -> ColumnQuery:
        """The query, once the view has reached its index. Raises NotTaken."""
        keeper, settings = self._server.keeper, self._server.settings
        if not await keeper.wait_for(task.min_index, min(settings.wait_seconds, task.timeout_s)):
            at = keeper.applied.current
            raise NotTaken(f"the column view is {keeper.state}, at {at}, not yet at {task.min_index}")
        assert keeper.view is not None
        if task.as_of is not None or keeper.shards is None:
            tried, self._tried = self._tried, None
            if tried is not None and tried.is_of(keeper.view):
                return tried
            return (ColumnQuery if task.as_of is None else PastQuery)(keeper.view, task, settings)
        # at the top, the process of a view without shards would load all that they need
        from actors.columns.divided_query import DividedQuery

        return DividedQuery(keeper.view, task, settings, keeper.shards)

    def _begin(self, log_index: int, work: Work | None) -> None:
        """On the query's thread."""
        assert self._query is not None
        self._held.append(Taken(log_index, self._query.where, work, self._loop.time() - self._placed))

    def _hand_on(self, piece: bytes) -> None:
        """On the query's thread, which waits where the client is slow. The last piece is held back: a short
        answer is written once, with its end, and needs no turn of the loop before.
        """
        if self._held and isinstance(self._held[-1], Piece):
            held, self._held = self._held, []
            asyncio.run_coroutine_threadsafe(self._send_in_turn(held), self._loop).result()
        self._held.append(Piece(piece))

    async def _send_in_turn(self, messages: list[object]) -> None:
        await self._call.send(*messages)
        if self._ends_by is not None:
            raise QueryTimeout("the query was interrupted")
