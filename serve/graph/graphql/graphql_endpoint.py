"""`/graphql`: one operation in each request, by GraphQL over HTTP; and the playground for browsers.

Queries become one SPARQL query (`RowReader`); mutations are stored as one write, then read (`Mutator`).
"""

import asyncio
import os
from dataclasses import replace
from time import perf_counter

import orjson
from graphql import ExecutionResult, OperationType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from graphdb.access.permissions import Permission
from graphdb.config.limits import GateLimits
from graphdb.config.service import GraphQL
from graphdb.errors import (
    EditRefused,
    Forbidden,
    GraphDBError,
    InvalidParameter,
    KeyReused,
    LimitExceeded,
    ShapesViolated,
    TextTooLarge,
)
from graphdb.geo.entailment import Entailment
from graphdb.graphql.failures import FORBIDDEN, VALIDATION_FAILED, Limits, Refused, failure, too_large
from graphdb.graphql.mutations import Mutation, read_mutation
from graphdb.graphql.planning import Operation, Plan, plan, read_operation
from graphdb.graphql.schema import Schema
from graphdb.history.moments import Moment, read_moment
from graphdb.model import Confirmation, Interface
from graphdb.planning.gate import check, read_query
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from serve.access.audit import note_of
from serve.access.request_scope import principal_of, visibility_of
from serve.answers import AnswerBroken
from serve.backend import AnswerStream, Progress, Writing
from serve.errors import error_response
from serve.graph.asked_query import QueryReader
from serve.graph.browser_pages import StoredPage
from serve.graph.graphql.http_messages import (
    AskedOperation,
    MalformedOperation,
    ResultMedia,
    choose_media,
    failed,
    malformed,
    not_shown,
    not_stored,
    read_get,
    read_post,
    refused,
    result,
)
from serve.graph.graphql.schema_keeper import SchemaKeepers
from serve.graph.query_accounts import Account, QueryAccounts, outcome_of
from serve.graph.query_answers import QueryAnswers
from serve.graph.query_parameters import (
    QueryParameters,
    read_as_of,
    read_consistency,
    read_min_index,
    read_timeout,
)
from serve.graph.writes import read_request_id, writes_of
from serve.parameters import Parameters

__all__ = ["GraphQLEndpoint", "Mutator", "RowReader", "limits_of", "read_bounds", "read_whole"]

ANSWER_BYTES_MAX = 64 << 20
_PASSED_ON = frozenset({b"cache-control", b"pragma", b"x-consistency", b"host"})

_NO_PAST = "Only queries are asked of the past (as_of)."
_ELSEWHERE = "Subscriptions are asked over a WebSocket: /graphql/ws."
_SHORT_CHARACTERS = 1_000  # of a document that is read on the event loop
_SHORT_ROWS_BYTES = 20_000  # of an answer that is shaped there


def read_bounds(parameters: Parameters) -> QueryParameters:
    """The consistency, the log index and the time limit of a request. Raises InvalidParameter."""
    return QueryParameters(
        query=None,
        dataset=Dataset(),
        formats=(ResultFormat.TSV.value,),
        timeout_s=read_timeout(parameters),
        min_index=read_min_index(parameters),
        consistency=read_consistency(parameters),
        explain=False,
        entailment=Entailment.GEOSPARQL,
        as_of=read_as_of(parameters),
    )


class RowReader:
    """Owned by the application."""

    def __init__(self, reader: QueryReader, answers: QueryAnswers) -> None:
        self._reader, self._answers = reader, answers

    async def rows(self, request: Request, bounds: QueryParameters, query: str) -> tuple[bytes, int]:
        """The answer as tab-separated values, and the log index of its state.

        Raises what a query may raise, ClientDisconnect among it.
        """
        headers = [pair for pair in request.scope["headers"] if pair[0] in _PASSED_ON]
        # A POST, because the answer is not a resource that a client could have cached.
        scope = {**request.scope, "method": "POST", "headers": headers}
        asked = await self._reader.ask(Request(scope, request.receive), bounds, query)
        whole = _Whole()
        response: Response = await self._answers.answer(asked)
        try:
            await response(scope, request.receive, whole.send)
        except AnswerBroken as broken:
            if isinstance(broken.__cause__, GraphDBError):
                raise broken.__cause__ from None
            raise
        return b"".join(whole.pieces), whole.snapshot_index


async def read_whole(stream: AnswerStream) -> bytes:
    """The whole answer of a reader, which is closed. Raises LimitExceeded, and as `AnswerStream.read`."""
    whole = _Whole()
    try:
        while (piece := await stream.read()) is not None:
            whole.add(piece)
    finally:
        stream.close()
    return b"".join(whole.pieces)


