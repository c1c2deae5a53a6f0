"""What alerts need of the node that they are evaluated on."""

from typing import Protocol

from graphdb.access.visibility import Visibility
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Command
from graphdb.model import Confirmation
from graphdb.node import Consistency, QueryRequest
from graphdb.sparql.syntax import Query

__all__ = ["AlertAsking", "AlertLog", "AlertProgress", "AlertReads", "AnswerStream"]


class AnswerStream(Protocol):
    """An answer of a reader, as it is made; see `serve.backend.AnswerStream`."""

    snapshot_index: int

    async def read(self) -> bytes | None: ...
    def close(self) -> None: ...


class AlertReads(Protocol):
    """The graph as somebody sees it; see `serve.backend.GraphReads`."""

    async def start_query(self, request: QueryRequest) -> AnswerStream: ...


class AlertAsking(Protocol):
    """The queries of a node; see `serve.backend.Queries`."""

    def check_query(self, query: Query) -> None: ...
    async def reads(self, visibility: Visibility) -> AlertReads: ...


class AlertProgress(Protocol):
    """See `serve.backend.Progress`."""

    async def reach(self, consistency: Consistency, timeout_s: float) -> None: ...


class AlertLog(Protocol):
    """The alerts, as the log has them."""

    def leads(self) -> bool:
        """Whether it is this node, as far as it knows, that evaluates alerts now."""

    def alert_book(self) -> AlertBook:
        """The alerts as far as this node has followed the log. Raises LogUnavailable."""

    async def change_alerts(self, command: Command, request_id: bytes | None = None) -> Confirmation:
        """Have a command logged by the node that leads, and applied here, if that does not take long.

        Raises NotFound, AlreadyExists, LimitExceeded where it does not fit, KeyReused, UnavailableError.
        """
