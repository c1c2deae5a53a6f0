"""`Upkeep`: what indexes need now and then: refreshes (`RefreshSchedule`), merges (`Merger`), graphs of their
vectors (`GraphSchedule`), and to be put on disk.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from actors.disk_room import DiskRoom
from actors.freed_memory import give_back
from actors.log.client import LogAccess
from actors.search.catalog_view import Applied, CatalogView, SearchThread
from graphdb.errors import LogUnavailable, UnavailableError
from graphdb.log.views import SEARCH
from graphdb.search.catalog.files import CatalogSave
from graphdb.search.catalog.index_settings import refresh_interval_ms
from graphdb.search.catalog.state import Index
from graphdb.search.leaf_reader import Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.index_shard import MergePlan
from graphdb.search.vectors import GraphFiles, keep_graphs, missing_graphs, remove_stale

__all__ = ["GraphSchedule", "Merger", "RefreshSchedule", "Upkeep", "UpkeepConfig"]

_WAITING_MAX = (
    1000  # writes that wait for a refresh of one index, before it is forced; Elasticsearch's number
)


def refresh_interval_s(index: Index) -> float | None:
    """How long what was written may stay unfindable; None where only a request refreshes."""
    interval_ms = refresh_interval_ms(index.settings)
    return interval_ms / 1000 if interval_ms >= 0 else None


class RefreshSchedule:
    """For one event loop. Times are of any clock that only goes forward, in seconds."""

    def __init__(self, find: Callable[[str], Index | None]) -> None:
        """find tells an index by its name."""
        self._find = find
        self._written_at: dict[str, float] = {}  # the first write since the last refresh
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    def note_written(self, names: Iterable[str], now: float) -> None:
        """These indexes have something to refresh."""
        for name in names:
            self._written_at.setdefault(name, now)

    async def wait_for(self, names: Iterable[str]) -> None:
        """Return once all of these indexes have been refreshed, or are gone."""
        for future in [self._join(name) for name in names]:
            await future

    def _join(self, name: str) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append(future)
        return future

    @property
    def is_empty(self) -> bool:
        """Whether no index waits for a refresh."""
        return not self._written_at and not self._waiting

    def take_due(self, now: float) -> list[str]:
        """The indexes to refresh now; they count as refreshed from here on."""
        due = [name for name in self._written_at.keys() | self._waiting.keys() if self._is_due(name, now)]
        for name in due:
            self._written_at.pop(name, None)
        return due

    def take_waiting(self, names: Iterable[str]) -> "list[asyncio.Future[None]]":
        """Who waits for these indexes; tell them when the refresh is done."""
        return [future for name in names for future in self._waiting.pop(name, ())]

    def take_all_waiting(self) -> "list[asyncio.Future[None]]":
        """Everybody."""
        return self.take_waiting(list(self._waiting))

    def _is_due(self, name: str, now: float) -> bool:
        index = self._find(name)
        if index is None or name not in self._written_at or len(self._waiting.get(name, ())) >= _WAITING_MAX:
            return True
        interval_s = refresh_interval_s(index)
        return interval_s is not None and now - self._written_at[name] >= interval_s


class GraphSchedule:
    """When graphs are made of the vectors of segments that a refresh has made: they take as long as writing
    the documents does, and a merge may end them. So they are put off while their index is written to, but
    not for long, as searches look at every vector until then. Times are as in `RefreshSchedule`.
    """

    def __init__(self, written_at: Mapping[str, float], rest_s: float, wait_s: float) -> None:
        """written_at: the last write to each index, if it is not long ago. Graphs are due rest_s after that,
        and wait_s after they were put off first.
        """
        self._written_at, self._rest_s, self._wait_s = written_at, rest_s, wait_s
        self._put_off: dict[str, float] = {}  # since when
        self._due: set[str] = set()

    def puts_off(self, name: str, now: float) -> bool:
        """Whether graphs of this index are not to be made now; `take_due` tells when they are."""
        if name in self._due:
            self._due.discard(name)
            return False
        since = self._put_off.setdefault(name, now)
        if now < self._due_at(name, since):
            return True
        del self._put_off[name]
        return False

    def hurry(self, names: Iterable[str]) -> None:
        """The graphs of these indexes are not put off the next time."""
        self._due.update(names)

    @property
    def next_due(self) -> float | None:
        """When it may be time for `take_due`; None where nothing is put off."""
        return min((self._due_at(name, since) for name, since in self._put_off.items()), default=None)

    def take_due(self, now: float) -> list[str]:
        """The indexes whose graphs are to be made now: `puts_off` says so once of each."""
        due = [name for name, since in self._put_off.items() if now >= self._due_at(name, since)]
        for name in due:
            del self._put_off[name]
        self.hurry(due)
        return due

    def _due_at(self, name: str, since: float) -> float:
        written_at = self._written_at.get(name)
        return since if written_at is None else min(written_at + self._rest_s, since + self._wait_s)


logger = logging.getLogger(__name__)


class Merger:
    """For one event loop. A merge is planned and adopted where the catalogue changes, and made beside it.

    A merged segment is adopted with its graphs; those of other segments are made when there is nothing to
    merge, and nothing else to wait for.
    """

    def __init__(
        self,
        find: Callable[[str], Index | None],
        thread: SearchThread,
        graph_files: Callable[[Index, int], GraphFiles],
        note_merged: Callable[[bool], None] = lambda is_last: None,
        puts_graphs_off: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """find tells an index by its name; graph_files are those of the directory of a shard. note_merged:
        segments have been merged; is_last: more will not come soon. puts_graphs_off: of an index; whoever
        does lets it be looked at again.
        """
        self._note_merged, self._puts_graphs_off = note_merged, puts_graphs_off
        self._resting: set[str] = set()
        self._find, self._thread, self._graph_files = find, thread, graph_files
        self._closing = threading.Event()
        self._one_at_a_time = asyncio.Lock()
        self._names: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    def look_at(self, names: Iterable[str]) -> None:
        """These indexes have new segments."""
        self._names.update(dict.fromkeys(names))
        if self._names and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._run())

    def look_at_rest(self, names: Iterable[str]) -> None:
        """Nothing has been written to these indexes for a while."""
        resting = list(names)
        self._resting.update(resting)
        self.look_at(resting)

    async def merge_all(self, index: Index, plan: Callable[[], MergePlan | None]) -> None:
        """Merge until there is nothing to plan."""
        has_merged = False
        while await self._merge(index, plan):
            has_merged = True
        if has_merged:
            self._note_merged(True)

    async def close(self) -> None:
        """Leave what is not done; a merge that is being made is made in vain."""
        self._closing.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._names:
            name = next(iter(self._names))
            del self._names[name]
            index = self._find(name)
            try:
                if index is None:
                    continue
                if await self._merge(index, index.shards.plan_merge):
                    self._names[name] = None  # behind the others: there may be more to do
                elif await self._merged_at_rest(index):
                    self.look_at_rest([name])
                elif not self._puts_graphs_off(name):
                    await self._look_at_graphs(index)
            except Exception:
                logger.exception("merging segments of %s failed", name)

    async def _merged_at_rest(self, index: Index) -> bool:
        """Do one of the merges that are for indexes to which nothing is written."""
        if index.name not in self._resting:
            return False
        self._resting.discard(index.name)
        if not await self._merge(index, index.shards.plan_merge_at_rest):
            return False
        self._note_merged(True)
        return True

    async def _merge(self, index: Index, plan: Callable[[], MergePlan | None]) -> bool:
        """Do one merge; False where there is none to do."""
        async with self._one_at_a_time:
            if self._closing.is_set():
                raise LogUnavailable("the node is stopping")
            planned = await self._thread.write(plan)
            if planned is None:
                return False
            merged = await self._thread.beside(self._merged, index, planned)
            is_adopted = await self._thread.write(index.shards.adopt_merge, planned, merged)
            self._note_merged(False)
            return is_adopted

    def _merged(self, index: Index, plan: MergePlan) -> ArraySegment:
        merged = plan.merged()
        leaf = Leaf(merged, np.ones(merged.size, np.bool_), 0)
        keep_graphs([leaf], index.mapping, self._graph_files(index, plan.shard), self._stops(index))
        return merged

    async def _look_at_graphs(self, index: Index) -> None:
        if await self._thread.beside(self._keep_graphs, index):
            async with self._one_at_a_time:  # the file of a segment that is being merged is not stale
                await self._thread.beside(self._remove_stale_graphs, index)

    def _keep_graphs(self, index: Index) -> bool:
        """Whether any were missing."""
        found = False
        for number, leaves in enumerate(index.shards.view().parts):
            if missing_graphs(leaves, index.mapping):
                found = True
                keep_graphs(leaves, index.mapping, self._graph_files(index, number), self._stops(index))
        return found

    def _stops(self, index: Index) -> Callable[[], bool]:
        """Whether graphs would be made in vain: the node is stopping, or the index is gone."""

        def stops() -> bool:
            now = self._find(index.name)
            return self._closing.is_set() or now is None or now.uuid != index.uuid

        return stops

    def _remove_stale_graphs(self, index: Index) -> None:
        for number, leaves in enumerate(index.shards.view().parts):
            remove_stale(leaves, self._graph_files(index, number))


_RELIEF = 0.5  # of the bytes of a flush, after which updates wait for one


@dataclass(frozen=True, slots=True)
class UpkeepConfig:
    """When what is done."""

    look_s: float = 0.1  # how often it is looked whether anything is due
    flush_bytes: int = 64 << 20  # of log between two flushes; about what a restart replays
    flush_s: float = 30.0  # how long what was applied may not be on disk
    merge_rest_s: float = 10.0  # without a write to an index, after which its segments are merged further
    rest_s: float = 5.0  # without a change or a flush, after which freed memory goes back
    graph_rest_s: float = 1.0  # without a write to an index, after which its graphs of vectors are made,
    graph_wait_s: float = 10.0  # and how long they wait at most


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
        self._written_at: dict[str, float] = {}  # the last write to each index that is not at rest
        self._clock = asyncio.get_running_loop().time
        self._graphs = GraphSchedule(self._written_at, config.graph_rest_s, config.graph_wait_s)
        self._merger = Merger(
            view.catalog.find, thread, view.graph_files, self._note_merged, self._puts_graphs_off
        )
        self._unsaved_bytes = 0
        self._unsaved_since: float | None = None
        self._changed_at: float | None = None  # the last time since memory was given back
        self._wake = asyncio.Event()  # something may be due
        self._flushing = asyncio.Lock()
        self._flush_task: asyncio.Task[None] | None = None
        self._rest: asyncio.Task[None] | None = None

    def note(self, applied: Iterable[Applied], logged_bytes: int) -> None:
        """So much of the log has been followed, and these search entries in it have taken effect."""
        self._unsaved_bytes += logged_bytes
        self._wake.set()
        for one in applied:
            self._unsaved_bytes += one.made_bytes
            self._schedule.note_written(one.written, self._clock())
            self._written_at.update(dict.fromkeys(one.written, self._clock()))
            self._changed_at = self._clock()
            if self._unsaved_since is None:
                self._unsaved_since = self._clock()

    async def run(self) -> None:
        """For ever."""
        names = [index.name for index in self._view.catalog.indexes()]
        self._graphs.hurry(names)  # they are mostly on disk
        self._merger.look_at(names)
        for name in names:
            self._written_at.setdefault(name, self._clock())
        while True:
            await self._until_due()
            try:
                due = self._schedule.take_due(self._clock())
                if due:
                    await self._refresh(due)
            except Exception:
                logger.exception("a refresh failed")
            if self._is_flush_due():
                self.request_flush()
            self._merge_at_rest()
            self._merger.look_at(self._graphs.take_due(self._clock()))
            if self._changed_at is not None and self._clock() - self._changed_at >= self._config.rest_s:
                self._changed_at = None
                self._rest = asyncio.get_running_loop().create_task(self._thread.beside(give_back))

    def _puts_graphs_off(self, name: str) -> bool:
        is_put_off = self._graphs.puts_off(name, self._clock())
        if is_put_off:
            self._wake.set()  # to wait until then
        return is_put_off

    def _note_merged(self, is_last: bool) -> None:
        """Merged segments stand in memory, and those that are on disk no longer count."""
        if self._unsaved_since is None:
            self._unsaved_since = self._clock()
            self._wake.set()
        if is_last:
            self.request_flush()

    def _merge_at_rest(self) -> None:
        until = self._clock() - self._config.merge_rest_s
        resting = [name for name, written_at in self._written_at.items() if written_at <= until]
        for name in resting:
            del self._written_at[name]
        self._merger.look_at_rest(resting)

    async def refreshed(self, names: Sequence[str]) -> None:
        """Return when these indexes have been refreshed in their turn."""
        self._wake.set()
        await self._schedule.wait_for(names)

    async def refresh(self, indexes: Sequence[Index]) -> None:
        """Refresh now."""
        await self._refresh([index.name for index in indexes])

    async def force_merge(self, index: Index, segments_max: int | None, *, only_deletions: bool) -> None:
        """Merge until no shard has more segments, or until there is nothing that is worth it; or only write
        those again that have many deleted documents.
        """
        shards = index.shards
        plan = shards.plan_expunging if only_deletions else lambda: shards.plan_merge(segments_max)
        await self._merger.merge_all(index, plan)

    async def relieved(self) -> None:
        """Return when what stands in memory alone is not much more than what a flush begins with."""
        if self._unsaved_bytes > _RELIEF * self._config.flush_bytes:
            await self._try_flush()

    def request_flush(self) -> None:
        """Begin a flush unless one is under way."""
        if self._flush_task is None or self._flush_task.done():
            self._flush_task = asyncio.get_running_loop().create_task(self._try_flush())

    async def flush(self, is_asked: bool = False) -> int:
        """Put everything that was applied on disk, and let the log forget it; the log index that it is of.
        is_asked: by a request.

        Raises UnavailableError.
        """
        async with self._flushing:
            # on a full disk from the reserve: what the log holds is of the size of what is written
            self._room.make_room(2 * self._unsaved_bytes)
            self._unsaved_bytes, self._unsaved_since = 0, None
            planned = await self._thread.write(self._view.plan_flush)
            if planned is not None:
                await self._save(planned, is_asked)
            index = self._view.saved_index
            await self._log.truncate_before(index + 1, SEARCH)
            return index

    async def _save(self, planned: CatalogSave, is_asked: bool) -> None:
        try:
            commits = await self._thread.save(self._view.write_flush, planned)
        except BaseException:
            await self._thread.write(planned.give_up)
            raise
        await self._thread.write(self._view.note_flush, planned, commits, is_asked)
        self._changed_at = self._clock()  # arrays in memory gave way to mapped files
        self._wake.set()

    async def close(self) -> None:
        """Leave merges, flush a last time, let go of who waits for a refresh: their writes are stored."""
        await self._merger.close()
        if self._flush_task is not None:
            await self._flush_task
        await self._try_flush()
        _tell(self._schedule.take_all_waiting())

    async def _until_due(self) -> None:
        """Wait until something may be due by its time, and in any case for a moment."""
        self._wake.clear()
        if self._schedule.is_empty:
            times = [
                since + after_s
                for since, after_s in (
                    (self._unsaved_since, self._config.flush_s),
                    (self._changed_at, self._config.rest_s),
                    (min(self._written_at.values(), default=None), self._config.merge_rest_s),
                    (self._graphs.next_due, 0.0),
                )
                if since is not None
            ]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(times, default=None)):
                    await self._wake.wait()
        await asyncio.sleep(self._config.look_s)

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
        finally:
            self._wake.set()


def _build(indexes: Iterable[Index]) -> None:
    for index in indexes:
        index.shards.build_sealed()


def _tell(waiting: "Iterable[asyncio.Future[None]]") -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
