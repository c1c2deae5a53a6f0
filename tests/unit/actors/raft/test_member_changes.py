"""What operators ask of a cluster, at any of its nodes, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from actors.raft import member_changes
from actors.raft.log_requests import MemberChange
from benchmarks.service import free_port
from graphdb.errors import MembershipRefused, NotLeader, OutcomeUnknown, UnavailableError
from tests.support.raft_logs import RaftLogs, raft_logs
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[RaftLogs]:
    async with raft_logs(tmp_path, 1, 2, 3) as logs:
        await until_members(logs, {1: True, 2: True, 3: True})
        yield logs


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_changes, "_TIMEOUT_S", 0.6)


async def change(logs: RaftLogs, asked: int, change: MemberChange) -> None:
    """Ask a node for it."""
    await asyncio.wait_for(logs.client(asked).change(change), HANG_S)


async def followers(logs: RaftLogs) -> list[int]:
    leader_id = await logs.leader()
    return [node_id for node_id in sorted(logs.logs) if node_id != leader_id]


async def until_members(logs: RaftLogs, votes: dict[int, bool]) -> None:
    """Wait until the leader says that these are the members, and who of them has a vote."""
    async with asyncio.timeout(HANG_S):
        while True:
            view = await logs.client(await logs.leader()).watch(0, 0)
            if {member.node_id: member.voting for member in view.members} == votes:
                return
            await asyncio.sleep(0.02)


async def test_a_node_is_made_to_lead_whoever_is_asked(three: RaftLogs) -> None:
    for asked in (1, 2, 3):
        chosen = (await followers(three))[0]
        await change(three, asked, MemberChange("lead", chosen))
        assert await three.leader() == chosen
        await change(three, asked, MemberChange("lead", chosen))  # it does already


async def test_a_leader_hands_over_and_others_need_not(three: RaftLogs) -> None:
    leader_id = await three.leader()
    await change(three, (await followers(three))[0], MemberChange("hand over"))
    assert await three.leader() == leader_id
    await change(three, leader_id, MemberChange("hand over"))
    assert await three.leader() != leader_id


async def test_a_removed_node_is_no_member_and_the_others_go_on(three: RaftLogs) -> None:
    removed, asked = await followers(three)
    leader_id = await three.leader()
    await change(three, asked, MemberChange("remove", removed))
    await until_members_of(three, leader_id, {asked, leader_id})
    await change(three, asked, MemberChange("remove", removed))  # once more is the same
    await three.stop(removed)
    assert await three.leader() == leader_id


async def until_members_of(logs: RaftLogs, node_id: int, members: set[int]) -> None:
    async with asyncio.timeout(HANG_S):
        while {each.node_id for each in (await logs.client(node_id).watch(0, 0)).members} != members:  # noqa: ASYNC110 no event
            await asyncio.sleep(0.02)


async def test_an_added_node_gets_a_vote_when_it_has_caught_up(three: RaftLogs) -> None:
    asked = (await followers(three))[0]
    address = f"127.0.0.1:{free_port()}"
    await change(three, asked, MemberChange("add", 4, address))
    await until_members(three, {1: True, 2: True, 3: True, 4: False})
    three.addresses[4] = address
    await three.start(4)
    await until_members(three, {1: True, 2: True, 3: True, 4: True})


@pytest.mark.parametrize(
    ("asked_for", "reason"),
    [
        (MemberChange("lead", 9), "node 9 is no member"),
        (MemberChange("paint"), "no change of the members: paint"),
    ],
)
async def test_what_cannot_be_done_is_refused_whoever_is_asked(
    three: RaftLogs, asked_for: MemberChange, reason: str
) -> None:
    leader_id, clock = await three.leader(), asyncio.get_running_loop().time
    for asked in (1, 2, 3):
        began = clock()
        with pytest.raises(MembershipRefused, match=reason):
            await change(three, asked, asked_for)
        assert clock() - began < 2  # it is not tried again
    assert await three.leader() == leader_id


@pytest.mark.usefixtures("impatient")
async def test_without_a_majority_nothing_changes(three: RaftLogs) -> None:
    leader_id = await three.leader()
    away, stays = await followers(three)
    await three.stop(away)
    await three.stop(leader_id)
    async with asyncio.timeout(HANG_S):
        while (await three.client(stays).watch(0, 0)).leader_id is not None:  # noqa: ASYNC110 no event
            await asyncio.sleep(0.02)
    with pytest.raises(NotLeader, match="no node leads"):
        await change(three, stays, MemberChange("remove", away))


@pytest.mark.usefixtures("impatient")
async def test_the_last_voter_stays(tmp_path: Path) -> None:
    async with raft_logs(tmp_path, 1) as alone:
        await alone.leader()
        with pytest.raises(MembershipRefused, match="the last voter stays"):
            await change(alone, 1, MemberChange("remove", 1))
        with pytest.raises(UnavailableError, match="no other member"):
            await change(alone, 1, MemberChange("hand over"))


@pytest.mark.usefixtures("impatient")
async def test_a_change_that_no_majority_takes_may_still_be_made(three: RaftLogs) -> None:
    leader_id = await three.leader()
    for node_id in await followers(three):
        await three.stop(node_id)
    with pytest.raises((OutcomeUnknown, NotLeader)):
        await change(three, leader_id, MemberChange("remove", 3 if leader_id != 3 else 2))
