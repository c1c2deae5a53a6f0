"""`OpenSearch`: what a `SearchNode` has between opening its catalogue and closing it."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.disk_room import DiskRoom
from actors.log.client import LogAccess
from actors.log.view_runner import ViewRunner
from actors.log.view_sources import Pace
from actors.search.catalog_view import Applied, CatalogView, SearchThread
from actors.search.command_writer import CommandWriter, CommitConfig, write_bytes
from actors.search.document_writer import DocumentWriter
from actors.search.log_reading import OwnEntries, RecentEntries
from actors.search.upkeep import Upkeep, UpkeepConfig
from graphdb.errors import GraphDBError
from graphdb.log.codec import entries_bytes
from graphdb.log.request_ids import FreshIds
from graphdb.log.views import SEARCH
from graphdb.model import LogEntry
from graphdb.search.catalog.catalog_commands import Command, DocumentWrite, WriteDocuments
from graphdb.search.segments.operations import Action

__all__ = ["OpenSearch", "SearchConfig", "now_ms"]


# what others log comes together; whoever needs it at once has the runner hear of it
_PACE = Pace(watch_pause_s=0.02)


# What is applied on the event loop: a document takes 20 to 50 µs
_WRITES_NOW_MAX, _BYTES_NOW_MAX = 32, 32 << 10


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """How a node keeps up with the log, and with its clients."""

    # free on the disk beside the reserve; with less, what adds is refused; searches and deletions go on
    room_bytes: int = 64 << 20
    publish_identity_s: float | None = 5.0  # how often to look whether all know who this node is; None: never
    lifecycles_s: float = 30.0  # how often to look what the lifecycles of indexes ask for
    away_s: float = 600.0  # until what a node had begun to fill is given up, where it is not reached
    commit: CommitConfig = field(default_factory=CommitConfig)
    upkeep: UpkeepConfig = field(default_factory=UpkeepConfig)


def now_ms() -> int:
    """The clock, Unix epoch."""
    return time.time_ns() // 1_000_000


class OpenSearch:
    """For one event loop."""

    def __init__(self, view: CatalogView, log: LogAccess, config: SearchConfig, room: DiskRoom) -> None:
        self.view = view
        self._thread = SearchThread()
        recent = self.recent = RecentEntries(view.applied_index)
        self._own = OwnEntries(log, all_matter=lambda: recent.readers > 0)
        self.runner = ViewRunner(
            SEARCH,
            view,
            self._own,
            perform=self._perform,
            perform_now=self._perform_now,
            on_applied=self._on_applied,
            pace=_PACE,
        )
        self.upkeep = Upkeep(view, self._thread, log, config.upkeep, room)
        self.commits = CommandWriter(
            log,
            self._own,
            self.runner,
            config.commit,
            clock_ms=now_ms,
            fresh_request_id=FreshIds(os.urandom),
            note_logged=self._apply_own,
        )
        self.documents = DocumentWriter(view.catalog, self.commits, self.upkeep.relieved)

    def tell_changes(self, note: Callable[[], None]) -> None:
        """note: see `SearchThread.note_change`."""
        self._thread.note_change = note

    def has_applied(self, log_index: int) -> bool:
        """Whether readers see what stands in the log up to there."""
        return self.view.applied_index >= log_index

    async def run(self) -> None:
        """Follow the log. Raises LogCompacted, CorruptionError."""
        upkeep = asyncio.get_running_loop().create_task(self.upkeep.run())
        try:
            await self.runner.run()
        finally:
            upkeep.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await upkeep

    async def close(self, reason: GraphDBError) -> None:
        """Answer who waits with the reason, put on disk what can be."""
        await self.commits.close(reason)
        await self.upkeep.close()
        await asyncio.to_thread(self._thread.close)

    async def _perform(self, apply: Callable[..., Any], entries: Sequence[LogEntry]) -> Any:
        return await self._thread.write(apply, entries, self._own.documents)

    def _perform_now(self, apply: Callable[..., Any], entries: Sequence[LogEntry]) -> Any:
        return self._thread.write_now(apply, entries, self._own.documents)

    def _apply_own(self) -> None:
        """Let what was logged here take effect at once where that is short: handing it to the thread, by way
        of the runner, takes longer.
        """
        if not self.runner.rests or not self._thread.may_write_now:
            return
        entries = self._own.take(self.view.applied_index, self._are_short)
        if entries:
            self.runner.apply_now(entries)

    def _are_short(self, commands: Sequence[Command]) -> bool:
        """Whether they only write a few documents, as they are, to indexes that are there."""
        writes: list[DocumentWrite] = []
        for command in commands:
            plain = _plain_writes(command)
            if not plain:
                return False
            writes += plain
        if len(writes) > _WRITES_NOW_MAX or sum(map(write_bytes, writes)) > _BYTES_NOW_MAX:
            return False
        found = map(self.view.catalog.find, {write.index for write in writes})
        return all(index is not None and not index.has_patterns for index in found)

    def _on_applied(self, entries: Sequence[LogEntry], applied: Sequence[Applied]) -> None:
        """Of the entries the view may have applied only the first ones."""
        # answered first: no other request is served before this is done, and clients go on meanwhile
        self.commits.take(applied)
        self.recent.take([entry for entry in entries if entry.log_index <= self.view.applied_index])
        self.upkeep.note(applied, entries_bytes(entries))


def _plain_writes(command: Command) -> Sequence[DocumentWrite]:
    """The writes of a command that has no others and asks for nothing more; none of any other command."""
    if not isinstance(command, WriteDocuments) or command.refresh or command.cursor is not None:
        return ()
    return () if any(one.operation.action is Action.UPDATE for one in command.writes) else command.writes
