"""`ViewKeeper`: keeps a column view where the log is: opens it, loads it, follows, makes it anew."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from actors.columns.database import OpenView, ViewFiles
from actors.columns.protocol import Load
from actors.disk_room import DiskRoom
from actors.log.applied_index import AppliedIndex
from actors.log.client import LogAccess
from actors.log.view_runner import ViewRunner
from actors.log.view_sources import LogReading, Pace, Restart, Snapshot
from graphdb.columns.applying import (
    apply_changes,
    collect_terms,
    is_worth_collecting,
    take_statistics,
    transaction,
)
from graphdb.columns.entry_lines import EntryLines
from graphdb.columns.past_rows import oldest_within_bound, trim_past
from graphdb.errors import GraphDBError, LogCompacted, Overloaded, StorageFull, UnavailableError
from graphdb.history.purges import is_purge
from graphdb.log.views import ViewStatus
from graphdb.model import EntryKind, LogEntry

if TYPE_CHECKING:  # only the process of a view that is divided loads what shards need
    from actors.columns.shard_set import ShardSet

__all__ = ["ViewKeeper"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_PACE = Pace(
    again_s=0.5,
    again_s_max=1.0,  # a full disk, or queries that have all memory, are looked at so often
    anew_s_max=60.0,
    gather_s=2.0,
    idle_s=1.0,  # then the view is tidied
)
_BUSY_S = 0.1  # between two looks whether queries have ended
_FULL_S = 1.0  # between two looks at a disk that has no room for a new view
_TRIM_EVERY = 50  # changes, of two seconds each where the log is busy
_BATCH_BYTES = 16 << 20  # of log entries, applied in one transaction, about


class _ColumnState:
    """The database as a `SnapshotView`. Its methods run on the one thread that writes the database."""

    def __init__(
        self, files: ViewFiles, room: DiskRoom, on_open: Callable[[], None], oldest: Callable[[int], int]
    ) -> None:
        self._on_open, self._oldest = on_open, oldest
        self._untrimmed = 0  # changes since the past was trimmed
        self.opened: OpenView | None = None  # none after a failure, until there is a snapshot
        self.shards: ShardSet | None = None  # once there are any
        self.shown_index = 0  # the log index of what queries see
        self._index = 0
        self._entries = EntryLines(0)
        self._files, self._room = files, room

    @property
    def index(self) -> int:
        """Of the last entry that was taken in. Right after `open` it may be lower than shown_index: the
        entries between tell which large change is open.
        """
        return self._index

    def open(self) -> None:
        """The database as it is on disk. Raises CorruptionError where there is none, or it is not whole."""
        connection, log_index, resume_index = self._files.open()
        keeps_turns = self._files.keeps_past
        self._take(connection, EntryLines(log_index, resume_index, keeps_turns=keeps_turns))

    def adopt_snapshot(self, log_index: int, tree: Path | None) -> None:
        """Make the database anew of a copy of the store. Raises UnavailableError, OSError, duckdb.Error."""
        assert tree is not None
        connection = self._files.load(tree, log_index)
        self._take(connection, EntryLines(log_index, keeps_turns=self._files.keeps_past))

    def _take(self, connection: duckdb.DuckDBPyConnection, entries: EntryLines) -> None:
        self._entries, self._index, self.shown_index = entries, entries.read_index, entries.applied_index
        self.opened = self._files.opened(connection)
        self._on_open()
        if self.shards is not None:
            self.shards.follow(connection)

    def divide(self, shards: "ShardSet") -> None:
        """Have shards follow from now on."""
        self.shards = shards
        if self.opened is not None:
            shards.follow(self.opened.connection)

    def let_go(self, view: OpenView) -> bool:
        """Close a view that was opened; whether it is closed."""
        if self.shards is not None:
            self.shards.leave()
        return view.close()

    def apply(self, entries: Sequence[LogEntry]) -> None:
        """See `View.apply`. Raises StorageFull, Overloaded (queries have the memory), CorruptionError,
        LogCompacted (something was purged, and the files have it), and what DuckDB raises. Then nothing has
        changed; what has been gathered is applied with what comes next.
        """
        assert self.opened is not None
        if any(entry.kind is EntryKind.PURGES and is_purge(entry.payload) for entry in entries):
            raise LogCompacted("something was purged: the column view has it in its files")
        self._entries.feed_all(entry for entry in entries if entry.log_index > self._entries.read_index)
        notes = None if self.shards is None else self.shards.notes()
        try:
            with self.opened.changing() as changed:
                changed |= apply_changes(self.opened.connection, self._entries, self._files.scratch, notes)
        except (duckdb.IOException, OSError) as error:
            if self._room.admits():
                raise
            logger.warning("the column view waits for room on the disk: %s", error)
            raise StorageFull("the column view waits for room on the disk") from error
        except (duckdb.OutOfMemoryException, MemoryError) as error:  # queries end
            logger.warning("the column view waits for memory: %s", error)
            raise Overloaded("the column view waits for memory") from error
        self._entries.taken()
        if self.shards is not None and notes is not None:
            self.shards.change(notes, self.shown_index, self._entries.applied_index)
        self._index, self.shown_index = self._entries.read_index, self._entries.applied_index
        self._untrimmed += 1
        if self._files.keeps_past and self._untrimmed >= _TRIM_EVERY:
            self._untrimmed = 0
            self._trim(self.opened)

    def _trim(self, view: OpenView) -> None:
        """Forget what the history has forgotten, and what is too much. What fails is done another time."""
        try:
            oldest_index = max(self._oldest(self.shown_index), oldest_within_bound(view.connection))
            with view.changing(), transaction(view.connection):
                trim_past(view.connection, oldest_index)
        except (GraphDBError, OSError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
            logger.info("the past that the column view keeps is not trimmed: %s", error)

    def check(self) -> None:
        """What is wrong with the database, `apply` raises."""


class ViewKeeper:
    """For one event loop: run `run`. The database is written on one thread, read by cursors on others."""

    def __init__(
        self,
        files: ViewFiles,
        log: LogAccess,
        room: DiskRoom,
        on_open: Callable[[], None],
        oldest: Callable[[int], int] = lambda _: 0,
    ) -> None:
        """While the disk is full the view stays where it is, for readers can do without it. on_open is
        called, on the thread that writes it, when there is a view to be queried. oldest answers, on that
        thread, the oldest log index whose state the history knows, given the newest one; it may raise
        GraphDBError and OSError.
        """
        self._room = room
        self._may_spill = True
        self.running = 0  # queries; those that run now look terms up which their state of the view has
        self.wanted = asyncio.Event()  # a copy of the store
        self._files, self._state = files, _ColumnState(files, room, on_open, oldest)
        self.applied = AppliedIndex(lambda: self._state.shown_index)
        self._is_tidy = False  # nothing is to be done before the next change
        self._is_collecting = False
        self._loaded: asyncio.Future[Load] | None = None
        self._done: asyncio.Future[None] | None = None
        self._leaving: OpenView | None = None  # to be closed
        self._thread = ThreadPoolExecutor(1, "column-view")
        self._runner = ViewRunner(
            "columns",
            self._state,
            LogReading(log, _BATCH_BYTES),
            perform=self._perform,
            on_applied=self._note_change,
            applied=self.applied,
            ready=self._look_at_room,
            on_idle=self._tidy,
            restart=Restart(self._state, self._copies),
            pace=_PACE,
        )

    @property
    def view(self) -> OpenView | None:
        """None while there is nothing to query."""
        return self._state.opened

    @property
    def shards(self) -> "ShardSet | None":
        """None where the view is not divided, or not yet."""
        return self._state.shards

    async def divide(self, shards: "ShardSet") -> None:
        """Have shards follow the view, which are closed with this."""
        await self._on_thread(self._state.divide, shards)

    @property
    def state(self) -> str:
        """starting, loading (waits for a copy of the store, or takes it in), following, collecting."""
        if self._is_collecting:
            return "collecting"
        state = self._runner.status().state
        return {"starting": "starting", "restarting": "loading"}.get(state, "following")

    def view_status(self) -> ViewStatus:
        """How well it follows the log."""
        return self._runner.status()

    async def run(self) -> None:
        """For ever. Whatever is wrong with the view, it is made anew of the store."""
        try:
            await self._perform(self._state.open)
        except Exception as error:  # noqa: BLE001 it is told there
            self._runner.begin_anew(error)
        await self._runner.run()

    async def wait_for(self, index: int, timeout_s: float) -> bool:
        """Have the view apply what there is; whether it has come to index in time."""
        if self.view is None or not await self._runner.reach(index, timeout_s):
            return False
        return self.view is not None and self.state == "following"

    def has(self, index: int) -> bool:
        """Whether the view has come to index, and can be queried at this moment."""
        return self.view is not None and self.applied.current >= index and self.state == "following"

    async def load(self, load: Load) -> None:
        """Take in the copy of the store that is wanted. Raises UnavailableError."""
        if self._loaded is None or self._loaded.done():
            raise UnavailableError("the column view wants no copy of the store")
        self._done = asyncio.get_running_loop().create_future()
        self._loaded.set_result(load)
        await self._done

    async def close(self) -> None:
        if self.shards is not None:
            await asyncio.to_thread(self.shards.close)
        await self._let_go()
        self._thread.shutdown()

    @asynccontextmanager
    async def _copies(self) -> AsyncIterator[Snapshot]:
        """A copy of the store, once there is room for a view of it; until then readers answer."""
        await self._let_go()
        while not self._room.admits():  # noqa: ASYNC110 a disk has no event for this
            await asyncio.sleep(_FULL_S)
        self._loaded = asyncio.get_running_loop().create_future()
        self.wanted.set()
        try:
            load = await self._loaded
            self.wanted.clear()
            yield Snapshot(load.log_index, Path(load.path))
            self._may_spill = True
            self._note_change()
        finally:
            self.wanted.clear()
            if self._done is not None and not self._done.done():
                self._done.set_result(None)

    def _note_change(self, *_: Any) -> None:
        self._is_tidy = False

    async def _look_at_room(self) -> None:
        """Queries that follow spill only while there is room. Raises StorageFull where there is not."""
        has_room = self._room.admits()
        view = self.view
        if has_room is not self._may_spill and view is not None:
            try:
                await self._on_thread(self._files.let_spill, view.connection, has_room)
                self._may_spill = has_room
            except duckdb.Error as error:  # a query has spilled, and ends
                logger.info("what queries spill cannot be bounded yet: %s", error)
        if not has_room:
            raise StorageFull("the column view waits for room on the disk")

    async def _tidy(self) -> None:
        """Take statistics, or collect dead terms while no query runs: readers answer meanwhile."""
        if self._is_tidy:
            return
        view = self.view
        assert view is not None
        try:
            if await self._change(view, take_statistics):
                return
            if not await self._on_thread(is_worth_collecting, view.connection):
                self._is_tidy = True
            elif not self.running:
                self._is_collecting = True
                await self._change(view, collect_terms, collects_terms=True)
        except duckdb.OutOfMemoryException as error:  # the next quiet moment does it
            logger.info("the column view has no memory to be tidied: %s", error)
        finally:
            self._is_collecting = False

    async def _let_go(self) -> None:
        """Close the view, once the queries that run on it have ended: DuckDB closes no database before, and
        would hand the old one out for the new one's file.
        """
        if self.view is not None:
            self._leaving, self._state.opened = self.view, None
        while self._leaving is not None:
            if not self.running and await self._on_thread(self._state.let_go, self._leaving):
                self._leaving = None
                return
            await asyncio.sleep(_BUSY_S)

    async def _change(self, view: OpenView, function: Callable[..., T], *, collects_terms: bool = False) -> T:
        """What function makes of the view's connection."""

        def change() -> T:
            with view.changing(collects_terms=collects_terms):
                return function(view.connection)

        return await self._on_thread(change)

    async def _perform(self, function: Callable[..., T], *arguments: Any) -> T:
        """What changes what queries see."""
        with self.applied.changing():
            return await self._on_thread(function, *arguments)

    async def _on_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *arguments))
