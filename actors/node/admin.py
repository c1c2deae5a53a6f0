"""`Admin` and `AlertLog`: a node's status, members and backup; the commands to its alerts."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from actors.log.view_reports import ReportedViews
from actors.node.open_store import CurrentStore
from actors.node.store_lifecycle import StoreLifecycle
from actors.shard.write_queue import EntryPlan
from actors.worker_thread import on_thread
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Command
from graphdb.config import Settings
from graphdb.errors import NotClustered
from graphdb.log.views import ViewStatus
from graphdb.model import Confirmation, EntryKind
from graphdb.node import ClusterMember, ClusterReport, NodeStatus

__all__ = ["Admin", "AlertLog", "Alone", "Members"]


class Members(Protocol):
    """The nodes that replicate the log; see `serve.backend.Admin` for what is named as there."""

    def status(self, own: NodeStatus) -> NodeStatus:
        """The node's status as one of them. own: as if it stood alone."""

    def report(self, own: NodeStatus) -> ClusterReport | None: ...
    async def add_member(self, node_id: int, address: str) -> None: ...
    async def remove_member(self, node_id: int) -> None: ...
    async def hand_over(self, node_id: int) -> None: ...


class Alone:
    """The `Members` of a node that stands alone."""

    def status(self, own: NodeStatus) -> NodeStatus:
        """See `Members.status`."""
        return own

    def report(self, own: NodeStatus) -> ClusterReport | None:
        """See `serve.backend.Admin.cluster`."""
        return None

    async def add_member(self, node_id: int, address: str) -> None:
        """See `serve.backend.Admin.add_member`."""
        raise NotClustered

    async def remove_member(self, node_id: int) -> None:
        """See `serve.backend.Admin.remove_member`."""
        raise NotClustered

    async def hand_over(self, node_id: int) -> None:
        """See `serve.backend.Admin.hand_over`."""
        raise NotClustered


class Admin:
    """See `serve.backend.Admin`."""

    def __init__(
        self,
        settings: Settings,
        current: CurrentStore,
        lifecycle: StoreLifecycle,
        members: Members,
        recent_changes: Callable[[], ViewStatus | None],
        reported: ReportedViews,
    ) -> None:
        """recent_changes: how the view that keeps them follows the log; None while nobody follows."""
        self._settings, self._current, self._lifecycle, self._members = settings, current, lifecycle, members
        self._recent_changes, self._reported = recent_changes, reported
        self._started_at = time.monotonic()

    def status(self) -> NodeStatus:
        """See `serve.backend.Admin.status`."""
        return self._members.status(self._own_status())

    def _own_status(self) -> NodeStatus:
        cluster = self._settings.cluster
        word, reason = self._lifecycle.status_word()
        applied_index = self._current.applied_index
        return NodeStatus(
            status=word,
            role="standalone",
            node_id=cluster.node_id,
            snapshot_index=applied_index or 0,
            current_term=0,
            cluster_members=(ClusterMember(cluster.node_id, cluster.address, "standalone", True),),
            replication_lag=None,
            index_loaded=applied_index is not None,
            uptime_seconds=int(time.monotonic() - self._started_at),
            reason=reason,
        )

    def cluster(self) -> ClusterReport | None:
        """See `serve.backend.Admin.cluster`."""
        return self._members.report(self._own_status())

    def view_statuses(self) -> list[ViewStatus]:
        """See `serve.backend.Admin.view_statuses`."""
        opened, changes = self._current.open, self._recent_changes()
        own = (opened.view_statuses() if opened else []) + ([changes] if changes else [])
        return [*own, *self._reported.statuses]

    async def add_member(self, node_id: int, address: str) -> None:
        """See `serve.backend.Admin.add_member`."""
        await self._members.add_member(node_id, address)

    async def remove_member(self, node_id: int) -> None:
        """See `serve.backend.Admin.remove_member`."""
        await self._members.remove_member(node_id)

    async def hand_over(self, node_id: int) -> None:
        """See `serve.backend.Admin.hand_over`."""
        await self._members.hand_over(node_id)

    async def backup(self, target: Path) -> int:
        """Write a data directory of the present state to target, which does not exist yet; answer its index.

        `graphdb serve --data-dir` starts on it, or on a copy. Made of hard links on the same file system.
        Raises AlreadyExists, StorageFull, CorruptionError, LogUnavailable.
        """
        store = self._current.opened()

        def back_up(index: int) -> int:
            store.directory.back_up(store.quads, index, store.kept, target)
            return index

        index = await store.writer.in_turn(back_up)
        await on_thread(store.directory.back_up_history, index, target)
        return index


class AlertLog:
    """The alerts as the log of this node has them, and commands to them, logged by this node."""

    def __init__(self, current: CurrentStore, alerts_max: int) -> None:
        self._current, self._alerts_max = current, alerts_max

    def leads(self) -> bool:
        """See `actors.alerts.alert_queries.AlertLog`."""
        return self._current.open is not None

    def alert_book(self) -> AlertBook:
        """See `actors.alerts.alert_queries.AlertLog`."""
        return self._current.opened().kept.alerts

    async def change_alerts(
        self, command: Command, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `actors.alerts.alert_queries.AlertLog`, and `ShardWriter.write` for since."""
        store, most = self._current.opened(), self._alerts_max
        plan = EntryPlan(EntryKind.ALERTS, lambda: store.kept.alerts.plan(command, most))
        return await store.writer.write(plan, request_id=request_id, since=since)
