"""The data directory of one node: what lies where, and how a store that is found there is opened.

FORMAT     one line; a directory with another line is not touched
    log/       the update log (`UpdateLog` owns it)
    store/     the quad store (pyoxigraph, RocksDB)
    applied    the log index up to which the store is known to be on disk; replay begins behind it
    search/    the search indexes, and what may take their place (`actors.search.recovery` owns them)
    requests   the requests that the log has seen lately, at least up to there (`RecentRequests`)
    alerts     the alerts, with their secrets, at least as of there (`AlertBook`)
    saved-queries   the queries that users keep, at least as of there (`SavedQueryBook`)
    namespaces   the prefixes that clients keep, at least as of there (`NamespaceBook`)
    named-states   the names of states of the past, at least as of there (`NamedStateBook`)
    purges     what was purged, at least as of there (`PurgeBook`)
    store-purged, history-purged   the log index of the last purge of which the files of the store, and those
               of the history, have nothing any more; the first one goes where the store goes
    history/   what compaction took from the log (`actors.history` owns it)
    history-wanted   an empty file: other nodes have history from before the snapshot that this node got
    live/      copies for live queries (`actors.live.live_copy` owns them), emptied before the first
    scratch/   temporary copies and files, emptied at each start

`applied` is never ahead of what is on disk: it is written after the store was flushed (which syncs: RocksDB's
tables, manifest and directory), and set back to 0 before a store is begun anew. What is
kept beside the store is written before it.
"""

import contextlib
import errno
import gc
import logging
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyoxigraph import Store

from actors.shard.incoming import KEPT_BESIDE, STORE_PURGED, adopt, incoming_state, sync_tree
from actors.shard.search_state import copy_search, receive_search
from graphdb.alerts.book import AlertBook
from graphdb.errors import AlreadyExists, CorruptionError, LogUnavailable, StorageFull
from graphdb.history.copying import copy_history
from graphdb.history.named_states import NamedStateBook
from graphdb.history.purges import PurgeBook
from graphdb.history.purging import PurgedUpTo
from graphdb.log.file_log import begin_log
from graphdb.log.file_system import FileSystem, RealFileSystem, replace_file, storage_error
from graphdb.log.recent_requests import RecentRequests
from graphdb.log.replay import Book
from graphdb.model import EntryKind
from graphdb.namespaces import NamespaceBook
from graphdb.saved_queries import SavedQueryBook
from graphdb.store.quad_store import ChangeListener, QuadStore

__all__ = ["KeptBeside", "StoreDirectory", "StoreLost", "link_or_copy"]

logger = logging.getLogger(__name__)

_FORMAT = b"graphdb data directory, format 1\n"
_HISTORY_PURGED = "history-purged"
_HISTORY_WANTED = "history-wanted"
_COLLECTS_AT = (10, 25, 100)  # attempts to open a store
_DAMAGED = "store.damaged"
_PAUSE_S = 0.00005


@dataclass(frozen=True, slots=True)
class KeptBeside:
    """What entries do beside the store: small, in memory, and written whole with each checkpoint."""

    requests: RecentRequests
    alerts: AlertBook
    saved_queries: SavedQueryBook
    namespaces: NamespaceBook
    named_states: NamedStateBook
    purges: PurgeBook

    @property
    def files(self) -> dict[str, bytes]:
        """Names and contents, as of the present entry or a later one: entries that they have count once."""
        return {
            "requests": self.requests.to_bytes(),
            "alerts": self.alerts.to_bytes(),
            "saved-queries": self.saved_queries.to_bytes(),
            "namespaces": self.namespaces.to_bytes(),
            "named-states": self.named_states.to_bytes(),
            "purges": self.purges.to_bytes(),
        }

    @property
    def books(self) -> dict[EntryKind, Book]:
        """What a `Replayer` feeds."""
        return {
            EntryKind.ALERTS: self.alerts,
            EntryKind.SAVED_QUERIES: self.saved_queries,
            EntryKind.NAMESPACES: self.namespaces,
            EntryKind.NAMED_STATES: self.named_states,
            EntryKind.PURGES: self.purges,
        }


