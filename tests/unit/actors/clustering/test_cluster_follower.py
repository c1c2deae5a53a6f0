"""What a port knows of its cluster: as new as the log says it is, and nothing while the log is silent."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from actors.clustering import cluster_follower
from actors.clustering.cluster_follower import ClusterFollower
from actors.raft.log_requests import ClusterView
from graphdb.errors import NotLeader
from tests.support.scripted_log import NO_LEADER, ScriptedLog, following, scripted_log
from tests.support.timing import HANG_S, quick_enough

pytestmark = pytest.mark.anyio


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[ScriptedLog]:
    async with scripted_log(tmp_path) as log:
        yield log


async def until(follower: ClusterFollower, view: ClusterView | None) -> None:
    async with asyncio.timeout(HANG_S):
        while follower.view != view:
            await follower.change(5)


async def test_views_are_heard_in_order_and_the_last_is_kept(log: ScriptedLog) -> None:
    heard: list[ClusterView] = []
    async with following(log, heard.append) as (_, follower):
        assert follower.view is None
        assert not follower.leads
        await until(follower, NO_LEADER)
        log.let_lead(2)
        await until(follower, log.view)
        assert not follower.leads
        log.let_lead(1)
        await until(follower, log.view)
        assert follower.leads
        log.show(committed_index=9)
        await until(follower, log.view)
        await asyncio.sleep(0.05)
    told = [(view.version, view.leader_id, view.committed_index) for view in heard]
    assert [*dict.fromkeys(told)] == [
        (1, None, 0),
        (2, 2, 0),
        (3, 1, 0),
        (4, 1, 9),
    ]


async def test_who_does_not_hear_of_commits_hears_of_all_else(log: ScriptedLog) -> None:
    heard: list[ClusterView] = []
    client = log.client()
    follower = ClusterFollower(1, client, heard.append, hears_commits=False)
    follower.start()
    await until(follower, NO_LEADER)
    log.view = replace(log.view, committed_index=9)
    await asyncio.sleep(0.05)
    assert [view.committed_index for view in heard] == [0]
    log.let_lead(1)
    await until(follower, log.view)
    assert (heard[-1].leader_id, heard[-1].committed_index) == (1, 9)
    await follower.close()
    await client.close()


async def test_who_asks_during_an_election_is_told_its_winner(log: ScriptedLog) -> None:
    async with following(log) as (_, follower):
        asking = asyncio.create_task(follower.leader())
        await asyncio.sleep(0.1)
        assert not asking.done()
        log.let_lead(3)
        assert await asyncio.wait_for(asking, HANG_S) == 3
        assert await asyncio.wait_for(follower.leader(), HANG_S) == 3


async def test_without_a_leader_whoever_asks_waits_once_and_is_refused_at_once_afterwards(
    log: ScriptedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_follower, "_LEADERLESS_S", 0.3)
    clock = asyncio.get_running_loop().time
    async with following(log) as (_, follower):
        began = clock()
        with pytest.raises(NotLeader, match="no majority"):
            await follower.leader()
        assert 0.25 < clock() - began < HANG_S
        for took in quick_enough(0.1):
            with took, pytest.raises(NotLeader):
                await follower.leader()
        log.let_lead(2)
        await until(follower, log.view)
        await asyncio.sleep(0.4)  # a leader of whom there is nothing new is one
        log.let_lead(None)
        await until(follower, log.view)
        began = clock()  # an election that begins now has its time
        with pytest.raises(NotLeader):
            await follower.leader()
        assert 0.2 < clock() - began < HANG_S


async def test_a_log_that_is_away_is_known_by_nothing_and_found_again(log: ScriptedLog) -> None:
    async with following(log) as (_, follower):
        log.let_lead(1)
        await until(follower, log.view)
        await log.server.close()
        await until(follower, None)
        assert not follower.leads
        log.let_lead(2)
        await log.server.start()
        await until(follower, log.view)
        assert await follower.leader() == 2


async def test_a_change_that_does_not_come_ends_the_wait(log: ScriptedLog) -> None:
    async with following(log) as (_, follower):
        await until(follower, NO_LEADER)
        for took in quick_enough(1):
            with took:
                await follower.change(0.1)
            assert took.seconds > 0.05


async def test_all_who_wait_hear_of_a_change(log: ScriptedLog) -> None:
    async with following(log) as (_, follower):
        await until(follower, NO_LEADER)
        waiting = [asyncio.create_task(follower.change(10)) for _ in range(3)]
        await asyncio.sleep(0)
        log.let_lead(2)
        await asyncio.wait_for(asyncio.gather(*waiting), HANG_S)
        assert follower.view == log.view


async def test_one_that_was_never_started_can_be_closed(log: ScriptedLog) -> None:
    client = log.client()
    await ClusterFollower(1, client, lambda view: None).close()
    await client.close()
