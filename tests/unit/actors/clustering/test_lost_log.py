"""A log that hangs, or that can never start again: nobody's loop ends, and the node says so."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from actors.clustering import cluster_follower
from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.cluster_report import cluster_report, node_status
from actors.clustering.forwarded_work import APPLIED_INDEX
from actors.raft import raft_log_client
from actors.raft.incoming_links import Forwarded
from actors.raft.log_requests import ClusterView
from actors.raft.raft_log_client import RaftLogClient
from graphdb.errors import ConfigError, NotLeader
from graphdb.node import ClusterReport
from tests.support.clustered_shards import forwarded_work
from tests.support.scripted_log import following, scripted_log
from tests.support.shards import stand_alone
from tests.support.timing import HANG_S
from tests.unit.actors.clustering.test_cluster_report import OWN

pytestmark = pytest.mark.anyio


class Broken:
    """A log whose process cannot be made, until it is mended."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_mended = False

    async def endpoint(self) -> str:
        if not self.is_mended:
            raise ConfigError("the update log cannot start: not a state file")
        return self.path


async def until(follower: ClusterFollower, condition: Callable[[ClusterView | None], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not condition(follower.view):
            await follower.change(5)


async def test_a_log_that_hangs_is_lost_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_follower, "_SILENT_S", 0.7)
    async with scripted_log(tmp_path) as log, following(log) as (_, follower):
        log.let_lead(1)
        await until(follower, lambda view: view == log.view)
        await asyncio.sleep(1)
        assert follower.leads  # while it answers, nothing is missed
        log.is_silent = True
        await until(follower, lambda view: view is None)
        assert not follower.leads
        log.is_silent = False
        await until(follower, lambda view: view == log.view)


async def test_a_log_that_cannot_start_is_an_error_and_asked_for_again(tmp_path: Path) -> None:
    async with scripted_log(tmp_path) as log:
        broken = Broken(log.server.path)
        client = RaftLogClient(broken.endpoint)
        heard: list[ClusterView] = []
        follower = ClusterFollower(1, client, heard.append)
        follower.start()
        await until(follower, lambda view: view is not None)
        view = follower.view
        assert view is not None
        assert view.failure == "the update log cannot start: not a state file"
        assert node_status(OWN, view).status == "error"
        assert cluster_report(OWN, view) == ClusterReport(1, "follower", 0, None, 0, 0, 40, 0, 0, ())
        with pytest.raises(NotLeader):
            await asyncio.wait_for(follower.leader(), HANG_S)
        assert heard == []
        broken.is_mended = True
        await until(follower, lambda view: view == log.view)
        assert heard == [log.view]
        await follower.close()
        await client.close()


async def test_work_is_taken_once_the_log_has_come_after_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raft_log_client, "_AGAIN_S", 0.01)
    async with (
        stand_alone(tmp_path / "data") as shard,
        scripted_log(tmp_path) as log,
        following(log) as (_, follower),
    ):
        broken = Broken(log.server.path)
        client = RaftLogClient(broken.endpoint)
        work = forwarded_work(client, follower, shard)
        work.start()
        await asyncio.sleep(0.1)
        broken.is_mended = True
        log.let_lead(1)
        await until(follower, lambda view: view == log.view)
        asking = log.queue.serve(Forwarded(2, APPLIED_INDEX, "", b""))
        assert await asyncio.wait_for(asking, HANG_S) == b"0"
        await work.close()
        await client.close()


async def test_a_log_that_is_gone_does_not_keep_the_work_from_ending(tmp_path: Path) -> None:
    async with (
        stand_alone(tmp_path / "data") as shard,
        scripted_log(tmp_path) as log,
        following(log) as (_, follower),
    ):
        client = RaftLogClient(Broken("").endpoint)
        work = forwarded_work(client, follower, shard)
        work.start()
        await asyncio.sleep(0.05)
        await asyncio.wait_for(work.close(), HANG_S)
