"""One timer for many deadlines: each expires once, at its time, unless it is over before."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from actors.wire.deadlines import Deadlines
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


class Expired:
    """What has expired, in order, and when."""

    def __init__(self) -> None:
        self.began = asyncio.get_running_loop().time()
        self.at: dict[str, float] = {}
        self.deadlines = Deadlines(self._note)

    def _note(self, key: str) -> None:
        assert key not in self.at
        self.at[key] = asyncio.get_running_loop().time() - self.began

    async def until(self, *keys: str) -> None:
        async with asyncio.timeout(HANG_S):
            while list(self.at) != list(keys):  # noqa: ASYNC110 nobody tells
                await asyncio.sleep(0.005)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_each_expires_at_its_time(new_loop: Callable[[], Any]) -> None:
    async def go() -> None:
        expired = Expired()
        times = {"c": 0.15, "a": 0.03, "d": 0.15, "b": 0.08}
        for key, timeout_s in times.items():
            expired.deadlines.set(key, timeout_s)
        await expired.until("a", "b", "c", "d")
        assert all(times[key] - 0.002 <= at for key, at in expired.at.items()), expired.at

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(go())


async def test_what_is_over_does_not_expire_and_what_comes_later_does() -> None:
    expired = Expired()
    expired.deadlines.set("over", 0.02)
    expired.deadlines.over("over")
    expired.deadlines.over("over")
    expired.deadlines.set("later", 0.06)
    await expired.until("later")
    expired.deadlines.set("again", 0.02)
    await expired.until("later", "again")


async def test_one_that_ends_another_ends_it_in_time() -> None:
    gone: list[str] = []

    def expire(key: str) -> None:
        gone.append(key)
        deadlines.over("second")
        deadlines.set("third", 0.01)
        if key == "third":
            deadlines.close()

    deadlines = Deadlines(expire)
    deadlines.set("first", 0.02)
    deadlines.set("second", 0.02)
    await asyncio.sleep(0.2)
    assert gone == ["first", "third"]


async def test_nothing_expires_once_it_is_closed() -> None:
    expired = Expired()
    expired.deadlines.set("a", 0.02)
    expired.deadlines.close()
    expired.deadlines.close()
    await asyncio.sleep(0.05)
    assert not expired.at
