"""`ChangeReader`: which quads the log has added and removed since a place in it."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyoxigraph import Quad

from actors.log.client import LogAccess
from actors.search.recent_entries import RecentEntries
from graphdb.errors import CorruptionError, LogCompacted
from graphdb.log.replay import Replayer
from graphdb.model import ChangeSet, LogEntry
from graphdb.public_text import public_text

__all__ = ["ChangeReader", "Changes", "ChangesUnknown"]

QUADS_MAX = 50_000


class ChangesUnknown(Exception):
    """They are too many, or the log does not have them any more."""


@dataclass(frozen=True, slots=True)
class Changes:
    """quads: added or removed; whoever has seen them may go on behind the entry `through`."""

    through: int
    quads: Sequence[Quad]


class ChangeReader:
    """For one event loop. After ChangesUnknown it is of no use any more."""

    def __init__(self, log: LogAccess, recent: RecentEntries, log_index: int) -> None:
        """Of the entries behind log_index."""
        self._log, self._recent = log, recent
        self._quads: list[Quad] = []
        self._replayer = Replayer(self._collect, log_index)

    async def wait(self) -> None:
        """Return when there is something to read."""
        await self._recent.beyond(self._replayer.applied_index)

    async def read(self) -> Changes:
        """What this node has applied since the last call. Raises ChangesUnknown, UnavailableError."""
        try:
            while entries := await self._next():
                await asyncio.to_thread(self._replayer.replay, entries)
        except (LogCompacted, CorruptionError) as error:
            raise ChangesUnknown(public_text(error)) from error
        quads, self._quads = self._quads, []
        return Changes(self._replayer.resume_index, quads)

    def close(self) -> None:
        self._replayer.close()

    async def _next(self) -> list[LogEntry]:
        index = self._replayer.applied_index
        entries = self._recent.after(index)
        if entries is None:
            entries = await self._log.read(index + 1)
        return entries

    def _collect(self, changes: Iterable[ChangeSet]) -> None:
        for change in changes:
            self._quads += change.removed
            self._quads += change.added
            if len(self._quads) > QUADS_MAX:
                raise ChangesUnknown(f"more than {QUADS_MAX} quads")
