"""`SearchWork`: where searches run: a few threads beside the event loop, and how long each may take."""

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from graphdb.errors import Overloaded, QueryTimeout
from graphdb.search.deadline import limited

__all__ = ["SearchWork", "TimedOut"]

T = TypeVar("T")

WAITING_MAX = 1_000  # Elasticsearch's queue of searches


class TimedOut(Exception):
    """The `timeout` that the client gave has passed: no error, but an answer that says so."""


class SearchWork:
    """Owned by the application. For the event loop only."""

    def __init__(self, limit_s: float) -> None:
        """limit_s: a search that takes longer fails, whatever the client asks for."""
        self._limit_s = limit_s
        self._pool = ThreadPoolExecutor(max(2, (os.cpu_count() or 1)), thread_name_prefix="search")
        self._waiting = 0

    async def run(self, work: Callable[[], T], timeout_ms: int | None = None) -> T:
        """work() on a thread. Raises TimedOut, QueryTimeout, Overloaded and what work raises."""
        if self._waiting >= WAITING_MAX:
            raise Overloaded(f"rejected execution: [{self._waiting}] searches are waiting already")
        self._waiting += 1
        check = self._check(timeout_ms)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._limited(check, work))
        finally:
            self._waiting -= 1

    def _check(self, timeout_ms: int | None) -> Callable[[], None]:
        start = time.monotonic()
        wanted = None if timeout_ms is None else start + timeout_ms / 1000
        last = start + self._limit_s

        def check() -> None:
            now = time.monotonic()
            if wanted is not None and now > wanted:
                raise TimedOut
            if now > last:
                raise QueryTimeout(f"the search ran longer than [{self._limit_s}s] and was ended")

        return check

    @staticmethod
    def _limited(check: Callable[[], None], work: Callable[[], T]) -> Callable[[], T]:
        def inside() -> T:
            check()
            with limited(check):
                return work()

        return inside
