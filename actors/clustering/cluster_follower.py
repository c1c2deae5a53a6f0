"""`ClusterFollower`: what a node's port knows of its cluster, kept up to date by watching the log."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from actors.raft.log_requests import ClusterView
from actors.raft.raft_log_client import RaftLogClient
from graphdb.errors import GraphDBError, NotLeader, UnavailableError

__all__ = ["ClusterFollower"]

logger = logging.getLogger(__name__)
_LEADERLESS_S = 3.0  # so long an election may take; who asks then is refused at once
_ELECTION_S = 2.0  # of that, once it is known that there is no leader any more
_AGAIN_S = 0.1
_ANY_INDEX = (1 << 63) - 1
_SILENT_S = 2.0  # the log promises an answer every half second


class ClusterFollower:
    """For one event loop."""

    def __init__(
        self,
        node_id: int,
        log: RaftLogClient,
        on_view: Callable[[ClusterView], None],
        *,
        hears_commits: bool = True,
    ) -> None:
        """on_view hears of each new view; without hears_commits, not at once of one that differs in how far
        the log is and in nothing else.
        """
        # None while the log is silent; one with a failure and nothing else where it cannot start
        self.view: ClusterView | None = None
        self._node_id = node_id
        self._log = log
        self._on_view = on_view
        self._hears_commits = hears_commits
        self._changed = asyncio.Event()
        self._leader_seen_at = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def has_vote(self) -> bool:
        """Whether this node votes, as far as it knows."""
        return self.view is not None and any(
            member.voting and member.node_id == self._node_id for member in self.view.members
        )

    def start(self) -> None:
        """Begin to watch."""
        if self._task is None:
            self._leader_seen_at = asyncio.get_running_loop().time()
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        version = committed = 0
        while True:
            try:
                async with asyncio.timeout(_SILENT_S):
                    view = await self._log.watch(version, committed)
            except (UnavailableError, TimeoutError):
                self._lose(None)  # the log is being started again, or hangs
            except GraphDBError as error:
                self._lose(ClusterView(failure=str(error)))  # all that is known while it cannot start
            else:
                version = view.version
                committed = view.committed_index if self._hears_commits else _ANY_INDEX
                self._take(view)
                continue
            version = committed = 0  # the next answer comes at once
            await asyncio.sleep(_AGAIN_S)

    def _take(self, view: ClusterView) -> None:
        self._note_change()
        self.view = view
        if view.leader_id is not None:
            self._leader_seen_at = asyncio.get_running_loop().time()
        self._on_view(view)
        self._tell()

    def _lose(self, view: ClusterView | None) -> None:
        if view is not None and view != self.view:
            logger.error("this node has no part in its cluster: %s", view.failure)
        self._note_change()
        self.view = view
        self._tell()

    def _note_change(self) -> None:
        """A node that had a leader, or stood still, until now may wait as long as an election takes."""
        if self.view is not None and self.view.leader_id is not None:
            now = asyncio.get_running_loop().time()
            self._leader_seen_at = max(self._leader_seen_at, now - max(0.0, _LEADERLESS_S - _ELECTION_S))

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def change(self, timeout_s: float) -> None:
        """Return when the view has changed, or the time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    @property
    def leads(self) -> bool:
        """Whether this node leads, as far as it knows."""
        return self.view is not None and self.view.role == "leader"

    async def leader(self) -> int:
        """The node that leads; while one is being elected, wait. Raises NotLeader."""
        while (view := self.view) is None or view.leader_id is None:
            waited_s = asyncio.get_running_loop().time() - self._leader_seen_at
            if waited_s >= _LEADERLESS_S:
                raise NotLeader("the cluster has no leader: no majority of its nodes is in reach")
            await self.change(_LEADERLESS_S - waited_s)
        return view.leader_id
