"""`EntryFeed`: a node's changes as whole entries of the log, held until a view has taken them."""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from actors.log.applied_index import AppliedIndex
from graphdb.errors import ChangesForgotten, LogUnavailable
from graphdb.live.changes import LoggedChange
from graphdb.model import ChangeSet

__all__ = ["ChangeStream", "Entry", "EntryFeed"]

_LOOK_S = 1.0
_READ_S = 5.0  # that reading the changes may take while the writer waits
QUADS_MAX = 250_000  # that wait, held in memory; with more, a view is made anew in less time


class ChangeStream(Protocol):
    """The changes of the log, in its order; see `serve.backend.ChangeStream`."""

    @property
    def through(self) -> int: ...
    async def read(self, wait_s: float) -> list[LoggedChange] | None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """The whole change of one entry; without parts, a place up to which nothing else has changed."""

    index: int
    timestamp_ms: int
    parts: list[ChangeSet]


class EntryFeed:
    """A `Source` of what the store has applied, for one event loop."""

    def __init__(self, stream: ChangeStream, index: int, applied: AppliedIndex) -> None:
        """The stream, closed with the feed, begins at index or before; what stands there is passed over.
        applied is the store's.
        """
        self._stream, self._index, self._applied = stream, index, applied
        self._waiting: deque[Entry] = deque()
        self._open: list[LoggedChange] = []  # pieces of an entry that is not whole yet
        self._reading = asyncio.Lock()
        self.quads = 0  # of the changes that wait

    @property
    def through(self) -> int:
        """All that stands up to there waits here, or was taken."""
        return max(self._stream.through, self._index)

    async def watch_index(self, known_index: int, timeout_s: float) -> int:
        """See `Source.watch_index`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._applied.wait_for(known_index + 1)
        return self._applied.current

    async def read(self, after_index: int) -> list[Entry]:
        """See `Source.read`. The entries wait on until they are taken."""
        index = self._applied.current
        if index <= after_index:
            return []
        await self.read_through(index)
        return [*self._waiting, Entry(self.through, 0, [])]

    async def read_through(self, index: int) -> None:
        """Return once `through` is at least index. Raises ChangesForgotten (also where there is too much),
        LogUnavailable.
        """
        async with self._reading:
            try:
                async with asyncio.timeout(_READ_S):
                    while self.through < index or self._open:
                        self._take_in(await self._stream.read(_LOOK_S))
            except TimeoutError:
                raise LogUnavailable("the changes of the graph cannot be read now") from None

    def _take_in(self, changes: list[LoggedChange] | None) -> None:
        if changes is None:
            raise LogUnavailable("the node is stopping")
        for one in changes:
            if one.index <= self._index:
                continue
            self._open.append(one)
            self.quads += 1 + one.change.affected_triples
            if one.is_last:
                parts = [piece.change for piece in self._open]
                self._waiting.append(Entry(one.index, one.timestamp_ms, parts))
                self._open = []
        if self.quads > QUADS_MAX:
            raise ChangesForgotten(self._index, self.through)

    def take(self, index: int) -> list[Entry]:
        """The entries up to index that wait, in order, and that place; `read_through` has come there."""
        taken = list[Entry]()
        while self._waiting and self._waiting[0].index <= index:
            taken.append(self._waiting.popleft())
        self.quads -= sum(1 + part.affected_triples for entry in taken for part in entry.parts)
        self._index = max(self._index, index)
        return [*taken, Entry(index, 0, [])]

    def close(self) -> None:
        """Nothing more will be read."""
        self._stream.close()
