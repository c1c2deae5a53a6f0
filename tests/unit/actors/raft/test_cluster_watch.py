"""When a port is told what is new, and what a view is made of."""

import asyncio
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from actors.raft.cluster_watch import ClusterFacts, ClusterWatch
from actors.raft.log_requests import ClusterView, ReceivedSnapshot, ViewedMember
from graphdb.errors import LogUnavailable
from graphdb.raft.membership import Member, PeerId
from graphdb.raft.raft_node import RaftStatus
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

A, B, C = PeerId(1, 11), PeerId(2, 22), PeerId(3, 33)
MEMBERS = (Member(C, "host3:7002", False), Member(A, "host1:7002", True), Member(B, "host2:7002", True))
STATUS = RaftStatus(
    peer=A,
    is_voter=True,
    role="follower",
    term=4,
    leader=B,
    commit_index=9,
    last_index=12,
    members=MEMBERS,
    matched={},
    reachable=frozenset({2}),
    elections=2,
)


class Facts:
    """What is true of node 1, for the watch to look at."""

    def __init__(self) -> None:
        self.status = STATUS
        self.links: frozenset[int] = frozenset()
        self.dropped = 0
        self.snapshot_wanted = False
        self.search_flush_index = 0
        self.received: ReceivedSnapshot | None = None
        self.failure: str | None = None
        self.watch = ClusterWatch(
            1,
            ClusterFacts(
                status=lambda: self.status,
                open_links=lambda: self.links,
                dropped=lambda: self.dropped,
                snapshot_wanted=lambda: self.snapshot_wanted,
                search_flush_index=lambda: self.search_flush_index,
                received=lambda: self.received,
                failure=lambda: self.failure,
            ),
        )

    def change(self, **changes: Any) -> None:
        self.status = replace(self.status, **changes)


def view_of(watching: "Future[ClusterView]") -> ClusterView:
    return watching.result(0)


async def test_a_view_of_a_follower() -> None:
    """Besides the leader, whom it hears, it can reach those to whom a connection is open."""
    facts = Facts()
    facts.links = frozenset({3})
    facts.dropped = 4
    facts.watch.look()
    assert facts.watch.view == ClusterView(
        version=2,
        role="follower",
        term=4,
        leader_id=2,
        committed_index=0,  # nothing was said yet that may be read
        last_index=12,
        elections=2,
        messages_dropped=4,
        snapshot_wanted=False,
        received=None,
        failure=None,
        members=(
            ViewedMember(1, "host1:7002", True, True, None),
            ViewedMember(2, "host2:7002", True, True, None),
            ViewedMember(3, "host3:7002", False, True, None),
        ),
    )


async def test_a_leader_counts_whom_it_has_heard_and_not_who_is_connected() -> None:
    facts = Facts()
    facts.links = frozenset({2, 3})
    facts.change(role="leader", leader=A, matched={2: 11, 3: 0}, reachable=frozenset({2}))
    facts.watch.look()
    assert [(member.reachable, member.matched_index) for member in facts.watch.view.members] == [
        (True, None),
        (True, 11),
        (False, 0),
    ]


async def test_who_knows_nothing_is_told_at_once() -> None:
    facts = Facts()
    assert view_of(facts.watch.watch(0, 0)) == facts.watch.view
    facts.watch.look()
    facts.watch.advance(7)
    assert view_of(facts.watch.watch(1, 6)).committed_index == 7


@pytest.mark.parametrize(
    "changes",
    [{"term": 5}, {"role": "candidate"}, {"leader": None}, {"elections": 3}, {"members": MEMBERS[1:]}],
    ids=lambda changes: next(iter(changes)),
)
async def test_who_waits_is_told_of_a_change_once_it_is_seen(changes: dict[str, Any]) -> None:
    facts = Facts()
    facts.links = frozenset({3})
    facts.watch.look()
    version = facts.watch.view.version
    watching = facts.watch.watch(version, 0)
    facts.watch.look()
    assert not watching.done()
    facts.change(**changes)
    assert not watching.done()
    facts.watch.look()
    assert view_of(watching).version == version + 1
    facts.watch.look()
    assert facts.watch.view.version == version + 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("links", frozenset({3})),
        ("snapshot_wanted", True),
        ("received", ReceivedSnapshot(8, "/tree")),
        ("failure", "the journal is damaged"),
    ],
)
async def test_who_waits_is_told_of_what_is_no_part_of_the_status(name: str, value: object) -> None:
    facts = Facts()
    watching = facts.watch.watch(1, 0)
    setattr(facts, name, value)
    facts.watch.look()
    assert view_of(watching).version == 2


@pytest.mark.parametrize(
    "changes", [{"last_index": 90, "commit_index": 80}, {"matched": {2: 80}}], ids=["own", "others"]
)
async def test_indices_alone_make_no_other_version(changes: dict[str, Any]) -> None:
    facts = Facts()
    facts.watch.look()
    version = facts.watch.view.version
    watching = facts.watch.watch(version, 0)
    facts.change(**changes)
    facts.dropped = 9
    facts.watch.look()
    assert not watching.done()
    assert facts.watch.view.version == version
    assert facts.watch.view.last_index == facts.status.last_index  # but they are shown


async def test_what_is_committed_is_told_without_a_look() -> None:
    facts = Facts()
    behind, level = facts.watch.watch(1, 6), facts.watch.watch(1, 20)
    facts.watch.advance(20)
    view = view_of(behind)
    assert (view.version, view.committed_index, view.last_index) == (1, 20, 20)
    assert not level.done()
    facts.watch.advance(21)
    assert view_of(level).committed_index == 21


async def test_who_waits_long_is_told_all_the_same() -> None:
    facts = Facts()
    clock = asyncio.get_running_loop().time
    running = asyncio.create_task(facts.watch.run())
    began = clock()
    await asyncio.wait_for(asyncio.wrap_future(facts.watch.watch(1, 0)), HANG_S)
    assert 0.4 < clock() - began < 2
    running.cancel()
    await asyncio.wait([running])


async def test_who_has_left_is_passed_over() -> None:
    facts = Facts()
    left, stays = facts.watch.watch(1, 0), facts.watch.watch(1, 0)
    left.cancel()
    facts.watch.advance(1)
    assert view_of(stays).committed_index == 1


async def test_whoever_has_failed_leads_nobody_and_reaches_nobody() -> None:
    facts = Facts()
    facts.links = frozenset({2, 3})
    facts.change(role="leader", leader=A, matched={2: 11, 3: 0}, reachable=frozenset({2, 3}))
    facts.watch.look()
    assert facts.watch.view.role == "leader"
    facts.failure = "the journal is damaged"
    facts.watch.look()
    view = facts.watch.view
    assert (view.role, view.leader_id, view.failure) == ("follower", None, "the journal is damaged")
    assert [(member.reachable, member.matched_index) for member in view.members] == [(False, None)] * 3


@pytest.mark.parametrize("error", [LogUnavailable("no such file"), OSError(5, "the disk")])
async def test_a_look_that_fails_is_not_the_last(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    facts = Facts()
    good, fates = facts.status, [error, error]

    def status() -> RaftStatus:
        if fates:
            raise fates.pop()
        return replace(good, term=9)

    facts.watch._facts = replace(facts.watch._facts, status=status)
    running = asyncio.create_task(facts.watch.run())
    view = await asyncio.wait_for(asyncio.wrap_future(facts.watch.watch(1, 0)), HANG_S)
    assert (view.term, fates) == (9, [])
    assert caplog.text.count("the view of the cluster is an old one") == 1
    running.cancel()
    await asyncio.wait([running])
