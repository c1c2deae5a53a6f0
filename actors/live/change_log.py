"""`ChangeLog`: the changes of one node's log, as they are applied, for all who follow them; the newest in
memory (`RecentChanges`), those before from the log (`ChangeReading`).
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Protocol

from actors.log.client import LogAccess
from actors.log.view_runner import ViewRunner
from actors.log.view_sources import Pace, Restart, Snapshot
from graphdb.errors import ChangesForgotten, CorruptionError, IndexNotReached, LogCompacted, LogUnavailable
from graphdb.live.changes import LoggedChange
from graphdb.log.payloads import decode_changes, decode_close
from graphdb.log.views import ViewStatus
from graphdb.model import ChangeSet, EntryKind, LogEntry

__all__ = ["ChangeLog", "ChangeReading", "ChangeStream", "RecentChanges"]

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
        elif entry.kind.closes_parts:
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


_PACE = Pace(again_s=_AGAIN_S, again_s_max=_AGAIN_S, anew_s_max=1.0, behind_s=_AGAIN_S)
_QUADS_AT_ONCE = 20_000  # handed to one reader at a time, about
_KEPT_BYTES_MAX = 1 << 20  # a larger change is not kept for all, but read by each


class ChangeLog:
    """Owned by a node, on its event loop. Does nothing while nobody follows."""

    def __init__(
        self,
        log: LogAccess,
        applied_index: Callable[[], int],
        wait_for_index: Callable[[int, float], Awaitable[None]],
    ) -> None:
        """applied_index: what readers see; wait_for_index raises IndexNotReached when the time is up. Both
        raise LogUnavailable while there is no store.
        """
        self._reading = ChangeReading(log)
        self._applied_index, self._wait_for_index = applied_index, wait_for_index
        self._recent = RecentChanges(0)
        kept = _KeptChanges(self._recent)
        self._runner = ViewRunner(
            "changes",
            kept,
            _AppliedEntries(self._reading, applied_index, wait_for_index),
            restart=Restart(kept, self._present),
            pace=_PACE,
        )
        self._following: asyncio.Task[None] | None = None
        self._streams: set[ChangeStream] = set()
        self._closed = False

    async def open(self, since: int | None, timeout_s: float) -> "ChangeStream":
        """Follow what is behind since, None: behind now; whoever gets the stream closes it.

        Raises ChangesForgotten, IndexNotReached (this node is not there yet after timeout_s), LogUnavailable.
        """
        if since is not None:
            await self._wait_for_index(since, timeout_s)
            await self._reading.check(since)
        applied = self._applied_index()
        if self._closed:
            raise LogUnavailable("the node is stopping")
        if self._following is None:
            self._recent.begin_at(applied)
            self._following = asyncio.get_running_loop().create_task(self._runner.run())
        stream = ChangeStream(self._reading, self._recent, applied if since is None else since, self._leave)
        self._streams.add(stream)
        return stream

    def view_status(self) -> ViewStatus | None:
        """How it follows the store; None while nobody reads changes."""
        return None if self._following is None else self._runner.status()

    def note(
        self, before: int, first_index: int, timestamp_ms: int, changes: Callable[[], Sequence[ChangeSet]]
    ) -> None:
        """The store was at before and has applied these, one entry each from first_index on; what stands
        between does not concern quads.

        For the writer, whose own changes need not be read back.
        """
        if self._following is not None and self._recent.last_index >= before:
            logged = [
                LoggedChange(index, timestamp_ms, change)
                for index, change in enumerate(changes(), first_index)
            ]
            self._recent.take(logged, logged[-1].index)

    def forget(self) -> None:
        """Keep nothing of what was applied up to now: readers that are behind it read the log."""
        self._recent.begin_at(self._recent.last_index)

    async def close(self) -> None:
        """End all streams, and open no others."""
        self._closed = True
        for stream in list(self._streams):
            stream.close()
        await self._stop()

    def _leave(self, stream: "ChangeStream") -> None:
        self._streams.discard(stream)
        if not self._streams and self._following is not None:
            self._following.cancel()
            self._following = None

    async def _stop(self) -> None:
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    @asynccontextmanager
    async def _present(self) -> AsyncIterator[Snapshot]:
        """Where to go on when the log has forgotten what follows: what is not kept, each reader asks for."""
        yield Snapshot(self._applied_index())


@dataclass(frozen=True, slots=True)
class _Followed:
    """An entry and what it changes; None: too much to be kept for all."""

    index: int
    changes: list[LoggedChange] | None


class _AppliedEntries:
    """A `Source`: the log, as far as the store has applied it."""

    def __init__(
        self,
        reading: ChangeReading,
        applied_index: Callable[[], int],
        wait_for_index: Callable[[int, float], Awaitable[None]],
    ) -> None:
        self._reading = reading
        self._applied_index, self._wait_for_index = applied_index, wait_for_index

    async def watch_index(self, known_index: int, timeout_s: float) -> int:
        """See `Source.watch_index`."""
        with suppress(IndexNotReached):
            await self._wait_for_index(known_index + 1, timeout_s)
        return self._applied_index()

    async def read(self, after_index: int) -> list[_Followed]:
        """See `Source.read`."""
        through = self._applied_index()
        if through <= after_index:
            return []
        entries = await self._reading.entries(after_index, through)
        return [_Followed(entry.log_index, await self._changes(entry)) for entry in entries]

    async def _changes(self, entry: LogEntry) -> list[LoggedChange] | None:
        if entry.kind.closes_parts or len(entry.payload) > _KEPT_BYTES_MAX:
            return None
        return [one async for one in self._reading.changes(entry)]


class _KeptChanges:
    """`RecentChanges` as a `SnapshotView`. The writer adds what it has changed itself meanwhile."""

    def __init__(self, recent: RecentChanges) -> None:
        self._recent = recent

    @property
    def index(self) -> int:
        return self._recent.last_index

    def apply(self, entries: Sequence[_Followed]) -> None:
        for entry in entries:
            if entry.index <= self._recent.last_index:
                continue
            if entry.changes is None:
                self._recent.begin_at(entry.index)
            else:
                self._recent.take(entry.changes, entry.index)

    def check(self) -> None:
        """Nothing can be wrong with what is in memory."""

    def adopt_snapshot(self, log_index: int, tree: Path | None) -> None:
        """Nothing up to log_index is kept."""
        self._recent.begin_at(log_index)


class PastChanges(Protocol):
    """What is not in memory; see `ChangeReading`."""

    async def entries(self, after: int, through: int) -> list[LogEntry]: ...
    def changes(self, entry: LogEntry) -> AsyncIterator[LoggedChange]: ...


class ChangeStream:
    """One reader's place in the log. `through`: all that stands up to there was handed out."""

    def __init__(
        self,
        reading: PastChanges,
        recent: RecentChanges,
        since: int,
        leave: Callable[["ChangeStream"], None],
    ) -> None:
        self.through = since
        self._reading, self._recent, self._leave = reading, recent, leave
        self._unread: AsyncIterator[LoggedChange] | None = None
        self._closed = asyncio.Event()

    @property
    def _is_at_end(self) -> bool:
        """Whether everything that was applied has been handed out."""
        return self._unread is None and self.through >= self._recent.last_index

    async def read(self, wait_s: float) -> list[LoggedChange] | None:
        """The next changes, in order, none or few where there are many; waits wait_s for the first.

        None once the stream is closed. Raises ChangesForgotten: the reader was too slow.
        """
        if self._closed.is_set():
            return None
        if self._is_at_end and not await self._more(wait_s):
            return None if self._closed.is_set() else []
        if self._unread is None:
            last_index = self._recent.last_index
            found = self._recent.behind(self.through)
            if found is not None:
                self.through = last_index
                return found
            self._unread = self._read_log(last_index)
        return await self._some(self._unread)

    async def _more(self, wait_s: float) -> bool:
        loop = asyncio.get_running_loop()
        waiting = {
            loop.create_task(self._recent.beyond(self.through)),
            loop.create_task(self._closed.wait()),
        }
        try:
            await asyncio.wait(waiting, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return not self._is_at_end and not self._closed.is_set()

    async def _some(self, unread: AsyncIterator[LoggedChange]) -> list[LoggedChange]:
        found: list[LoggedChange] = []
        quads = 0
        while quads < _QUADS_AT_ONCE:
            try:
                one = await anext(unread)
            except StopAsyncIteration:
                self._unread = None
                break
            except BaseException:
                self._unread = None
                raise
            found.append(one)
            quads += 1 + one.change.affected_triples
        return found

    async def _read_log(self, through: int) -> AsyncIterator[LoggedChange]:
        """From the log, until what is kept in memory goes on."""
        while self.through < through and self.through < self._recent.after_index:
            entries = await self._reading.entries(self.through, through)
            for entry in entries:
                async for change in self._reading.changes(entry):
                    if change.is_last:
                        self.through = entry.log_index
                    yield change
                self.through = entry.log_index
            if not entries:
                await asyncio.sleep(_AGAIN_S)

    def close(self) -> None:
        """Nothing more will be read. Closing twice is allowed."""
        self._closed.set()
        self._unread = None
        self._leave(self)
