"""`MemoryChanges`: what a `MemoryBackend` has changed, for who follows it."""

import asyncio
from collections.abc import Callable, Iterable

from graphdb.errors import ChangesForgotten
from graphdb.live.changes import LoggedChange
from graphdb.model import ChangeSet

__all__ = ["MemoryChangeStream", "MemoryChanges"]

_LOOK_S = 0.002


class MemoryChanges:
    """Filled on any thread; forget_before makes it a log that begins later."""

    def __init__(self) -> None:
        self.changes: list[LoggedChange] = []
        self.first_index = 1
        self.streams: list[MemoryChangeStream] = []

    def note(self, index: int, parts: Iterable[ChangeSet]) -> None:
        pieces = list(parts)
        self.changes += [
            LoggedChange(index, 1_700_000_000_000 + index, piece, number == len(pieces))
            for number, piece in enumerate(pieces, 1)
        ]

    def forget_before(self, index: int) -> None:
        self.first_index = index

    def open(self, since: int, last_index: Callable[[], int]) -> "MemoryChangeStream":
        if since + 1 < self.first_index:
            raise ChangesForgotten(since, self.first_index)
        stream = MemoryChangeStream(self, since, last_index)
        self.streams.append(stream)
        return stream


class MemoryChangeStream:
    def __init__(self, source: MemoryChanges, since: int, last_index: Callable[[], int]) -> None:
        self.through = since
        self.closed = False
        self._source, self._last_index = source, last_index

    async def read(self, wait_s: float) -> list[LoggedChange] | None:
        deadline = asyncio.get_running_loop().time() + wait_s
        while not self.closed and asyncio.get_running_loop().time() < deadline:
            if self.through + 1 < self._source.first_index:
                raise ChangesForgotten(self.through, self._source.first_index)
            last_index = self._last_index()
            if last_index > self.through:
                found = [one for one in self._source.changes if self.through < one.index <= last_index]
                self.through = last_index
                return found
            await asyncio.sleep(_LOOK_S)
        return None if self.closed else []

    def close(self) -> None:
        self.closed = True
