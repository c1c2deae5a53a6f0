"""Snapshots: made, kept, deleted."""

import logging
import os
import re
import secrets
import shutil
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from actors.raft.rate_limited_log import RateLimitedLog
from actors.raft.snapshot_transfer import (
    TREE,
    IncomingSnapshot,
    Manifest,
    OutgoingSnapshot,
    free_bytes,
    list_files,
    read_mark,
)
from graphdb.errors import LogUnavailable
from graphdb.log.file_system import FileSystem, RealFileSystem, storage_error
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.wire import Malformed

__all__ = ["Snapshots"]

# `Trash`: directories that nobody needs. To unlink some GB takes seconds, so a thread of its own does.

logger = logging.getLogger(__name__)


class Trash:
    """A directory of its own beside what is thrown away. What a crash leaves in it goes at the next start."""

    def __init__(self, files: FileSystem, directory: Path) -> None:
        """Raises OSError."""
        self._files = files
        self._directory = directory
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trash")
        files.make_directory(str(directory))
        for path in directory.iterdir():
            self._thread.submit(shutil.rmtree, path, ignore_errors=True)

    def take(self, path: Path) -> None:
        """Throw away a directory, which is gone from where it was at once.

        Raises LogUnavailable, StorageFull.
        """
        aside = self._directory / uuid.uuid4().hex
        try:
            self._files.rename(str(path), str(aside))
        except OSError as error:
            raise storage_error(error, f"removing {path.name}") from error
        self._thread.submit(self._remove, path.parent, aside)

    def close(self) -> None:
        """Wait until it is empty."""
        self._thread.shutdown()

    def _remove(self, parent: Path, aside: Path) -> None:
        # The new name first: no crash may bring a directory back that has lost some of its files.
        try:
            for directory in (self._directory, parent):
                self._files.sync_directory(os.fspath(directory))
        except OSError as error:
            logger.warning("%s stays until the next start: %s", aside, error)
            return
        shutil.rmtree(aside, ignore_errors=True)


# `Snapshots`: a node's snapshots as directory trees, those it can send and those it has received.
#
#     <index>-<term>/            the tree of a snapshot that can be sent
#     incoming/                  one that is arriving: tree/, and mark when it is complete
#     <index>-<term>.received/   the same, complete and durable: what the node's state is to become
#     trash/                     what is being deleted
#
# Only what was received outlives a restart. What can be sent is made again from the store when it is
# wanted, so nothing of it needs to be synced, and no torn one is ever sent.


_INCOMING = "incoming"
_TRASH = "trash"
_RECEIVED = re.compile(r"(\d+)-(\d+)\.received")
_SENT_AT_ONCE_MAX = 3  # snapshots, for peers that began at different times
_WANTED_S = 2.0  # a leader asks again with each heartbeat, as long as a peer that answers needs one


class ReceivedTree(NamedTuple):
    """A complete snapshot from another peer, and where its tree lies."""

    mark: SnapshotMark
    tree: Path


