"""`/ws`: live queries over a WebSocket, any number on each."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphdb.config import Settings
from graphdb.errors import GraphDBError, LimitExceeded, NotAuthenticated
from graphdb.live.notifications import Notification
from graphdb.public_text import public_text
from serve.access.audit import Note, note_of
from serve.access.middleware import SocketSession, session_of
from serve.access.request_scope import refused_origin
from serve.backend import Changes
from serve.errors import error_response
from serve.graph.live_outbox import LiveOutbox, SocketCounts, converse
from serve.graph.live_requests import LiveRequest, Refused, code_of, read_request, read_since
from serve.parameters import Parameters
from serve.routing import refuse_websocket

__all__ = ["LiveSocketEndpoint"]

logger = logging.getLogger(__name__)

_POLICY_VIOLATION = 1008  # RFC 6455, 7.4.1
_AT_ONCE_MAX = 64  # requests of one socket that are not answered yet


class LiveSocketEndpoint:
    """WebSockets at /ws; an ordinary request there is told what it is for."""

    signs_in = True  # see `serve.access.authorization`

    def __init__(self, changes: Changes, settings: Settings, counts: SocketCounts) -> None:
        self._changes, self._settings, self._counts = changes, settings, counts

    async def get(self, _request: Request) -> Response:
        """An ordinary request here wants to know what this is."""
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
    """One connection: its requests, in order of their arrival but not of their answers, and its sink."""

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
            if self._session.principal is None:  # what follows a sign-in may wait for it
                await asyncio.wait((task,))

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _answer(self, message: str | bytes) -> None:
        """Nothing that is sent ends the socket."""
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
        """Newer credentials show another part of the graph: what is open is of what is seen no more."""
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
    """Of one subscription's opening; what it is told goes with that of all others of its socket."""

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
