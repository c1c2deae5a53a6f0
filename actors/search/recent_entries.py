"""`RecentEntries`: the end of the log as this node has applied it, so that nobody reads it a second time."""

import asyncio
from collections import deque
from collections.abc import Sequence

from graphdb.log.codec import entry_bytes
from graphdb.model import LogEntry

__all__ = ["RecentEntries"]

_BYTES_MAX = 16 << 20


class RecentEntries:
    """For one event loop."""

    def __init__(self, last_index: int, bytes_max: int = _BYTES_MAX) -> None:
        """last_index: of what was applied before the first entries come."""
        self.last_index = last_index
        self._bytes_max, self._bytes = bytes_max, 0
        self._entries: deque[LogEntry] = deque()
        self._grown = asyncio.Event()

    def take(self, entries: Sequence[LogEntry]) -> None:
        """These were applied."""
        for entry in entries:
            if entry.log_index != self.last_index + 1:
                self._entries.clear()
                self._bytes = 0
            self._entries.append(entry)
            self._bytes += entry_bytes(len(entry.payload))
            self.last_index = entry.log_index
        while self._bytes > self._bytes_max:
            self._bytes -= entry_bytes(len(self._entries.popleft().payload))
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    def after(self, log_index: int) -> list[LogEntry] | None:
        """What stands behind that place; None where its beginning is not kept any more."""
        missing = self.last_index - log_index
        if missing <= 0:
            return []
        if missing > len(self._entries):
            return None
        return [entry for entry in self._entries if entry.log_index > log_index]

    async def beyond(self, log_index: int) -> None:
        """Return when there is something behind that place."""
        while self.last_index <= log_index:
            await self._grown.wait()
