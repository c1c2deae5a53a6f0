"""`AlertQueries`: what alerts ask, on the way that all queries take: the gate, a reader, the time limit. The
protocols say what alerts need of their node.
"""

import asyncio
from typing import Protocol

import orjson

from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Command
from graphdb.alerts.definition import Definition
from graphdb.alerts.evaluation import Evaluation, RowReader
from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter, LimitExceeded, QuerySyntaxError, QueryTimeout
from graphdb.model import Confirmation
from graphdb.node import Consistency, QueryRequest
from graphdb.planning.gate import check_present, read_query, read_update
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.syntax import Query

__all__ = ["AlertLog", "AlertProgress", "AlertQueries", "AlertReads", "AnswerStream", "NodeQueries"]


class AnswerStream(Protocol):
    """An answer of a reader, as it is made; see `serve.backend.AnswerStream`."""

    @property
    def snapshot_index(self) -> int: ...
    async def read(self) -> bytes | None: ...
    def close(self) -> None: ...


class AlertReads(Protocol):
    """The graph as somebody sees it; see `serve.backend.GraphReads`."""

    async def start_query(self, request: QueryRequest) -> AnswerStream: ...


class NodeQueries(Protocol):
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


_BACKSTOP_S = 0.5  # past the time limit, when the reader should have ended the query
_FORMATS = {"SELECT": ResultFormat.NDJSON, "ASK": ResultFormat.JSON}


class AlertQueries:
    """For any number of alerts at a time, on one event loop."""

    def __init__(self, node: NodeQueries, limits: GateLimits, timeout_s: float) -> None:
        self._node, self._limits, self._timeout_s = node, limits, timeout_s

    async def check(self, text: str) -> None:
        """Raises QuerySyntaxError, LimitExceeded, HostNotAllowed; InvalidParameter where it is neither SELECT
        nor ASK.
        """
        query = await asyncio.to_thread(self._read, text)
        check_present(query)
        self._node.check_query(query)

    def _read(self, text: str) -> Query:
        try:
            query = read_query(text, None, self._limits)
        except QuerySyntaxError:
            if self._is_update(text):
                raise InvalidParameter(
                    "query", "this is an update; an alert asks with SELECT or ASK"
                ) from None
            raise
        if query.form not in _FORMATS:
            raise InvalidParameter("query", f"this is {query.form}; an alert asks with SELECT or ASK")
        return query

    def _is_update(self, text: str) -> bool:
        try:
            return bool(read_update(text, None, self._limits).operations)
        except (QuerySyntaxError, LimitExceeded):
            return False

    async def evaluate(self, definition: Definition) -> Evaluation:
        """What the query answers now. Raises what queries raise: RequestError, UnavailableError."""
        query = await asyncio.to_thread(self._read, definition.query)
        request = QueryRequest(
            query,
            Dataset(),
            _FORMATS[query.form],
            self._timeout_s,
            principal=f"alert {definition.name}",
        )
        try:
            async with asyncio.timeout(self._timeout_s + _BACKSTOP_S):
                reads = await self._node.reads(_visibility_of(definition))
                stream = await reads.start_query(request)
                try:
                    return await (_read_rows if query.form == "SELECT" else _read_boolean)(stream)
                finally:
                    stream.close()
        except TimeoutError:
            raise QueryTimeout(f"the query took longer than {self._timeout_s:g} s") from None


def _visibility_of(definition: Definition) -> Visibility:
    return FULL_VISIBILITY if definition.sight is None else Visibility.from_json(definition.sight)


async def _read_rows(stream: AnswerStream) -> Evaluation:
    rows = RowReader()
    while (piece := await stream.read()) is not None:
        rows.feed(piece)
    return rows.close(stream.snapshot_index)


async def _read_boolean(stream: AnswerStream) -> Evaluation:
    pieces = []
    while (piece := await stream.read()) is not None:
        pieces.append(piece)
    return Evaluation(int(orjson.loads(b"".join(pieces))["boolean"]), (), stream.snapshot_index)
