"""`CatalogView`: the catalogue as a view of the log: what was applied, what is on disk. `SearchThread`: the
one thread on which it changes.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from graphdb.errors import CorruptionError, LogUnavailable, UnavailableError
from graphdb.log.file_system import RealFileSystem
from graphdb.model import EntryKind, LogEntry
from graphdb.public_text import fault_text
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import Command, Outcome, WriteDocuments
from graphdb.search.catalog.command_codec import decode_command
from graphdb.search.catalog.files import CatalogFiles, CatalogSave
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError
from graphdb.search.segments.index_files import SavedCommit
from graphdb.search.vectors import GraphFiles

__all__ = ["Applied", "CatalogView", "SearchThread"]

T = TypeVar("T")
_NICENESS = 10  # of merges: they can wait, searches and writes cannot


class SearchThread:
    """For one event loop."""

    def __init__(self) -> None:
        # called on the writer when the catalogue may have changed, before anybody is told
        self.note_change: Callable[[], None] = lambda: None
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search-writer")
        self._given: deque[Future[Any]] = deque()  # to the writer, not known to be done
        self._builder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search-builder")
        self._saver = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search-saver")
        self._merger = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="search-merger", initializer=_give_way
        )

    async def write(self, function: Callable[..., T], *arguments: object) -> T:
        """Call it where the catalogue may be changed, after what was given before."""
        given = self._writer.submit(self._write, function, arguments)
        self._forget_done()
        self._given.append(given)
        return await asyncio.wrap_future(given)

    @property
    def may_write_now(self) -> bool:
        """Whether the writer has nothing to do."""
        self._forget_done()
        return not self._given

    def write_now(self, function: Callable[..., T], *arguments: object) -> T:
        """`write` within the call, while `may_write_now`, of what takes no longer than a hand-over."""
        assert self.may_write_now
        return self._write(function, arguments)

    def _forget_done(self) -> None:
        while self._given and self._given[0].done():
            self._given.popleft()

    def _write(self, function: Callable[..., T], arguments: Sequence[object]) -> T:
        try:
            return function(*arguments)
        finally:
            self.note_change()

    async def build(self, function: Callable[..., T], *arguments: object) -> T:
        """Make segments of what was written, while writes go on; searches wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._builder, function, *arguments)

    async def save(self, function: Callable[..., T], *arguments: object) -> T:
        """Write to disk while writes go on."""
        return await asyncio.get_running_loop().run_in_executor(self._saver, function, *arguments)

    async def beside(self, function: Callable[..., T], *arguments: object) -> T:
        """Call it while writes go on, giving way to all else."""
        return await asyncio.get_running_loop().run_in_executor(self._merger, function, *arguments)

    def close(self) -> None:
        """Finish what was given, however long that takes; nothing more may be given. Any thread.

        A merge that is being made is not waited for: it can take a minute, and nobody adopts it.
        """
        self._merger.shutdown(wait=False, cancel_futures=True)
        for executor in (self._writer, self._builder, self._saver):
            executor.shutdown()


