"""`StoreLifecycle`: what opens, recovers, reopens, checkpoints and closes the store of a node."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from actors.disk_room import MARGIN_BYTES, DiskRoom
from actors.history.past_states import PastStates, Present
from actors.live.change_log import ChangeLog
from actors.log.client import LogAccess
from actors.node.open_store import (
    CurrentStore,
    OpenStore,
    let_go,
    open_quads,
)
from actors.node.shape_guard import shape_guard
from actors.readers.checkpoints import Checkpoints
from actors.readers.write_evaluation import WriteChecks
from actors.shard.checkpointer import Checkpointer
from actors.shard.shard_writer import ShardWriter, WriterConfig
from actors.shard.spatial_keeper import SpatialKeeper
from actors.shard.store_directory import KeptBeside, StoreDirectory
from actors.shard.text_keeper import TextKeeper
from actors.views.views import Views, VisibleStore
from graphdb.access.annotations import AnnotationWatch
from graphdb.config import Settings
from graphdb.errors import CorruptionError, GraphDBError, LogUnavailable, StorageFull, UnavailableError
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.log import request_ids
from graphdb.log.replay import Replayer
from graphdb.log.views import health
from graphdb.model import EntryKind, LogEntry
from graphdb.store.quad_store import QuadStore
from graphdb.timestamps import until_whole

__all__ = ["Following", "OwnLog", "StoreConfig", "StoreLifecycle", "StoreMeans"]

logger = logging.getLogger(__name__)

_DISK_FULL = (
    "the disk of the data directory is full: reads and deletions go on, and what adds is refused until there "
    "is room"
)
_VIEWS, _PAST = "views", "past"  # in the data directory


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """How the store keeps up with the log."""

    checkpoint_log_bytes: int = 64 << 20  # of log between two checkpoints; about what a restart replays
    # free on the store's disk beside the reserve and what the engine has to write; with less, what adds is
    # refused, and deletions and reads go on
    room_bytes: int = MARGIN_BYTES
    look_s: float = 1.0  # how often the disk's room, and a store that it was too full for, are looked after
    recycled_bytes: int = 64 << 20  # of files that the engine keeps for reuse; with more, it is opened anew
    recycled_s: float = 60.0  # between two times that it is opened anew for that
    writer: WriterConfig = field(default_factory=WriterConfig)


class Following(Protocol):
    """How a node's store comes to the state of its log: alone (`OwnLog`), or among others."""

    async def prepare(self) -> None:
        """Before the store is opened, whose files may be replaced."""

    async def catch_up(self, writer: ShardWriter, progress: Callable[[int], None]) -> None:
        """Bring a store that was just opened to a state that readers may see; progress hears indexes."""

    def needs_reopening(self, fault: GraphDBError | None) -> bool:
        """Whether opening the store anew mends this, since what it needs comes with `prepare`."""


