"""`Begun`: something is awaited as it would be without it, and what is to be done meanwhile is done once."""

import asyncio
from collections.abc import Awaitable

import pytest

from actors.log.begun import Begun


def test_it_is_called_when_what_is_awaited_has_begun_to_wait() -> None:
    seen: list[str] = []

    async def work() -> int:
        seen.append("sent")
        await asyncio.sleep(0)
        seen.append("woken")
        await asyncio.sleep(0)
        return 7

    async def go() -> int:
        return await Begun(work(), lambda: seen.append("meanwhile"))

    assert asyncio.run(go()) == 7
    assert seen == ["sent", "meanwhile", "woken"]


def test_it_is_not_called_where_nothing_is_waited_for() -> None:
    seen: list[str] = []

    async def work() -> int:
        return 7

    async def go() -> int:
        return await Begun(work(), lambda: seen.append("meanwhile"))

    assert asyncio.run(go()) == 7
    assert seen == []


def test_it_is_not_called_where_nothing_begins() -> None:
    seen: list[str] = []

    async def work() -> int:
        raise ValueError("no")

    async def go() -> int:
        return await Begun(work(), lambda: seen.append("meanwhile"))

    with pytest.raises(ValueError, match="no"):
        asyncio.run(go())
    assert seen == []


def test_an_error_that_comes_later_is_raised() -> None:
    async def go() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, ValueError("late"))
        with pytest.raises(ValueError, match="late"):
            await Begun(future, lambda: None)

    asyncio.run(go())


def test_what_fails_meanwhile_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("meanwhile")

    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    async def go() -> int:
        return await Begun(work(), fail)

    assert asyncio.run(go()) == 7
    assert "what was to be done meanwhile failed" in caplog.text


@pytest.mark.parametrize("steps", [1, 2])
def test_a_cancellation_reaches_what_is_awaited(steps: int) -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def go() -> None:
        awaited: Awaitable[None] = Begun(work(), lambda: None)

        async def wait() -> None:
            await awaited

        task = asyncio.ensure_future(wait())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert seen == ["cancelled"]


def test_what_is_awaited_may_go_on_after_a_cancellation() -> None:
    async def work() -> int:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return 7

    async def go() -> int:
        async def wait() -> int:
            return await Begun(work(), lambda: None)

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(go()) == 7
