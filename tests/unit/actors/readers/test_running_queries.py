"""The list of running queries, and how one of them is cancelled."""

import asyncio

import pytest

from actors.readers.running_queries import RunningQueries
from graphdb.errors import QueryCancelled

pytestmark = pytest.mark.anyio


async def test_listed_from_begin_to_end() -> None:
    queries = RunningQueries()
    with queries.listed("ASK {}", "ASK", "ada") as run:
        (shown,) = queries.shown()
        assert (shown.id, shown.text, shown.form, shown.principal) == (run.id, "ASK {}", "ASK", "ada")
        assert (shown.state, shown.where) == ("queued", None)
        run.where = "reader 1"
        (shown,) = queries.shown()
        assert (shown.state, shown.where) == ("running", "reader 1")
    assert queries.shown() == []


async def test_cancelled_while_somebody_waits() -> None:
    queries = RunningQueries()
    run = queries.begin("ASK {}", "ASK")
    waiting = asyncio.create_task(run.unless_cancelled(asyncio.sleep(60)))
    await asyncio.sleep(0)
    assert queries.cancel(run.id)
    with pytest.raises(QueryCancelled):
        await waiting
    run.end()
    assert not queries.cancel(run.id)


async def test_cancelled_before_the_next_wait() -> None:
    queries = RunningQueries()
    run = queries.begin("ASK {}", "ASK")
    stopped = []
    run.on_cancel = lambda: stopped.append(run.id)
    queries.cancel(run.id)
    assert stopped == [run.id]
    with pytest.raises(QueryCancelled):
        await run.unless_cancelled(asyncio.sleep(60))


async def test_the_waiters_own_cancellation_is_none_of_the_query() -> None:
    run = RunningQueries().begin("ASK {}", "ASK")
    waiting = asyncio.create_task(run.unless_cancelled(asyncio.sleep(60)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_result_that_comes_as_the_waiter_is_cancelled_is_undone() -> None:
    run = RunningQueries().begin("ASK {}", "ASK")
    result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    undone: list[str] = []
    waiting = asyncio.create_task(run.unless_cancelled(result, undone.append))
    await asyncio.sleep(0)
    result.set_result("a lease")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert undone == ["a lease"]


async def test_no_such_query() -> None:
    assert not RunningQueries().cancel("0" * 16)
