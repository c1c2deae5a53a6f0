"""`DiskRoom`: how much room the disk of a data directory has, and the reserve that is kept there.

The reserve is one file of allocated blocks, `reserve`. While there is room, it has its whole size. When the
disk is full, inserts are refused, and what has to go on (deletions, checkpoints, compaction, the log's own
work) takes from the reserve what it needs: the file is cut by that much. What was not used of it comes back
to the reserve, and all of it once there is room.

Whether the disk is full is told from the disk alone: what is free would the reserve be whole. So every
process of a node finds the same, and nothing is decided differently after a restart.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the column view's process, and those of readers, do without settings
    from graphdb.config.service import Server

__all__ = ["MARGIN_BYTES", "DiskRoom"]

MARGIN_BYTES = 16 << 20  # beside what a write needs: files of the engine, of the log, of whoever else
_SHARE = 10  # the reserve takes at most this part of a disk: one tenth
_LEAST_BYTES = 4 << 20  # of the margin: the log allocates so much at a time
_STEP_BYTES = 1 << 20
_AMPLE_BYTES = 256 << 20  # beyond what is asked for; a disk that has so much is looked at
_LOOK_S = 0.1  # so often at most
_QUIET_S = 10.0  # after something was taken from the reserve: it may be at work still


class DiskRoom:
    """Any thread, any process. Nothing here raises: a disk that cannot be asked has no room."""

    def __init__(
        self,
        data_dir: Path,
        reserve_bytes: int,
        margin_bytes: int = MARGIN_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """reserve_bytes: of a whole reserve, where the disk is large enough; 0: none. clock: as files are
        dated.
        """
        self._directory, self._path = data_dir, data_dir / "reserve"
        self._reserve_bytes, self._margin_bytes, self._clock = reserve_bytes, margin_bytes, clock
        self._last_look = (0.0, 0)  # when, and what was free beyond the margin and a whole reserve

    @classmethod
    def of(cls, server: "Server", margin_bytes: int = MARGIN_BYTES) -> "DiskRoom":
        """That of a node."""
        return cls(server.data_dir, server.disk_reserve_mb << 20, margin_bytes)

    def admits(self, needed_bytes: int = 0) -> bool:
        """Whether so much can be written beside the margin and a whole reserve. A look at the disk costs
        several microseconds, so one that has ample room is looked at ten times a second at most.
        """
        now = self._clock()
        looked_at, spare = self._last_look
        if 0 <= now - looked_at < _LOOK_S and spare >= needed_bytes + _AMPLE_BYTES:
            return True
        try:
            total, free = self._disk()
        except OSError:
            return False
        spare = free + self._held_bytes() - self._whole_bytes(total) - self._margin_bytes
        self._last_look = now, spare
        return spare >= needed_bytes

    def make_room(self, needed_bytes: int = 0) -> bool:
        """Have so much free, from the reserve if need be; whether it is."""
        try:
            free = self._disk()[1]
            missing = needed_bytes + self._margin_bytes - free
            if missing > 0 and (held := self._held_bytes()):
                kept = max(0, held - missing) // _STEP_BYTES * _STEP_BYTES
                os.truncate(self._path, kept)
                free = self._disk()[1]
        except OSError:
            return False
        return free >= needed_bytes + min(_LEAST_BYTES, self._margin_bytes)

    def keep_reserve(self) -> None:
        """Make the reserve whole where it is not, and there is room for it; called now and then.

        On a full disk it gets back what was not used of what was taken from it, before others use that.
        """
        try:
            whole, held = self._whole_bytes(self._disk()[0]), self._held_bytes()
            if whole - _STEP_BYTES < held <= whole + _STEP_BYTES:
                return
            if held > whole:
                os.truncate(self._path, whole)
            elif not self._was_taken_from():
                kept = whole if self.admits() else min(whole, held + self._disk()[1] - self._margin_bytes)
                if kept == whole or kept - held >= _LEAST_BYTES:
                    self._allocate(kept, held)
        except OSError:
            return

    def _allocate(self, size: int, held: int) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, held)
            raise
        finally:
            os.close(descriptor)

    def _was_taken_from(self) -> bool:
        """Lately: who has cut the file may be writing what it has cut it for."""
        try:
            age_s = self._clock() - self._path.stat().st_mtime
        except FileNotFoundError:
            return False
        return 0 <= age_s < _QUIET_S

    def _disk(self) -> tuple[int, int]:
        """Bytes in all, and bytes that are free to this user."""
        usage = shutil.disk_usage(self._directory)
        return usage.total, usage.free

    def _whole_bytes(self, total: int) -> int:
        return min(self._reserve_bytes, total // _SHARE) // _STEP_BYTES * _STEP_BYTES

    def _held_bytes(self) -> int:
        """What would be free without the file: a copy of it may have no blocks."""
        try:
            found = self._path.stat()
        except OSError:
            return 0
        return min(found.st_blocks * 512, found.st_size)
