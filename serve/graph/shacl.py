"""`/shacl/validate`: a graph of the store against SHACL shapes, reported as JSON or as RDF."""

import asyncio
from collections.abc import Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from graphdb.errors import RequestError
from graphdb.node import Consistency
from graphdb.rdf.formats import RdfSyntax
from serve.backend import AnswerStream, Progress, Queries
from serve.graph.metrics import Outcome
from serve.graph.query_accounts import QueryAccounts, outcome_of
from serve.graph.streamed_answer import Delivery, Limits, StreamedAnswer
from serve.graph.validation_request import AskedValidation, ValidationReader
from serve.graph.whole_answer import Head

__all__ = ["ShaclEndpoint"]


class ShaclEndpoint:
    """POST of /shacl/validate."""

    def __init__(
        self, queries: Queries, progress: Progress, reader: ValidationReader, accounts: QueryAccounts
    ) -> None:
        self._queries, self._progress, self._reader, self._accounts = queries, progress, reader, accounts

    async def post(self, request: Request) -> Response:
        """The report; a reader makes it while it is sent."""
        try:
            asked = await self._reader.ask(request)
        except RequestError:
            self._accounts.refuse_validation()
            raise
        return await self.answer(asked)

    async def answer(
        self, asked: AskedValidation, wrap: Callable[[AnswerStream], AnswerStream] = lambda stream: stream
    ) -> Response:
        """The report of a validation; wrap makes of the reader's answer what is sent."""
        try:
            if asked.consistency is not Consistency.LOCAL:
                await self._progress.reach(asked.consistency, asked.left_s)
            if asked.min_index:
                await self._progress.wait_for_index(asked.min_index, asked.left_s)
        except Exception as error:
            self._accounts.close_validation(asked.account, outcome_of(error))
            raise
        return self._streamed(asked, wrap)

    def _streamed(self, asked: AskedValidation, wrap: Callable[[AnswerStream], AnswerStream]) -> Response:
        async def start() -> AnswerStream:
            reads = await self._queries.reads(asked.visibility)
            return wrap(await reads.start_validation(asked.for_reader()))

        def head(stream: AnswerStream) -> Head:
            return _head(asked.report_syntax, stream.snapshot_index)

        def ended(delivery: Delivery, failure: BaseException | None) -> None:
            self._close(asked, delivery, failure)

        deadline = asyncio.get_running_loop().time() + asked.left_s
        limits = Limits(asked.timeout_s, deadline, keep_bytes_max=0, work="validation")
        return StreamedAnswer(start, head, limits, ended)

    def _close(self, asked: AskedValidation, delivery: Delivery, failure: BaseException | None) -> None:
        account, stream = asked.account, delivery.stream
        account.size = delivery.size
        outcome = _outcome(delivery, failure)
        if stream is not None:
            account.where, account.query_id = stream.where, stream.query_id
            account.snapshot_index = stream.snapshot_index
            self._accounts.count_kill(outcome)
        self._accounts.close_validation(account, outcome)


def _head(syntax: RdfSyntax | None, snapshot_index: int) -> Head:
    media_type = syntax.media_type if syntax is not None else "application/json"
    return [
        (b"content-type", media_type.encode()),
        (b"vary", b"Accept"),
        (b"cache-control", b"no-store"),
        (b"x-snapshot-index", b"%d" % snapshot_index),
    ]


def _outcome(delivery: Delivery, failure: BaseException | None) -> Outcome:
    if failure is None:
        return "ok"
    if isinstance(failure, ClientDisconnect):
        return "disconnected"
    outcome = outcome_of(failure)
    return "broken" if outcome == "failed" and delivery.head_sent else outcome
