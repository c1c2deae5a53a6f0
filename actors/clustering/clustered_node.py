"""`clustered_node`: a node of a cluster, composed of the capabilities of one that stands alone and of those
that know the others. Reads are answered here, as new as they ask to be; writes go to the node that leads.
"""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from actors.alerts.alert_service import AlertService
from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.cluster_report import cluster_report, node_status
from actors.clustering.forwarded_work import APPLIED_INDEX, TRANSACTION_REQUEST, ForwardedWork
from actors.clustering.forwarded_writes import (
    AlertChange,
    ForwardedWrite,
    NamedStateChange,
    NamespaceChange,
    PurgeChange,
    SavedQueryChange,
)
from actors.clustering.history_fetch import FetchMeans, HistoryFetch
from actors.clustering.history_files import HistoryFiles
from actors.clustering.maintenance import Maintenance
from actors.clustering.routed_writes import RoutedWrites, RoutedWriting, WriteRouter
from actors.clustering.search_copies import SearchCopies
from actors.columns.client import ColumnClient
from actors.node.admin import AlertLog
from actors.node.graph_node import Books, GraphNode, NodeParts
from actors.node.namespaces import NamespaceService
from actors.node.own_book import Book, OwnBook
from actors.node.queries import Progress
from actors.node.saved_queries import SavedQueryService
from actors.node.searching import Indexes
from actors.node.store_lifecycle import StoreConfig, StoreLifecycle
from actors.raft.log_requests import ClusterView, ForwardedRequest, MemberChange
from actors.raft.raft_log_client import RaftLogClient
from actors.readers.client import ReaderClient
from actors.shard.shard_writer import ShardWriter
from actors.shard.store_directory import StoreDirectory
from graphdb.alerts.book import AlertBook
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

__all__ = ["clustered_node"]

B = TypeVar("B", bound=Book)
C = TypeVar("C")

_READ_INDEX_S = 3.0  # an election may take so long
_WRITE_GRACE_S = 10.0  # beyond the time limit of an update: waiting for its turn, and for the log
_HAND_OVER_S = 5.0
_LOOK_S = 0.2
_SNAPSHOT_S = 5.0


def clustered_node(
    settings: Settings,
    log: RaftLogClient,
    readers: ReaderClient,
    config: StoreConfig | None = None,
    columns: ColumnClient | None = None,
    indexes: Indexes | None = None,
) -> GraphNode[RoutedWrites]:
    """See `NodeParts`. It starts once this node is in its cluster and has what was committed before; that
    takes as long as it takes: without a majority of the nodes it does not end.
    """
    parts = NodeParts(settings, log, readers, config, columns, indexes)
    peers = _Peers(parts, log)
    progress = Progress(parts.current, peers.reach)
    alert_log = _RoutedAlerts(parts.own_alerts, peers)
    alerts = AlertService(alert_log, progress, parts.queries, settings)
    following = _SharedLog(settings.server.data_dir, log, peers.follower, peers.adopted)
    lifecycle = parts.lifecycle(following, alerts.timer.wake, peers.fetch_history)
    peers.watch(lifecycle, alerts.timer.wake)
    writing = RoutedWriting(parts.own_writing, peers.router, parts.current)
    books = Books(
        alerts,
        SavedQueryService(_RoutedBook(parts.own_saved_queries, peers, SavedQueryChange)),
        NamespaceService(_RoutedBook(parts.own_namespaces, peers, NamespaceChange)),
        parts.named_states(_RoutedBook(parts.own_named_states, peers, NamedStateChange)),
        _RoutedBook(parts.own_purges, peers, PurgeChange),
    )
    members = _LogMembers(log, peers.follower)
    return parts.node(lifecycle, progress, writing, books, members, peers)


