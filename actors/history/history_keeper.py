"""`HistoryKeeper`: compresses what compaction took from the log, and deletes what is kept no longer."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from enum import Enum
from pathlib import Path

from actors.worker_thread import on_thread
from graphdb.config.service import History
from graphdb.errors import CorruptionError, UnavailableError
from graphdb.history.archive import COMPRESSED, RAW, ArchiveName, CompressedFile, RawFile, compress
from graphdb.history.past_log import PastLog, archived_names
from graphdb.history.places import HISTORY
from graphdb.history.purging import PurgedUpTo, purge_file
from graphdb.history.retention import KeptFile, excess_bytes, expired_count, is_needed
from graphdb.log.file_system import RealFileSystem
from graphdb.timestamps import until_whole

__all__ = ["Adoption", "HistoryKeeper"]

logger = logging.getLogger(__name__)
_EVERY_S = 60.0
_PAUSE_S = 0.02  # between two megabytes; each takes a processor for about 10 ms
_INDEX_MAX = (1 << 63) - 1


class Adoption(Enum):
    """What becomes of a file of another node."""

    TAKEN = "taken"
    UNPURGED = "unpurged"  # something was purged that it may have
    EXPIRED = "expired"  # it would be deleted again


class HistoryKeeper:
    """Owned by a node, on its event loop; works on a thread, once a minute, where there is anything to do."""

    def __init__(
        self,
        data_dir: Path,
        config: History,
        last_index: Callable[[], int],
        kept_from: Callable[[], int | None],
        has_room: Callable[[], bool],
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """last_index: of the log; kept_from: see `expired_count`; has_room: whether the disk is not full."""
        self._data_dir, self._directory, self._config = data_dir, data_dir / HISTORY, config
        self._last_index, self._kept_from, self._clock_ms = last_index, kept_from, clock_ms
        self.has_room = has_room
        self._known: dict[ArchiveName, KeptFile] = {}
        self._one_at_a_time = threading.Lock()
        self._deciding = threading.Lock()  # what may be deleted, until it is
        self._held: list[int] = []
        self._is_too_large = False  # for its bound, as named states need it

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(until_whole(_EVERY_S, time.monotonic()))
            try:
                await on_thread(self.tend)
            except (OSError, CorruptionError, UnavailableError) as error:
                logger.warning("the history is not tended now: %s", error)

    def tend(self) -> None:
        """Compress and delete. Raises OSError, CorruptionError; then the rest is left for the next time."""
        with self._one_at_a_time:
            self._tend()

    @contextlib.asynccontextmanager
    async def holding(self, from_index: int) -> AsyncIterator[None]:
        """The time in which nothing is deleted that has entries from from_index on; what is deleted already
        when it begins may be.
        """

        def hold() -> None:
            with self._deciding:
                self._held.append(from_index)

        await on_thread(hold)
        try:
            yield
        finally:
            self._held.remove(from_index)

    def _needed_from(self) -> int | None:
        kept_from = self._kept_from()
        return min([*self._held, *([] if kept_from is None else [kept_from])], default=None)

    def purge(self, purges: Sequence[PurgedUpTo]) -> None:
        """Have all files without what was purged, and compressed. Raises OSError, CorruptionError; then some
        may be, and it may be called again.
        """
        with self._one_at_a_time:
            if not self._directory.exists():
                return
            self._clean()
            for name in archived_names(self._directory):
                purge_file(self._directory, name, purges, lambda: time.sleep(_PAUSE_S))
            self._known = {}

    @property
    def is_on(self) -> bool:
        """Whether anything is kept."""
        return self._config.keep != "off"

    def drop_unjoined(self, last_index: int) -> None:
        """Delete files that do not lead on to the log: a node that was down has a gap there, and what was
        purged meanwhile may be in them. Raises OSError, LogUnavailable, CorruptionError.
        """
        with self._one_at_a_time:
            with closing(PastLog(self._data_dir)) as past:
                spans = past.spans(last_index)
            begins = spans[0].first_index if spans else last_index + 1
            for name in archived_names(self._directory):
                if name.last_index < begins - 1:  # others may be where the log is putting what it drops
                    self._delete(name)

    def adopt(
        self, path: Path, name: ArchiveName, purged_index: int, last_purge: Callable[[], int]
    ) -> Adoption:
        """Take a file of another node, whole and on disk, that ends where the history here begins, unless
        retention would delete it again. purged_index: of the last purge of which it has nothing;
        last_purge: that which this node knows of: one that it hears of later is taken out of this file too.
        Raises OSError, CorruptionError.
        """
        with self._one_at_a_time:
            if last_purge() > purged_index:
                return Adoption.UNPURGED
            files = [self._kept(name, path), *map(self._kept, archived_names(self._directory))]
            if expired_count(files, self._config, self._clock_ms(), self._last_index(), self._needed_from()):
                return Adoption.EXPIRED
            self._directory.mkdir(exist_ok=True)
            path.replace(self._directory / str(name))
            RealFileSystem().sync_directory(str(self._directory))
            return Adoption.TAKEN

    def _clean(self) -> None:
        for path in self._directory.glob("*.tmp"):
            path.unlink()
        self._delete_doubles()

    def _tend(self) -> None:
        if not self._directory.exists():
            return
        self._clean()
        self._give_way()
        for name in archived_names(self._directory):
            if name.suffix == RAW and self._config.keep != "off":
                self._compress(name)
        self._expire()

    def _delete_doubles(self) -> None:
        """A segment that was compressed already: a crash came between that and its removal, or the log has
        put it here once more.
        """
        for path in self._directory.glob(f"*{COMPRESSED}"):
            with contextlib.suppress(FileNotFoundError):
                path.with_suffix(RAW).unlink()

    def _give_way(self) -> None:
        """On a full disk writes come before the past, unless that is kept forever, or for a named state."""
        names = [] if self._config.keep == "forever" else archived_names(self._directory)
        for name in names:
            with self._deciding:
                if self.has_room() or is_needed(name, self._config, self._needed_from()):
                    return
                logger.warning("the disk is full: the history up to entry %d is deleted", name.last_index)
                self._delete(name)

    def _delete(self, name: ArchiveName) -> None:
        (self._directory / str(name)).unlink()
        RealFileSystem().sync_directory(str(self._directory))

    def _compress(self, name: ArchiveName) -> None:
        path = self._directory / str(name)
        with closing(RawFile(path)) as raw:
            compress(raw, name.last_index, path.with_suffix(COMPRESSED), lambda: time.sleep(_PAUSE_S))
        RealFileSystem().sync_directory(str(self._directory))
        path.unlink()

    def _expire(self) -> None:
        """The oldest first, one after the other, so that a crash leaves no gap."""
        self._known = {name: self._kept(name) for name in archived_names(self._directory)}
        files = [*self._known.values()]
        with self._deciding:
            kept_from = self._needed_from()
            count = expired_count(files, self._config, self._clock_ms(), self._last_index(), kept_from)
            for file in files[:count]:
                self._delete(file.name)
        self._tell_size(files[count:])

    def _tell_size(self, files: Sequence[KeptFile]) -> None:
        """Warn once where named states hold more than the bound allows."""
        excess = excess_bytes(files, self._config)
        if excess > 0 and not self._is_too_large:
            logger.warning(
                "the history is %d MB larger than history.max_gb allows, because named states need it: "
                "GET /snapshots tells what each takes",
                (excess >> 20) + 1,
            )
        self._is_too_large = excess > 0

    def _kept(self, name: ArchiveName, path: Path | None = None) -> KeptFile:
        """path: where it is, if not in the history."""
        if (known := self._known.get(name)) is not None:
            return known
        path = path or self._directory / str(name)
        if name.suffix == RAW:
            return KeptFile(name, path.stat().st_size, 0)
        with closing(CompressedFile(path)) as file:
            blocks = file.blocks(_INDEX_MAX)
        return KeptFile(name, path.stat().st_size, max((block.last_ms for block in blocks), default=0))
