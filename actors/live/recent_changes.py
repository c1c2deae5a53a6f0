"""`RecentChanges`: the end of the log's changes in memory, decoded once for all who follow them."""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from graphdb.live.changes import LoggedChange

__all__ = ["RecentChanges"]

_QUADS_MAX = 100_000


class RecentChanges:
    """For one event loop. Holds every change behind `after_index` and up to `last_index`."""

    def __init__(self, last_index: int, quads_max: int = _QUADS_MAX) -> None:
        self.after_index = self.last_index = last_index
        self._quads_max, self._quads = quads_max, 0
        self._changes: deque[LoggedChange] = deque()
        self._grown = asyncio.Event()

    def take(self, changes: Sequence[LoggedChange], through: int) -> None:
        """These were applied, and nothing else behind last_index and up to through."""
        for one in changes:
            self._changes.append(one)
            self._quads += one.change.affected_triples
        while self._quads > self._quads_max:
            gone = self._changes.popleft()
            self._quads -= gone.change.affected_triples
            self.after_index = gone.index
        self._advance(through)

    def begin_at(self, index: int) -> None:
        """What stands there or before is not kept: it is too large, or has not been followed."""
        self._changes.clear()
        self._quads = 0
        self.after_index = index
        self._advance(index)

    def behind(self, index: int) -> list[LoggedChange] | None:
        """The changes behind that place, in order; None where they are not all here."""
        if index < self.after_index:
            return None
        found = list(takewhile(lambda one: one.index > index, reversed(self._changes)))
        found.reverse()
        return found

    async def beyond(self, index: int) -> None:
        """Return when the log has been followed further than that."""
        while self.last_index <= index:
            await self._grown.wait()

    def _advance(self, index: int) -> None:
        self.last_index = index
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
