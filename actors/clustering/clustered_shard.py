"""`ClusteredShard`: a node's quads in a cluster, a `StoreShard` that follows a log which the nodes agree on.

Reads are answered here, as new as they ask to be; writes go to the node that leads.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from actors.clustering.chores import Chores
from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.cluster_report import cluster_report, node_status
from actors.clustering.forwarded_work import APPLIED_INDEX, ForwardedWork
from actors.clustering.forwarded_writes import AlertChange
from actors.clustering.routed_writes import RoutedWrites
from actors.clustering.search_copies import SearchCopies
from actors.clustering.write_router import WriteRouter
from actors.columns.client import ColumnClient
from actors.raft.log_requests import ClusterView, ForwardedRequest, MemberChange
from actors.raft.raft_log_client import RaftLogClient
from actors.readers.client import ReaderClient
from actors.shard.open_shard import OpenShard, let_go
from actors.shard.shard_writer import ShardWriter
from actors.shard.store_directory import StoreDirectory
from actors.shard.store_shard import ShardConfig, StoreShard
from graphdb.access.sight import Sight
from graphdb.alerts.commands import Command
from graphdb.config import Settings
from graphdb.errors import (
    GraphDBError,
    LogCompacted,
    LogUnavailable,
    NotLeader,
    OutcomeUnknown,
    UnavailableError,
)
from graphdb.model import Confirmation
from graphdb.node import ClusterReport, Consistency, NodeStatus

__all__ = ["ClusteredShard"]

logger = logging.getLogger(__name__)

_READ_INDEX_S = 3.0  # an election may take so long
_WRITE_GRACE_S = 10.0  # beyond the time limit of an update: waiting for its turn, and for the log
_HAND_OVER_S = 5.0
_LOOK_S = 0.2
_SNAPSHOT_S = 5.0


class ClusteredShard(StoreShard):
    """The backend of a node of a cluster, for one event loop."""

    def __init__(
        self,
        settings: Settings,
        log: RaftLogClient,
        readers: ReaderClient,
        config: ShardConfig | None = None,
        columns: ColumnClient | None = None,
    ) -> None:
        """See `StoreShard`."""
        super().__init__(settings, log, readers, config, columns)
        self._raft = log
        self._node_id = settings.cluster.node_id
        self._cluster = ClusterFollower(self._node_id, log, self._hear)
        self._router = WriteRouter(
            self._node_id,
            log,
            self._cluster,
            lambda: self._cluster.view.committed_index if self._cluster.view is not None else 0,
            self.wait_for_index,
            settings.server.query_timeout_seconds + _WRITE_GRACE_S,
        )
        copies = SearchCopies(settings, log)
        self._work = ForwardedWork(log, self._cluster, self, settings.security, copies)
        self._chores = Chores(
            log, self._has_trouble, self.hand_over_lead, carries_search=settings.search.enabled
        )

    # from start to close

    async def start(self, progress: Callable[[int, int], None] = lambda applied, last: None) -> None:
        """Open the store, and wait until this node is in its cluster and has what was committed before.

        That takes as long as it takes: without a majority of the nodes it does not end.
        """
        self._cluster.start()
        self._work.start()
        while True:
            try:
                return await super().start(progress)
            except LogCompacted:
                logger.info("a snapshot has taken the place of what this node did not have")
            let_go()  # an open store would tidy up among the files of the one that takes its place

    async def close(self) -> None:
        """Take no more requests of others, then as `StoreShard.close`."""
        await self._work.close()
        await self._cluster.close()
        await self._chores.close()
        await super().close()

    async def hand_over_lead(self) -> None:
        """Before a planned end: if this node leads, have another lead, so that no election is needed."""
        with contextlib.suppress(UnavailableError, TimeoutError):
            async with asyncio.timeout(_HAND_OVER_S):
                await self._raft.change(MemberChange("hand over"))

    async def _recover(self, progress: Callable[[int, int], None]) -> OpenShard:
        await self._adopt_snapshot()
        return await super()._recover(progress)

    async def _adopt_snapshot(self) -> None:
        """Where a peer has sent a snapshot that is ahead of the store, become it.

        The journal may begin behind it a moment before the snapshot is seen here.
        """
        directory = await asyncio.to_thread(StoreDirectory, self._settings.server.data_dir)
        applied = directory.read_applied()
        give_up_at = asyncio.get_running_loop().time() + _SNAPSHOT_S
        while asyncio.get_running_loop().time() < give_up_at:
            received = (await self._raft.watch(0, 0)).received
            if received is not None:
                if received.index > applied:
                    await asyncio.to_thread(directory.adopt_snapshot, Path(received.path), received.index)
                await self._raft.adopted(received.index)
                return
            if (await self._log.status()).first_index <= applied + 1:
                return
            await asyncio.sleep(_LOOK_S)

    async def _catch_up(self, writer: ShardWriter, progress: Callable[[int], None]) -> None:
        """Follow the log until this node has a vote and what was in its log when it started.

        The store may hold effects of entries up to there, so it is a whole state only then.
        """
        needed = await self._raft.last_effect_index()
        while True:
            with contextlib.suppress(LogUnavailable):  # the log is being started again
                await writer.catch_up(progress)
                # what no majority has may be taken back meanwhile
                needed = min(needed, await self._raft.last_effect_index())
                if writer.applied_index >= needed and self._has_vote():
                    return
            await self._cluster.change(_LOOK_S)

    def _has_vote(self) -> bool:
        view = self._cluster.view
        return view is not None and any(
            member.voting and member.node_id == self._node_id for member in view.members
        )

    def _must_reopen(self, trouble: GraphDBError | None) -> bool:
        return isinstance(trouble, LogCompacted) or super()._must_reopen(trouble)

    def _hear(self, view: ClusterView) -> None:
        if self._open is not None:
            self._open.writer.hear(view.committed_index)
            self._chores.see_to(view, self._open)
            self.alerts.timer.wake()

    def _has_trouble(self) -> bool:
        """Whether this node could not take a write."""
        return self._open is None or self._open.writer.trouble is not None or not self._has_room()

    # reads

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        """See `Backend.reach`."""
        if consistency is Consistency.LOCAL:
            return
        deadline = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                index = await self._index_to_reach(consistency)
        except TimeoutError:
            raise NotLeader("no leader of the cluster has answered in time") from None
        await self.wait_for_index(index, max(0.0, deadline - asyncio.get_running_loop().time()))

    async def _index_to_reach(self, consistency: Consistency) -> int:
        leader_id = await self._cluster.leader()
        if consistency is Consistency.LINEARIZABLE:
            return await self._raft.read_index(_READ_INDEX_S)
        return 0 if leader_id == self._node_id else await self._applied_index_of(leader_id)

    async def _applied_index_of(self, leader_id: int) -> int:
        request = ForwardedRequest(0, APPLIED_INDEX, "", b"")
        try:
            return int(await self._raft.forward(leader_id, request, _READ_INDEX_S))
        except OutcomeUnknown as error:
            raise NotLeader("the node that leads does not answer") from error

    # writes

    def writes(self, sight: Sight) -> RoutedWrites:
        """See `Backend.writes`."""
        return RoutedWrites(self._means, sight, self._router)

    # alerts

    def leads(self) -> bool:
        """See `actors.alerts.alert_node.AlertNode`."""
        return super().leads() and self._cluster.leads

    async def change_alerts(
        self, command: Command, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `actors.alerts.alert_node.AlertNode`."""
        local = super().change_alerts
        if since is not None:
            return await local(command, request_id, since)
        return await self._router.route(
            request_id,
            lambda own_id, behind: local(command, own_id, behind),
            lambda behind: AlertChange(command, behind),
        )

    # members

    async def add_member(self, node_id: int, address: str) -> None:
        """See `Backend.add_member`."""
        await self._raft.change(MemberChange("add", node_id, address))

    async def remove_member(self, node_id: int) -> None:
        """See `Backend.remove_member`."""
        await self._raft.change(MemberChange("remove", node_id))

    async def hand_over(self, node_id: int) -> None:
        """See `Backend.hand_over`."""
        await self._raft.change(MemberChange("lead", node_id))

    # how the node is

    def status(self) -> NodeStatus:
        """See `Backend.status`."""
        return node_status(super().status(), self._cluster.view)

    def cluster(self) -> ClusterReport | None:
        """See `Backend.cluster`."""
        return cluster_report(super().status(), self._cluster.view)
