"""`SearchWork`: the threads that searches run on."""

import asyncio
import threading

import pytest

from graphdb.search.deadline import checkpoint
from serve.search.frame.exchange import SearchWork
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


async def test_a_search_that_nobody_waits_for_lets_its_thread_go() -> None:
    begun, over = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while not over.wait(0.001):
                try:
                    checkpoint()
                except Exception:  # noqa: BLE001 - as something deep inside of a search may do
                    continue
        finally:
            over.set()

    work = SearchWork(10 * HANG_S)
    waiting = asyncio.create_task(work.run(endless))
    try:
        assert await asyncio.to_thread(begun.wait, HANG_S)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(over.wait, HANG_S)
        assert await work.run(lambda: 7) == 7
        use = work.use()
        assert (use.active, use.queue, use.completed, use.largest) == (0, 0, 2, 1)
    finally:
        over.set()  # or the thread would outlive the test
