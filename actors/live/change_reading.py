"""Entries of the log as changes: those that a store follows by, told one by one."""

import asyncio
from collections.abc import AsyncIterator

from actors.log.client import LogAccess
from graphdb.errors import ChangesForgotten, CorruptionError, LogCompacted, LogUnavailable
from graphdb.live.changes import LoggedChange
from graphdb.log.codec import decode_changes, decode_close
from graphdb.model import ChangeSet, EntryKind, LogEntry

__all__ = ["ChangeReading"]

_READ_BYTES = 1 << 20
_AGAIN_S = 0.1
_INLINE_BYTES = 32_768  # of a payload; a larger one is decoded on a thread


class ChangeReading:
    """For one event loop. Holds at most one piece of a large change at a time."""

    def __init__(self, log: LogAccess) -> None:
        self._log = log

    async def check(self, since: int) -> None:
        """Raises ChangesForgotten where the log does not have all behind since any more, LogUnavailable."""
        first_index = (await self._log.status()).first_index
        if since + 1 < first_index:
            raise ChangesForgotten(since, first_index)

    async def entries(self, after: int, through: int) -> list[LogEntry]:
        """Some entries behind after and up to through, at least one where there are any.

        Raises ChangesForgotten, CorruptionError.
        """
        entries = await self._read(after + 1, _READ_BYTES)
        return [entry for entry in entries if entry.log_index <= through]

    async def _read(self, index: int, max_bytes: int) -> list[LogEntry]:
        """A log that is being started again is waited for, so that nothing is told twice."""
        while True:
            try:
                return await self._log.read(index, max_bytes)
            except (CorruptionError, LogCompacted):
                await self.check(index - 1)
                raise
            except LogUnavailable:
                await asyncio.sleep(_AGAIN_S)

    async def changes(self, entry: LogEntry) -> AsyncIterator[LoggedChange]:
        """What an entry changes: nothing, one change, or that of all the parts which it closes."""
        if entry.kind is EntryKind.CHANGES:
            yield LoggedChange(entry.log_index, entry.timestamp_ms, await _decoded(entry.payload))
        elif entry.kind is EntryKind.CLOSE:
            indexes = await self._parts(entry)
            for number, index in enumerate(indexes, 1):
                part = (await self._read(index, 1))[0]
                change = await _decoded(part.payload)
                yield LoggedChange(entry.log_index, entry.timestamp_ms, change, number == len(indexes))

    async def _parts(self, close: LogEntry) -> list[int]:
        """Where the parts stand: in front of their end, with nothing that concerns quads between."""
        indexes: list[int] = []
        index, wanted = close.log_index, decode_close(close.payload)
        while len(indexes) < wanted:
            index -= 1
            entry = (await self._read(index, 1))[0]
            if entry.kind is EntryKind.PART and entry.request_id == close.request_id:
                indexes.append(index)
        return indexes[::-1]


async def _decoded(payload: bytes) -> ChangeSet:
    if len(payload) <= _INLINE_BYTES:
        return decode_changes(payload)
    return await asyncio.to_thread(decode_changes, payload)
