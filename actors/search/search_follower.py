"""`SearchFollower`: brings a node's catalogue to where the log is, and keeps it there."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from actors.log.client import LogAccess
from actors.search.catalog_view import Applied, CatalogView
from actors.search.search_thread import SearchThread
from actors.shard.applied_index import AppliedIndex
from graphdb.errors import LogCompacted, UnavailableError
from graphdb.log.codec import entries_bytes
from graphdb.model import LogEntry
from graphdb.search.catalog.commands import Command, WriteDocuments

__all__ = ["SearchFollower"]

_WATCH_S = 10.0  # a long poll that is answered with nothing new after this
_AGAIN_S = 0.1  # after the log, or the disk, has refused
_BEHIND_S = 0.005  # this node's log hears a little later than whoever appended that an entry is committed


class SearchFollower:
    """For one event loop. One of `catch_up` and `run` at a time.

    What this node has appended itself, and nothing else stands before, is applied without reading it back,
    documents without decoding them.
    """

    def __init__(
        self,
        log: LogAccess,
        view: CatalogView,
        thread: SearchThread,
        on_applied: Callable[[Sequence[Applied], int], None],
        on_entries: Callable[[Sequence[LogEntry]], None],
    ) -> None:
        """on_applied is told what has taken effect, and how many bytes of log that was, other entries too;
        on_entries is given all entries that were applied.
        """
        self._log, self._view, self._thread, self._on_applied = log, view, thread, on_applied
        self._on_entries = on_entries
        self._heard_index = 0
        self._own: dict[int, tuple[LogEntry, Command]] = {}
        self._wake = asyncio.Event()
        self._told_index = view.applied_index
        self.applied = AppliedIndex(lambda: self._told_index)  # up to where on_applied was told

    def hear(self, committed_index: int) -> None:
        """The log can be read that far."""
        if committed_index > self._heard_index:
            self._heard_index = committed_index
            self._wake.set()

    def keep(self, first_index: int, entries: Sequence[LogEntry], commands: Sequence[Command]) -> None:
        """These entries, made here of these commands, stand in the log from first_index on, committed."""
        for log_index, (entry, command) in enumerate(zip(entries, commands, strict=True), first_index):
            if log_index > self._view.applied_index:
                self._own[log_index] = _placed(entry, log_index), command
        self.hear(first_index + len(entries) - 1)

    async def catch_up(self) -> None:
        """Apply what the log holds now. Raises UnavailableError (LogCompacted), CorruptionError."""
        while await self._advance():
            if self._view.trouble is not None:
                raise self._view.trouble

    async def run(self) -> None:
        """Follow for ever. Raises LogCompacted, CorruptionError; an unavailable log or disk is waited for."""
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            while True:
                if self._heard_index <= self._view.applied_index:
                    self._wake.clear()
                    await self._wake.wait()
                await asyncio.sleep(await self._step())
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    async def _step(self) -> float:
        """Apply what there is; how long to wait before the next."""
        try:
            advanced = await self._advance()
        except LogCompacted:
            raise
        except UnavailableError:
            return _AGAIN_S
        if self._view.trouble is not None:
            return _AGAIN_S
        return 0 if advanced else _BEHIND_S

    async def _advance(self) -> bool:
        """Apply the next entries; False where there are none."""
        own = self._take_own()
        entries = [entry for entry, _ in own] or await self._log.read(self._view.applied_index + 1)
        if not entries:
            return False
        with self.applied.changing():
            applied = await self._thread.write(self._view.apply, entries, _documents(own))
            self._on_entries([entry for entry in entries if entry.log_index <= self._view.applied_index])
            self._on_applied(applied, entries_bytes(entries))
            self._told_index = self._view.applied_index
        return True

    def _take_own(self) -> list[tuple[LogEntry, Command]]:
        index = self._view.applied_index
        taken = []
        while (one := self._own.pop(index + 1, None)) is not None:
            taken.append(one)
            index += 1
        if not taken and self._own:
            self._own = {place: one for place, one in self._own.items() if place > index}
        return taken

    async def _watch(self) -> None:
        while True:
            try:
                self.hear(await self._log.watch_index(self._heard_index, _WATCH_S))
            except UnavailableError:
                await asyncio.sleep(_AGAIN_S)


def _documents(own: Sequence[tuple[LogEntry, Command]]) -> dict[int, Command]:
    """The commands that nothing can have changed since they were encoded: others hold parts of requests."""
    return {entry.log_index: command for entry, command in own if isinstance(command, WriteDocuments)}


def _placed(entry: LogEntry, log_index: int) -> LogEntry:
    return LogEntry(
        log_index, entry.raft_term, entry.kind, entry.request_id, entry.timestamp_ms, entry.payload
    )
