"""`PastChanges`: what changed, by whom and when, for those who ask a node."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from pyoxigraph import Quad

from actors.node.open_store import CurrentStore
from graphdb.access.annotations import has_annotations
from graphdb.access.visibility import Visibility
from graphdb.errors import Overloaded, QueryTimeout
from graphdb.history.asked import AskedChanges
from graphdb.history.moments import Moment, index_of
from graphdb.history.named_states import KeptState, NamedState
from graphdb.history.pages import (
    Cursor,
    Difference,
    HistoryPage,
    PageLimits,
    PageRequest,
    net_change,
    read_page,
)
from graphdb.history.past_log import PastChange, PastLog
from graphdb.history.past_visibility import ANNOTATING, PastAnnotations, annotating_changes, annotating_quads
from graphdb.model import ChangeSet

__all__ = ["PastChanges"]

T = TypeVar("T")
_PAGE_S = 2.0  # after which a page goes as it is, with a cursor
_PAGE_QUADS = 10_000
_DIFFERENCE_QUADS = 200_000  # in memory: about 100 MB
_WAITING_MAX = 32
_NEEDLES = tuple(str(name).encode() for name in ANNOTATING)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a request may see: everything up to index, by these annotations; None: all of it."""

    index: int
    annotations: PastAnnotations | None

    def shown(self, change: PastChange) -> ChangeSet:
        return change.change if self.annotations is None else self.annotations.shown(change)


class PastChanges:
    """See `serve.backend.History`. For one event loop; files are read on one thread, which begins with the
    first request.
    """

    def __init__(self, data_dir: Path, current: CurrentStore, timeout_s: float) -> None:
        """timeout_s: for a difference."""
        self._past = PastLog(data_dir, lambda: current.opened().unpurged)
        self._current, self._timeout_s = current, timeout_s
        self._thread = ThreadPoolExecutor(1, "history")
        self._waiting = 0
        self._annotating: tuple[int, tuple[PastChange, ...]] = 0, ()  # up to an index; see _annotated

    async def page(self, asked: PageRequest, visibility: Visibility) -> HistoryPage:
        """See `serve.backend.History.page`."""
        seen = await self._seen(visibility)
        index = seen.index

        def read(stop: threading.Event) -> HistoryPage:
            oldest = self._past.first_index(index)
            first = oldest if asked.since is None else self._index_of(asked.since, index) + 1
            last = index if asked.until is None else self._index_of(asked.until, index)
            start = asked.cursor or Cursor(last)
            if start.log_index > last:
                start = Cursor(last)
            over_at = time.monotonic() + _PAGE_S
            limits = PageLimits(asked.limit, _PAGE_QUADS, lambda: stop.is_set() or time.monotonic() > over_at)
            page = read_page(self._past, asked.changes, first, start, seen.shown, limits)
            return HistoryPage(page.entries, page.cursor, oldest - 1, index)

        return await self._on_thread(read)

    async def difference(
        self, asked: AskedChanges, since: Moment, until: Moment | None, visibility: Visibility
    ) -> Difference:
        """See `serve.backend.History.difference`."""
        seen = await self._seen(visibility)
        index, over_at = seen.index, time.monotonic() + self._timeout_s

        def read(stop: threading.Event) -> Difference:
            def check() -> None:
                if stop.is_set() or time.monotonic() > over_at:
                    raise QueryTimeout(f"the difference was not done after {self._timeout_s:g} s")

            first = self._index_of(since, index)
            last = index if until is None else self._index_of(until, index)
            low, high = sorted((first, last))
            change = net_change(self._past, asked, low + 1, high, _DIFFERENCE_QUADS, check)
            if seen.annotations is not None:
                change = seen.annotations.shown_between(low, high, change)
            return Difference(change if first <= last else change.inverse, first, last)

        return await self._on_thread(read)

    async def place_of(self, at: Moment | None) -> tuple[int, int]:
        """The log index of a moment (None: now), and the first entry that leads back to its state.

        Raises InvalidParameter, HistoryForgotten, IndexNotReached, UnavailableError.
        """
        present = self._current.opened().writer.applied_index

        def find(_stop: threading.Event) -> tuple[int, int]:
            index = present if at is None else self._index_of(at, present)
            return index, self._past.needed_from(index, present)

        return await self._on_thread(find)

    async def kept(self, states: Sequence[NamedState]) -> list[KeptState]:
        """What this node keeps of these. Raises UnavailableError."""
        index = self._current.opened().writer.applied_index

        def look(_stop: threading.Event) -> list[KeptState]:
            oldest_index = self._past.first_index(index) - 1
            sizes = self._past.disk_from([state.needed_from for state in states], index)
            return [
                KeptState(state, state.log_index >= oldest_index, size)
                for state, size in zip(states, sizes, strict=True)
            ]

        return await self._on_thread(look)

    def forget_annotations(self) -> None:
        """What is known of the past may have been purged: read it again."""
        self._annotating = 0, ()

    async def close(self) -> None:
        """Let go of the files."""
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._past.close()

    async def _seen(self, visibility: Visibility) -> _Seen:
        store = self._current.opened()
        index = store.writer.applied_index
        if visibility.is_whole:
            return _Seen(index, None)
        while True:
            known = await self._on_thread(partial(self._annotated, index))

            def look(index: int, collects: bool = bool(known)) -> tuple[int, bool, tuple[Quad, ...]]:
                collects = collects or has_annotations(store.quads)
                return index, collects, annotating_quads(store.quads) if collects else ()

            index, collects, present = await store.writer.in_turn(look)
            undoable = await self._on_thread(partial(self._annotated, index))
            if collects or not undoable:
                return _Seen(index, PastAnnotations(visibility, present, undoable))

    def _annotated(self, index: int, _stop: threading.Event) -> tuple[PastChange, ...]:
        """What changed the annotations up to index, as far back as is kept; the newest first."""
        through, known = self._annotating
        if through < index:
            first = max(through + 1, self._past.first_index(index))
            scans = (
                self._past.changes_between(first, index, newest_first=True, needle=needle)
                for needle in _NEEDLES
            )
            found = sorted(annotating_changes(chain(*scans)), key=lambda change: -change.log_index)
            self._annotating = index, annotating_changes((*found, *known))
        return self._annotating[1]

    def _index_of(self, at: Moment, last_index: int) -> int:
        """See `graphdb.history.moments.index_of`."""
        return index_of(at, self._past, last_index, self._current.opened().kept.named_states.index_of)

    def _purged_index(self) -> int:
        return self._current.opened().kept.purges.last_index

    async def _on_thread(self, function: Callable[[threading.Event], T]) -> T:
        if self._waiting >= _WAITING_MAX:
            raise Overloaded("too many requests about the past are waiting")
        stop, purged_index = threading.Event(), self._purged_index()

        def perform() -> T:
            try:
                found = function(stop)
                if self._purged_index() != purged_index:  # files may have been written anew on the way
                    raise Overloaded("something was purged meanwhile")
                return found
            finally:
                self._past.rest()

        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, perform)
        finally:
            stop.set()
            self._waiting -= 1
