"""The log's socket: each request is answered with what became of it, given up ones too."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from actors.log.client import LogClient
from actors.log.protocol import Append, AskStatus, Index
from actors.log.server import in_time, log_server
from graphdb.errors import CorruptionError, LogUnavailable, OutcomeUnknown
from tests.support.readers import answering
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


class HeldLog:
    """Appends and questions for the status wait until a test answers them with an index."""

    def __init__(self, directory: Path) -> None:
        self.held: asyncio.Queue[Future[int]] = asyncio.Queue()
        self.server = log_server(
            {kind: in_time(lambda _: (self._hold(), Index)) for kind in (Append, AskStatus)},
            str(directory),
            str(directory),
        )

    def _hold(self) -> "Future[int]":
        future: Future[int] = Future()
        self.held.put_nowait(future)
        return future

    async def next(self) -> "Future[int]":
        return await asyncio.wait_for(self.held.get(), HANG_S)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[HeldLog]:
    log = HeldLog(tmp_path)
    await log.server.start()
    yield log
    await log.server.close()


@pytest.fixture
async def client(log: HeldLog) -> AsyncIterator[LogClient]:
    client = LogClient(answering(log.server.path))
    yield client
    await client.close()


def append(client: LogClient) -> "asyncio.Task[int]":
    return asyncio.create_task(client.append([]))


async def test_answers_find_their_requests_in_any_order(log: HeldLog, client: LogClient) -> None:
    tasks = [append(client) for _ in range(3)]
    held = [await log.next() for _ in range(3)]
    for number in (2, 0, 1):
        held[number].set_result(10 + number)
    assert await asyncio.gather(*tasks) == [10, 11, 12]


async def test_an_append_that_the_log_gives_up_has_an_unknown_outcome(
    log: HeldLog, client: LogClient
) -> None:
    given_up, kept = append(client), append(client)
    (await log.next()).cancel()
    with pytest.raises(OutcomeUnknown, match="given the request up"):
        await asyncio.wait_for(given_up, HANG_S)
    (await log.next()).set_result(7)
    assert await kept == 7


async def test_a_question_that_the_log_gives_up_can_be_asked_again(log: HeldLog, client: LogClient) -> None:
    asking = asyncio.create_task(client.status())
    (await log.next()).cancel()
    with pytest.raises(LogUnavailable, match="given the request up"):
        await asyncio.wait_for(asking, HANG_S)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (OutcomeUnknown("cut off", 3), OutcomeUnknown("cut off", 3)),
        (CorruptionError("what", "where"), CorruptionError("what", "where")),
        (ZeroDivisionError("x"), LogUnavailable("a part of the service failed: ZeroDivisionError('x')", 1)),
    ],
    ids=["ours", "damage", "a mistake"],
)
async def test_errors_are_told(log: HeldLog, client: LogClient, raised: Exception, told: Exception) -> None:
    asking = append(client)
    (await log.next()).set_exception(raised)
    with pytest.raises(type(told)) as met:
        await asking
    assert met.value.args == told.args


async def test_what_a_client_that_leaves_has_asked_is_given_up(log: HeldLog, client: LogClient) -> None:
    """And what a log answers then anyway meets nobody."""
    asking = append(client)
    held = await log.next()
    await client.close()
    with pytest.raises(OutcomeUnknown, match="connection"):
        await asking
    async with asyncio.timeout(HANG_S):
        while not held.cancelled():  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.01)


async def test_a_caller_that_leaves_hinders_no_other_on_its_connection(
    log: HeldLog, client: LogClient
) -> None:
    leaving, staying = append(client), append(client)
    first, second = await log.next(), await log.next()
    leaving.cancel()
    await asyncio.wait([leaving])
    first.set_result(1)
    second.set_result(2)
    assert await asyncio.wait_for(staying, HANG_S) == 2


async def test_a_server_that_closes_leaves_outcomes_unknown(log: HeldLog, client: LogClient) -> None:
    asking = append(client)
    await log.next()
    await log.server.close()
    with pytest.raises(OutcomeUnknown):
        await asyncio.wait_for(asking, HANG_S)
    await log.server.start()
    again = append(client)
    (await log.next()).set_result(1)
    assert await asyncio.wait_for(again, HANG_S) == 1
