"""The log as search reads it: `RecentEntries`, its newest ones in memory; `OwnEntries`, what this node has
written; `ChangeReader`, which quads have changed.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Quad

from actors.log.client import LogAccess
from actors.log.view_sources import LogReading, ReadableLog
from graphdb.errors import CorruptionError, LogCompacted
from graphdb.log.codec import entry_bytes
from graphdb.log.replay import Replayer
from graphdb.model import ChangeSet, EntryKind, LogEntry
from graphdb.public_text import public_text
from graphdb.search.catalog.catalog_commands import Command, WriteDocuments

__all__ = ["ChangeReader", "Changes", "ChangesUnknown", "OwnEntries", "RecentEntries"]

_BYTES_MAX = 16 << 20
_PASSED_OVER_S = 0.1  # entries that were all passed over are likely to be followed by more such ones


class RecentEntries:
    """For one event loop."""

    def __init__(self, last_index: int, bytes_max: int = _BYTES_MAX) -> None:
        """last_index: of what was applied before the first entries come."""
        self.last_index = last_index
        self._bytes_max, self._bytes = bytes_max, 0
        self._entries: deque[LogEntry] = deque()
        self._grown = asyncio.Event()
        self.readers = 0  # `ChangeReader`s, to whom every entry matters

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


class OwnEntries:
    """A `Source`, for one event loop and one reader. Entries of this node that come next are not read from
    the log, and documents in them are not decoded.
    """

    def __init__(self, log: ReadableLog, all_matter: Callable[[], bool] = lambda: False) -> None:
        """all_matter: whether others than those of search do, too."""
        self._log, self._all_matter = LogReading(log), all_matter
        self._passes_over = False
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
        """See `Source.watch_index`. While nothing but other entries comes, they are let gather, for each
        answer costs more than they do. Whoever waits for an index tells the runner.
        """
        if self._passes_over and not self._all_matter():
            await asyncio.sleep(_PASSED_OVER_S)
        return await self._log.watch_index(known_index, timeout_s)

    async def read(self, after_index: int) -> list[LogEntry]:
        """See `Source.read`."""
        own = self._take(after_index)
        if own:
            return self._noted(own)
        self._documents = {}
        entries = await self._log.read(after_index)
        self._read_index = entries[-1].log_index if entries else after_index
        self._passes_over = bool(entries) and all(entry.kind is not EntryKind.SEARCH for entry in entries)
        return entries

    def _noted(self, own: Sequence[tuple[LogEntry, Command]]) -> list[LogEntry]:
        # the commands that nothing can have changed since they were encoded: others hold parts of requests
        self._documents = {
            entry.log_index: command for entry, command in own if isinstance(command, WriteDocuments)
        }
        self._read_index, self._passes_over = own[-1][0].log_index, False
        return [entry for entry, _ in own]

    def take(self, after_index: int, admits: Callable[[Sequence[Command]], bool]) -> list[LogEntry]:
        """As `read`, of kept entries alone, while nobody reads; none if their commands are not admitted."""
        commands = list[Command]()
        while (one := self._kept.get(after_index + 1 + len(commands))) is not None:
            commands.append(one[1])
        if not commands or not admits(commands):
            return []
        return self._noted(self._take(after_index))

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
        recent.readers += 1

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
        """Once."""
        self._replayer.close()
        self._recent.readers -= 1

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
