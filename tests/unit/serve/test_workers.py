"""`Workers`: as many threads as there were answers at once, at most as many as are allowed."""

import asyncio
import threading
from functools import partial

import pytest

from serve.answers import Pipe, Workers
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("evaluate-")}


def meeting(barrier: threading.Barrier, pipe: Pipe) -> None:
    barrier.wait(HANG_S)


async def at_once(workers: Workers, count: int) -> None:
    """So many answers, each of which needs all others beside it."""
    pipes, barrier = [Pipe() for _ in range(count)], threading.Barrier(count)
    for pipe in pipes:
        workers.start(partial(meeting, barrier), pipe)
    async with asyncio.timeout(HANG_S):
        for pipe in pipes:
            await pipe.read()


@pytest.mark.parametrize("count", [1, 3])
async def test_a_thread_is_started_where_none_waits(count: int) -> None:
    before, workers = threads(), Workers(5, 60)
    assert threads() == before
    for _ in range(20):
        await at_once(workers, count)
    started = threads() - before
    assert count <= len(started) <= 5
    workers.stop()
    for thread in started:
        thread.join(HANG_S)
    assert threads() <= before


async def test_no_more_than_are_allowed() -> None:
    before, workers = threads(), Workers(2, 60)
    pipes = [Pipe() for _ in range(10)]
    release = threading.Event()

    def wait(pipe: Pipe) -> None:
        release.wait(HANG_S)

    for pipe in pipes:
        workers.start(wait, pipe)
    assert len(threads() - before) == 2
    release.set()
    async with asyncio.timeout(HANG_S):
        for pipe in pipes:
            await pipe.read()
    workers.stop()