class _Whole:
    """Collects the pieces of an answer."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.snapshot_index = 0
        self._size = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.snapshot_index = int(dict(message["headers"])[b"x-snapshot-index"])
            return
        self.add(message.get("body", b""))

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > ANSWER_BYTES_MAX:
            raise LimitExceeded("bytes of the graph that the answer takes", self._size, ANSWER_BYTES_MAX)
        self.pieces.append(piece)


class Mutator:
    """Owned by the application."""

    def __init__(
        self,
        progress: Progress,
        writing: Writing,
        rows: RowReader,
        accounts: QueryAccounts,
        settings: GraphQL,
        limits: GateLimits,
    ) -> None:
        """limits: those of the SPARQL queries of selections."""
        self._progress, self._writing, self._rows, self._accounts = progress, writing, rows, accounts
        self._base_iri, self._limits = settings.base_iri, limits
        self._by_shapes = settings.schema_source in ("shacl", "combined")

    async def carry_out(
        self,
        request: Request,
        media: ResultMedia,
        bounds: QueryParameters,
        asked: AskedOperation,
        operation: Operation,
    ) -> Response:
        """Store all edits or none, then read the selection from the state after them.

        Raises Refused if nothing was attempted; InvalidParameter and KeyReused for the `Idempotency-Key`;
        Forbidden by the visibility of the principal.
        """
        distinguished_by = (asked.text, orjson.dumps(asked.variables).decode(), asked.operation_name or "")
        request_id = read_request_id(request, distinguished_by)
        mutation = await asyncio.to_thread(self._read, operation, request_id or os.urandom(16))
        try:
            confirmation = await self._store(mutation, asked, request_id, request)
        except EditRefused as error:
            return not_stored(media, mutation.errors(error))
        except ShapesViolated as error:
            return not_stored(media, [failure(VALIDATION_FAILED, str(error))])
        except (InvalidParameter, KeyReused, Forbidden):
            raise
        except GraphDBError as error:
            return failed(media, error)
        return await self._answer(request, media, bounds, mutation, confirmation)

    def _read(self, operation: Operation, seed: bytes) -> Mutation:
        """Raises Refused, also if the selection could not be read after the write."""
        mutation = read_mutation(operation, self._base_iri, seed, by_shapes=self._by_shapes)
        try:
            for query in mutation.queries:
                check(read_query(query, None, self._limits), self._limits)
        except LimitExceeded as error:
            raise Refused([too_large(error)]) from None
        return mutation

    async def _store(
        self, mutation: Mutation, asked: AskedOperation, request_id: bytes | None, request: Request
    ) -> Confirmation:
        if not mutation.edits.edits:
            return Confirmation(self._progress.snapshot_index(), 0)
        account = Account(asked.text, "MUTATION", perf_counter())
        try:
            writes = writes_of(self._writing, request, Interface.GRAPHQL)
            confirmation = await writes.edit(mutation.edits, request_id)
        except GraphDBError as error:
            self._accounts.close_update(account, outcome_of(error))
            raise
        account.snapshot_index = confirmation.snapshot_index
        self._accounts.close_update(account, "ok")
        return confirmation

    async def _answer(
        self,
        request: Request,
        media: ResultMedia,
        bounds: QueryParameters,
        mutation: Mutation,
        confirmation: Confirmation,
    ) -> Response:
        index = confirmation.snapshot_index
        told = {"snapshot_index": index, "affected_triples": confirmation.affected_triples}
        after_write = replace(bounds, min_index=max(bounds.min_index, index))
        answers: list[bytes] = []
        try:
            for query in mutation.queries:
                rows, index = await self._rows.rows(request, after_write, query)
                answers.append(rows)
        except GraphDBError as error:
            return not_shown(media, error, ExecutionResult(extensions=told), confirmation.snapshot_index)
        made = await asyncio.to_thread(mutation.answer, answers)
        made.extensions = told
        return result(media, made, index)


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
        keepers: SchemaKeepers,
        rows: RowReader,
        mutator: Mutator,
        accounts: QueryAccounts,
        limits: Limits,
        playground: StoredPage | None,
        body_bytes_max: int,
        text_bytes_max: int,
        timeout_s: float,
    ) -> None:
        """body_bytes_max: of any body. text_bytes_max: of the document in it. timeout_s: that a state of the
        past is waited for, unless the client sets a time limit.
        """
        self._timeout_s = timeout_s
        self._keepers, self._rows, self._accounts = keepers, rows, accounts
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
        """The response to an operation over a WebSocket; 200 if it was executed.

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
            bounds, timeout_s = _with_moment(bounds, asked), bounds.timeout_s or self._timeout_s
            visibility = visibility_of(request.scope)
            schema, index = await self._keepers.current_at(visibility, bounds.as_of, timeout_s)
            if bounds.as_of is not None:  # a time may be that of another state when it is asked for again
                bounds = replace(bounds, as_of=Moment(str(index), index))
            operation = await self.read(schema, asked)
            if operation.type is not OperationType.QUERY and request.method != "POST":
                return _only_posted(media)
            if operation.type is not OperationType.QUERY and bounds.as_of is not None:
                raise Refused([failure(VALIDATION_FAILED, _NO_PAST)])
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
        return await self._carried_out(request, media, bounds, made, index)

    async def _carried_out(
        self, request: Request, media: ResultMedia, bounds: QueryParameters, made: Plan, schema_index: int
    ) -> Response:
        try:
            if made.query is None:  # the operation does not read the graph
                rows, index = b"", schema_index
            else:
                rows, index = await self._rows.rows(request, bounds, made.query)
        except InvalidParameter:  # an error of the request, not of its operation
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


def _with_moment(bounds: QueryParameters, asked: AskedOperation) -> QueryParameters:
    """With the state that the operation asks for itself. Raises InvalidParameter."""
    member = asked.as_of
    if member is None:
        return bounds
    if isinstance(member, bool) or not isinstance(member, str | int):
        raise InvalidParameter("extensions.as_of", "is neither a log index nor a time")
    moment = read_moment(str(member))
    if bounds.as_of is not None and bounds.as_of != moment:
        raise InvalidParameter("as_of", f"is {bounds.as_of}, and {moment} in the operation's extensions")
    return replace(bounds, as_of=moment)


def _only_posted(media: ResultMedia) -> Response:
    message = "By GET only queries are answered: POST this operation."
    return refused(media, [failure(VALIDATION_FAILED, message)], 405, {"Allow": "POST, OPTIONS"})