class OwnLog:
    """Following a log that nobody else orders."""

    def __init__(self, log: LogAccess) -> None:
        self._log = log

    async def prepare(self) -> None:
        """See `Following.prepare`."""

    async def catch_up(self, writer: ShardWriter, progress: Callable[[int], None]) -> None:
        """See `Following.catch_up`.

        Parts of a large change that are still open are those of a writer that has died. An entry ends them,
        so that the log need not be kept for them.
        """
        await writer.catch_up(progress)
        if writer.has_open_parts:
            nothing = LogEntry(0, 0, EntryKind.NOTHING, bytes(16), time.time_ns() // 1_000_000, b"")
            await self._log.append([nothing], writer.applied_index + 1)
            await writer.catch_up(progress)

    def needs_reopening(self, fault: GraphDBError | None) -> bool:
        """See `Following.needs_reopening`."""
        return False


@dataclass(slots=True)
class _Replacement:
    """See `StoreLifecycle.replace_store`. It has nothing of the store, which then closes."""

    directory: StoreDirectory
    tree: Path
    index: int
    done: "asyncio.Future[None]"
    is_adopted: bool = False

    def settle(self) -> None:
        """It is open, or another one is."""
        if not self.is_adopted:
            self.fail(LogUnavailable("the store was opened anew meanwhile"))
        elif not self.done.done():
            self.done.set_result(None)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


@dataclass(frozen=True, slots=True)
class StoreMeans:
    """What a store is opened with. All of it outlives the store."""

    changes: ChangeLog
    checks: Callable[[StoreDirectory], WriteChecks]
    release: Callable[[str], Awaitable[None]]  # as for `Checkpoints`
    on_alerts: Callable[[], None]  # alerts may have changed, or can be evaluated again; any thread
    on_close: Callable[[], None]  # before a store is closed: nothing may keep it
    on_purges: Callable[[], None]  # something was purged, or a node has done with it; any thread
    beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()  # what runs from start to close


class StoreLifecycle:
    """For one event loop. It writes `current`, which everything else reads.

    Whenever the disk was too full for the store, it closes and recovers it once there is room: the engine
    does not write again by itself after a write that failed, or only once much is free. Closing waits for
    the readers, who hold the engine open; until then, and while recovering, the node is starting.
    """

    def __init__(
        self,
        settings: Settings,
        log: LogAccess,
        current: CurrentStore,
        following: Following,
        means: StoreMeans,
        config: StoreConfig,
    ) -> None:
        """Nothing is opened yet."""
        self._settings, self._log, self._current = settings, log, current
        self._following, self._means, self._config = following, means, config
        self.room = DiskRoom.of(settings.server, config.room_bytes)
        self._recycled_at = 0.0
        self._failed = False
        self._replacement: _Replacement | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, progress: Callable[[int, int], None]) -> None:
        """Open the store and apply what the log has beyond it; progress hears (applied index, last index).

        Raises LogUnavailable, StorageFull; CorruptionError where store and log cannot be made one.
        """
        self._failed = False  # it may be tried again
        try:
            self._current.open = await self._recover_prepared(progress)
        except StorageFull:  # not even the reserve is left: it is tried again until there is room
            raise
        except BaseException:
            self._failed = True
            raise
        begin = asyncio.get_running_loop().create_task
        self._tasks = [begin(self._open_again())]
        self._tasks += [begin(run()) for run in self._means.beside]

    async def close(self) -> None:
        """Finish the writes that are waiting, make a checkpoint, let go of the store."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, CorruptionError):
                await task
        opened, self._current.open = self._current.open, None
        self._means.on_close()
        if opened is not None:
            await opened.close()
            await opened.checkpointer.close()
            del opened
            let_go()

    # how it is

    def has_room(self) -> bool:
        """Whether the disk takes what adds."""
        opened = self._current.open
        return self.room.admits() if opened is None else opened.checkpointer.has_room()

    def has_fault(self) -> bool:
        """Whether the store could not take a write now."""
        opened = self._current.open
        return opened is None or opened.writer.fault is not None or not self.has_room()

    def status_word(self) -> tuple[str, str | None]:
        """See `NodeStatus.status`; with the reason, where there is one to tell."""
        opened = self._current.open
        if self._failed:
            return "error", "the store cannot be opened: the node's log files say why"
        if opened is None:
            return "starting", None if self.has_room() else _DISK_FULL
        status = opened.writer.view_status()
        word = health([status])
        if word == "healthy":
            return ("healthy", None) if self.has_room() else ("degraded", _DISK_FULL)
        if word == "error":
            return word, "the store is damaged: the node's log files say how"
        return word, status.error

    # opening it again

    async def _open_again(self) -> None:
        while True:
            await asyncio.sleep(until_whole(self._config.look_s, time.monotonic()))
            await asyncio.to_thread(self.room.keep_reserve)
            if self._current.open is not None:
                if not await self._must_reopen(self._current.open):
                    continue
                opened, self._current.open = self._current.open, None
                self._means.on_close()
                await opened.close()
                del opened
                let_go()
            let_go()  # of a store that could not be brought up to date
            await self._replace()
            try:
                self._current.open = await self._recover(lambda applied, last: None)
                if self._replacement is not None:
                    self._replacement.settle()
                    self._replacement = None
                self._means.on_alerts()
                self._means.on_purges()
            except UnavailableError as error:
                logger.warning("the store cannot be opened again yet: %s", error)
            except CorruptionError:
                self._failed = True
                raise

    async def replace_store(self, directory: StoreDirectory, tree: Path, index: int) -> None:
        """Have a tree of `StoreDirectory.make_snapshot`, of that log index, take the place of the store that
        is open, and which has this directory object; return when it is open. From index on the log is whole.

        Whoever calls keeps nothing of the store. Raises UnavailableError; then the store is as it was, or it
        was replaced.
        """
        if self._current.opened().directory is not directory or self._replacement is not None:
            raise LogUnavailable("the store was opened anew meanwhile")
        asked = _Replacement(directory, tree, index, asyncio.get_running_loop().create_future())
        self._replacement = asked
        await asked.done

    async def _replace(self) -> None:
        """While no store is open."""
        asked = self._replacement
        if asked is None or asked.is_adopted:
            return
        try:
            await asyncio.to_thread(asked.directory.adopt_snapshot, asked.tree, asked.index)
            asked.is_adopted = True
        except (UnavailableError, CorruptionError) as error:
            asked.fail(error)
            self._replacement = None

    async def _must_reopen(self, opened: OpenStore) -> bool:
        if self._replacement is not None:
            if self._replacement.directory is opened.directory:
                return True
            self._replacement.fail(LogUnavailable("the store was opened anew meanwhile"))
            self._replacement = None
        fault = opened.writer.fault
        if self._following.needs_reopening(fault):
            return True
        is_starved = isinstance(fault, StorageFull) or opened.quads.is_starved
        # what was not flushed is, when the store is opened
        if is_starved and self.room.make_room(opened.checkpointer.unflushed.needed_bytes):
            return True
        return await self._recycles_much(opened)

    async def _recycles_much(self, opened: OpenStore) -> bool:
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

    # recovering

    async def _recover_prepared(self, progress: Callable[[int, int], None]) -> OpenStore:
        """At the start, for as long as it takes: what is missing from the log may come with `prepare`."""
        while True:
            try:
                return await self._recover(progress)
            except GraphDBError as error:
                if not self._following.needs_reopening(error):
                    raise
                logger.info("the log goes on without what this node has yet to apply: %s", error)
            let_go()  # an open store would tidy up among the files of the one that takes its place

    async def _recover(self, progress: Callable[[int, int], None]) -> OpenStore:
        await self._following.prepare()
        directory = await asyncio.to_thread(StoreDirectory, self._settings.server.data_dir)
        log_status, union = await self._log.status(), self._settings.server.union_default_graph
        last_index = log_status.last_index
        # what opening writes: files of the engine, and what it had in memory; then it may merge
        self.room.make_room(directory.engine_files()[1])
        schema, annotations = SchemaWatch(), AnnotationWatch()
        quads, applied = await open_quads(
            directory, log_status.first_index, (annotations, schema), union_default_graph=union
        )
        if applied > last_index:
            raise CorruptionError(
                f"the log ends at {last_index}, the store at {applied} or later: entries are missing",
                str(directory.log),
            )
        kept = directory.read_beside(applied)
        kept.alerts.on_change = self._means.on_alerts
        kept.purges.on_change = self._means.on_purges
        scratch = str(directory.scratch)
        replayer = Replayer(
            quads.apply_many,
            applied,
            scratch,
            kept.requests,
            kept.books,
            is_settled=lambda: not quads.is_removing,
        )
        every_bytes = self._config.checkpoint_log_bytes
        checkpointer = Checkpointer(directory, quads, kept, replayer, self._log, every_bytes, self.room)
        writer = ShardWriter(
            quads,
            self._log,
            replayer,
            self._config.writer,
            clock_ms=lambda: time.time_ns() // 1_000_000,
            fresh_request_id=request_ids.FreshIds(os.urandom),
            admit=checkpointer.admit,
            on_logged=checkpointer.count,
            guard=shape_guard(self._settings.shacl, self._means.checks(directory)),
            on_changes=self._means.changes.note,
            on_heard=checkpointer.look,
        )
        try:
            await self._following.catch_up(writer, lambda index: progress(index, last_index))
        except BaseException:
            await writer.close()
            raise
        writer.start()
        return self._put_together(
            directory, quads, (schema, annotations), kept, replayer, writer, checkpointer
        )

    def _put_together(
        self,
        directory: StoreDirectory,
        quads: QuadStore,
        watches: tuple[SchemaWatch, AnnotationWatch],
        kept: KeptBeside,
        replayer: Replayer,
        writer: ShardWriter,
        checkpointer: Checkpointer,
    ) -> OpenStore:
        """With what reads the store that the writer keeps."""
        schema, annotations = watches
        data_dir, union = self._settings.server.data_dir, self._settings.server.union_default_graph
        checkpoints = Checkpoints(
            directory.scratch,
            quads,
            writer.applied,
            self._means.release,
            still=lambda perform: writer.hold_turn(lambda _index: perform()),
        )
        text = TextKeeper(quads, writer.applied, directory.scratch, self._settings.text)
        views = Views(
            data_dir / _VIEWS,
            quads,
            watches,
            writer,
            checkpoints,
            self._means.changes.open,
            self._means.release,
            views_max=self._settings.server.views,
            text=text,
            text_settings=self._settings.text,
            union_default_graph=union,
        )
        present = Present(
            data_dir,
            writer.applied,
            checkpoints,
            annotations,
            views,
            self.room.admits,
            kept.named_states.index_of,
            lambda: kept.purges.last_index,
            lambda: directory.unpurged(kept.purges),
        )
        past = PastStates(
            data_dir / _PAST,
            present,
            self._settings.history,
            self._means.release,
            union_default_graph=union,
        )
        return OpenStore(
            directory,
            quads,
            schema,
            annotations,
            kept,
            replayer,
            writer,
            checkpointer,
            checkpoints,
            SpatialKeeper(quads, writer.applied, directory.scratch),
            text,
            views,
            past,
            VisibleStore(None, quads, schema, writer.applied, checkpoints, lambda: True, None, text),
        )
