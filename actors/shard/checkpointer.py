"""`Checkpointer`: flushes the store now and then, so that the log behind it can go."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from pyoxigraph import Quad

from actors.disk_room import DiskRoom
from actors.log.client import LogAccess
from actors.shard.store_directory import KeptBeside, StoreDirectory
from actors.worker_thread import on_thread
from graphdb.errors import CorruptionError, StorageFull, UnavailableError
from graphdb.log.codec import entries_bytes
from graphdb.log.payloads import quad_sections
from graphdb.log.replay import Replayer
from graphdb.log.views import QUADS
from graphdb.model import EntryKind, LogEntry
from graphdb.store.quad_store import QuadStore

__all__ = ["Checkpointer", "Unflushed", "engine_bytes"]

logger = logging.getLogger(__name__)

# Bytes for each quad, and for each byte of its text: into the logs when it is written, and into tables when
# it is flushed. Measured with 400,000 quads of 95 bytes, which stand in six to nine orders: 580 and 480 bytes
# for each that is added, 405 and 140 for each that is removed, whose terms stay.
_ADDED, _ADDED_TEXT, _ADDED_LATER, _ADDED_TEXT_LATER = 600, 3, 600, 2
_REMOVED, _REMOVED_TEXT, _REMOVED_LATER = 400, 1, 150
# Each quad that is added looks for its places among all that was not flushed, in lists whose nodes are all
# over the memory. With 20,000 quads of 70 bytes there it takes 7 to 8 µs, with 200,000 it takes 20. So they
# are flushed before the engine does it by itself, at 64 MB of each of its orders. New tables are merged with
# the others, at times with all of them: so the larger those are, the more has to come together first.
_SLOW_BYTES, _SLOW_SHARE = 16 << 20, 4
# Two of some eight tables are merged at a time, of a large store only some levels.
_COMPACTED_SHARE, _COMPACTED_BYTES_MAX = 3, 1 << 30
_PATIENCE_S, _LOOK_S = 10.0, 0.1  # for a deletion: merged tables, and readers' old copies, go in some seconds
_AGAIN_S = 5.0  # until a checkpoint that failed is tried again
_STAGED_AT_ONCE = 10_000  # quads of a document between two looks at the disk
_STAGED_IN_MEMORY = 1_000_000  # that the engine has not written yet, at most


def engine_bytes(payloads: Iterable[bytes]) -> tuple[int, int]:
    """About what is written for the changes that entries hold, at once, and when the engine flushes."""
    removed = added = removed_bytes = added_bytes = 0
    for payload in payloads:
        (removed_from, removed_to), (added_from, added_to) = quad_sections(payload)
        if removed_to > removed_from:
            removed += payload.count(b"\n", removed_from, removed_to)
            removed_bytes += removed_to - removed_from
        if added_to > added_from:
            added += payload.count(b"\n", added_from, added_to)
            added_bytes += added_to - added_from
    now = removed * _REMOVED + removed_bytes * _REMOVED_TEXT + added * _ADDED + added_bytes * _ADDED_TEXT
    return now, removed * _REMOVED_LATER + added * _ADDED_LATER + added_bytes * _ADDED_TEXT_LATER


class Unflushed:
    """What the engine holds in memory, and what its writing takes of the disk. Any thread.

    The store has it, so it has nothing of the store: the engine closes with the last reference.
    """

    def __init__(self, room: DiskRoom, engine_files: Callable[[], tuple[int, int]]) -> None:
        """engine_files looks how large the engine's tables, and its own log, are on the disk."""
        self._room, self._engine_files = room, engine_files
        self.size_bytes = 0  # about, once
        self._slow_bytes = _SLOW_BYTES
        self._beside_bytes = self._written_beside()
        self._parts_bytes = 0  # of a large change that is not closed yet

    def count(self, entries: Sequence[LogEntry], later_bytes: int | None = None) -> None:
        """These are applied now. later_bytes: what is written when they are flushed, where all of them are
        changes and that is known.
        """
        if later_bytes is not None:
            self.size_bytes += later_bytes
            return
        changes = [entry.payload for entry in entries if entry.kind is EntryKind.CHANGES]
        self.size_bytes += engine_bytes(changes)[1]
        if len(changes) == len(entries):
            return
        for entry in entries:
            if entry.kind is EntryKind.PART:
                self._parts_bytes += engine_bytes((entry.payload,))[1]
            elif entry.kind.closes_parts:
                self.size_bytes += self._parts_bytes
                self._parts_bytes = 0

    @property
    def slows_writes(self) -> bool:
        """Whether it is so much that a flush pays."""
        return self.size_bytes >= self._slow_bytes

    @property
    def needed_bytes(self) -> int:
        """To be written when it is flushed for a checkpoint: all of it, and what comes with that."""
        return self.size_bytes + self._beside_bytes

    def _written_beside(self) -> int:
        """The tables that the engine merges, before it deletes the old ones; its log, which is no longer than
        it was before the last flush, but is copied into a checkpoint.
        """
        table_bytes, log_bytes = self._engine_files()
        self._slow_bytes = max(_SLOW_BYTES, table_bytes // _SLOW_SHARE)
        return min(table_bytes // _COMPACTED_SHARE, _COMPACTED_BYTES_MAX) + log_bytes

    @contextmanager
    def flushing(self) -> Iterator[None]:
        """All of it goes to the disk, on a full one into the reserve."""
        bytes_before = self.size_bytes
        self._room.make_room(self.needed_bytes)
        yield
        self._beside_bytes = self._written_beside()
        self.size_bytes = max(0, self.size_bytes - bytes_before)


class Checkpointer:
    """Owned by an open store. It works beside the writer, which waits for it only where the disk is nearly
    full.
    """

    def __init__(
        self,
        directory: StoreDirectory,
        quads: QuadStore,
        kept: KeptBeside,
        replayer: Replayer,
        log: LogAccess,
        every_bytes: int,
        room: DiskRoom,
    ) -> None:
        """replayer knows how far quads has got. A checkpoint is due when the log has grown by every_bytes; on
        a full disk, when anything was written.
        """
        self._directory = directory
        self._quads = quads
        self._kept = kept
        self._replayer = replayer
        self._log = log
        self._every_bytes = every_bytes
        self._grown_bytes = 0
        self._held_bytes: int | None = None  # by the log, the fewest since the last checkpoint
        self._task: asyncio.Task[None] | None = None
        self._is_due = False
        self.held_from: int | None = None  # the log is not dropped behind this index
        self._again_at = float("-inf")  # time.monotonic; later after a checkpoint that failed
        self.room = room
        self._one_at_a_time = asyncio.Lock()
        self.unflushed = Unflushed(room, directory.engine_files)
        quads.flushing = self.unflushed.flushing

    def count(self, entries: Sequence[LogEntry], later_bytes: int | None = None) -> None:
        """These are in the log, and are being applied; begin a checkpoint if one is due, or a flush.
        later_bytes: see `Unflushed.count`.
        """
        self._grown_bytes += entries_bytes(entries)
        self.unflushed.count(entries, later_bytes)
        # on a full disk what was deleted has to go from the disk soon
        if self._has_grown(self._grown_bytes) or not self.has_room():
            self._begin_checkpoint()
        elif self.unflushed.slows_writes and time.monotonic() >= self._again_at:
            self._begin()

    def _has_grown(self, by_bytes: int) -> bool:
        return by_bytes >= self._every_bytes and time.monotonic() >= self._again_at

    def has_room(self) -> bool:
        """Whether the disk has room for what is to be written for what there is; then there may be more."""
        return self.room.admits(self.unflushed.needed_bytes)

    async def admit(self, adds: bool, needed_bytes: int) -> None:
        """Let a write come for which so much is written (`engine_bytes`). What only removes may have the
        reserve. Raises StorageFull where too little would be left for what the engine has to write still.
        """
        if self._fits(adds, needed_bytes):
            return
        if self.unflushed.size_bytes:
            await self._try()
        give_up_at = time.monotonic() + (0 if adds else _PATIENCE_S)
        while not self._fits(adds, needed_bytes):
            if time.monotonic() >= give_up_at:
                raise StorageFull.for_inserts() if adds else StorageFull.for_deletions()
            await asyncio.sleep(_LOOK_S)

    def _fits(self, adds: bool, needed_bytes: int) -> bool:
        if adds:
            return self.room.admits(needed_bytes + self.unflushed.needed_bytes)
        # what is merged meanwhile may fail, and is merged later
        wanted_bytes = needed_bytes + self.unflushed.needed_bytes
        return self.room.make_room(wanted_bytes) or self.room.make_room(
            needed_bytes + self.unflushed.size_bytes
        )

    def staged(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        """The quads of a document that is put on the disk before it is planned, while there is room.

        Raises StorageFull, here or on the way.
        """
        count = 0
        rest = iter(quads)
        while some := list(islice(rest, _STAGED_AT_ONCE)):
            count = min(count + len(some), _STAGED_IN_MEMORY)
            if not self.room.admits(count * _ADDED_LATER):
                raise StorageFull.for_inserts()
            yield from some

    async def look(self) -> None:
        """See how the log has grown by what others write, which is not read for the store; begin a checkpoint
        if one is due. Raises LogUnavailable.
        """
        held_bytes = (await self._log.status()).held_bytes
        self._held_bytes = min(held_bytes, held_bytes if self._held_bytes is None else self._held_bytes)
        if self._has_grown(held_bytes - self._held_bytes):
            self._begin_checkpoint()

    def _begin_checkpoint(self) -> None:
        """After one that is under way: that one drops nothing of what is written meanwhile."""
        self._is_due = True
        self._begin()

    def _begin(self) -> None:
        """A checkpoint if one is due, else a flush."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        if not self._is_due:
            await self._flush()
        while self._is_due:
            self._is_due = False
            grown_bytes, held_bytes = self._grown_bytes, self._held_bytes
            self._grown_bytes, self._held_bytes = 0, None
            if not await self._try():
                self._grown_bytes += grown_bytes
                self._held_bytes = held_bytes
                self._again_at = time.monotonic() + _AGAIN_S

    async def _try(self) -> bool:
        try:
            await self.checkpoint()
        except (UnavailableError, CorruptionError) as error:
            logger.warning("no checkpoint: %s; the log keeps what it would have dropped", error)
            return False
        return True

    async def _flush(self) -> None:
        """Nothing but that; not again soon where it fails."""
        try:
            async with self._one_at_a_time:
                await on_thread(self._quads.flush)
        except (UnavailableError, CorruptionError) as error:
            logger.warning("what the engine holds in memory is not flushed: %s", error)
            self._again_at = time.monotonic() + _AGAIN_S

    async def checkpoint(self) -> None:
        """Flush the store, record how far it is and what is kept beside it, drop the log before that.

        Raises StorageFull, LogUnavailable, CorruptionError; whatever was not reached is done the next time.
        """
        async with self._one_at_a_time:
            # read before the flush: what is applied meanwhile may not be in it
            index = self._replayer.resume_index
            await on_thread(self._quads.flush)
            await on_thread(self._record, index)
            held = index if self.held_from is None else min(index, self.held_from)
            await self._log.truncate_before(held + 1, QUADS)

    def _record(self, index: int) -> None:
        self._directory.write_beside(self._kept)
        self._directory.write_applied(index)

    async def finish(self) -> None:
        """Wait for a checkpoint that is under way, and for the one that is due behind it."""
        if self._task is not None:
            await self._task

    async def close(self) -> None:
        """Make a last checkpoint, after one that is under way."""
        await self.finish()
        await self._try()
