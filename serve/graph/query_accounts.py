"""`QueryAccounts`: what became of each query, for the metrics and the slow-query log."""

from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

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
from serve.graph.slow_query_log import SlowQueryLog

__all__ = ["Account", "QueryAccounts", "outcome_of"]

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