class Snapshots:
    """The `SnapshotStore` of a node (`graphdb.raft.replica`). Open from its making until close.

    All methods are for the thread of the Raft loop, for they touch about 1 MiB at most; but `complete` is for
    another one.
    """

    def __init__(
        self,
        directory: Path,
        base_index: Callable[[], int],
        *,
        clock: Callable[[], float] = time.monotonic,
        idle_s: float = 60,
        files: FileSystem | None = None,
        free_bytes: Callable[[Path], int] = free_bytes,
    ) -> None:
        """base_index: the last entry that the journal no longer has; older snapshots are of no use to a peer.

        idle_s: how long a snapshot is kept after it was offered or read further. Raises CorruptionError where
        a received snapshot is damaged, LogUnavailable, StorageFull.
        """
        self._directory = directory
        self._base_index = base_index
        self._clock = clock
        self._idle_s = idle_s
        self._files = files or RealFileSystem()
        self._free_bytes = free_bytes
        self._outgoing: list[OutgoingSnapshot] = []  # by index
        self._wanted_at = float("-inf")
        self._incoming: IncomingSnapshot | None = None
        self._written_at = 0.0
        self._completing = False
        self._log = RateLimitedLog(logger)
        try:
            self._files.make_directory(str(directory))
            self._trash = Trash(self._files, directory / _TRASH)
            self._received = self._find_received()
        except OSError as error:
            raise storage_error(error, "opening the snapshots") from error
        kept = {_TRASH, self._received.tree.parent.name if self._received else None}
        for path in directory.iterdir():
            if path.name not in kept:
                self._trash.take(path)

    def close(self) -> None:
        """Wait until what is thrown away is gone."""
        self._trash.close()

    # to send

    @property
    def wanted(self) -> bool:
        """Whether a peer needs a snapshot and there is none: make one, then `offer` it."""
        return self._clock() < self._wanted_at + _WANTED_S

    @property
    def oldest_in_use(self) -> int | None:
        """The log_index of the oldest snapshot that a peer may be receiving now.

        If entries behind it went, that peer would need another snapshot as soon as it had this one.
        """
        return min((each.mark.log_index for each in self._outgoing if self._is_in_use(each)), default=None)

    def offer(self, tree: Path, mark: SnapshotMark) -> None:
        """Take over a tree of the same file system, nothing of which will change, as the latest snapshot.

        Where there is one as new, the tree is thrown away. Raises ValueError where the tree is no snapshot,
        LogUnavailable; then the tree is where it was.
        """
        self._wanted_at = float("-inf")
        if self._outgoing and self._outgoing[-1].mark.log_index >= mark.log_index:
            self._trash.take(tree)
            return
        target = self._directory / f"{mark.log_index}-{mark.raft_term}"
        try:
            manifest = Manifest(secrets.token_bytes(16), list_files(tree))
            self._files.rename(str(tree), str(target))
        except OSError as error:
            raise storage_error(error, "taking a snapshot over") from error
        self._outgoing.append(OutgoingSnapshot(target, mark, manifest, self._clock()))
        self._drop_older()

    def drop_unused(self) -> None:
        """Throw away what was not read or written further for idle_s; to be called now and then."""
        for snapshot in [*self._outgoing]:
            if not self._is_in_use(snapshot):
                self._drop(snapshot)
        if self._incoming is not None and self._clock() >= self._written_at + self._idle_s:
            self._incoming = None
            self._trash.take(self._directory / _INCOMING)

    def drop_sendable(self) -> None:
        """Throw away all that can be sent, also what a peer is receiving: it gets another one."""
        for snapshot in [*self._outgoing]:
            self._drop(snapshot)

    def latest(self) -> SnapshotMark | None:
        """The newest snapshot, unless entries behind it are gone."""
        if self._outgoing and self._outgoing[-1].mark.log_index >= self._base_index():
            return self._outgoing[-1].mark
        self._wanted_at = self._clock()
        return None

    def read(self, mark: SnapshotMark, offset: int, bytes_max: int) -> tuple[bytes, bool] | None:
        """Bytes of a snapshot's stream, and whether they are its last; None where it is gone.

        One that cannot be read is gone: another takes its place.
        """
        snapshot = next((each for each in self._outgoing if each.mark == mark), None)
        if snapshot is None:
            return None
        try:
            return snapshot.read(offset, bytes_max, self._clock())
        except OSError as error:
            self._log.warn("dropped", "snapshot %s cannot be read: %s", snapshot.tree.name, error)
            self._drop(snapshot)
            return None

    def _is_in_use(self, snapshot: OutgoingSnapshot) -> bool:
        return self._clock() < snapshot.used_at + self._idle_s

    def _drop_older(self) -> None:
        """Keep the latest, and of the others those that are being read, but not too many."""
        *older, _ = self._outgoing
        read = [each for each in older if each.was_read and self._is_in_use(each)]
        kept = sorted(read, key=lambda each: each.used_at)[-(_SENT_AT_ONCE_MAX - 1) :]
        for snapshot in older:
            if snapshot not in kept:
                self._drop(snapshot)

    def _drop(self, snapshot: OutgoingSnapshot) -> None:
        self._outgoing.remove(snapshot)
        self._trash.take(snapshot.tree)

    # to receive

    def write(self, mark: SnapshotMark, offset: int, data: bytes) -> None:
        """Take bytes of a snapshot's stream, in order; offset 0 begins anew.

        Raises Malformed: begin anew. StorageFull, LogUnavailable: the same bytes may come again.
        """
        if self._completing:
            raise LogUnavailable("another snapshot is being completed")
        try:
            if offset == 0:
                self._begin(mark)
            if self._incoming is None or self._incoming.mark != mark:
                raise Malformed("bytes of a snapshot whose beginning is not here")
            self._incoming.write(offset, data)
            self._written_at = self._clock()
        except Malformed as error:
            self._log.warn("refused", "the snapshot at %d is refused: %s", mark.log_index, error)
            raise
        except OSError as error:
            raise storage_error(error, "receiving a snapshot") from error

    def complete(self, mark: SnapshotMark) -> Path:
        """Have what has arrived on disk for good; the directory in which its tree lies. Takes long.

        Raises Malformed, StorageFull, LogUnavailable. Whatever it raises, what had arrived is of no
        use any more: after a sync that failed nobody knows what is on disk. A second call raises Malformed.
        """
        self._completing = True
        try:
            incoming, self._incoming = self._incoming, None
            if incoming is None or incoming.mark != mark:
                raise Malformed("no such snapshot has arrived")
            incoming.finish()
            return self._keep_received(mark)
        except OSError as error:
            raise storage_error(error, "completing a snapshot") from error
        finally:
            self._completing = False

    def received(self) -> ReceivedTree | None:
        """The newest snapshot that is complete and that nobody has forgotten."""
        return self._received

    def forget_received(self, log_index: int) -> None:
        """The state is that of the snapshot there, durably; it, and what is left of its tree, can go.

        After a crash it may be back.
        """
        if self._received is not None and self._received.mark.log_index == log_index:
            received, self._received = self._received, None
            self._trash.take(received.tree.parent)

    def _begin(self, mark: SnapshotMark) -> None:
        directory = self._directory / _INCOMING
        self._incoming = None
        if directory.exists():
            self._trash.take(directory)
        directory.mkdir()
        self._incoming = IncomingSnapshot(self._files, directory, mark, self._free_bytes)
        self._written_at = self._clock()

    def _keep_received(self, mark: SnapshotMark) -> Path:
        target = self._directory / f"{mark.log_index}-{mark.raft_term}.received"
        if target.exists():
            self._trash.take(target)  # of an attempt whose last step failed
        self._files.rename(str(self._directory / _INCOMING), str(target))
        self._files.sync_directory(str(self._directory))
        previous, self._received = self._received, ReceivedTree(mark, target / TREE)
        if previous is not None and previous.tree.parent != target:
            self._trash.take(previous.tree.parent)
        return target

    def _find_received(self) -> ReceivedTree | None:
        """The newest; a directory gets such a name only when all in it is on disk."""
        found = [
            (int(match[1]), int(match[2]), path)
            for path in self._directory.iterdir()
            if (match := _RECEIVED.fullmatch(path.name))
        ]
        if not found:
            return None
        path = max(found)[2]
        return ReceivedTree(read_mark(path), path / TREE)
