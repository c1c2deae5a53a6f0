"""`SearchWork`: the threads that searches run on."""

import asyncio
import threading
import time

import pytest

from graphdb.errors import QueryTimeout
from graphdb.search.deadline import checkpoint
from serve.search.frame.exchange import SEVERAL, SearchWork, TimedOut
from tests.support.timing import HANG_S, quick_enough

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


@pytest.mark.parametrize(
    ("limit_s", "timeout_ms", "told"),
    [(0.05, None, QueryTimeout), (0.05, 9_999, QueryTimeout), (HANG_S, 50, TimedOut)],
)
async def test_who_waits_hears_that_time_is_up_whatever_the_thread_does(
    limit_s: float, timeout_ms: int | None, told: type[Exception]
) -> None:
    """On a busy machine the step of a search between two looks at the time may take many seconds."""
    work = SearchWork(limit_s)
    for took in quick_enough(2.0):
        over, seen = threading.Event(), threading.Event()

        def deaf(over: threading.Event = over, seen: threading.Event = seen) -> None:
            over.wait(HANG_S)
            try:
                checkpoint()
            except BaseException:
                seen.set()
                raise

        with took, pytest.raises(told):
            await work.run(deaf, timeout_ms)
        over.set()
        assert await asyncio.to_thread(seen.wait, HANG_S)  # its thread is free then
    assert work.use().active == 0


def slept() -> int:
    time.sleep(0.01)
    return 1


async def test_the_steps_of_a_search_have_its_time_together() -> None:
    work, ended = SearchWork(0.2), list[int]()

    async def search() -> None:
        with work.one_search():
            while True:
                ended.append(await work.run(slept))

    with pytest.raises(QueryTimeout, match="the search ran longer than"):
        await search()
    assert len(ended) <= 20
    assert await work.run(lambda: 7) == 7  # the next one has time again


async def test_the_searches_of_a_request_have_a_time_together() -> None:
    work, ended = SearchWork(0.05), list[int]()

    async def searches() -> None:
        with work.several():
            while True:
                work.check_time()
                with work.one_search():
                    ended.append(await work.run(slept))

    with pytest.raises(QueryTimeout, match=r"the searches of the request ran longer than \[0.5s\] together"):
        await searches()
    assert len(ended) <= SEVERAL * 0.05 / 0.01
