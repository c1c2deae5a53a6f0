"""`SlowQueryLog`: a file with one line of JSON for each slow query."""

import contextlib
import logging
import queue
import sys
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import orjson

__all__ = ["SlowQueryLog"]

FILE_BYTES = 10_000_000
FILES = 3  # older ones, beside the one that is being written
WAITING_MAX = 10_000  # lines; what comes faster than the disk takes it is not noted
_CLOSE_S = 5.0

log = logging.getLogger(__name__)


class SlowQueryLog:
    """Lines go to a thread that writes them. No fault with the disk reaches whoever notes a query."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened, and no thread started, before the first line."""
        self._path = path
        self._waiting: queue.Queue[bytes | None] = queue.Queue(WAITING_MAX)
        self._thread: threading.Thread | None = None

    def note(self, entry: dict[str, Any]) -> None:
        """Write an entry, soon. From one thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="slow-query-log", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(orjson.dumps(entry))
        except queue.Full:
            log.warning("a slow query is not noted: %d others wait to be written", WAITING_MAX)

    def close(self) -> None:
        """Write what waits."""
        if self._thread is not None:
            with contextlib.suppress(queue.Full):  # of a disk that takes nothing
                self._waiting.put(None, timeout=_CLOSE_S)
            self._thread.join(_CLOSE_S)
            self._thread = None

    def _write(self) -> None:
        file = _File(self._path, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8", delay=True)
        while (line := self._waiting.get()) is not None:
            file.emit(logging.makeLogRecord({"msg": line.decode()}))
        with contextlib.suppress(OSError):
            file.close()


class _File(RotatingFileHandler):
    """Goes on where a line could not be written: the next may find room."""

    _has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Say so once, not for each line."""
        if not self._has_failed:
            self._has_failed = True
            log.warning("slow queries cannot be noted in %s: %s", self.baseFilename, sys.exc_info()[1])
