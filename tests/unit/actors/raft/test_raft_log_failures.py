"""What a node's log does about its own disk: goes on where it can, and says so where it cannot."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from actors.raft import raft_log
from actors.raft.raft_log import RaftLog
from graphdb.errors import CorruptionError, LogUnavailable, OutcomeUnknown
from tests.support.raft_cluster import data_entry
from tests.support.raft_logs import RaftLogs, raft_logs
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


@pytest.fixture
async def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RaftLogs]:
    monkeypatch.setattr(raft_log, "_DROP_EVERY_S", 0.02)
    async with raft_logs(tmp_path, 1) as logs:
        await logs.leader()
        yield logs


@pytest.mark.parametrize("error", [LogUnavailable("no such file"), OSError(5, "the disk")])
async def test_snapshots_that_cannot_be_dropped_are_tried_again(
    alone: RaftLogs, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fates: list[Exception] = [error, error]
    dropped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def drop() -> None:
        if fates:
            raise fates.pop()
        loop.call_soon_threadsafe(dropped.set)

    monkeypatch.setattr(alone.logs[1]._snapshots, "drop_unused", drop)
    await asyncio.wait_for(dropped.wait(), HANG_S)


async def test_damage_ends_the_lead_in_every_view(alone: RaftLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    log: RaftLog = alone.logs[1]
    client = alone.client(1)

    def fail() -> None:
        if not log._journal.is_synced:
            raise CorruptionError("not what was written", "the log")

    monkeypatch.setattr(log._journal, "sync", fail)
    with pytest.raises(OutcomeUnknown):
        await client.append([data_entry(b"a")])
    async with asyncio.timeout(HANG_S):
        view = await client.watch(0, 0)
        while view.failure is None:
            view = await client.watch(view.version, view.committed_index)
    assert view.failure == "the log: not what was written"
    assert (view.role, view.leader_id) == ("follower", None)
    assert [member.reachable for member in view.members] == [False]
