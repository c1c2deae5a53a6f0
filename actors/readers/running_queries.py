"""Queries under way: `RunningQueries` lists and cancels them, `QueryRun` is one from its arrival to its last
byte, `RunAnswer` what it answers.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from graphdb.errors import QueryCancelled
from graphdb.node import RunningQuery

__all__ = ["QueryRun", "RunAnswer", "RunningQueries"]

T = TypeVar("T")


class QueryRun:
    """One query as the list shows it, on the event loop that it is made on. Whoever works for it waits inside
    `unless_cancelled`.
    """

    def __init__(
        self, query_id: str, text: str, form: str, principal: str | None, forget: Callable[[str], None]
    ) -> None:
        self.id = query_id
        self.where: str | None = None  # None while it waits for a reader
        self.on_cancel: Callable[[], None] = lambda: None
        self.loop = asyncio.get_running_loop()
        self._text, self._form, self._principal = text, form, principal
        self._forget = forget
        self._began = time.monotonic()
        self._started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._is_cancelled = False
        self._waiting: asyncio.Future[Any] | None = None

    def cancel(self) -> None:
        """End it; the one who waits for it meets QueryCancelled, now or when it next waits."""
        self._is_cancelled = True
        if self._waiting is not None:
            self._waiting.cancel()
        self.on_cancel()

    def check(self) -> None:
        """For work that waits for nothing. Raises QueryCancelled. Any thread."""
        if self._is_cancelled:
            raise QueryCancelled("the query was cancelled")

    async def unless_cancelled(
        self, awaited: Awaitable[T], undo: Callable[[T], object] = lambda result: None
    ) -> T:
        """Wait, one waiter at a time. undo is given the result where that comes just as the waiter is
        cancelled, who then does not get it. Raises QueryCancelled.
        """
        waiting = asyncio.ensure_future(awaited)
        self._waiting = waiting
        if self._is_cancelled:
            waiting.cancel()
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                undo(waiting.result())
            if self._is_cancelled:
                raise QueryCancelled("the query was cancelled") from None
            raise
        finally:
            self._waiting = None

    def end(self) -> None:
        """Take it off the list."""
        self._forget(self.id)

    def shown(self) -> RunningQuery:
        return RunningQuery(
            id=self.id,
            text=self._text,
            form=self._form,
            state="queued" if self.where is None else "running",
            where=self.where,
            started_at=self._started_at,
            age_seconds=round(time.monotonic() - self._began, 3),
            principal=self._principal,
        )


class RunAnswer:
    """See `serve.backend.AnswerStream`. Whoever makes one sets where and snapshot_index."""

    where: str
    snapshot_index: int

    def __init__(self, run: QueryRun, read: Callable[[], Awaitable[bytes | None]], held: ExitStack) -> None:
        """read gives the next piece; held ends the query, if it is not over, and takes it off the list."""
        self.query_id = run.id
        self.is_exact = True
        self.on_over: Callable[[float, bool], None] | None = None
        """Told once, for how many seconds pieces were waited for, and whether the answer is whole."""
        self._run, self._read, self._held = run, read, held
        self._waited_s = 0.0

    async def read(self) -> bytes | None:
        """See `serve.backend.AnswerStream`."""
        began = self._run.loop.time()
        try:
            piece = await self._run.unless_cancelled(self._read())
        finally:
            self._waited_s += self._run.loop.time() - began
        if piece is None:
            self._tell(is_whole=True)
        return piece

    def close(self) -> None:
        """See `serve.backend.AnswerStream`."""
        self._tell(is_whole=False)
        self._held.close()

    def _tell(self, *, is_whole: bool) -> None:
        on_over, self.on_over = self.on_over, None
        if on_over is not None:
            on_over(self._waited_s, is_whole)


class RunningQueries:
    """The list. Owned by a node, on its event loop."""

    def __init__(self) -> None:
        self._runs: dict[str, QueryRun] = {}

    def begin(
        self, text: str, form: str, principal: str | None = None, query_id: str | None = None
    ) -> QueryRun:
        """Put a query on the list; it stays there until its end() is called. An id that is on the list
        already is not taken again: the query gets another one.
        """
        if query_id is None or query_id in self._runs:
            query_id = os.urandom(8).hex()
        run = QueryRun(query_id, text, form, principal, self._forget)
        self._runs[run.id] = run
        return run

    @contextmanager
    def listed(
        self, text: str, form: str, principal: str | None = None, query_id: str | None = None
    ) -> Iterator[QueryRun]:
        """On the list for the time of a block."""
        run = self.begin(text, form, principal, query_id)
        try:
            yield run
        finally:
            run.end()

    def shown(self) -> list[RunningQuery]:
        """Everything on the list, the oldest first."""
        return [run.shown() for run in self._runs.values()]

    def cancel(self, query_id: str) -> bool:
        """Cancel one; False where no such query is on the list."""
        run = self._runs.get(query_id)
        if run is not None:
            run.cancel()
        return run is not None

    def _forget(self, query_id: str) -> None:
        self._runs.pop(query_id, None)
