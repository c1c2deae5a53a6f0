"""`FailureBoard`: failed attempts to authenticate, counted together by the processes of one node.

A ring of the last failures in a file that each process maps: who notes one locks the file for that moment;
who asks looks at a counter, and reads what is new. So a lockout holds on both ports, and outlives a process.
"""

import fcntl
import mmap
import os
import struct
from typing import IO

from graphdb.access.lockout import Lockout
from graphdb.config.access import RateLimiting

__all__ = ["FailureBoard"]

_COUNT = struct.Struct("<Q")  # how many failures were ever noted
_FAILURE = struct.Struct("<d54sH")  # when (time.monotonic, which all processes share); address, its length
_KEPT = 4_096
_HEAD_BYTES = 64
_FILE_BYTES = _HEAD_BYTES + _KEPT * _FAILURE.size


class FailureBoard:
    """What `serve.access.authentication` needs. For one thread that notes, and any that ask."""

    def __init__(self, path: str, limits: RateLimiting) -> None:
        """Its directory is this user's alone."""
        self._lockout = Lockout(limits)
        self._file: IO[bytes] = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            os.ftruncate(self._file.fileno(), _FILE_BYTES)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._map = mmap.mmap(self._file.fileno(), _FILE_BYTES)
        self._read = 0

    def wait_s(self, address: str, now_s: float) -> float:
        """See `Lockout.wait_s`."""
        if self._count() != self._read:
            self._catch_up(now_s)
        return self._lockout.wait_s(address, now_s)

    def note_failure(self, address: str, now_s: float) -> bool:
        """See `Lockout.note_failure`; every process of the node learns of it."""
        if not self._lockout.counts(address):
            return False
        text = address.encode()[:54]
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            count = self._count()
            _FAILURE.pack_into(self._map, _place(count), now_s, text, len(text))
            _COUNT.pack_into(self._map, 0, count + 1)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._catch_up(now_s)
        return True

    def close(self) -> None:
        """It is of no use afterwards."""
        self._map.close()
        self._file.close()

    def _count(self) -> int:
        count: int = _COUNT.unpack_from(self._map)[0]
        return count

    def _catch_up(self, now_s: float) -> None:
        """What is older than the ring is not counted; what is of the future is from before the last boot."""
        count = self._count()
        for number in range(max(self._read, count - _KEPT), count):
            at_s, text, length = _FAILURE.unpack_from(self._map, _place(number))
            if at_s <= now_s + 1:
                self._lockout.note_failure(text[:length].decode(errors="replace"), at_s)
        self._read = count


def _place(number: int) -> int:
    return _HEAD_BYTES + number % _KEPT * _FAILURE.size
