"""`/graphql`: one operation a request, by GraphQL over HTTP; and the playground for browsers."""

import asyncio

from graphql import OperationType
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.permissions import Permission
from graphdb.config.service import GraphQL
from graphdb.errors import Forbidden, GraphDBError, InvalidParameter, TextTooLarge
from graphdb.graphql.failures import FORBIDDEN, VALIDATION_FAILED, Limits, Refused, failure
from graphdb.graphql.planning import Operation, Plan, plan, read_operation
from graphdb.graphql.schema import Schema
from serve.access.admitted import principal_of, visibility_of
from serve.access.audit import note_of
from serve.backend import Progress
from serve.errors import error_response
from serve.graph.graphql.asked_operation import AskedOperation, MalformedOperation, read_get, read_post
from serve.graph.graphql.mutator import Mutator
from serve.graph.graphql.result_answers import ResultMedia, choose_media, failed, malformed, refused, result
from serve.graph.graphql.rows import RowReader, read_bounds
from serve.graph.graphql.schema_keeper import SchemaKeepers
from serve.graph.query_accounts import QueryAccounts
from serve.graph.query_parameters import QueryParameters
from serve.graph.stored_page import StoredPage
from serve.parameters import Parameters

__all__ = ["GraphQLEndpoint", "limits_of"]

_ELSEWHERE = "Subscriptions are asked over a WebSocket: /graphql/ws."
_SHORT_CHARACTERS = 1_000  # of a document that is read on the event loop
_SHORT_ROWS_BYTES = 20_000  # of an answer that is shaped there


def limits_of(settings: GraphQL) -> Limits:
    """The limits of `[graphql]`."""
    return Limits(
        settings.max_depth,
        settings.max_complexity,
        settings.default_page_size,
        settings.max_page_size,
        introspection=settings.introspection,
    )


class GraphQLEndpoint:
    """GET, HEAD and POST of /graphql."""

    def __init__(
        self,
        progress: Progress,
        keepers: SchemaKeepers,
        rows: RowReader,
        mutator: Mutator,
        accounts: QueryAccounts,
        limits: Limits,
        playground: StoredPage | None,
        body_bytes_max: int,
        text_bytes_max: int,
    ) -> None:
        """body_bytes_max holds for any body, text_bytes_max for the document in it."""
        self._progress, self._keepers, self._rows, self._accounts = progress, keepers, rows, accounts
        self._mutator = mutator
        self._limits, self._playground = limits, playground
        self._body_bytes_max, self._text_bytes_max = body_bytes_max, text_bytes_max

    async def get(self, request: Request) -> Response:
        """A query in the query string, or the playground."""
        parameters = Parameters(request.scope["query_string"])
        media = choose_media(request, playground=self._playground is not None)
        if media is ResultMedia.HTML or "query" not in parameters:
            return self._without_query(request)
        try:
            bounds, asked = read_bounds(parameters), read_get(parameters, self._text_bytes_max)
        except (MalformedOperation, TextTooLarge) as error:
            self._accounts.refuse()
            return malformed(media, error)
        return await self._answer(request, media, bounds, asked)

    async def post(self, request: Request) -> Response:
        """An operation as JSON."""
        media = choose_media(request)
        bounds = read_bounds(Parameters(request.scope["query_string"]))
        try:
            asked = await read_post(request, self._body_bytes_max, self._text_bytes_max)
        except (MalformedOperation, TextTooLarge) as error:
            self._accounts.refuse()
            return malformed(media, error)
        return await self._answer(request, media, bounds, asked)

    async def answer(self, request: Request, bounds: QueryParameters, asked: AskedOperation) -> Response:
        """Of an operation that came over a WebSocket: 200 where it was carried out.

        Raises InvalidParameter.
        """
        return await self._answer(request, ResultMedia.GRAPHQL, bounds, asked)

    def _without_query(self, request: Request) -> Response:
        accept = ", ".join(request.headers.getlist("accept"))
        if self._playground is None:
            return error_response(404, "the playground is switched off (graphql.playground)")
        if not accept or any(one in accept for one in ("text/html", "text/*", "*/*")):
            return self._playground.page()
        return malformed(choose_media(request), MalformedOperation("query", "is missing"))

    async def _answer(
        self, request: Request, media: ResultMedia, bounds: QueryParameters, asked: AskedOperation
    ) -> Response:
        try:
            schema = await self._keepers.current(visibility_of(request.scope))
            operation = await self.read(schema, asked)
            if operation.type is not OperationType.QUERY and request.method != "POST":
                return _only_posted(media)
            if operation.type is OperationType.SUBSCRIPTION:
                raise Refused([failure(VALIDATION_FAILED, _ELSEWHERE)])
            if operation.type is OperationType.MUTATION:
                note_of(request.scope).permission = Permission.WRITE
                principal_of(request.scope).require(Permission.WRITE)
                return await self._mutator.carry_out(request, media, bounds, asked, operation)
            made = await self._plan(operation, asked)
        except Forbidden as error:
            note_of(request.scope).refused(error)
            return refused(media, [failure(FORBIDDEN, str(error))], 403)
        except Refused as refusal:
            self._accounts.refuse()
            return refused(media, refusal.errors)
        return await self._carried_out(request, media, bounds, made)

    async def _carried_out(
        self, request: Request, media: ResultMedia, bounds: QueryParameters, made: Plan
    ) -> Response:
        try:
            if made.query is None:  # nothing of the graph is asked for
                rows, index = b"", self._progress.snapshot_index()
            else:
                rows, index = await self._rows.rows(request, bounds, made.query)
        except InvalidParameter:  # of the request, and not of its operation
            raise
        except GraphDBError as error:
            return failed(media, error)
        if len(rows) <= _SHORT_ROWS_BYTES and not made.introspects:
            return result(media, made.answer(rows), index)
        return await asyncio.to_thread(lambda: result(media, made.answer(rows), index))

    async def read(self, schema: Schema, asked: AskedOperation) -> Operation:
        """The operation, valid and within the limits. Raises Refused."""
        arguments = (schema, asked.text, asked.variables, asked.operation_name, self._limits)
        if len(asked.text) <= _SHORT_CHARACTERS and not asked.variables:
            return read_operation(*arguments)
        return await asyncio.to_thread(read_operation, *arguments)

    async def _plan(self, operation: Operation, asked: AskedOperation) -> Plan:
        if len(asked.text) <= _SHORT_CHARACTERS and not asked.variables:
            return plan(operation)
        return await asyncio.to_thread(plan, operation)


def _only_posted(media: ResultMedia) -> Response:
    message = "By GET only queries are answered: POST this operation."
    return refused(media, [failure(VALIDATION_FAILED, message)], 405, {"Allow": "POST, OPTIONS"})
