"""`QueryAccounts`: the outcome of each query, for the metrics and for `SlowQueryLog`, a file of slow ones."""

import contextlib
import logging
import queue
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

from graphdb.errors import (
    EvaluationFailed,
    IndexNotReached,
    Overloaded,
    QueryCancelled,
    QueryMemoryExceeded,
    QueryTimeout,
    RequestError,
)
from serve.graph.metrics import Metrics, Outcome

__all__ = ["Account", "QueryAccounts", "SlowQueryLog", "outcome_of"]

TEXT_CHARACTERS = 2_000  # of a query, in the slow-query log
# A class that does not stand here has the outcome of its nearest ancestor that does.
_OUTCOMES: dict[type[BaseException], Outcome] = {
    BaseException: "failed",
    RequestError: "rejected",
    EvaluationFailed: "failed",
    Overloaded: "overloaded",
    IndexNotReached: "timeout",
    QueryTimeout: "timeout",
    QueryMemoryExceeded: "memory",
    QueryCancelled: "cancelled",
}

FILE_BYTES = 10_000_000
FILES = 3  # older ones, beside the one that is being written
WAITING_MAX = 10_000  # lines; what comes faster than the disk takes it is not noted
_CLOSE_S = 5.0
log = logging.getLogger(__name__)


def outcome_of(error: BaseException) -> Outcome:
    """What an error makes of the query that met it."""
    return next(_OUTCOMES[kind] for kind in type(error).__mro__ if kind in _OUTCOMES)


@dataclass(slots=True)
class Account:
    """One query, update or validation, from the arrival of its request on."""

    text: str
    form: str
    began: float  # of perf_counter()
    where: str = "port"  # which process evaluated it; "cache" where none did
    query_id: str | None = None  # None for what was never on the list of running queries
    snapshot_index: int | None = None
    size: int = 0  # of the answer, in bytes
    principal: str | None = None


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


class QueryAccounts:
    """Owned by the application, on the port's event loop."""

    def __init__(self, metrics: Metrics, slow_queries: SlowQueryLog, slow_s: float) -> None:
        """A query that takes slow_s seconds or longer is slow."""
        self._metrics, self._slow_queries, self._slow_s = metrics, slow_queries, slow_s

    def refuse(self) -> None:
        """A request whose query could not be understood."""
        self._metrics.count_outcome("rejected")

    def close(self, account: Account, outcome: Outcome) -> None:
        """A query that was understood is over."""
        seconds = perf_counter() - account.began
        self._metrics.count_query(seconds)
        self._metrics.count_outcome(outcome)
        if seconds >= self._slow_s:
            self._note(account, outcome, seconds)

    def refuse_validation(self) -> None:
        """A request for a validation that could not be understood."""
        self._metrics.count_validation("rejected")

    def close_validation(self, account: Account, outcome: Outcome) -> None:
        """A validation is over."""
        seconds = perf_counter() - account.began
        self._metrics.count_validation(outcome, seconds)
        if seconds >= self._slow_s:
            self._note(account, outcome, seconds)

    def close_update(self, account: Account, outcome: Outcome) -> None:
        """An update is over."""
        seconds = perf_counter() - account.began
        if seconds >= self._slow_s:
            self._note(account, outcome, seconds)

    def count_kill(self, reason: Outcome) -> None:
        """A query was ended, if this is a reason to, while a reader was at it."""
        self._metrics.count_kill(reason)

    def _note(self, account: Account, outcome: Outcome, seconds: float) -> None:
        self._slow_queries.note(
            {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "id": account.query_id,
                "seconds": round(seconds, 6),
                "outcome": outcome,
                "form": account.form,
                "where": account.where,
                "snapshot_index": account.snapshot_index,
                "bytes": account.size,
                "principal": account.principal,
                "text": account.text[:TEXT_CHARACTERS],
            }
        )
