"""How far a store has followed the log: told exactly or not, and waited for."""

import asyncio

import pytest

from actors.log.applied_index import AppliedIndex
from graphdb.errors import LogUnavailable

pytestmark = pytest.mark.anyio


async def test_exact_but_while_a_change_is_applied() -> None:
    applied = AppliedIndex(lambda: 7)
    assert (applied.current, applied.exact) == (7, 7)
    with applied.changing():
        assert (applied.current, applied.exact) == (7, None)
    assert applied.exact == 7


async def test_waiters_wake_when_their_index_is_reached() -> None:
    index = 0
    applied = AppliedIndex(lambda: index)
    woken: list[int] = []

    async def wait(number: int) -> None:
        await applied.wait_for(number)
        woken.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in (0, 2, 1, 2)]
    for index in (0, 1, 2):
        with applied.changing():
            pass
        await asyncio.sleep(0.01)
        assert woken == [[0], [0, 1], [0, 1, 2, 2]][index]
    await asyncio.gather(*waiting)


async def test_who_no_longer_waits_is_forgotten() -> None:
    applied = AppliedIndex(lambda: 0)
    waiting = asyncio.create_task(applied.wait_for(1))
    await asyncio.sleep(0)
    assert len(applied._awaited) == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert len(applied._awaited) == 0


async def test_who_waits_for_what_will_not_come_is_told() -> None:
    applied = AppliedIndex(lambda: 0)
    waiting = [asyncio.create_task(applied.wait_for(number)) for number in (1, 2)]
    await asyncio.sleep(0)
    applied.end_waits("the node is stopping")
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, LogUnavailable)
    assert len(applied._awaited) == 0
