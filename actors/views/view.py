"""`View`: a store of what one visibility shows of a node's store, going from change to change behind it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from pyoxigraph import Literal

from actors.log.applied_index import AppliedIndex
from actors.log.view_runner import ViewRunner
from actors.log.view_sources import Pace, ViewLost
from actors.readers.checkpoints import Checkpoints
from actors.shard.shard_writer import ShardWriter
from actors.shard.spatial_keeper import SpatialKeeper
from actors.shard.text_keeper import TextKeeper
from actors.views.entry_feed import Entry, EntryFeed
from actors.views.view_directory import ViewDirectory
from actors.worker_thread import call_once
from graphdb.access.annotations import ALLOWED_SID
from graphdb.access.view_following import NestedTerms, step_of_view
from graphdb.access.visibility import Visibility
from graphdb.config.service import Text
from graphdb.errors import GraphDBError, LogUnavailable
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.live.changes import LoggedChange
from graphdb.log.views import ViewStatus
from graphdb.model import ChangeSet
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import LargePatterns

__all__ = ["Listener", "Main", "View"]

T = TypeVar("T")
logger = logging.getLogger(__name__)

_TURN_QUADS_MAX = 2_000  # of changes that are followed while the writer waits; with more it gets on
_PACE = Pace(again_s=0.5, again_s_max=0.5)


@dataclass(frozen=True, slots=True)
class Main:
    """The store that views are of."""

    quads: QuadStore
    writer: ShardWriter
    checkpoints: Checkpoints
    directory: ViewDirectory
    text: Text


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears what becomes of a view, on the event loop."""

    on_changes: Callable[[Sequence[LoggedChange], int], None]  # whole entries; all up to an index was told
    on_lost: Callable[[], None]  # nothing more will be told


@dataclass(slots=True)
class _Place:
    """What tells it is no part of a circle through the view, whose files go with the last reference."""

    index: int


