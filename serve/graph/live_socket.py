"""`/ws`: live queries over WebSockets; the messages of clients are parsed strictly."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphdb.config import Settings
from graphdb.config.limits import GateLimits
from graphdb.errors import (
    ChangesForgotten,
    Forbidden,
    GraphDBError,
    InvalidParameter,
    LimitExceeded,
    LockedOut,
    NotAuthenticated,
    QuerySyntaxError,
    RequestError,
    UnavailableError,
)
from graphdb.live.live_queries import read_live_query
from graphdb.live.matcher import LiveQuery
from graphdb.live.notifications import Notification
from graphdb.public_text import public_text
from serve.access.audit import Note, note_of
from serve.access.middleware import SocketSession, session_of
from serve.access.request_scope import refused_origin
from serve.backend import Changes
from serve.errors import error_response
from serve.graph.live_outbox import LiveOutbox, SocketCounts, converse
from serve.parameters import Parameters
from serve.routing import refuse_websocket

__all__ = ["LiveSocketEndpoint", "Refused", "code_of", "read_index", "read_since"]

_METHODS = ("query", "kill", "ping", "signin")
_INDEX_MAX = (1 << 63) - 1
_CODES: dict[type[GraphDBError], str] = {
    ChangesForgotten: "resnapshot",
    QuerySyntaxError: "syntax",
    LimitExceeded: "limit",
    NotAuthenticated: "unauthorized",
    Forbidden: "forbidden",
    LockedOut: "locked_out",
    RequestError: "invalid",
    UnavailableError: "unavailable",
    GraphDBError: "internal",
}

logger = logging.getLogger(__name__)
_POLICY_VIOLATION = 1008  # RFC 6455, 7.4.1
_AT_ONCE_MAX = 64  # unanswered requests of one socket


class Refused(Exception):
    """An invalid message. It is answered, and the socket stays open."""

    def __init__(self, request_id: Any, code: str, message: str) -> None:
        super().__init__(message)
        self.request_id, self.code = request_id, code


def code_of(error: GraphDBError) -> str:
    """The code by which programs distinguish errors."""
    return next(_CODES[kind] for kind in type(error).__mro__ if kind in _CODES)


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """A message with a method and its parameters."""

    id: Any  # chosen by the client: text, a number or null
    method: str
    params: list[Any]

    def live_query(self, limits: GateLimits) -> tuple[LiveQuery, int | None]:
        """The query, and the index to resume from. Raises Refused, RequestError."""
        statement, options = self.params[0] if self.params else None, self.params[1:]
        if not isinstance(statement, str) or len(options) > 1:
            raise self._invalid('params of "query" are [statement] or [statement, {"since": index}]')
        since = None
        if options and options[0] is not None:
            if not isinstance(options[0], dict) or options[0].keys() - {"since"}:
                raise self._invalid('the second of params is {"since": index}')
            if options[0].get("since") is not None:
                since = read_index(options[0]["since"])
        return read_live_query(statement, limits), since

    def credentials(self) -> Mapping[str, Any]:
        """The credentials of a client; empty without any."""
        given = self.params[0] if self.params else {}
        return given if isinstance(given, dict) and len(self.params) < 2 else {}

    def subscription(self) -> str:
        """The subscription to end. Raises Refused."""
        if len(self.params) != 1 or not isinstance(self.params[0], str):
            raise self._invalid('params of "kill" are [subscription]')
        return self.params[0]

    def _invalid(self, message: str) -> Refused:
        return Refused(self.id, "invalid", message)


def read_index(value: Any) -> int:
    """A log index. Raises InvalidParameter."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _INDEX_MAX:
        raise InvalidParameter("since", f"{str(value)[:100]!r} is not a log index")
    return value


def read_since(parameters: Parameters) -> int | None:
    """The parameter `since` of a handshake. Raises InvalidParameter."""
    text = parameters.one("since")
    if text is None:
        return None
    return read_index(int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text)


def read_request(message: str | bytes) -> LiveRequest:
    """Raises Refused."""
    try:
        body = orjson.loads(message)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise Refused(None, "invalid", f"a message is one JSON object: {error}") from None
    if not isinstance(body, dict):
        raise Refused(None, "invalid", "a message is one JSON object")
    request_id = body.get("id")
    if not isinstance(request_id, str | int | float | None) or len(str(request_id)) > 1_000:
        raise Refused(None, "invalid", "id is text or a number, of 1000 characters at most")
    method, params = body.get("method"), body.get("params", [])
    if method not in _METHODS:
        raise Refused(request_id, "invalid", f"method is one of {', '.join(_METHODS)}")
    if not isinstance(params, list):
        raise Refused(request_id, "invalid", "params is a list")
    return LiveRequest(request_id, method, params)