class _Peers:
    """The other nodes: which leads, what they ask of this one, and what this one asks of them. On the event
    loop of its node.
    """

    def __init__(self, parts: NodeParts, log: RaftLogClient) -> None:
        settings = parts.settings
        self._parts, self._log = parts, log
        self._node_id = settings.cluster.node_id
        self.follower = ClusterFollower(self._node_id, log, self._hear)
        self.router = WriteRouter(
            self._node_id,
            log,
            self.follower,
            lambda: self.follower.view.committed_index if self.follower.view is not None else 0,
            parts.own_progress.wait_for_index,
            settings.server.query_timeout_seconds + _WRITE_GRACE_S,
        )
        self._work = ForwardedWork(
            log,
            self.follower,
            parts.own_progress.snapshot_index,
            parts.own_writing,
            parts.own_alerts,
            parts.own_saved_queries,
            parts.own_namespaces,
            parts.own_named_states,
            parts.own_purges,
            settings.security,
            SearchCopies(settings, log),
            HistoryFiles(
                settings.server.data_dir,
                parts.own_progress.snapshot_index,
                lambda: parts.current.opened().directory.history_purged,
            ),
            parts.transactions.answer_other,
        )
        parts.transactions.ask_by(self._ask_about_transaction)
        self.adopted = asyncio.Event()  # a snapshot of another node
        self._maintenance: Maintenance | None = None
        self._on_view: Callable[[], None] = lambda: None
        self._version = 0  # of the last view that on_view has heard of

    async def _ask_about_transaction(self, node_id: int, request: bytes) -> bytes:
        timeout_s = self._parts.settings.server.query_timeout_seconds + _WRITE_GRACE_S
        return await self._log.forward(
            node_id, ForwardedRequest(0, TRANSACTION_REQUEST, "", request), timeout_s
        )

    async def fetch_history(self) -> None:
        """Have what other nodes have of the past, where this node has begun with a snapshot."""
        parts = self._parts
        data_dir = parts.settings.server.data_dir
        means = FetchMeans(
            data_dir,
            StoreDirectory(data_dir).history_wanted,
            parts.history_keeper,
            self._log.forward,
            self._others,
            parts.own_progress.snapshot_index,
            lambda: parts.own_purges.book().last_index,
            self._reach_end,
            lambda: parts.own_named_states.book().needed_from,
        )
        await HistoryFetch(means).run(self.adopted)

    def _others(self) -> list[int]:
        """The other members, that which leads first."""
        view = self.follower.view
        members = () if view is None else view.members
        others = [member.node_id for member in members if member.node_id != self._node_id]
        return sorted(others, key=lambda node_id: view is None or node_id != view.leader_id)

    async def _reach_end(self) -> None:
        index = await self._log.read_index(_READ_INDEX_S)
        await self._parts.own_progress.wait_for_index(index, _READ_INDEX_S)

    def watch(self, lifecycle: StoreLifecycle, on_view: Callable[[], None]) -> None:
        """Do what the cluster asks of this store from now on; on_view hears of each view, while it is open,
        that differs in more than how far the log is.
        """
        self._maintenance = Maintenance(
            self._log,
            lifecycle.has_fault,
            self.hand_over_lead,
            carries_search=self._parts.settings.search.enabled,
        )
        self._on_view = on_view

    def join(self) -> None:
        """See `actors.node.graph_node.Company`."""
        self.follower.start()
        self._work.start()

    async def hand_over_lead(self) -> None:
        """See `actors.node.graph_node.Company`."""
        with contextlib.suppress(UnavailableError, TimeoutError):
            async with asyncio.timeout(_HAND_OVER_S):
                await self._log.change(MemberChange("hand over"))

    async def leave(self) -> None:
        """See `actors.node.graph_node.Company`."""
        await self._work.close()
        await self.follower.close()
        if self._maintenance is not None:
            await self._maintenance.close()

    def _hear(self, view: ClusterView) -> None:
        store = self._parts.current.open
        if store is not None:
            store.writer.hear(view.committed_index)
            if self._maintenance is not None:
                self._maintenance.see_to(view, store)
            if view.version != self._version:
                self._version = view.version
                self._on_view()

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        """See `serve.backend.Progress.reach`."""
        if consistency is Consistency.LOCAL:
            return
        deadline = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                index = await self._index_to_reach(consistency)
        except TimeoutError:
            raise NotLeader("no leader of the cluster has answered in time") from None
        left_s = max(0.0, deadline - asyncio.get_running_loop().time())
        await self._parts.own_progress.wait_for_index(index, left_s)

    async def _index_to_reach(self, consistency: Consistency) -> int:
        leader_id = await self.follower.leader()
        if consistency is Consistency.LINEARIZABLE:
            return await self._log.read_index(_READ_INDEX_S)
        return 0 if leader_id == self._node_id else await self._applied_index_of(leader_id)

    async def _applied_index_of(self, leader_id: int) -> int:
        request = ForwardedRequest(0, APPLIED_INDEX, "", b"")
        try:
            return int(await self._log.forward(leader_id, request, _READ_INDEX_S))
        except OutcomeUnknown as error:
            raise NotLeader("the node that leads does not answer") from error