class View:
    """Owned by `Views`, on the event loop of the shard. Its store, `quads`, may be read on any thread.

    The store is in the state of exactly `index` but while it goes on, in one step; or, while somebody
    listens, in one for each entry of the log.
    """

    def __init__(
        self,
        key: str,
        visibility: Visibility,
        main: Main,
        quads: QuadStore,
        schema: SchemaWatch,
        nested: NestedTerms,
        feed: EntryFeed,
        index: int,
        release: Callable[[str], Awaitable[None]],
    ) -> None:
        """quads is of exactly index, as visibility shows it; schema listens to it, and the feed begins there.
        All three belong to the view.
        """
        self.key, self.visibility, self.quads, self.schema = key, visibility, quads, schema
        self._main, self._nested, self._feed = main, nested, feed
        place = self._place = _Place(index)
        self.applied = AppliedIndex(lambda: place.index)
        going = self._going = asyncio.Lock()
        self.checkpoints = Checkpoints(
            main.directory.path, quads, self.applied, release, still=partial(_while_held, going)
        )
        self._spatial = SpatialKeeper(quads, self.applied, main.directory.path)
        self.large = LargePatterns()
        self.text = TextKeeper(quads, self.applied, main.directory.path, main.text, begins_at_once=False)
        # one thread: the engine's iterators end the process when used on another than their own
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="view")
        # none once the view is closed: its files go with the last reference, and this one is in a circle
        self._runner: ViewRunner[Entry, list[LoggedChange]] | None = ViewRunner(
            "principals", self, feed, perform=self._with_state, applied=self.applied, pace=_PACE
        )
        self._following: asyncio.Task[None] | None = None
        self._listeners: set[Listener] = set()
        self._novel: dict[str, int] = {}  # the last index at which a SID came into use, or perhaps again
        self.is_lost = False

    @property
    def index(self) -> int:
        """The log index that the view is of, at least."""
        return self._place.index

    @property
    def is_listened_to(self) -> bool:
        """Whether it has to stay."""
        return bool(self._listeners)

    def serves(self, visibility: Visibility, since: int) -> bool:
        """Whether a visibility that had this view at the index since sees the same still."""
        if not self._novel:
            return True
        return not any(self._novel.get(sid, 0) > since for sid in visibility.sids - self.visibility.sids)

    def view_status(self) -> ViewStatus | None:
        """How it follows the store; None once it is closed."""
        return None if self._runner is None else self._runner.status()

    async def catch_up(self) -> None:
        """To what is applied at the call, or further. Those who ask meanwhile share one way.

        Raises ViewLost, LogUnavailable.
        """
        needed = self._main.writer.applied_index
        if self.index < needed:
            if self.is_lost or self._runner is None:
                raise ViewLost("the view has ended")
            await self._unless_lost(self._runner.come_to(needed))

    async def follow(self, index: int) -> None:
        """To exactly the present state, which is that of index: within a turn of the writer.

        Raises ViewLost, LogUnavailable.
        """
        await self._unless_lost(self._go(index, self._main.quads))

    async def in_turn(self, perform: Callable[[int], T]) -> T:
        """Call perform, with the index that the view is at, on a thread while it stands still."""
        async with self._going:
            return await self._on_thread(perform, self.index)

    async def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell it everything behind what `index` is on return, which is the way to stop. The view goes on by
        itself as long. Raises ViewLost.
        """
        async with self._going:  # not in the middle of a step
            if self.is_lost:
                raise ViewLost("the view has ended")
            self._listeners.add(listener)
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._follow_by_itself())

        def stop() -> None:
            self._listeners.discard(listener)
            if not self._listeners and self._following is not None:
                self._following.cancel()
                self._following = None

        return stop

    async def _unless_lost(self, going: Coroutine[None, None, None]) -> None:
        try:
            await going
        except LogUnavailable:
            raise  # where it was
        except GraphDBError as error:
            self._lose()
            raise ViewLost(f"the view cannot go on: {error}") from error

    def _lose(self) -> None:
        self.is_lost = True
        listeners, self._listeners = self._listeners, set()
        for listener in listeners:
            listener.on_lost()

    async def _follow_by_itself(self) -> None:
        assert self._runner is not None
        try:
            await self._unless_lost(self._runner.run())
        except ViewLost:
            pass  # who listens was told
        except Exception:
            logger.exception("a view has failed")
            self._lose()

    async def _with_state(self, _apply: object, _entries: Sequence[Entry]) -> None:
        """Apply what was read, and what follows it up to a state of the store that does not change."""
        await self._unless_lost(self._go_on())

    async def _go_on(self) -> None:
        if not self._feed.quads:  # nothing that concerns quads
            await self._go(self._feed.through, self._main.quads)
        elif self._feed.quads <= _TURN_QUADS_MAX:
            await self._main.writer.hold_turn(lambda index: self._go(index, self._main.quads))
        else:
            async with self._main.directory.copied(self._main.quads, self._main.writer) as (state, index):
                await self._go(index, state)

    async def _go(self, index: int, state: QuadStore) -> None:
        """On to index, of which state is; back never."""
        async with self._going:
            if index <= self.index:
                return
            await self._feed.read_through(index)
            entries = self._feed.take(index)
            for entry in entries:
                self._note_novel(entry)
            with self.applied.changing():
                apply = self._on_thread if len(entries) > 1 else _at_once
                told = await apply(self.apply, entries, state, bool(self._listeners))
            for listener in tuple(self._listeners):
                listener.on_changes(told, index)

    def check(self) -> None:
        """See `graphdb.log.views.View`. Raises ViewLost."""
        if self.is_lost:
            raise ViewLost("the view has ended")

    def _note_novel(self, entry: Entry) -> None:
        for quad in chain.from_iterable(part.added for part in entry.parts):
            if quad.predicate == ALLOWED_SID and isinstance(quad.object, Literal):
                self._novel[quad.object.value] = entry.index

    def apply(
        self, entries: Sequence[Entry], state: QuadStore | None = None, singly: bool = False
    ) -> list[LoggedChange]:
        """See `graphdb.log.views.View`. On the view's thread, or where no entry has parts.

        state is that of the last entry, by default the store, which is there then. singly: one entry after
        the other, for somebody hears of each; what is returned then.
        """
        changed = [entry for entry in entries if entry.parts]
        told = self._steps(changed, self._main.quads if state is None else state, singly) if changed else []
        self._place.index = entries[-1].index
        return told

    def _steps(self, entries: Sequence[Entry], state: QuadStore, singly: bool) -> list[LoggedChange]:
        if not singly:
            self._step(entries[-1], [part for entry in entries for part in entry.parts], state)
            return []
        past = Overlay(state)
        for entry in reversed(entries):
            for part in reversed(entry.parts):
                past.push(part.inverse)
        told = []
        for entry in entries:
            for part in entry.parts:
                past.push(part)
            change = self._step(entry, entry.parts, past)
            if change:
                told.append(LoggedChange(entry.index, entry.timestamp_ms, change))
        return told

    def _step(self, entry: Entry, parts: Sequence[ChangeSet], state: QuadStore | Overlay) -> ChangeSet:
        for part in parts:
            self._nested.note(part)
        change = step_of_view(self.visibility, self.quads, parts, state, self._nested)
        if change:
            self.quads.apply(change)
        return change

    async def _on_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        work = asyncio.get_running_loop().run_in_executor(self._thread, call_once(function, *arguments))
        return await asyncio.shield(work)

    async def close(self) -> None:
        """Nothing more is asked of it but by who holds `quads`, with which its files go."""
        self._lose()
        runner, self._runner = self._runner, None
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if runner is not None:
            await runner.close()
        async with self._going:  # to the end of what is under way
            self._feed.close()
        await self._spatial.close()
        await self.text.close()
        await self.checkpoints.close()
        self._thread.shutdown(wait=False)


async def _while_held(lock: asyncio.Lock, perform: Callable[[], Awaitable[None]]) -> None:
    async with lock:
        await perform()


async def _at_once(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)
