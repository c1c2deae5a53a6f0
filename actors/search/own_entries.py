"""`OwnEntries`: the log as a node's search indexes read it, but for what the node itself has written."""

from collections.abc import Mapping, Sequence

from actors.log.view_runner import LogReading, ReadableLog
from graphdb.model import LogEntry
from graphdb.search.catalog.catalog_commands import Command, WriteDocuments

__all__ = ["OwnEntries"]


class OwnEntries:
    """A `Source`, for one event loop and one reader. Entries of this node that come next are not read from
    the log, and documents in them are not decoded.
    """

    def __init__(self, log: ReadableLog) -> None:
        self._log = LogReading(log)
        self._kept: dict[int, tuple[LogEntry, Command]] = {}
        self._read_index = 0
        self._documents: dict[int, Command] = {}

    def keep(self, first_index: int, entries: Sequence[LogEntry], commands: Sequence[Command]) -> int:
        """These entries, made here of these commands, are in the log from first_index on, committed. Returns
        the index of the last one.
        """
        for log_index, (entry, command) in enumerate(zip(entries, commands, strict=True), first_index):
            if log_index > self._read_index:
                self._kept[log_index] = _placed(entry, log_index), command
        return first_index + len(entries) - 1

    async def watch_index(self, known_index: int, timeout_s: float) -> int:
        """See `Source.watch_index`."""
        return await self._log.watch_index(known_index, timeout_s)

    async def read(self, after_index: int) -> list[LogEntry]:
        """See `Source.read`."""
        own = self._take(after_index)
        # the commands that nothing can have changed since they were encoded: others hold parts of requests
        self._documents = {
            entry.log_index: command for entry, command in own if isinstance(command, WriteDocuments)
        }
        entries = [entry for entry, _ in own] or await self._log.read(after_index)
        self._read_index = entries[-1].log_index if entries else after_index
        return entries

    @property
    def documents(self) -> Mapping[int, Command]:
        """Of the entries that were read last, by log index: commands that need not be decoded."""
        return self._documents

    def _take(self, after_index: int) -> list[tuple[LogEntry, Command]]:
        index, taken = after_index, list[tuple[LogEntry, Command]]()
        while (one := self._kept.pop(index + 1, None)) is not None:
            taken.append(one)
            index += 1
        if self._kept:
            self._kept = {place: one for place, one in self._kept.items() if place > index}
        return taken


def _placed(entry: LogEntry, log_index: int) -> LogEntry:
    return LogEntry(
        log_index, entry.raft_term, entry.kind, entry.request_id, entry.timestamp_ms, entry.payload
    )
