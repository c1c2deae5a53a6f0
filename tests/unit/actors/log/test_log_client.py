"""What a client makes of a log that has taken a request and never answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from actors.log import client as log_client
from actors.log.protocol import AskStatus, LogStatus
from actors.log.server import at_once, log_server
from actors.raft import raft_log_client
from actors.raft.log_requests import RAFT_LOG_MESSAGES, ForwardedRequest, MemberChange
from actors.raft.raft_log_client import RaftLogClient
from graphdb.errors import LogUnavailable, OutcomeUnknown
from graphdb.log.views import QUADS
from tests.support.readers import answering
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


@pytest.fixture
async def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RaftLogClient]:
    """The client of a log that answers nothing but STATUS."""
    monkeypatch.setattr(log_client, "_APPEND_S", 0.2)
    monkeypatch.setattr(raft_log_client, "_SLACK_S", 0.1)
    monkeypatch.setattr(raft_log_client, "_CHANGE_S", 0.2)
    defaults = log_client.LogClient._ask.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "timeout_s", 0.1)
    handlers: dict[type, Any] = {kind: lambda _: None for kind in RAFT_LOG_MESSAGES.kinds}
    handlers[AskStatus] = at_once(lambda _: LogStatus(1, 7))
    server = log_server(handlers, str(tmp_path), str(tmp_path), RAFT_LOG_MESSAGES)
    await server.start()
    client = RaftLogClient(answering(server.path))
    yield client
    await client.close()
    await server.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.read(1),
        lambda log: log.truncate_before(1, QUADS),
        lambda log: log.last_effect_index(),
        lambda log: log.read_index(0.1),
        lambda log: log.finish(1, True, b""),
        lambda log: log.leave(),
        lambda log: log.offer(1, "tree"),
        lambda log: log.adopted(1),
    ],
)
async def test_what_may_be_asked_again_finds_the_log_unavailable(
    silent: RaftLogClient, ask: Callable[[RaftLogClient], Awaitable[Any]]
) -> None:
    with pytest.raises(LogUnavailable, match="has not answered for"):
        await asyncio.wait_for(ask(silent), HANG_S)
    assert await silent.status() == LogStatus(1, 7)  # over the same connection


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.append([], 1),
        lambda log: log.forward(2, ForwardedRequest(0, "update", "", b""), 0.1),
        lambda log: log.change(MemberChange("remove", 2)),
    ],
)
async def test_of_what_changes_anything_the_outcome_is_unknown(
    silent: RaftLogClient, ask: Callable[[RaftLogClient], Awaitable[Any]]
) -> None:
    with pytest.raises(OutcomeUnknown, match="has not answered for"):
        await asyncio.wait_for(ask(silent), HANG_S)


async def test_who_waits_for_news_waits_as_long_as_it_takes(silent: RaftLogClient) -> None:
    waiting = [asyncio.create_task(silent.take()), asyncio.create_task(silent.watch(0, 0))]
    done, _ = await asyncio.wait(waiting, timeout=0.5)
    assert not done
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