class _SharedLog:
    """Following a log that the nodes of a cluster agree on: `actors.node.store_lifecycle.Following`."""

    def __init__(
        self, data_dir: Path, log: RaftLogClient, follower: ClusterFollower, adopted: asyncio.Event
    ) -> None:
        """adopted is set when the store has become that of a snapshot."""
        self._data_dir, self._log, self._follower, self._adopted = data_dir, log, follower, adopted

    async def prepare(self) -> None:
        """Where a peer has sent a snapshot that is ahead of the store, become it.

        The journal may begin after it a moment before the snapshot is seen here.
        """
        directory = await asyncio.to_thread(StoreDirectory, self._data_dir)
        applied = directory.read_applied()
        give_up_at = asyncio.get_running_loop().time() + _SNAPSHOT_S
        while asyncio.get_running_loop().time() < give_up_at:
            received = (await self._log.watch(0, 0)).received
            if received is not None:
                if received.index > applied:
                    await asyncio.to_thread(directory.want_history)
                    await asyncio.to_thread(directory.adopt_snapshot, Path(received.path), received.index)
                    self._adopted.set()
                await self._log.adopted(received.index)
                return
            if (await self._log.status()).first_index <= applied + 1:
                return
            await asyncio.sleep(_LOOK_S)

    async def catch_up(self, writer: ShardWriter, progress: Callable[[int], None]) -> None:
        """Follow the log until this node has a vote and what was in its log when it started.

        The store may hold effects of entries up to there, so it is a whole state only then.
        """
        needed = await self._log.last_effect_index()
        while True:
            with contextlib.suppress(LogUnavailable):  # the log is being started again
                await writer.catch_up(progress)
                # what no majority has may be taken back meanwhile
                needed = min(needed, await self._log.last_effect_index())
                if writer.applied_index >= needed and self._follower.has_vote:
                    return
            await self._follower.change(_LOOK_S)

    def needs_reopening(self, fault: GraphDBError | None) -> bool:
        """Where a snapshot has taken the place of entries that this node did not have."""
        return isinstance(fault, LogCompacted)


class _LogMembers:
    """See `actors.node.admin.Members`."""

    def __init__(self, log: RaftLogClient, follower: ClusterFollower) -> None:
        self._log, self._follower = log, follower

    def status(self, own: NodeStatus) -> NodeStatus:
        """See `Members.status`."""
        return node_status(own, self._follower.view)

    def report(self, own: NodeStatus) -> ClusterReport | None:
        """See `serve.backend.Admin.cluster`."""
        return cluster_report(own, self._follower.view)

    async def add_member(self, node_id: int, address: str) -> None:
        """See `serve.backend.Admin.add_member`."""
        await self._log.change(MemberChange("add", node_id, address))

    async def remove_member(self, node_id: int) -> None:
        """See `serve.backend.Admin.remove_member`."""
        await self._log.change(MemberChange("remove", node_id))

    async def hand_over(self, node_id: int) -> None:
        """See `serve.backend.Admin.hand_over`."""
        await self._log.change(MemberChange("lead", node_id))


class _RoutedAlerts:
    """See `actors.alerts.alert_queries.AlertLog`: commands are logged by the node that leads."""

    def __init__(self, own: AlertLog, peers: _Peers) -> None:
        self._own, self._peers = own, peers

    def leads(self) -> bool:
        """See `actors.alerts.alert_queries.AlertLog`."""
        return self._own.leads() and self._peers.follower.leads

    def alert_book(self) -> AlertBook:
        """See `actors.alerts.alert_queries.AlertLog`."""
        return self._own.alert_book()

    async def change_alerts(self, command: Command, request_id: bytes | None = None) -> Confirmation:
        """See `actors.alerts.alert_queries.AlertLog`."""
        return await self._peers.router.route(
            request_id,
            lambda own_id, since: self._own.change_alerts(command, own_id, since),
            lambda since: AlertChange(command, since),
        )


class _RoutedBook(Generic[B, C]):
    """See `actors.node.own_book.BookLog`: commands are logged by the node that leads."""

    def __init__(
        self, own: OwnBook[B, C], peers: _Peers, forwarded: Callable[[C, int], ForwardedWrite]
    ) -> None:
        self._own, self._peers, self._forwarded = own, peers, forwarded

    def book(self) -> B:
        """See `actors.node.own_book.BookLog`."""
        return self._own.book()

    async def change(self, command: C, request_id: bytes | None = None) -> Confirmation:
        """See `actors.node.own_book.BookLog`."""
        return await self._peers.router.route(
            request_id,
            lambda own_id, since: self._own.change(command, own_id, since),
            lambda since: self._forwarded(command, since),
        )
