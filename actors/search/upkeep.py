"""`Upkeep`: what a node's indexes need now and then: refreshes, merges, and to be put on disk."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from actors.disk_room import DiskRoom
from actors.freed_memory import give_back
from actors.log.client import LogAccess
from actors.search.catalog_view import Applied, CatalogView
from actors.search.merger import Merger
from actors.search.refresh_schedule import RefreshSchedule
from actors.search.search_thread import SearchThread
from graphdb.errors import UnavailableError
from graphdb.log.views import SEARCH
from graphdb.search.catalog.files import CatalogSave
from graphdb.search.catalog.state import Index

__all__ = ["Upkeep", "UpkeepConfig"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UpkeepConfig:
    """When what is done."""

    look_s: float = 0.1  # how often it is looked whether anything is due
    flush_bytes: int = 64 << 20  # of log between two flushes; about what a restart replays
    flush_s: float = 30.0  # how long what was applied may not be on disk
    rest_s: float = 5.0  # without a change or a flush, after which freed memory goes back


class Upkeep:
    """For one event loop. Run `run` while the catalogue is open."""

    def __init__(
        self,
        view: CatalogView,
        thread: SearchThread,
        log: LogAccess,
        config: UpkeepConfig,
        room: DiskRoom,
    ) -> None:
        self._room = room
        self._view, self._thread, self._log, self._config = view, thread, log, config
        self._schedule = RefreshSchedule(view.catalog.find)
        self._merger = Merger(view.catalog.find, thread, view.graph_files)
        self._clock = asyncio.get_running_loop().time
        self._unsaved_bytes = 0
        self._unsaved_since: float | None = None
        self._changed_at: float | None = None  # the last time since memory was given back
        self._flushing = asyncio.Lock()
        self._flush_task: asyncio.Task[None] | None = None
        self._rest: asyncio.Task[None] | None = None

    def note(self, applied: Iterable[Applied], logged_bytes: int) -> None:
        """So much of the log has been followed, and these search entries in it have taken effect."""
        self._unsaved_bytes += logged_bytes
        for one in applied:
            self._schedule.note_written(one.written, self._clock())
            self._changed_at = self._clock()
            if self._unsaved_since is None:
                self._unsaved_since = self._clock()

    async def run(self) -> None:
        """For ever."""
        self._merger.look_at(index.name for index in self._view.catalog.indexes())
        while True:
            await asyncio.sleep(self._config.look_s)
            try:
                due = self._schedule.take_due(self._clock())
                if due:
                    await self._refresh(due)
            except Exception:
                logger.exception("a refresh failed")
            if self._is_flush_due():
                self.request_flush()
            if self._changed_at is not None and self._clock() - self._changed_at >= self._config.rest_s:
                self._changed_at = None
                self._rest = asyncio.get_running_loop().create_task(self._thread.beside(give_back))

    async def refreshed(self, names: Sequence[str]) -> None:
        """Return when these indexes have been refreshed in their turn."""
        await self._schedule.wait_for(names)

    async def refresh(self, indexes: Sequence[Index]) -> None:
        """Refresh now."""
        await self._refresh([index.name for index in indexes])

    async def force_merge(self, index: Index, segments_max: int) -> None:
        """Merge until there are not more segments."""
        await self._merger.merge_down(index, segments_max)

    def request_flush(self) -> None:
        """Begin a flush unless one is under way."""
        if self._flush_task is None or self._flush_task.done():
            self._flush_task = asyncio.get_running_loop().create_task(self._try_flush())

    async def flush(self) -> int:
        """Put everything that was applied on disk, and let the log forget it; the log index that it is of.

        Raises UnavailableError.
        """
        async with self._flushing:
            # on a full disk from the reserve: what the log holds is of the size of what is written
            self._room.make_room(2 * self._unsaved_bytes)
            self._unsaved_bytes, self._unsaved_since = 0, None
            planned = await self._thread.write(self._view.plan_flush)
            if planned is not None:
                await self._save(planned)
            index = self._view.saved_index
            await self._log.truncate_before(index + 1, SEARCH)
            return index

    async def _save(self, planned: CatalogSave) -> None:
        try:
            commits = await self._thread.save(self._view.write_flush, planned)
        except BaseException:
            await self._thread.write(planned.give_up)
            raise
        await self._thread.write(self._view.note_flush, planned, commits)
        self._changed_at = self._clock()  # arrays in memory gave way to mapped files

    async def close(self) -> None:
        """Leave merges, flush a last time, let go of who waits for a refresh: their writes are stored."""
        await self._merger.close()
        if self._flush_task is not None:
            await self._flush_task
        await self._try_flush()
        _tell(self._schedule.take_all_waiting())

    def _is_flush_due(self) -> bool:
        since = self._unsaved_since
        return self._unsaved_bytes >= self._config.flush_bytes or (
            since is not None and self._clock() - since >= self._config.flush_s
        )

    async def _refresh(self, names: Sequence[str]) -> None:
        waiting = self._schedule.take_waiting(names)
        try:
            indexes = await self._thread.write(self._view.seal, names)
            await self._thread.build(_build, indexes)
            await self._thread.write(self._view.adopt, indexes)
        finally:
            _tell(waiting)
        self._merger.look_at(names)

    async def _try_flush(self) -> None:
        try:
            await self.flush()
        except UnavailableError as error:
            self._unsaved_since = self._clock()
            logger.warning("the search indexes were not put on disk: %s; the log keeps what it has", error)
        except Exception:
            self._unsaved_since = self._clock()
            logger.exception("putting the search indexes on disk failed; the log keeps what it has")


def _build(indexes: Iterable[Index]) -> None:
    for index in indexes:
        index.shard.build_sealed()


def _tell(waiting: "Iterable[asyncio.Future[None]]") -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
