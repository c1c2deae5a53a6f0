"""`AuditFile`: lines of JSON in a file that several processes write, put aside when it has grown.

Lines go to a thread; whoever notes one waits for nothing. What there is no room for is dropped and counted,
and the file says how many lines are missing where they are.
"""

import contextlib
import fcntl
import json
import logging
import os
import queue
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphdb.config.audit import Audit

__all__ = ["AuditFile"]

_WAITING_MAX = 20_000  # lines, about ten megabytes
_BATCH_MAX = 2_000
_GATHER_S = 0.05  # so long a line waits for others that go to the disk with it
_AGAIN_S = 1.0  # after the disk has taken nothing
_CLOSE_S = 5.0

log = logging.getLogger(__name__)


class AuditFile:
    """See `serve.access.access_backend.AuditLog`. For one thread that notes."""

    def __init__(self, path: Path, limits: Audit) -> None:
        """Nothing is opened, and no thread started, before the first line."""
        self._path, self._limits = path, limits
        self._waiting: queue.Queue[Mapping[str, Any] | None] = queue.Queue(_WAITING_MAX)
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._dropped = self._told = (
            0  # lines that there was no room for; those of them that the file tells of
        )
        self._file: int | None = None
        self._has_failed = False

    @property
    def dropped(self) -> int:
        """See `AuditLog.dropped`."""
        return self._dropped

    def note(self, line: Mapping[str, Any]) -> None:
        """Write a line, soon."""
        if self._thread is None:
            self._closing.clear()
            self._thread = threading.Thread(target=self._write, name="audit", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what waits, as far as the disk takes it."""
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._waiting.put(None, timeout=_CLOSE_S)
            self._closing.set()
            self._thread.join(_CLOSE_S)
            self._thread = None

    def _write(self) -> None:
        is_last = False
        while not is_last:
            batch = [self._waiting.get()]
            self._closing.wait(_GATHER_S)
            with contextlib.suppress(queue.Empty):
                while len(batch) < _BATCH_MAX:
                    batch.append(self._waiting.get_nowait())
            is_last = None in batch
            lines = [_line(one) for one in batch if one is not None]
            dropped = self._dropped
            if dropped > self._told:
                missing = {"time": _time_of(batch), "event": "dropped", "lines": dropped - self._told}
                lines.insert(0, _line(missing))
            if self._written(b"".join(lines)):
                self._told = dropped
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _written(self, data: bytes) -> bool:
        """Tried until the disk takes it: what comes meanwhile waits, as long as there is room."""
        while True:
            try:
                self._append(data)
            except OSError as error:
                if not self._has_failed:
                    log.error("the audit log %s cannot be written: %s", self._path, error)
                self._has_failed = True
                if self._closing.wait(_AGAIN_S):
                    return False
            else:
                if self._has_failed:
                    log.warning("the audit log %s is written again", self._path)
                self._has_failed = False
                return True

    def _append(self, data: bytes) -> None:
        """All of it or nothing. The lock is a file of its own, which no rotation moves."""
        directory = self._path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            file = self._opened()
            size = os.fstat(file).st_size
            if size and size + len(data) > self._limits.max_file_bytes:
                self._put_aside()
                file, size = self._opened(), 0
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(file, rest) :]
            except OSError:
                os.ftruncate(file, size)  # half a line would spoil the next one
                raise
        finally:
            os.close(lock)  # which unlocks

    def _opened(self) -> int:
        """The file that has the name now: another process may have put the last one aside."""
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._file), os.stat(self._path, follow_symlinks=False)):
                    return self._file
            os.close(self._file)
            self._file = None
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o600)
        os.fchmod(self._file, 0o600)  # one that was there may have been for others to read
        return self._file

    def _put_aside(self) -> None:
        """The oldest makes room."""
        for number in range(self._limits.files - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self._path}.{number}", f"{self._path}.{number + 1}")
        os.replace(self._path, f"{self._path}.1")


def _line(entry: Mapping[str, Any]) -> bytes:
    """ASCII alone: nothing that a terminal or a reader of lines takes for the end of one."""
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _time_of(batch: "list[Mapping[str, Any] | None]") -> Any:
    return next((one["time"] for one in batch if one is not None and "time" in one), None)
