"""`StoreShard`: owns a node's quads. Reads go to the store, writes through `ShardWriter`, a checkpoint now
and then.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from pyoxigraph import NamedNode, Quad

from actors.alerts.alert_desk import AlertDesk
from actors.columns.client import ColumnClient
from actors.columns.column_feeder import ColumnFeeder
from actors.columns.column_runner import ColumnRunner, ColumnStream
from actors.disk_room import MARGIN_BYTES, DiskRoom
from actors.egress.rules import HostRules
from actors.live.change_log import ChangeLog, ChangeStream
from actors.live.hub_making import hub_maker
from actors.live.listeners import LiveSink
from actors.live.seen_live import Followable, SeenGraph, SeenLive
from actors.log.client import LogAccess
from actors.readers.checkpoints import Checkpoints
from actors.readers.client import ReaderClient
from actors.readers.query_runner import QueryRunner, ReaderAnswer
from actors.readers.write_checks import WriteChecks
from actors.shard.body_source import BodyThreads
from actors.shard.checkpointer import Checkpointer
from actors.shard.edit_runner import EditRunner
from actors.shard.open_shard import OpenShard, follow_others_for_ever, let_go, open_store
from actors.shard.shape_guard import shape_guard
from actors.shard.shard_writer import ShardWriter, WriterConfig
from actors.shard.spatial_keeper import SpatialKeeper
from actors.shard.store_directory import StoreDirectory
from actors.shard.store_writes import StoreWrites, WriteMeans
from actors.shard.update_runner import UpdateRunner
from actors.shard.write_batch import EntryPlan
from actors.views.seen_reads import SeenReads
from actors.views.views import Views
from graphdb.access.sight import Sight
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Command
from graphdb.config import Settings
from graphdb.errors import (
    CorruptionError,
    GraphDBError,
    IndexNotReached,
    LogUnavailable,
    NotClustered,
    StorageFull,
    UnavailableError,
)
from graphdb.live.matcher import LiveQuery
from graphdb.log import request_ids
from graphdb.log.replay import Replayer
from graphdb.model import Confirmation, EntryKind, GraphName, LogEntry, NamedGraph
from graphdb.node import (
    ClusterMember,
    ClusterReport,
    Consistency,
    EmbeddedStore,
    Evaluated,
    FunctionCall,
    LiveReport,
    NodeStatus,
    QueryRequest,
    RunningQuery,
    ValidationRequest,
)
from graphdb.public_text import public_text
from graphdb.sparql import gate
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import Query
from graphdb.store.small_joins import ENTRIES_AT_ONCE, LittleJoin
from graphdb.store.view import Subject, Term

__all__ = ["ShardConfig", "StoreShard"]

logger = logging.getLogger(__name__)

_DISK_FULL = (
    "the disk of the data directory is full: reads and deletions go on, and what adds is refused until there "
    "is room"
)
_VIEWS, _FED = "views", "columns-feed"  # in the data directory
_BODIES_AT_ONCE = 64  # larger ones than fit into memory unread


@dataclass(frozen=True, slots=True)
class ShardConfig:
    """How the store keeps up with the log."""

    checkpoint_log_bytes: int = 64 << 20  # of log between two checkpoints; about what a restart replays
    # free on the store's disk beside the reserve and what the engine has to write; with less, what adds is
    # refused, and deletions and reads go on
    room_bytes: int = MARGIN_BYTES
    follow_s: float = 2.0  # how often others' entries are followed, at most
    look_s: float = 1.0  # how often the disk's room, and a store that it was too full for, are looked after
    recycled_bytes: int = (
        64 << 20
    )  # of files that the engine keeps to use again: more it gives up, opened anew
    recycled_s: float = 60.0  # between two times that it is opened anew for that
    writer: WriterConfig = field(default_factory=WriterConfig)


class StoreShard:
    """The backend of a standalone node (`serve.backend.Backend`), for one event loop.

    Reads may come on any thread once start() has returned; before that everything but status() raises
    LogUnavailable. A write is in the log, on disk, before it is answered. While the disk is full (`DiskRoom`;
    status "degraded"), deletions are taken, and what adds is refused. While it is too full for the store to
    take what the log holds, reads go on from the last whole state, and all writes are refused.
    """

    view_key = None  # itself, it is seen by whoever sees everything

    def __init__(
        self,
        settings: Settings,
        log: LogAccess,
        readers: ReaderClient,
        config: ShardConfig | None = None,
        columns: ColumnClient | None = None,
    ) -> None:
        """Nothing is opened yet. log and readers belong to this shard from here on. columns: there is a
        column view.
        """
        self._settings = settings
        self._log = log
        self._readers = readers
        self._queries = QueryRunner(
            readers,
            settings.security,
            union_default_graph=settings.server.union_default_graph,
            columns=None if columns is None else ColumnRunner(columns),
        )
        self._feeder = (
            None if columns is None else ColumnFeeder(columns, settings.server.data_dir / _FED, self._opened)
        )
        self._config = config or ShardConfig()
        self.room = DiskRoom.of(settings.server, self._config.room_bytes)
        self._recycled_at = 0.0
        self._bodies = BodyThreads(_BODIES_AT_ONCE)
        self._changes = ChangeLog(log, self.snapshot_index, self.wait_for_index)
        make_hub = hub_maker(settings, readers, self._queries.running)
        self._hub = make_hub(
            self._changes.open, lambda: self._opened().quads, lambda make: self._opened().writer.in_turn(make)
        )
        self._seen_live = SeenLive(
            self._followable,
            self.wait_for_index,
            self._changes.open,
            self._hub,
            lambda follow, view: make_hub(follow, lambda: view.quads, view.in_turn),
            settings.live.max_subscriptions,
        )
        self._means = WriteMeans(
            self._opened,
            UpdateRunner(settings, readers, self._queries.running),
            EditRunner(settings, self._changes),
            self._bodies,
            lambda shard: self._write_checks(shard.directory),
        )
        self.alerts = AlertDesk(self, settings)
        self._started_at = time.monotonic()
        self._open: OpenShard | None = None
        self._failed = False
        self._tasks: list[asyncio.Task[None]] = []
        self._service_allowed = HostRules("SERVICE", settings.security.service_allow).allows

    async def start(self, progress: Callable[[int, int], None] = lambda applied, last: None) -> None:
        """Open the store and apply what the log has beyond it; progress hears (applied index, last index).

        Raises LogUnavailable, StorageFull; CorruptionError where store and log cannot be made one.
        """
        self._failed = False  # it may be tried again
        try:
            self._open = await self._recover(progress)
        except StorageFull:  # not even the reserve is left: it is tried again until there is room
            raise
        except BaseException:
            self._failed = True
            raise
        begin = asyncio.get_running_loop().create_task
        follow_others = follow_others_for_ever(self._log, lambda: self._open, self._config.follow_s)
        self._tasks = [begin(self._open_again()), begin(follow_others)]
        if self._feeder is not None:
            self._tasks.append(begin(self._feeder.run()))
        self.alerts.timer.start()

    async def _open_again(self) -> None:
        """Whenever the disk was too full for the store: once there is room, close it and recover.

        The engine does not write again by itself after a write that failed, or only once much is free.
        Closing waits for the readers, who hold the engine open; until then, and while recovering, the node is
        starting.
        """
        while True:
            await asyncio.sleep(self._config.look_s)
            await asyncio.to_thread(self.room.keep_reserve)
            if self._open is not None:
                if not (
                    self._must_reopen(self._open.writer.trouble) or await self._recycles_much(self._open)
                ):
                    continue
                opened, self._open = self._open, None
                await opened.close()
                del opened
                let_go()
            let_go()  # of a store that could not be brought up to date
            try:
                self._open = await self._recover(lambda applied, last: None)
                self.alerts.timer.wake()
            except UnavailableError as error:
                logger.warning("the store cannot be opened again yet: %s", error)
            except CorruptionError:
                self._failed = True
                raise

    def _must_reopen(self, trouble: GraphDBError | None) -> bool:
        if self._open is None or not (isinstance(trouble, StorageFull) or self._open.quads.is_starved):
            return False
        # what was not flushed is, when the store is opened
        return self.room.make_room(self._open.checkpointer.unflushed.needed_bytes)

    async def _recycles_much(self, opened: OpenShard) -> bool:
        """Whether the disk is full, and the engine keeps large files only to use them again: up to ten of its
        own log. Opened anew, it has none.
        """
        checkpointer = opened.checkpointer
        if checkpointer.has_room() or checkpointer.unflushed.size_bytes > self._config.recycled_bytes:
            return False
        if time.monotonic() < self._recycled_at + self._config.recycled_s:
            return False
        if (await asyncio.to_thread(opened.directory.engine_files))[1] < self._config.recycled_bytes:
            return False
        self._recycled_at = time.monotonic()
        return True

    def _has_room(self) -> bool:
        return self.room.admits() if self._open is None else self._open.checkpointer.has_room()

    async def _recover(self, progress: Callable[[int, int], None]) -> OpenShard:
        directory = await asyncio.to_thread(StoreDirectory, self._settings.server.data_dir)
        log_status, union = await self._log.status(), self._settings.server.union_default_graph
        last_index = log_status.last_index
        # what opening writes: files of the engine, and what it had in memory; then it may merge
        self.room.make_room(directory.engine_files()[1])
        quads, applied = await open_store(directory, log_status.first_index, union)
        if applied > last_index:
            raise CorruptionError(
                f"the log ends at {last_index}, the store at {applied} or later: entries are missing",
                str(directory.log),
            )
        scratch, kept = str(directory.scratch), directory.read_beside(applied)
        kept.alerts.on_change = self.alerts.timer.wake
        replayer = Replayer(quads.apply_many, applied, scratch, kept.requests, kept.alerts)
        every_bytes = self._config.checkpoint_log_bytes
        checkpointer = Checkpointer(directory, quads, kept, replayer, self._log, every_bytes, self.room)
        writer = ShardWriter(
            quads,
            self._log,
            replayer,
            self._config.writer,
            clock_ms=lambda: time.time_ns() // 1_000_000,
            fresh_request_id=lambda: request_ids.fresh(os.urandom(16)),
            admit=checkpointer.admit,
            on_logged=checkpointer.count,
            guard=shape_guard(self._settings.shacl, self._write_checks(directory)),
            on_changes=self._changes.note,
        )
        try:
            await self._catch_up(writer, lambda index: progress(index, last_index))
        except BaseException:
            await writer.close()
            raise
        writer.start()
        checkpoints = Checkpoints(directory.scratch, quads, writer.applied, self._readers.release_checkpoint)
        spatial = SpatialKeeper(quads, writer.applied, directory.scratch)
        views = Views(
            self._settings.server.data_dir / _VIEWS,
            quads,
            writer,
            checkpoints,
            self._changes,
            self._readers.release_checkpoint,
            views_max=self._settings.server.views,
            union_default_graph=union,
        )
        return OpenShard(directory, quads, kept, replayer, writer, checkpointer, checkpoints, spatial, views)

    def _write_checks(self, directory: StoreDirectory) -> WriteChecks:
        timeout_s, loop = self._settings.server.query_timeout_seconds, asyncio.get_running_loop()
        limits = self._settings.security
        return WriteChecks(self._readers, self._queries.running, directory.scratch, timeout_s, limits, loop)

    async def _catch_up(self, writer: ShardWriter, progress: Callable[[int], None]) -> None:
        """Bring a store that was just opened to a state that readers may see.

        Parts of a large change that are still open are those of a writer that has died. An entry ends them,
        so that the log need not be kept for them.
        """
        await writer.catch_up(progress)
        if writer.has_open_parts:
            nothing = LogEntry(0, 0, EntryKind.NOTHING, bytes(16), time.time_ns() // 1_000_000, b"")
            await self._log.append([nothing], writer.applied_index + 1)
            await writer.catch_up(progress)

    async def close(self) -> None:
        """Finish the writes that are waiting, make a checkpoint, let go of the store and the log."""
        await self.end_streams()
        await self.alerts.timer.close()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, CorruptionError):
                await task
        opened, self._open = self._open, None
        if opened is not None:
            await opened.close()
            await opened.checkpointer.close()
            del opened
            let_go()
        self._bodies.close()
        await self._readers.close()
        await self._log.close()

    async def reads(self, sight: Sight) -> Self | SeenReads:
        """See `Backend.reads`."""
        return self if sight.is_whole else await self._seen_reads(sight)

    async def _seen_reads(self, sight: Sight) -> SeenReads:
        seen = await self._opened().views.seen(sight)
        return SeenReads(seen, self._queries, self.check_query, partial(self._seen_reads, sight))

    def writes(self, sight: Sight) -> StoreWrites:
        """See `Backend.writes`."""
        return StoreWrites(self._means, sight)

    def live(self, sight: Sight) -> Self | SeenGraph:
        """See `Backend.live`."""
        return self if sight.is_whole else self._seen_live.of(sight)

    def _followable(self) -> Followable:
        shard = self._opened()
        return Followable(shard.views, shard.quads.annotation_watch, shard.writer.applied_index)

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        """See `Backend.query`."""
        self.check_query(query)
        shard = self._opened()
        index = shard.writer.applied_index  # before the query begins, so that the answer is at least so new
        return Evaluated(shard.quads.query(query, dataset), index)

    def joins_little(self, join: LittleJoin) -> bool:
        """See `Backend.joins_little`."""
        return join.fits(self._opened().quads, ENTRIES_AT_ONCE)

    async def start_query(self, request: QueryRequest) -> ReaderAnswer | ColumnStream:
        """See `Backend.start_query`."""
        self.check_query(request.query)
        shard = self._opened()
        applied_index = shard.writer.applied_index
        return await self._queries.start(request, shard.checkpoints, shard.quads, applied_index)

    async def explain_columns(self, request: QueryRequest) -> dict[str, Any]:
        """See `Backend.explain_columns`."""
        return await self._queries.explain_columns(request, self._opened().writer.applied_index)

    async def start_validation(self, request: ValidationRequest) -> ReaderAnswer:
        """See `Backend.start_validation`."""
        return await self._queries.validate(request, self._opened().checkpoints)

    async def call_function(self, call: FunctionCall) -> bytes:
        """See `Backend.call_function`."""
        return await self._queries.call(call)

    def check_query(self, query: Query) -> None:
        """See `Backend.check_query`."""
        gate.check(query, self._settings.security)
        gate.check_services(query, self._service_allowed)

    def running_queries(self) -> list[RunningQuery]:
        """See `Backend.running_queries`."""
        return self._queries.running.shown()

    def cancel_query(self, query_id: str) -> bool:
        """See `Backend.cancel_query`."""
        return self._queries.running.cancel(query_id)

    def exact_index(self) -> int | None:
        """See `Backend.exact_index`."""
        return self._opened().writer.applied.exact

    async def wait_for_index(self, index: int, timeout_s: float) -> None:
        """See `Backend.wait_for_index`."""
        applied = self._opened().writer.applied
        try:
            async with asyncio.timeout(timeout_s):
                await applied.wait_for(index)
        except TimeoutError:
            raise IndexNotReached(
                f"the node is at index {applied.current}, not yet at {index}, after {round(timeout_s, 2):g} s"
            ) from None

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        """See `Backend.reach`: what a node that stands alone has applied is as new as can be."""

    def graph_exists(self, graph: NamedGraph) -> bool:
        """See `Backend.graph_exists`."""
        return self._opened().quads.graph_exists(graph)

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """See `Backend.graph_quads`."""
        return self._opened().quads.graph_quads(graph)

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `Backend.quads_matching`."""
        return self._opened().quads.quads_matching(subject, predicate, object_, graph)

    def dataset_quads(self) -> Iterator[Quad]:
        """See `Backend.dataset_quads`."""
        return self._opened().quads.dataset_quads()

    def snapshot_index(self) -> int:
        """The log index of the last entry that readers see."""
        return self._opened().writer.applied_index

    def schema_state(self) -> object:
        """See `Backend.schema_state`."""
        return self._opened().quads.schema_watch.state

    async def follow_changes(self, since: int | None, timeout_s: float) -> ChangeStream:
        """See `Backend.follow_changes`."""
        return await self._changes.open(since, timeout_s)

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        """See `Backend.subscribe`."""
        self._seen_live.check_room()
        return await self._hub.subscribe(query, since, sink)

    async def unsubscribe(self, subscription: str) -> bool:
        """See `Backend.unsubscribe`."""
        return await self._hub.unsubscribe(subscription) or await self._seen_live.unsubscribe(subscription)

    async def end_streams(self) -> None:
        """End what goes on for as long as the node does, live queries and streams of changes."""
        await self._hub.close()
        await self._seen_live.close()
        await self._changes.close()

    def embedded_store(self) -> EmbeddedStore:
        """See `Backend.embedded_store`."""
        applied_index = self._open.writer.applied_index if self._open else None
        status = self._hub.status(self.status().role, applied_index)
        listeners = status.active_listener_count + self._seen_live.subscription_count
        return replace(status, active_listener_count=listeners)

    def live_report(self) -> LiveReport:
        """See `Backend.live_report`."""
        return self._seen_live.report(
            self._hub.report(self._open.writer.applied_index if self._open else None)
        )

    def leads(self) -> bool:
        """See `actors.alerts.alert_node.AlertNode`."""
        return self._open is not None

    def alert_book(self) -> AlertBook:
        """See `actors.alerts.alert_node.AlertNode`."""
        return self._opened().kept.alerts

    async def change_alerts(
        self, command: Command, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `actors.alerts.alert_node.AlertNode`, and `ShardWriter.write` for since."""
        shard, most = self._opened(), self._settings.alerts.max_alerts
        plan = EntryPlan(EntryKind.ALERTS, lambda: shard.kept.alerts.plan(command, most))
        return await shard.writer.write(plan, request_id=request_id, since=since)

    async def backup(self, target: Path) -> int:
        """Write a data directory of the present state to target, which does not exist yet; answer its index.

        `graphdb serve --data-dir` starts on it, or on a copy. Made of hard links on the same file system.
        Raises AlreadyExists, StorageFull, CorruptionError, LogUnavailable.
        """
        shard = self._opened()

        def back_up(index: int) -> int:
            shard.directory.back_up(shard.quads, index, shard.kept, target)
            return index

        return await shard.writer.in_turn(back_up)

    def cluster(self) -> ClusterReport | None:
        """See `Backend.cluster`."""
        return None

    async def add_member(self, node_id: int, address: str) -> None:
        """See `Backend.add_member`."""
        raise NotClustered

    async def remove_member(self, node_id: int) -> None:
        """See `Backend.remove_member`."""
        raise NotClustered

    async def hand_over(self, node_id: int) -> None:
        """See `Backend.hand_over`."""
        raise NotClustered

    def status(self) -> NodeStatus:
        """See `Backend.status`."""
        cluster = self._settings.cluster
        word, reason = self._status_word()
        return NodeStatus(
            status=word,
            role="standalone",
            node_id=cluster.node_id,
            snapshot_index=self._open.writer.applied_index if self._open else 0,
            current_term=0,
            cluster_members=(ClusterMember(cluster.node_id, cluster.address, "standalone", True),),
            replication_lag=None,
            index_loaded=self._open is not None,
            uptime_seconds=int(time.monotonic() - self._started_at),
            reason=reason,
        )

    def _status_word(self) -> tuple[str, str | None]:
        """With the reason, where there is one to tell."""
        if self._failed:
            return "error", "the store cannot be opened: the node's log files say why"
        if self._open is None:
            return "starting", None if self._has_room() else _DISK_FULL
        trouble = self._open.writer.trouble
        if trouble is None:
            return ("healthy", None) if self._has_room() else ("degraded", _DISK_FULL)
        if isinstance(trouble, CorruptionError):
            return "error", "the store is damaged: the node's log files say how"
        return "degraded", public_text(trouble)

    def _opened(self) -> OpenShard:
        if self._open is None:
            raise LogUnavailable("the node is starting or stopping")
        return self._open
