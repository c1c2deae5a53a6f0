"""`EntryFeed`: a node's changes as whole entries of the log, held until a view has taken them."""

import asyncio
from collections import deque
from dataclasses import dataclass

from actors.live.change_log import ChangeStream
from graphdb.errors import ChangesForgotten, LogUnavailable
from graphdb.live.changes import LoggedChange
from graphdb.model import ChangeSet

__all__ = ["Entry", "EntryFeed"]

_LOOK_S = 1.0
QUADS_MAX = 250_000  # that wait, held in memory; with more, a view is made anew in less time


@dataclass(frozen=True, slots=True)
class Entry:
    """The whole change of one entry."""

    index: int
    timestamp_ms: int
    parts: list[ChangeSet]


class EntryFeed:
    """Owned by a `View`, on its event loop; read by one task at a time."""

    def __init__(self, stream: ChangeStream, index: int) -> None:
        """The stream, closed with the feed, begins at index or before; what stands there is passed over."""
        self._stream, self._index = stream, index
        self._waiting: deque[Entry] = deque()
        self._open: list[LoggedChange] = []  # pieces of an entry that is not whole yet
        self.quads = 0  # of the changes that wait

    @property
    def through(self) -> int:
        """All that stands up to there waits here, or was taken."""
        return max(self._stream.through, self._index)

    async def read_through(self, index: int, timeout_s: float) -> None:
        """Return once `through` is at least index. Raises ChangesForgotten (also where there is too much),
        LogUnavailable.
        """
        try:
            async with asyncio.timeout(timeout_s):
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
        """The entries up to index that wait, in order."""
        taken = []
        while self._waiting and self._waiting[0].index <= index:
            taken.append(self._waiting.popleft())
        self.quads -= sum(1 + part.affected_triples for entry in taken for part in entry.parts)
        self._index = max(self._index, index)
        return taken

    def close(self) -> None:
        """Nothing more will be read."""
        self._stream.close()
