"""`/graphql/ws`: operations over a WebSocket, any number on each, by graphql-transport-ws.

`SubscriptionsEndpoint` does the handshake, `SocketContext` is what all connections share, and
`OperationSocket` is one connection with its operations.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson
from graphql import GraphQLError, OperationType
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from graphdb.access.credentials import MEMBER_NAMES
from graphdb.config import Settings
from graphdb.errors import ChangesForgotten, GraphDBError, LimitExceeded, RequestError, UnavailableError
from graphdb.graphql.failures import (
    COMPLEXITY_EXCEEDED,
    SPARQL_ERROR,
    VALIDATION_FAILED,
    Limits,
    Refused,
    failure,
)
from graphdb.graphql.planning import Operation, read_operation
from graphdb.graphql.schema import Schema
from graphdb.graphql.subscriptions import ChangedQuery, read_subscription
from graphdb.live.notifications import Notification
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS
from graphdb.public_text import public_text
from serve.access.audit import note_of
from serve.access.middleware import SocketSession, session_of
from serve.access.request_scope import PRINCIPAL, refused_origin
from serve.backend import Changes, Progress
from serve.errors import error_response
from serve.graph.graphql.graphql_endpoint import GraphQLEndpoint, read_bounds
from serve.graph.graphql.http_messages import AskedOperation, MalformedOperation, read_members
from serve.graph.graphql.schema_keeper import SchemaKeepers
from serve.graph.graphql.transport_messages import (
    PROTOCOL,
    ClientMessage,
    Close,
    SocketClosed,
    error_message,
    head_of,
    read_message,
)
from serve.graph.live_outbox import LiveOutbox, SocketCounts, converse
from serve.graph.live_socket import code_of, read_index, read_since
from serve.graph.query_parameters import QueryParameters, refuse_as_of
from serve.parameters import Parameters
from serve.routing import refuse_websocket

__all__ = ["SocketContext", "SubscriptionsEndpoint"]

_NO_PAST = "the past (as_of) is asked by GET and POST of /graphql"
logger = logging.getLogger(__name__)
_INITIALISATION_S = 10.0
_PING_S = 25.0
_AT_ONCE_MAX = 64  # operations of one socket that are being started or answered


class SocketContext:
    """Owned by the application, on the port's event loop."""

    def __init__(
        self,
        changes: Changes,
        progress: Progress,
        keepers: SchemaKeepers,
        operations: GraphQLEndpoint,
        limits: Limits,
        settings: Settings,
        text_bytes_max: int,
        sockets: SocketCounts,
    ) -> None:
        self.changes, self.progress, self.keepers = changes, progress, keepers
        self.operations, self.settings = operations, settings
        self.text_bytes_max, self.sockets = text_bytes_max, sockets
        self._kept: set[asyncio.Task[Any]] = set()
        self._limits = limits
        self._read_short = lru_cache(maxsize=256)(self._read)

    async def read(self, schema: Schema, asked: AskedOperation) -> ChangedQuery:
        """The query of a valid subscription. Raises Refused."""
        try:
            variables = orjson.dumps(asked.variables or {}).decode()
        except orjson.JSONEncodeError:
            raise Refused([failure(COMPLEXITY_EXCEEDED, "The variables are nested too deeply.")]) from None
        arguments = (schema, asked.text, asked.operation_name, variables)
        is_short = len(asked.text) + len(variables) <= SHORT_TEXT_CHARACTERS
        return await asyncio.to_thread(self._read_short if is_short else self._read, *arguments)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Let a task finish, even after its connection has ended."""
        self._kept.add(task)
        task.add_done_callback(self._drop)

    def _drop(self, task: asyncio.Task[Any]) -> None:
        self._kept.discard(task)
        if not task.cancelled():
            task.exception()  # it has been reported, or the client has gone

    def _read(self, schema: Schema, text: str, name: str | None, variables: str) -> ChangedQuery:
        operation = read_operation(schema, text, orjson.loads(variables), name, self._limits)
        return read_subscription(operation, text, name, self.settings.security)


class _Running:
    """An operation with its id. After its end no message of it is sent."""

    def __init__(self, operation_id: str, outbox: LiveOutbox) -> None:
        self.id, self.outbox = operation_id, outbox
        self.ended = False
        self.task: asyncio.Task[None] | None = None  # that parses and answers it
        self.subscription: str | None = None  # once it is open
        self._next = head_of(operation_id, "next") + b","

    def tell(self, rest: bytes) -> None:
        """Send a result; rest: the member `payload` and the end of the message."""
        if not self.ended:
            self.outbox.put(self._next + rest)

    def end(self, last: bytes) -> None:
        """Send its last message."""
        if not self.ended:
            self.ended = True
            self.outbox.put(last)


class OperationSocket:
    """One connection. Operations start in the order of their arrival; answers may be in another order."""

    def __init__(
        self,
        context: SocketContext,
        scope: Scope,
        bounds: QueryParameters,
        since: int | None,
        refusal: str | None,
        session: SocketSession,
    ) -> None:
        """bounds: of queries. refusal: the reason to close the connection at its initialisation, or None."""
        self._context, self._scope, self._bounds = context, scope, bounds
        self._since, self._refusal, self._session = since, refusal, session
        self._changes, self._progress, self._settings = context.changes, context.progress, context.settings
        self._outbox = LiveOutbox(self._settings.live.max_queue_bytes)
        self._running: dict[str, _Running] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._initialised = asyncio.Event()
        self._room = asyncio.Semaphore(_AT_ONCE_MAX)

    async def run(self, receive: Receive, send: Send) -> None:
        """Until either side closes."""
        try:
            parts = (self._receive(receive), self._expect(), self._hold_session(), self._ping())
            await converse(self._outbox, self._context.sockets, self._scope, send, *parts)
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for one in list(self._running.values()):
                await self._leave(one)

    # Messages

    async def _receive(self, receive: Receive) -> None:
        try:
            while (message := await receive())["type"] == "websocket.receive":
                await self._take(read_message(message.get("text")))
        except SocketClosed as closed:
            self._outbox.put_close(closed.code, closed.reason)
            await asyncio.Event().wait()  # until the close is sent

    async def _expect(self) -> None:
        try:
            async with asyncio.timeout(_INITIALISATION_S):
                await self._initialised.wait()
        except TimeoutError:
            self._outbox.put_close(Close.INITIALISATION_TIMEOUT, "Connection initialisation timeout")
        await asyncio.Event().wait()

    async def _hold_session(self) -> None:
        await self._session.hold()
        self._outbox.put_close(Close.FORBIDDEN, "Forbidden: not signed in, or not any more")
        await asyncio.Event().wait()

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(_PING_S)
            self._outbox.put(b'{"type":"ping"}')

    async def _take(self, message: ClientMessage) -> None:
        match message.type:
            case "connection_init":
                await self._initialise(message.payload or {})
            case "ping":
                pong: dict[str, Any] = {"type": "pong"}
                if message.payload is not None:
                    pong["payload"] = message.payload
                self._outbox.put(orjson.dumps(pong))
            case "complete":
                if (found := self._running.get(message.id)) is not None:
                    await self._leave(found)
            case "subscribe":
                await self._begin(message)

    async def _initialise(self, payload: Mapping[str, Any]) -> None:
        """A client that is not authenticated yet signs in here, as by `signin` on `/ws`."""
        if self._initialised.is_set():
            raise SocketClosed(Close.INITIALISED_BEFORE, "Too many initialisation requests")
        if self._refusal is not None:
            raise SocketClosed(Close.FORBIDDEN, f"Forbidden: {self._refusal}")
        await self._sign_in({name: payload[name] for name in MEMBER_NAMES if name in payload})
        if payload.get("since") is not None:
            self._since = _index(payload["since"])
        try:
            index = self._progress.snapshot_index()
        except UnavailableError as error:
            raise SocketClosed(Close.TRY_AGAIN_LATER, public_text(error)) from None
        self._initialised.set()
        self._outbox.put(orjson.dumps({"type": "connection_ack", "payload": {"index": index}}))

    async def _sign_in(self, members: Mapping[str, Any]) -> None:
        if self._session.principal is not None and not members:
            return
        try:
            await self._session.sign_in(members)
        except UnavailableError as error:
            raise SocketClosed(Close.TRY_AGAIN_LATER, public_text(error)) from None
        except GraphDBError as error:
            raise SocketClosed(Close.FORBIDDEN, f"Forbidden: {error}") from None

    # Operations

    async def _begin(self, message: ClientMessage) -> None:
        if not self._initialised.is_set():
            raise SocketClosed(Close.UNAUTHORIZED, "Unauthorized: the connection is not initialised")
        if message.id in self._running:
            raise SocketClosed(Close.ID_EXISTS, f"Subscriber for {message.id} already exists")
        one = _Running(message.id, self._outbox)
        most = self._settings.live.max_socket_subscriptions
        try:
            if len(self._running) >= most:
                name = "operations on one socket (live.max_socket_subscriptions)"
                raise LimitExceeded(name, len(self._running) + 1, most)
            asked = read_members(message.payload or {}, self._context.text_bytes_max)
            since = (asked.extensions or {}).get("since")
            since = self._since if since is None else read_index(since)
        except MalformedOperation as error:
            raise SocketClosed(Close.BAD_REQUEST, f"Invalid message: {error}") from None
        except GraphDBError as error:
            return one.end(error_message(one.id, [_failure(error)]))
        self._running[message.id] = one
        await self._room.acquire()
        one.task = self._start(self._perform(one, asked, since))
        one.task.add_done_callback(lambda _: self._room.release())

    def _start(self, work: Any) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _perform(self, one: _Running, asked: AskedOperation, since: int | None) -> None:
        try:
            if asked.as_of is not None:
                raise Refused([failure(VALIDATION_FAILED, _NO_PAST)])
            schema = await self._context.keepers.current(self._session.visibility)
            operation = await self._context.operations.read(schema, asked)
            if operation.type is OperationType.SUBSCRIPTION:
                await self._subscribe(one, operation, asked, since)
            else:
                await self._answer(one, operation, asked)
        except Refused as refused:
            self._fail(one, refused.errors)
        except GraphDBError as error:
            self._fail(one, [_failure(error)])
        except Exception:
            logger.exception("an operation on /graphql/ws failed")
            self._fail(one, [failure(SPARQL_ERROR, "internal error", details={"reason": "internal"})])

    async def _answer(self, one: _Running, operation: Operation, asked: AskedOperation) -> None:
        """Answer a query or mutation as if it had come by POST."""
        scope = {**self._scope, "type": "http", "method": "POST", PRINCIPAL: self._session.principal}
        request = Request(scope, _nothing_more)
        response = await self._context.operations.answer(request, self._bounds, asked)
        note_of(self._scope).tell("operation", status=response.status_code, operation=operation.type.value)
        body = bytes(response.body)
        if response.status_code != 200:  # the operation was not executed
            errors = orjson.loads(body)["errors"]
            self._running.pop(one.id, None)
            return one.end(orjson.dumps({"id": one.id, "type": "error", "payload": errors}))
        index = response.headers["x-snapshot-index"].encode()
        if operation.type is OperationType.MUTATION:  # its result already has `extensions`
            payload = orjson.loads(body)
            payload["extensions"] = {**payload.get("extensions", {}), "index": int(index)}
            one.tell(b'"payload":%s}' % orjson.dumps(payload))
        else:
            one.tell(b'"payload":%s,"extensions":{"index":%s}}}' % (body[:-1], index))
        self._running.pop(one.id, None)
        one.end(head_of(one.id, "complete") + b"}")

    async def _subscribe(
        self, one: _Running, operation: Operation, asked: AskedOperation, since: int | None
    ) -> None:
        query = await self._context.read(operation.schema, asked)
        opening = asyncio.get_running_loop().create_task(
            self._changes.live(self._session.visibility).subscribe(query, since, _Sink(self, one))
        )
        self._context.keep(opening)
        # Not interrupted: if the client has gone, the subscription is ended as soon as it is open.
        await asyncio.shield(opening)

    def opened(self, one: _Running, subscription: str) -> None:
        """The subscription is open."""
        one.subscription = subscription
        if one.ended:
            self._take_back(one)

    def _take_back(self, one: _Running) -> None:
        if one.subscription is not None:
            leaving = asyncio.get_running_loop().create_task(self._changes.unsubscribe(one.subscription))
            one.subscription = None
            self._context.keep(leaving)

    async def _leave(self, one: _Running) -> None:
        """The client has ended the operation."""
        one.ended = True
        self._running.pop(one.id, None)
        if one.task is not None:
            one.task.cancel()
        self._take_back(one)

    def fail(self, one: _Running, error: GraphDBError) -> None:
        """The node cannot continue it. If it can continue none, it closes the connection."""
        one.subscription = None
        if isinstance(error, UnavailableError):
            self._outbox.put_close(Close.TRY_AGAIN_LATER, public_text(error))
        else:
            self._fail(one, [_failure(error)])

    def _fail(self, one: _Running, errors: Sequence[GraphQLError]) -> None:
        if not one.ended:
            self._running.pop(one.id, None)
        one.end(error_message(one.id, errors))


class _Sink:
    """The sink of one subscription."""

    def __init__(self, socket: OperationSocket, one: _Running) -> None:
        self._socket, self._one = socket, one

    def opened(self, subscription: str, index: int) -> None:
        self._socket.opened(self._one, subscription)

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        self._one.tell(notification.tail)

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        self._socket.fail(self._one, error)


def _index(value: Any) -> int:
    try:
        return read_index(value)
    except RequestError as error:
        raise SocketClosed(Close.BAD_REQUEST, f"Invalid message: {error}") from None


def _failure(error: GraphDBError) -> GraphQLError:
    """details.reason is the code of `/ws`, because one GraphQL code may stand for several errors."""
    code = SPARQL_ERROR
    if isinstance(error, LimitExceeded):
        code = COMPLEXITY_EXCEEDED
    elif isinstance(error, RequestError) and not isinstance(error, ChangesForgotten):
        code = VALIDATION_FAILED
    return failure(code, public_text(error), details={"reason": code_of(error)})


async def _nothing_more() -> Message:
    """A request over a socket has no body. It is cancelled if the client disconnects."""
    await asyncio.Event().wait()
    raise AssertionError


class SubscriptionsEndpoint:
    """Owned by the application. Supports graphql-transport-ws only."""

    signs_in = True  # see `serve.access.authorization`

    def __init__(self, context: SocketContext) -> None:
        self._context = context

    async def get(self, _request: Request) -> Response:
        """A plain GET needs an upgrade."""
        return error_response(
            426, f"GraphQL is spoken here over a WebSocket: {PROTOCOL}", {"Upgrade": "websocket"}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        try:
            parameters = Parameters(scope["query_string"])
            refuse_as_of(parameters, _NO_PAST)
            bounds, since = read_bounds(parameters), read_since(parameters)
        except GraphDBError as error:
            return await refuse_websocket(error_response(400, str(error)), send)
        if PROTOCOL not in scope.get("subprotocols", ()):
            await send({"type": "websocket.accept"})
            reason = f"Subprotocol not acceptable: {PROTOCOL} is spoken here"
            return await send({"type": "websocket.close", "code": Close.SUBPROTOCOL, "reason": reason})
        await send({"type": "websocket.accept", "subprotocol": PROTOCOL})
        # Refused at the initialisation, because a page cannot see why a handshake was refused.
        refusal = refused_origin(Headers(raw=scope["headers"]), self._context.settings.server.cors)
        socket = OperationSocket(self._context, scope, bounds, since, refusal, session_of(scope))
        await socket.run(receive, send)
