"""`ClusterWatch`: tells a node's port what has become of the log and the cluster, as soon as it changes."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from actors.futures import answer
from actors.raft.log_requests import ClusterView, ReceivedSnapshot, ViewedMember
from actors.raft.rate_limited_log import RateLimitedLog
from graphdb.errors import UnavailableError
from graphdb.raft.raft_node import RaftStatus

__all__ = ["ClusterFacts", "ClusterWatch"]

logger = logging.getLogger(__name__)
_LOOK_S = 0.02
_ANSWER_AT_LEAST_S = 0.5  # indices of a node whose cluster stands still are seen to be so old at most


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a view is made of, each asked for anew."""

    status: Callable[[], RaftStatus]
    open_links: Callable[[], frozenset[int]]  # node ids of the peers that can be sent to
    dropped: Callable[[], int]
    snapshot_wanted: Callable[[], bool]
    search_flush_index: Callable[[], int]
    received: Callable[[], ReceivedSnapshot | None]
    failure: Callable[[], str | None]


class ClusterWatch:
    """Used on the loop of a `RaftDriver`."""

    def __init__(self, node_id: int, facts: ClusterFacts) -> None:
        self._node_id = node_id
        self._facts = facts
        self._log = RateLimitedLog(logger)
        self._committed_index = 0
        self._view = self._look(1)  # who knows nothing has seen version 0
        self._waiting: list[tuple[int, int, float, Future[ClusterView]]] = []

    @property
    def view(self) -> ClusterView:
        """As of the last look."""
        return self._view

    async def run(self) -> None:
        """Look again and again, whatever a look meets."""
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                self.look()
            except (UnavailableError, OSError) as error:
                self._log.warn("look", "the view of the cluster is an old one: %s", error)

    def look(self) -> None:
        """See what is new, and tell whoever waits for it."""
        fresh = self._look(self._view.version)
        if not _is_same(fresh, self._view):
            fresh = replace(fresh, version=self._view.version + 1)
        self._view = fresh
        self._tell(asyncio.get_running_loop().time())

    def advance(self, committed_index: int) -> None:
        """More may be read."""
        self._committed_index = committed_index
        last_index = max(committed_index, self._view.last_index)
        self._view = replace(self._view, committed_index=committed_index, last_index=last_index)
        self._tell(0.0)

    def watch(self, version: int, committed_index: int) -> "Future[ClusterView]":
        """The view, once it is another than that version, more is committed, or some time has passed."""
        future: Future[ClusterView] = Future()
        deadline = asyncio.get_running_loop().time() + _ANSWER_AT_LEAST_S
        self._waiting.append((version, committed_index, deadline, future))
        self._tell(0.0)
        return future

    def _tell(self, now: float) -> None:
        waiting = []
        for watcher in self._waiting:
            version, committed_index, deadline, future = watcher
            if (
                version != self._view.version
                or committed_index < self._view.committed_index
                or now >= deadline
            ):
                answer(future, self._view)
            elif not future.done():
                waiting.append(watcher)
        self._waiting = waiting

    def _look(self, version: int) -> ClusterView:
        facts = self._facts
        failure = facts.failure()
        status = facts.status() if failure is None else _retired(facts.status())
        return ClusterView(
            version=version,
            role=status.role,
            term=status.term,
            leader_id=status.leader.node_id if status.leader is not None else None,
            committed_index=self._committed_index,
            last_index=status.last_index,
            elections=status.elections,
            messages_dropped=facts.dropped(),
            snapshot_wanted=facts.snapshot_wanted(),
            search_flush_index=facts.search_flush_index(),
            awaits_snapshot=status.awaits_snapshot,
            received=facts.received(),
            failure=failure,
            members=self._look_at_members(status, failure is None),
        )

    def _look_at_members(self, status: RaftStatus, takes_part: bool) -> tuple[ViewedMember, ...]:
        """Whom the leader has heard of lately; elsewhere, to whom a connection is open."""
        reached: frozenset[int] = frozenset()
        if takes_part:
            reached = status.reachable | {self._node_id}
            reached |= frozenset() if status.role == "leader" else self._facts.open_links()
        return tuple(
            ViewedMember(
                member.peer.node_id,
                member.address,
                member.voting,
                member.peer.node_id in reached,
                status.matched.get(member.peer.node_id),
            )
            for member in sorted(status.members, key=lambda member: member.peer.node_id)
        )


def _retired(status: RaftStatus) -> RaftStatus:
    """The last status of a node that takes no part any more: whatever it was, it is that no longer."""
    return replace(
        status, role="follower", leader=None, reachable=frozenset(), matched={}, awaits_snapshot=False
    )


def _is_same(one: ClusterView, other: ClusterView) -> bool:
    """Whether they differ in nothing but how far the logs are."""
    return _without_indices(one) == _without_indices(other)


def _without_indices(view: ClusterView) -> ClusterView:
    members = tuple(replace(member, matched_index=None) for member in view.members)
    return replace(view, committed_index=0, last_index=0, messages_dropped=0, members=members)
