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
    QueryTooLong,
    RequestError,
)
from serve.graph.metrics import Metrics, Outcome

__all__ = ["Account", "QueryAccounts", "SlowQueryLog", "outcome_of"]

TEXT_CHARACTERS = 2_000  # of a query, in the slow-query log
# A class that is not listed has the outcome of its nearest listed ancestor.
_OUTCOMES: dict[type[BaseException], Outcome] = {
    BaseException: "failed",
    RequestError: "rejected",
    EvaluationFailed: "failed",
    Overloaded: "overloaded",
    IndexNotReached: "timeout",
    QueryTimeout: "timeout",
    QueryTooLong: "rejected",
    QueryMemoryExceeded: "memory",
    QueryCancelled: "cancelled",
}

PORT = "port"
_WEIGHT = 0.05  # of the last answer in the mean
FILE_BYTES = 10_000_000
FILES = 3  # older ones, beside the one that is being written
WAITING_MAX = 10_000  # lines; further ones are dropped
_CLOSE_S = 5.0
log = logging.getLogger(__name__)


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of a query that raised this error."""
    return next(_OUTCOMES[kind] for kind in type(error).__mro__ if kind in _OUTCOMES)


@dataclass(slots=True)
class Account:
    """One query, update or validation, from the arrival of its request."""

    text: str
    form: str
    began: float  # of perf_counter()
    where: str = PORT  # the process that evaluated it; "cache" if none did
    query_id: str | None = None  # None if it was never on the list of running queries
    snapshot_index: int | None = None
    size: int = 0  # of the answer, in bytes
    principal: str | None = None


class SlowQueryLog:
    """A thread writes the lines. Errors of the disk do not affect queries."""

    def __init__(self, path: Path) -> None:
        """The file is opened, and the thread started, with the first line."""
        self._path = path
        self._waiting: queue.Queue[bytes | None] = queue.Queue(WAITING_MAX)
        self._thread: threading.Thread | None = None

    def note(self, entry: dict[str, Any]) -> None:
        """Queue an entry to be written. Called on one thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="slow-query-log", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(orjson.dumps(entry))
        except queue.Full:
            log.warning("a slow query is not noted: %d others wait to be written", WAITING_MAX)

    def close(self) -> None:
        """Write the queued entries, and stop the thread."""
        if self._thread is not None:
            with contextlib.suppress(queue.Full):  # the disk accepts nothing
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
    """Continues after a line that could not be written: there may be room for the next."""

    _has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Log the first failure only."""
        if not self._has_failed:
            self._has_failed = True
            log.warning("slow queries cannot be noted in %s: %s", self.baseFilename, sys.exc_info()[1])


class QueryAccounts:
    """Owned by the application, on the port's event loop."""

    def __init__(self, metrics: Metrics, slow_queries: SlowQueryLog, slow_s: float) -> None:
        """A query that takes slow_s seconds or longer is slow."""
        self._metrics, self._slow_queries, self._slow_s = metrics, slow_queries, slow_s
        self.at_once_ms: float | None = None  # the mean of what is answered on the event loop

    def refuse(self) -> None:
        """Count a request whose query is invalid."""
        self._metrics.count_outcome("rejected")

    def close(self, account: Account, outcome: Outcome) -> None:
        """Record the outcome of a query."""
        seconds = perf_counter() - account.began
        self._metrics.count_query(seconds)
        self._metrics.count_outcome(outcome)
        if account.where == PORT and outcome == "ok":
            mean = self.at_once_ms or seconds * 1000
            self.at_once_ms = mean + (seconds * 1000 - mean) * _WEIGHT
        if seconds >= self._slow_s:
            self._note(account, outcome, seconds)

    def refuse_validation(self) -> None:
        """Count an invalid request for a validation."""
        self._metrics.count_validation("rejected")

    def close_validation(self, account: Account, outcome: Outcome) -> None:
        """Record the outcome of a validation."""
        seconds = perf_counter() - account.began
        self._metrics.count_validation(outcome, seconds)
        if seconds >= self._slow_s:
            self._note(account, outcome, seconds)

    def is_slow(self, began: float) -> bool:
        """Whether an update that began then is one for `close_update`, which notes slow ones only."""
        return perf_counter() - began >= self._slow_s

    def close_update(self, account: Account, outcome: Outcome) -> None:
        """Record the outcome of an update."""
        seconds = perf_counter() - account.began
        if seconds >= self._slow_s:
            self._note(account, outcome, seconds)

    def count_kill(self, reason: Outcome) -> None:
        """Count a query that was killed while a reader evaluated it; ignores other outcomes."""
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