class StoreLost(Exception):
    """The store that `applied` speaks of is missing or cannot be opened; the log may make it anew."""


class StoreDirectory:
    """One data directory, used by one process."""

    def __init__(self, path: Path, file_system: FileSystem | None = None) -> None:
        """Make the directory where it is missing; finish taking over a state where that was cut short.

        Raises CorruptionError where its format is not ours, StorageFull, LogUnavailable.
        """
        self.path = path
        self.log = path / "log"
        self.store = path / "store"
        self.scratch = path / "scratch"
        self._files = file_system or RealFileSystem()
        self._files.make_directory(str(path))
        self._check_format()
        try:
            adopt(path)
        except OSError as error:
            raise storage_error(error, "moving a new state into the data directory") from error

    def _check_format(self) -> None:
        place = self.path / "FORMAT"
        try:
            found = place.read_bytes()
        except FileNotFoundError:
            replace_file(self._files, str(self.path), "FORMAT", _FORMAT)
            return
        if found != _FORMAT:
            raise CorruptionError(f"this program does not read {found[:80]!r}", str(place))

    def read_applied(self) -> int:
        """The index behind which to replay; 0 for a new store. Raises CorruptionError."""
        return self._read_index("applied")

    def write_applied(self, index: int) -> None:
        """Record, durably, that the store is on disk up to index. Raises StorageFull, LogUnavailable."""
        self._write("applied", b"%d\n" % index)

    @property
    def store_purged(self) -> int:
        """The last purge of which the store's files have nothing. Raises CorruptionError."""
        return self._read_index(STORE_PURGED)

    @property
    def history_purged(self) -> int:
        """The last purge of which the history's files have nothing. Raises CorruptionError."""
        return self._read_index(_HISTORY_PURGED)

    def write_store_purged(self, index: int) -> None:
        """Record it, durably. Raises StorageFull, LogUnavailable."""
        self._write(STORE_PURGED, b"%d\n" % index)

    def write_history_purged(self, index: int) -> None:
        """Record it, durably. Raises StorageFull, LogUnavailable."""
        self._write(_HISTORY_PURGED, b"%d\n" % index)

    def unpurged(self, book: PurgeBook) -> list[PurgedUpTo]:
        """What was purged that the history's files may still have. Raises CorruptionError."""
        purges = book.open
        done = self.history_purged if purges else 0
        return [purge for purge in purges if purge.log_index > done]

    @property
    def history_wanted(self) -> Path:
        """The file that is there while history is to be fetched from other nodes."""
        return self.path / _HISTORY_WANTED

    def want_history(self) -> None:
        """Have it fetched. Raises StorageFull, LogUnavailable."""
        self._write(_HISTORY_WANTED, b"")

    def keeps_open_purges(self) -> bool:
        """Whether the book of purges on disk has what was purged. Raises CorruptionError."""
        purges = self._read("purges")
        return purges is not None and bool(PurgeBook.from_bytes(purges).open)

    def _read_index(self, name: str) -> int:
        try:
            text = (self.path / name).read_bytes()
        except FileNotFoundError:
            return 0
        if not text.strip().isdigit():
            raise CorruptionError("not a log index", str(self.path / name))
        return int(text)

    def read_requests(self, applied_index: int) -> RecentRequests:
        """The requests that are known to be in the log, which may be further than applied_index.

        Without a list that one can rely on, none are known: one that is sent again may take effect twice.
        """
        try:
            requests = RecentRequests.from_bytes((self.path / "requests").read_bytes())
        except FileNotFoundError:
            return RecentRequests(applied_index)
        except CorruptionError as error:
            logger.warning("beginning a new list of recent requests: %s", error)
            return RecentRequests(applied_index)
        if requests.through < applied_index:
            logger.warning("the list of recent requests ends at %d: beginning a new one", requests.through)
            return RecentRequests(applied_index)
        return requests

    def read_beside(self, applied_index: int) -> KeptBeside:
        """What is kept beside a store of applied_index; a book without a file is empty.

        Raises CorruptionError where a book is damaged: the log has what was in it no more.
        """
        alerts, saved_queries = self._read("alerts"), self._read("saved-queries")
        namespaces, named_states = self._read("namespaces"), self._read("named-states")
        purges = self._read("purges")
        return KeptBeside(
            self.read_requests(applied_index),
            AlertBook() if alerts is None else AlertBook.from_bytes(alerts),
            SavedQueryBook() if saved_queries is None else SavedQueryBook.from_bytes(saved_queries),
            NamespaceBook() if namespaces is None else NamespaceBook.from_bytes(namespaces),
            NamedStateBook() if named_states is None else NamedStateBook.from_bytes(named_states),
            PurgeBook() if purges is None else PurgeBook.from_bytes(purges),
        )

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write_beside(self, kept: KeptBeside) -> None:
        """Keep it, durably. Raises StorageFull, LogUnavailable."""
        for name, data in kept.files.items():
            self._write(name, data)

    def _check_unused(self) -> None:
        """Raises LogUnavailable while the engine has the store open: when it closes, it tidies up its
        directory, whatever files are there by then.
        """
        if (self.store / "CURRENT").exists():
            try:
                _open_engine(self.store)
            except (OSError, RuntimeError) as error:
                if isinstance(failure := _opening_error(error), LogUnavailable):
                    raise failure from error

    def _write(self, name: str, data: bytes) -> None:
        try:
            replace_file(self._files, str(self.path), name, data)
        except OSError as error:
            raise storage_error(error, "recording a checkpoint") from error

    def open_store(
        self,
        applied_index: int,
        listeners: Iterable[ChangeListener] = (),
        *,
        union_default_graph: bool,
    ) -> QuadStore:
        """Open the store; a new one only where nothing was applied yet.

        Raises StoreLost, StorageFull, and LogUnavailable where another process has it open.
        """
        shutil.rmtree(self.scratch, ignore_errors=True)
        self._files.make_directory(str(self.scratch))
        if applied_index > 0 and not (self.store / "CURRENT").exists():
            raise StoreLost(f"{self.store} is missing")
        try:
            store = _open_engine(self.store)
        except (OSError, RuntimeError) as error:  # the engine says RuntimeError to some damage
            raise _opening_error(error) from error
        quads = QuadStore(
            store, listeners, scratch_directory=self.scratch, union_default_graph=union_default_graph
        )
        quads.pause = partial(time.sleep, _PAUSE_S)
        return quads

    def engine_files(self) -> tuple[int, int]:
        """The size on disk of the engine's tables; that of its own log, with files that it keeps only to use
        them again.
        """
        return _size_on_disk(self.store.glob("*.sst")), _size_on_disk(self.store.glob("*.log"))

    def set_store_aside(self) -> None:
        """Make room for a store begun anew; a damaged one is kept for whoever wants to look at it."""
        self.write_applied(0)
        self.write_store_purged(0)
        aside = self.path / _DAMAGED
        shutil.rmtree(aside, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            self.store.rename(aside)

    def drop_damaged(self) -> None:
        """Delete what was set aside, of the store or the search indexes."""
        for name in (_DAMAGED, "search.damaged"):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def back_up(self, quads: QuadStore, index: int, kept: KeptBeside, target: Path) -> None:
        """Write a data directory to target, which does not exist yet: the present store, and a log that goes
        on from it; the search indexes as they are on disk, as if they were of that index.

        A service that is started on it, or on a copy of it, has the state of that index. It is on disk on
        return. The caller has seen to it that the indexes on disk have what they have to have.
        Raises AlreadyExists, StorageFull, CorruptionError, LogUnavailable.
        """
        if target.exists():
            raise AlreadyExists("directory", str(target))
        if min(self.store_purged, self.history_purged) < kept.purges.last_index:
            raise LogUnavailable(
                "a purge is under way, which a running service ends: a backup would have what it takes",
                5,
            )
        backup = StoreDirectory(target, self._files)
        quads.checkpoint(backup.store)
        sync_tree(backup.store)
        begin_log(self._files, str(backup.log), index + 1)
        copy_search(self.path, target, index)
        backup.write_beside(kept)
        backup.write_store_purged(self.store_purged)
        backup.write_history_purged(self.history_purged)
        backup.write_applied(index)

    def back_up_history(self, index: int, target: Path) -> None:
        """Give a backup of that index the changes that led there, as far as they are kept.

        Raises StorageFull, CorruptionError, LogUnavailable.
        """
        try:
            copy_history(self.path, target, index, link_or_copy)
        except OSError as error:
            raise storage_error(error, "backing up the history") from error

    def make_snapshot(self, quads: QuadStore, kept: KeptBeside, target: Path) -> None:
        """Write what another node needs to be where this one is to target, which does not exist yet.

        It is not synced: after a crash nobody asks for it. Raises StorageFull, CorruptionError,
        LogUnavailable.
        """
        try:
            target.mkdir()
            quads.checkpoint(target / "store")
            for name, data in kept.files.items():
                (target / name).write_bytes(data)
            (target / STORE_PURGED).write_bytes(b"%d\n" % self.store_purged)
        except OSError as error:
            raise storage_error(error, "making a snapshot") from error

    def adopt_snapshot(self, source: Path, index: int) -> None:
        """Make a tree of make_snapshot the state of this directory, at that log index. The log stays.

        Search indexes in the tree are there, for their owner to take them over, before the store is.
        A crash leaves the old state or the new; where that is not known, call it again. source stays as it
        is. Raises LogUnavailable while anybody has the store open, StorageFull; then nothing has changed, or
        what was begun is finished when the directory is opened.
        """
        self._check_unused()
        try:
            receive_search(source, self.path, self._files, link_or_copy)
            with incoming_state(self.path) as draft:
                new = StoreDirectory(draft, self._files)
                shutil.copytree(source / "store", new.store, copy_function=link_or_copy)
                new.write_store_purged(0)
                for name in (*KEPT_BESIDE, STORE_PURGED):
                    with contextlib.suppress(FileNotFoundError):  # a node of an earlier version has fewer
                        shutil.copyfile(source / name, draft / name)
                new.write_applied(index)
        except OSError as error:
            raise storage_error(error, "taking over a snapshot") from error


def _size_on_disk(files: Iterable[Path]) -> int:
    found = 0
    for file in files:
        with contextlib.suppress(OSError):  # the engine has deleted it meanwhile
            found += file.stat().st_blocks * 512
    return found


def link_or_copy(source: str, target: str) -> None:
    """Give a file that nobody changes any more another name, or another place on another file system.

    The engine changes no file that it finds when it opens a store.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise
        shutil.copyfile(source, target)


def _is_open_here(error: BaseException) -> bool:
    return "lock hold by current process" in str(error)


def _open_engine(path: Path) -> Store:
    """Open the engine's store; one that this process still has open is waited for: a thread that has done its
    last work with it lets it go a moment after everybody heard of the result.
    """
    try:
        return Store(path)
    except OSError as error:
        if not _is_open_here(error):
            raise
    return _opened_once_let_go(path)


def _opened_once_let_go(path: Path) -> Store:
    # at the top, each process with a store would load it, 25 ms, for what hardly ever happens
    from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_fixed

    def collect(retrying: RetryCallState) -> None:
        """Whoever waited for a store that was closed has an error now, whose frames may keep the store in a
        circle.
        """
        if retrying.attempt_number in _COLLECTS_AT:
            gc.collect()

    waiting = Retrying(
        retry=retry_if_exception(_is_open_here),
        wait=wait_fixed(0.02),
        stop=stop_after_delay(5),
        before_sleep=collect,
        reraise=True,
    )
    return waiting(Store, path)


def _opening_error(error: Exception) -> Exception:
    reason = str(error)
    if "No space left" in reason:
        return StorageFull("opening the store: the disk of the data directory is full", 5)
    if "lock" in reason.lower():
        return LogUnavailable("the store is in use by another process", 1)
    return StoreLost(reason)