def _give_way() -> None:
    """Linux keeps the niceness of each thread apart; where that is not allowed, it stays as it is."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


logger = logging.getLogger(__name__)

_NOTHING: Mapping[int, Command] = {}


@dataclass(frozen=True, slots=True)
class Applied:
    """A search entry that has taken effect. written names the indexes that have documents to refresh."""

    log_index: int
    request_id: bytes
    outcome: Outcome
    written: frozenset[str]
    made_bytes: int = 0  # of documents that updates have written, which the entry does not have


class CatalogView:
    """Owned by a `SearchThread`, whose writer calls its methods, but for those that say otherwise. The
    attributes may be read on any thread.
    """

    def __init__(self, catalog: Catalog, files: CatalogFiles, log_index: int) -> None:
        """catalog is on disk as of log_index."""
        self.catalog = catalog
        self.applied_index = self.saved_index = log_index
        self.fault: UnavailableError | None = None  # why the last entry could not be applied
        self.torn = False  # an entry was cut short in the middle: only the log knows the state
        self._files = files

    @property
    def index(self) -> int:
        """See `View.index`."""
        return self.applied_index

    def check(self) -> None:
        """See `View.check`: raises `fault`."""
        if self.fault is not None:
            raise self.fault

    def apply(self, entries: Sequence[LogEntry], decoded: Mapping[int, Command] = _NOTHING) -> list[Applied]:
        """Let entries take effect, the ones behind applied_index, in their order. decoded: what some of them
        say, by log_index, from whoever encoded it.

        Where the disk does not let one, `check` says so, and it is to be tried again with those after it.
        Raises CorruptionError.
        """
        applied: list[Applied] = []
        self.fault = None
        for entry in entries:
            if entry.log_index != self.applied_index + 1:
                raise CorruptionError(f"the entry {self.applied_index + 1} is missing", "update log")
            if entry.kind is EntryKind.SEARCH:
                try:
                    applied.append(self._perform(entry, decoded.get(entry.log_index)))
                except UnavailableError as error:
                    self.fault = error
                    return applied
            self.applied_index = entry.log_index
        return applied

    def _perform(self, entry: LogEntry, command: Command | None) -> Applied:
        """A mistake of ours in it is an outcome too: one entry must not end the search of all nodes."""
        if command is None:
            command = decode_command(entry.payload)
        try:
            outcome = self.catalog.apply(command, entry.log_index, entry.timestamp_ms)
        except (UnavailableError, CorruptionError):
            raise
        except MemoryError:  # other nodes have had enough of it, so it must not be an outcome here
            self.torn = True
            raise
        except Exception as error:
            logger.exception("applying the search entry %d failed", entry.log_index)
            outcome = Outcome(
                error=SearchError("exception", f"applying the change failed: {fault_text(error)}", 500)
            )
        written: frozenset[str] = frozenset()
        made_bytes = 0
        if isinstance(command, WriteDocuments) and outcome.error is None:
            written = frozenset(one.index for one in outcome.value if one.result.error is None)
            made_bytes = sum(one.result.made_bytes for one in outcome.value)
        return Applied(entry.log_index, entry.request_id, outcome, written, made_bytes)

    def pass_over(self, log_index: int) -> None:
        """Take what stands in the log up to there for applied."""
        self.applied_index = log_index

    def seal(self, names: Iterable[str]) -> list[Index]:
        """Begin to make findable what was written to these indexes; those that are gone are passed over."""
        found = [index for name in names if (index := self.catalog.find(name)) is not None]
        for index in found:
            index.shards.seal()
        return found

    def adopt(self, indexes: Iterable[Index]) -> None:
        """Search what was sealed and has been built."""
        for index in indexes:
            index.shards.adopt_built()

    def graph_files(self, index: Index, shard: int) -> GraphFiles:
        """Where the graphs of the vectors of a shard lie. Any thread."""
        return GraphFiles(RealFileSystem(), self._files.directory_of(index, shard))

    def plan_flush(self) -> CatalogSave | None:
        """What is to be put on disk; None where all is there. Raises UnavailableError."""
        if self.torn:
            raise LogUnavailable("the search indexes are made anew from the log: memory ran out")
        if self.applied_index <= self.saved_index and self._has_saved_merges():
            return None
        return self._files.plan(self.catalog, self.applied_index)

    def _has_saved_merges(self) -> bool:
        """Segments that were merged since stand in memory, whether or not anything was written."""
        return all(shard.is_saved for index in self.catalog.indexes() for shard in index.shards)

    def write_flush(self, planned: CatalogSave) -> list[SavedCommit]:
        """Put it on disk, on any thread; one at a time. Raises UnavailableError."""
        return self._files.write(planned)

    def note_flush(
        self, planned: CatalogSave, commits: Sequence[SavedCommit], is_asked: bool = False
    ) -> None:
        """It is on disk."""
        planned.note(commits, is_asked)
        self.saved_index = planned.content.log_index

    def flush(self) -> None:
        """Put everything on disk, here and now. Raises UnavailableError."""
        planned = self.plan_flush()
        if planned is not None:
            self.note_flush(planned, self.write_flush(planned))