class LiveSocketEndpoint:
    """WebSockets at /ws. A plain GET is answered with 426."""

    signs_in = True  # see `serve.access.authorization`

    def __init__(self, changes: Changes, settings: Settings, counts: SocketCounts) -> None:
        self._changes, self._settings, self._counts = changes, settings, counts

    async def get(self, _request: Request) -> Response:
        """A plain GET needs an upgrade."""
        return error_response(426, "live queries are asked over a WebSocket", {"Upgrade": "websocket"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        refused = refused_origin(Headers(raw=scope["headers"]), self._settings.server.cors)
        if refused is not None:
            return await refuse_websocket(error_response(403, refused), send)
        try:
            since = read_since(Parameters(scope["query_string"]))
        except GraphDBError as error:
            return await refuse_websocket(error_response(400, str(error)), send)
        await send({"type": "websocket.accept"})
        socket = _LiveSocket(
            self._changes, self._settings, since, self._counts, session_of(scope), note_of(scope)
        )
        await socket.run(scope, receive, send)


class _LiveSocket:
    """One connection. Requests start in the order of their arrival; answers may be in another order."""

    def __init__(
        self,
        changes: Changes,
        settings: Settings,
        since: int | None,
        counts: SocketCounts,
        session: SocketSession,
        note: Note,
    ) -> None:
        self._changes, self._settings, self._since, self._counts = changes, settings, since, counts
        self._session, self._note = session, note
        self._limits = settings.security
        self._outbox = LiveOutbox(settings.live.max_queue_bytes)
        self._open: set[str] = set()
        self._opening = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_AT_ONCE_MAX)

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until either side closes."""
        try:
            parts = (self._receive(receive), self._hold_session())
            await converse(self._outbox, self._counts, scope, send, *parts)
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for subscription in list(self._open):
                await self._changes.unsubscribe(subscription)

    async def _hold_session(self) -> None:
        await self._session.hold()
        self._outbox.put_close(_POLICY_VIOLATION, "not signed in, or not any more")
        await asyncio.Event().wait()  # until that is sent

    async def _receive(self, receive: Receive) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            text = message.get("text")
            await self._room.acquire()
            task = asyncio.create_task(self._answer(message["bytes"] if text is None else text))
            self._tasks.add(task)
            task.add_done_callback(self._done)
            if self._session.principal is None:  # later messages may depend on the sign-in
                await asyncio.wait((task,))

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _answer(self, message: str | bytes) -> None:
        """Answer a message. No message of a client ends the socket."""
        request_id: Any = None
        try:
            request = read_request(message)
            request_id = request.id
            await self._perform(request)
        except Refused as refused:
            self._outbox.put_error(refused.request_id, refused.code, str(refused))
        except GraphDBError as error:
            self._outbox.put_error(request_id, code_of(error), public_text(error))
        except Exception:
            logger.exception("a request on /ws failed")
            self._outbox.put_error(request_id, "internal", "internal error")

    async def _perform(self, request: LiveRequest) -> None:
        match request.method:
            case "signin":
                before = self._session.visibility
                await self._session.sign_in(request.credentials())
                self._outbox.put_reply(request.id, None)
                if self._session.visibility != before:
                    await self._end_all()
            case _ if self._session.principal is None:
                raise NotAuthenticated("sign in first")
            case "ping":
                self._outbox.put_reply(request.id, "pong")
            case "kill":
                await self._kill(request)
            case _:
                await self._subscribe(request)

    async def _subscribe(self, request: LiveRequest) -> None:
        query, since = request.live_query(self._limits)
        count, most = len(self._open) + self._opening, self._settings.live.max_socket_subscriptions
        if count >= most:
            name = "live queries on one socket (live.max_socket_subscriptions)"
            raise LimitExceeded(name, count + 1, most)
        self._opening += 1
        try:
            sink = _Sink(self._outbox, self._open, request.id)
            visibility = self._session.visibility
            subscription = await self._changes.live(visibility).subscribe(
                query, self._since if since is None else since, sink
            )
            self._note.tell("operation", operation="live")
            if self._session.visibility != visibility:
                await self._end(subscription)
        finally:
            self._opening -= 1

    async def _end_all(self) -> None:
        """End all subscriptions, because newer credentials have another visibility."""
        for subscription in tuple(self._open):
            await self._end(subscription)

    async def _end(self, subscription: str) -> None:
        if await self._changes.unsubscribe(subscription):
            self._open.discard(subscription)
            self._outbox.put_error(subscription, "resnapshot", "what may be seen has changed: begin anew")

    async def _kill(self, request: LiveRequest) -> None:
        subscription = request.subscription()
        if subscription not in self._open:
            raise Refused(request.id, "not_found", f"no subscription {subscription[:100]!r} on this socket")
        self._open.discard(subscription)
        await self._changes.unsubscribe(subscription)
        self._outbox.put_reply(request.id, None)


class _Sink:
    """The sink of one subscription. Sinks of one socket are equal, so that their notifications are sent
    together.
    """

    def __init__(self, outbox: LiveOutbox, open_: set[str], request_id: Any) -> None:
        self._outbox, self._open, self._request_id = outbox, open_, request_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sink) and other._outbox is self._outbox

    def __hash__(self) -> int:
        return id(self._outbox)

    def opened(self, subscription: str, index: int) -> None:
        self._open.add(subscription)
        self._outbox.put_reply(self._request_id, subscription, index=index)

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        self._outbox.put_notification(subscriptions, notification)

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        for subscription in subscriptions:
            self._open.discard(subscription)
            self._outbox.put_error(subscription, code_of(error), public_text(error))
