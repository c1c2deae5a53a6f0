"""`GraphNode`: one node's graph, composed of the capabilities that the edges ask for."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from actors.alerts.alert_service import AlertService
from actors.columns.client import ColumnClient, ColumnRunner
from actors.disk_room import DiskRoom
from actors.history.history_keeper import HistoryKeeper
from actors.live.change_log import ChangeLog
from actors.live.hub_making import hub_maker
from actors.log.client import LogAccess
from actors.log.view_reports import ReportedViews
from actors.node.admin import Admin, AlertLog, Alone, Members
from actors.node.changes import Changes
from actors.node.column_feeder import ColumnFeeder
from actors.node.commit_runner import CommitRunner
from actors.node.edit_runner import EditRunner
from actors.node.named_states import NamedStateService, OwnNamedStates
from actors.node.namespaces import NamespaceService, OwnNamespaces
from actors.node.open_store import CurrentStore
from actors.node.own_book import BookLog
from actors.node.past_changes import PastChanges
from actors.node.purge_runner import PurgeMeans, PurgeRunner
from actors.node.purges import OwnPurges, PurgeService
from actors.node.queries import Progress, Queries
from actors.node.query_paths import QueryPaths
from actors.node.saved_queries import OwnSavedQueries, SavedQueryService
from actors.node.searching import Indexes
from actors.node.store_lifecycle import Following, OwnLog, StoreConfig, StoreLifecycle, StoreMeans
from actors.node.store_writes import StoreWrites, StoreWriting, WriteMeans
from actors.node.transactions import Transactions
from actors.node.update_runner import UpdateRunner
from actors.readers.client import ReaderClient
from actors.readers.query_runner import QueryRunner
from actors.readers.running_queries import RunningQueries
from actors.readers.write_evaluation import WriteChecks
from actors.shard.body_source import BodyThreads
from actors.shard.large_bodies import LargeBodies
from actors.shard.shard_writer import WriterConfig
from actors.shard.store_directory import StoreDirectory
from graphdb.access.visibility import Visibility
from graphdb.config import Settings
from graphdb.history.named_states import NamedStateBook, NamedStateCommand
from graphdb.history.purges import PurgeBook, PurgeCommand
from graphdb.model import Author, EntryKind, Outcome
from graphdb.planning.costs import LearntCosts
from graphdb.sparql.syntax import Update

__all__ = ["Books", "GraphNode", "NodeParts", "standalone_node"]

_FED = "columns-feed"  # in the data directory
_DOCUMENTS_AT_ONCE = 2  # that are made lines of; each takes a processor, and up to 1 GB of memory
_BODIES_AT_ONCE = 64  # larger ones than fit into memory unread
_POLLS_S = 0.001  # within which a log on a fast disk answers

W = TypeVar("W", covariant=True)


class Writing(Protocol[W]):
    """See `serve.backend.Writing`; W is what is written by, of one visibility."""

    def writes(self, visibility: Visibility, author: Author = ...) -> W: ...
    def begin_update(self, update: Update, outcome: Outcome, author: Author = ...) -> bool: ...


class Company(Protocol):
    """The other nodes, as one node takes part in what they do together."""

    def join(self) -> None:
        """Begin, before the store is opened; again where opening has failed."""

    async def hand_over_lead(self) -> None:
        """Before a planned end: if this node leads, have another lead, so that no election is needed."""

    async def leave(self) -> None:
        """Take no more requests of others, and finish those that were taken."""


@dataclass(frozen=True, slots=True)
class Books:
    """What a node keeps beside the quads, as clients ask for it."""

    alerts: AlertService
    saved_queries: SavedQueryService
    namespaces: NamespaceService
    named_states: NamedStateService
    purge_log: BookLog[PurgeBook, PurgeCommand]


@dataclass(frozen=True, slots=True)
class GraphNode(Generic[W]):
    """See `serve.backend.GraphNode`. For one event loop.

    Reads may come on any thread once start() has returned; before that everything but admin.status() raises
    LogUnavailable. A write is in the log, on disk, before it is answered. While the disk is full (`DiskRoom`;
    status "degraded"), deletions are taken, and what adds is refused. While it is too full for the store to
    take what the log holds, reads go on from the last whole state, and all writes are refused.
    """

    queries: Queries
    progress: Progress
    writing: Writing[W]
    changes: Changes
    books: Books
    admin: Admin
    parts: "NodeParts"
    lifecycle: StoreLifecycle
    company: Company | None = None  # None: it stands alone

    @property
    def alerts(self) -> AlertService:
        """See `serve.backend.AlertRequests`."""
        return self.books.alerts

    @property
    def saved_queries(self) -> SavedQueryService:
        """See `serve.backend.SavedQueries`."""
        return self.books.saved_queries

    @property
    def namespaces(self) -> NamespaceService:
        """See `serve.backend.Namespaces`."""
        return self.books.namespaces

    @property
    def named_states(self) -> NamedStateService:
        """See `serve.backend.NamedStates`."""
        return self.books.named_states

    @property
    def purges(self) -> PurgeService:
        """See `serve.backend.Purges`."""
        return PurgeService(self.books.purge_log, self.parts.purging)

    @property
    def running(self) -> Queries:
        """See `serve.backend.RunningQueries`."""
        return self.queries

    @property
    def transactions(self) -> Transactions:
        """See `serve.backend.Transactions`."""
        return self.parts.transactions

    @property
    def history(self) -> PastChanges:
        """See `serve.backend.History`."""
        return self.parts.past_changes

    @property
    def functions(self) -> Queries:
        """See `serve.backend.Functions`."""
        return self.queries

    async def start(self, progress: Callable[[int, int], None] = lambda applied, last: None) -> None:
        """See `StoreLifecycle.start`."""
        if self.company is not None:
            self.company.join()
        await self.lifecycle.start(progress)
        self.alerts.timer.start()

    async def prepare_close(self) -> None:
        """While requests still come: end those that would not end, and leave to this node nothing for which
        others would notice it gone.
        """
        await self.changes.end_streams()
        if self.company is not None:
            await self.company.hand_over_lead()

    async def close(self) -> None:
        """Finish the writes that are waiting, make a checkpoint, let go of the store and the log."""
        if self.company is not None:
            await self.company.leave()
        await self.changes.end_streams()
        await self.alerts.timer.close()
        await self.lifecycle.close()
        await self.parts.close()


class NodeParts:
    """What the capabilities of a node are made of, whether it stands alone or not."""

    def __init__(
        self,
        settings: Settings,
        log: LogAccess,
        readers: ReaderClient,
        config: StoreConfig | None = None,
        columns: ColumnClient | None = None,
        indexes: Indexes | None = None,
    ) -> None:
        """Nothing is opened yet. log, readers and indexes belong to the node from here on. columns: there is
        a column view; indexes: there is a search port.
        """
        self._indexes = indexes
        self.settings, self.log, self.readers = settings, log, readers
        self.config = config or StoreConfig()
        self.current = CurrentStore()
        self.own_progress = Progress(self.current)
        self.change_log = ChangeLog(log, self.own_progress.snapshot_index, self.own_progress.wait_for_index)
        self._reported_views = ReportedViews(log)
        self.past_changes = PastChanges(
            settings.server.data_dir, self.current, settings.server.query_timeout_seconds
        )
        self.history_keeper = HistoryKeeper(
            settings.server.data_dir,
            settings.history,
            self.own_progress.snapshot_index,
            lambda: self.current.opened().kept.named_states.needed_from,
            DiskRoom.of(settings.server).admits,
        )
        self.purging = PurgeRunner()
        self._purge_means: PurgeMeans | None = None
        self.running = RunningQueries()
        self.runner = QueryRunner(readers, settings.security, self.running)
        self.paths = self._paths(columns)
        self.queries = Queries(self.current, self.paths, self.runner, self.running)
        self._feeder = (
            None if columns is None else ColumnFeeder(columns, settings.server.data_dir / _FED, self.current)
        )
        updates = UpdateRunner(settings, readers, self.running)
        self.transactions = Transactions(
            self.current,
            self.paths,
            updates,
            readers.release_checkpoint,
            settings.repository,
            settings.cluster.node_id if settings.cluster.enabled else None,
        )
        self.own_writing = StoreWriting(
            WriteMeans(
                self.current,
                updates,
                EditRunner(settings, self.change_log),
                CommitRunner(self.change_log),
                BodyThreads(_BODIES_AT_ONCE),
                LargeBodies(_DOCUMENTS_AT_ONCE),
                self._write_checks,
            )
        )
        self.own_alerts = AlertLog(self.current, settings.alerts.max_alerts)
        self.own_saved_queries = OwnSavedQueries(
            self.current, EntryKind.SAVED_QUERIES, lambda kept: kept.saved_queries
        )
        self.own_namespaces = OwnNamespaces(self.current, EntryKind.NAMESPACES, lambda kept: kept.namespaces)
        self.own_purges = OwnPurges(self.current, self._member_ids)
        self.own_named_states = OwnNamedStates(
            self.current, EntryKind.NAMED_STATES, lambda kept: kept.named_states
        )

    def _paths(self, columns: ColumnClient | None) -> QueryPaths:
        costs = LearntCosts()
        decides = self.settings.columns.chosen_by_cost
        runs_on_columns = None if columns is None else ColumnRunner(columns, costs if decides else None)
        return QueryPaths(self.settings, self.runner, self.running, runs_on_columns, self._indexes, costs)

    def named_states(self, log: BookLog[NamedStateBook, NamedStateCommand]) -> NamedStateService:
        """Names by this log."""
        keeps_past = self.settings.history.keep != "off"
        return NamedStateService(log, self.past_changes, self.history_keeper.holding, keeps_past=keeps_past)

    def _write_checks(self, directory: StoreDirectory) -> WriteChecks:
        timeout_s, loop = self.settings.server.query_timeout_seconds, asyncio.get_running_loop()
        limits = self.settings.security
        return WriteChecks(self.readers, self.running, directory.scratch, timeout_s, limits, loop)

    def lifecycle(
        self,
        following: Following,
        on_alerts: Callable[[], None],
        *beside: Callable[[], Coroutine[Any, Any, None]],
    ) -> StoreLifecycle:
        """What opens the store; on_alerts, beside: see `StoreMeans`."""
        feeding = () if self._feeder is None else (self._feeder.run,)
        means = StoreMeans(
            self.change_log,
            self._write_checks,
            self.readers.release_checkpoint,
            on_alerts,
            self.transactions.end_all,
            self.purging.wake,
            (self._reported_views.run, self.history_keeper.run, self._run_purges, *feeding, *beside),
        )
        return StoreLifecycle(self.settings, self.log, self.current, following, means, self.config)

    def node(
        self,
        lifecycle: StoreLifecycle,
        progress: Progress,
        writing: Writing[W],
        books: Books,
        members: Members,
        company: Company | None = None,
    ) -> GraphNode[W]:
        """A node of these parts, and of what makes its kind."""
        settings = self.settings
        views = self.change_log.view_status, self._reported_views
        admin = Admin(settings, self.current, lifecycle, members, *views)
        changes = Changes(
            self.current,
            progress,
            self.change_log,
            hub_maker(settings, self.readers, self.running),
            lambda: admin.status().role,
            subscriptions_max=settings.live.max_subscriptions,
        )
        self._purge_means = PurgeMeans(
            settings.server.data_dir,
            settings.cluster.node_id,
            settings.history.as_of_memory_mb,
            self.current,
            self.log,
            books.purge_log,
            self.history_keeper,
            self._indexes,
            lifecycle.replace_store,
            functools.partial(self._forget, changes),
            admin.status,
            admin.cluster,
            admin.view_statuses,
            self._feeder is not None,
        )
        capabilities = self.queries, progress, writing, changes, books, admin
        return GraphNode(*capabilities, self, lifecycle, company)

    def _member_ids(self) -> list[int]:
        assert self._purge_means is not None
        return [member.node_id for member in self._purge_means.status().cluster_members]

    async def _forget(self, changes: Changes) -> None:
        self.past_changes.forget_annotations()
        await changes.forget()

    async def _run_purges(self) -> None:
        assert self._purge_means is not None, "the node is put together before it is started"
        await self.purging.run(self._purge_means)

    async def close(self) -> None:
        """Let go of the readers and the log."""
        self.own_writing.close()
        await self.past_changes.close()
        await self.readers.close()
        if self._indexes is not None:
            await self._indexes.close()
        await self.log.close()


def standalone_node(
    settings: Settings,
    log: LogAccess,
    readers: ReaderClient,
    config: StoreConfig | None = None,
    columns: ColumnClient | None = None,
    indexes: Indexes | None = None,
) -> GraphNode[StoreWrites]:
    """A node that stands alone. See `NodeParts`. config: by default one whose writer polls."""
    config = config or StoreConfig(writer=WriterConfig(polls_s=_POLLS_S))
    parts = NodeParts(settings, log, readers, config, columns, indexes)
    alerts = AlertService(parts.own_alerts, parts.own_progress, parts.queries, settings)
    lifecycle = parts.lifecycle(OwnLog(log), alerts.timer.wake)
    books = Books(
        alerts,
        SavedQueryService(parts.own_saved_queries),
        NamespaceService(parts.own_namespaces),
        parts.named_states(parts.own_named_states),
        parts.own_purges,
    )
    return parts.node(lifecycle, parts.own_progress, parts.own_writing, books, Alone())
