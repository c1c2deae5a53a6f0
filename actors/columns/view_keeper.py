"""`ViewKeeper`: keeps a column view where the log is: opens it, loads it, follows, makes it anew."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from actors.columns.open_view import OpenView
from actors.columns.protocol import Load
from actors.columns.view_files import ViewFiles
from actors.disk_room import DiskRoom
from actors.log.client import LogAccess
from actors.shard.applied_index import AppliedIndex
from graphdb.columns.applying import apply_changes, take_statistics
from graphdb.columns.entry_lines import EntryLines
from graphdb.columns.garbage import collect_terms, is_worth_collecting
from graphdb.errors import CorruptionError, LogCompacted, UnavailableError

__all__ = ["ViewKeeper"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_WATCH_S = 1.0  # a long poll of the log; when it brings nothing, the view is tidied
_GATHER_S = 0.6  # changes that come meanwhile are applied together, unless a query waits for them
_FULL_S = 1.0  # between two looks at a full disk
_AGAIN_S, _AGAIN_S_MAX = 0.5, 60.0  # after a failure that may pass; loading doubles it each time
_BATCH_QUADS = 100_000  # applied together at most, give or take an entry


class ViewKeeper:
    """For one event loop: run `run`. The database is written on one thread, read by cursors on others."""

    def __init__(self, files: ViewFiles, log: LogAccess, room: DiskRoom) -> None:
        """While the disk is full the view stays where it is, for readers can do without it."""
        self._room = room
        self._may_spill = True
        # starting; loading: waits for a copy of the store, or takes it in; following; collecting dead terms
        self.state = "starting"
        self.running = 0  # queries; those that run now look terms up which their state of the view has
        self.wanted = asyncio.Event()  # a copy of the store
        self.view: OpenView | None = None  # while following
        self.applied = AppliedIndex(lambda: self._index)
        self._files, self._log = files, log
        self._index = 0
        self._entries: EntryLines | None = None
        self._is_tidy = False  # nothing is to be done before the next change
        self._hurry = asyncio.Event()
        self._failures = 0  # of loading, one after the other
        self._loaded: asyncio.Future[Load] | None = None
        self._done: asyncio.Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "column-view")

    async def run(self) -> None:
        """For ever. Whatever is wrong with the view, it is made anew of the store."""
        opening: Callable[[], Any] = self._open
        while True:
            try:
                await opening()
                await self._follow()
            except (CorruptionError, LogCompacted, duckdb.Error, OSError) as error:
                logger.warning("the column view is made anew: %s", error)
            except Exception:
                logger.exception("the column view failed, it is made anew")
            opening = self._load
            await self._let_go()

    async def wait_for(self, index: int, timeout_s: float) -> bool:
        """Have the view apply what there is; whether it has come to index in time."""
        if self.view is None:
            return False
        if self._index < index:
            self._hurry.set()
            try:
                async with asyncio.timeout(timeout_s):
                    await self.applied.wait_for(index)
            except TimeoutError:
                return False
        return self.view is not None and self.state == "following"

    async def load(self, load: Load) -> None:
        """Take in the copy of the store that is wanted. Raises UnavailableError."""
        if self._loaded is None or self._loaded.done():
            raise UnavailableError("the column view wants no copy of the store")
        self._done = asyncio.get_running_loop().create_future()
        self._loaded.set_result(load)
        await self._done

    async def close(self) -> None:
        await self._let_go()
        self._thread.shutdown()

    async def _open(self) -> None:
        opened = await self._on_thread(self._files.open)
        connection, self._index, resume_index = opened
        self._take(connection)
        self._entries = EntryLines(self._index, resume_index)

    def _take(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.view = OpenView(connection, self._files.query_memory_mb)
        self._may_spill = True

    async def _load(self) -> None:
        self.state = "loading"
        while not self._room.admits():  # noqa: ASYNC110 a disk has no event for this
            await asyncio.sleep(_FULL_S)
        self._loaded = asyncio.get_running_loop().create_future()
        self.wanted.set()
        try:
            load = await self._loaded
            self.wanted.clear()
            connection = await self._on_thread(self._files.load, Path(load.path), load.log_index)
            self._take(connection)
            self._index = load.log_index
            self._entries = EntryLines(self._index)
        except BaseException as error:
            if isinstance(error, Exception):
                await asyncio.sleep(min(_AGAIN_S_MAX, _AGAIN_S * 2**self._failures))
                self._failures = min(self._failures + 1, 10)
            raise
        finally:
            self.wanted.clear()
            if self._done is not None and not self._done.done():
                self._done.set_result(None)

    async def _follow(self) -> None:
        """Raises CorruptionError, LogCompacted and what DuckDB raises; what may pass is tried again."""
        self.state, self._failures, self._is_tidy = "following", 0, False
        with self.applied.changing():
            pass  # who waits for an index that came with the view
        assert self._entries is not None
        while True:
            try:
                await self._step(self._entries)
            except LogCompacted:
                raise
            except UnavailableError:
                await asyncio.sleep(_AGAIN_S)

    async def _step(self, entries: EntryLines) -> None:
        if not await self._has_room():
            await asyncio.sleep(_FULL_S)
            return
        if await self._log.watch_index(entries.read_index, _WATCH_S) <= entries.read_index:
            await self._tidy()
            return
        try:
            async with asyncio.timeout(_GATHER_S):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._hurry.clear()
        while read := await self._log.read(entries.read_index + 1):
            await self._on_thread(entries.feed_all, read)
            if len(entries.net) > _BATCH_QUADS:
                break
        if entries.read_index > self._index:
            await self._apply(entries)

    async def _has_room(self) -> bool:
        """Queries that follow spill only while there is."""
        has_room = self._room.admits()
        if has_room is not self._may_spill and self.view is not None:
            try:
                await self._on_thread(self._files.let_spill, self.view.connection, has_room)
                self._may_spill = has_room
            except duckdb.Error as error:  # a query has spilled, and ends
                logger.info("what queries spill cannot be bounded yet: %s", error)
        return has_room

    async def _apply(self, entries: EntryLines) -> None:
        while True:
            try:
                await self._change(apply_changes, entries, self._files.scratch)
                break
            except (duckdb.IOException, OSError) as error:
                if self._room.admits():
                    raise
                logger.warning("the column view waits for room on the disk: %s", error)
                await asyncio.sleep(_FULL_S)
            except (duckdb.OutOfMemoryException, MemoryError) as error:  # queries have it, and they end
                logger.warning("the column view waits for memory: %s", error)
                await asyncio.sleep(_AGAIN_S)
        entries.taken()
        self._is_tidy = False
        with self.applied.changing():
            self._index = entries.applied_index

    async def _tidy(self) -> None:
        """Take statistics, or collect dead terms while no query runs: readers answer meanwhile."""
        if self._is_tidy:
            return
        assert self.view is not None
        try:
            if await self._change(take_statistics):
                return
            if not await self._on_thread(is_worth_collecting, self.view.connection):
                self._is_tidy = True
            elif not self.running:
                self.state = "collecting"
                await self._change(collect_terms)
        except duckdb.OutOfMemoryException as error:  # the next quiet moment does it
            logger.info("the column view has no memory to be tidied: %s", error)
        finally:
            self.state = "following"

    async def _let_go(self) -> None:
        view, self.view = self.view, None
        if view is not None:
            await self._on_thread(view.close)

    async def _change(self, function: Callable[..., T], *arguments: Any) -> T:
        """What function makes of the view's connection and the arguments."""
        view = self.view
        assert view is not None

        def change() -> T:
            with view.changing():
                return function(view.connection, *arguments)

        return await self._on_thread(change)

    async def _on_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *arguments))
