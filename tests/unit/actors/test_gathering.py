"""How long a batch waits for the clients that the last one has answered."""

import asyncio
import time

import pytest

from actors.gathering import Gathering
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio
LONG_S = 1000.0  # took a batch: what is waited for at most does not grow with it


async def test_as_many_are_waited_for_as_there_were_clients() -> None:
    gathering = Gathering()
    gathering.note(LONG_S, answered=2, waiting=1)
    waiting = asyncio.create_task(gathering.wait(1, 256))
    await asyncio.sleep(0)
    gathering.note_request()
    await asyncio.sleep(0)
    assert not waiting.done()
    gathering.note_request()
    gathering.note_request()  # one more than were missing
    await asyncio.sleep(0)
    assert waiting.done()


async def test_who_does_not_come_is_waited_for_only_a_while() -> None:
    gathering = Gathering()
    gathering.note(LONG_S, answered=5, waiting=0)
    async with asyncio.timeout(HANG_S):
        await gathering.wait(1, 256)


@pytest.mark.parametrize(
    ("took_s", "answered", "waiting", "enough"),
    [(LONG_S, 3, 3, 256), (LONG_S, 300, 256, 256), (0.003, 5, 1, 256), (0.0, 5, 1, 256)],
    ids=["all are there", "a batch is full", "a batch is quick", "a batch takes no time"],
)
async def test_nothing_is_waited_for(took_s: float, answered: int, waiting: int, enough: int) -> None:
    gathering = Gathering()
    gathering.note(took_s, answered, 0)
    waited = gathering.wait(waiting, enough)
    with pytest.raises(StopIteration):
        waited.send(None)


async def test_a_while_is_a_share_of_what_the_last_batch_took() -> None:
    gathering = Gathering()
    gathering.note(0.02, answered=5, waiting=0)
    began = time.monotonic()
    await gathering.wait(1, 256)
    assert time.monotonic() - began >= 0.004
