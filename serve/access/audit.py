"""`Audited`: stands before a whole application, gate and all, and notes who asked what, and what came of it.

What it cannot know by itself is told it on the way, through the scope: who asks by the gate, which route and
which permission by the router, which graphs by whoever has read the request. No credentials, no query string
and no text of a query are noted.
"""

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphdb.access.lockout import TrustedProxies
from graphdb.access.permissions import Permission
from graphdb.access.principal import EVERYONE, Principal
from graphdb.config import Settings
from graphdb.planning.sources import named_graphs
from graphdb.sparql.syntax import Query, Update
from graphdb.timestamps import iso_timestamp
from serve.access.backend import AuditLog
from serve.access.clients import address_of
from serve.access.private_entrance import is_private

__all__ = ["Audited", "Note", "note_of"]

_NOTE = "graphdb.note"  # in the scope
_TEXT_MAX = 500
_NAMES_MAX = 20
_GRAPH_PARAMETERS = frozenset(
    {"graph", "default-graph-uri", "named-graph-uri", "using-graph-uri", "using-named-graph-uri"}
)
_CLIENT_ID = (b"x-request-id", b"x-opaque-id")
_SWITCHED = 101


class Note:
    """Of one request or socket: what becomes known of it on its way."""

    __slots__ = ("_graphs", "_indexes", "permission", "principal", "reason", "route", "syntax", "tell")

    def __init__(self, principal: Principal | None, tell: "Callable[..., None]") -> None:
        """tell(event, **members) notes something that happens within it, by what is known then."""
        self.principal, self.tell = principal, tell
        self.route: str | None = None
        self.permission: Permission | None = None
        self.reason: str | None = None  # why it was refused
        self.syntax: Query | Update | None = None
        self._graphs: list[str] = []
        self._indexes: list[str] = []

    def refused(self, error: Exception) -> None:
        """What it was told; errors of the door hold no credentials."""
        self.reason = str(error)[:_TEXT_MAX]

    def add_graphs(self, graphs: Iterable[str]) -> None:
        self._graphs += graphs

    def add_index(self, names: str) -> None:
        """As the path has them: with commas and patterns."""
        self._indexes.append(names)

    def graphs(self, query_string: bytes) -> list[str]:
        """All that are known, of the parameters too."""
        given: list[str] = []
        if b"graph" in query_string:
            try:
                pairs = parse_qsl(query_string.decode("latin-1"), max_num_fields=1_000)
                given = [value for name, value in pairs if name in _GRAPH_PARAMETERS]
            except ValueError:
                given = []
        parsed = named_graphs(self.syntax) if self.syntax is not None else ()
        names = dict.fromkeys([*given, *self._graphs, *parsed])
        return [name[:_TEXT_MAX] for name in names][:_NAMES_MAX]

    def indexes(self) -> list[str]:
        return [name[:_TEXT_MAX] for name in self._indexes][:_NAMES_MAX]


def note_of(scope: Scope) -> Note:
    """The one of this request; one that nobody reads where nothing is noted."""
    found: Note | None = scope.get(_NOTE)
    return Note(None, lambda *_, **__: None) if found is None else found


class Audited:
    """ASGI."""

    def __init__(self, app: ASGIApp, settings: Settings, port: str, log: AuditLog) -> None:
        """port: `graph` or `search`. It closes the log when the application has shut down."""
        self._app, self._port, self._log = app, port, log
        self._notes_reads = settings.audit.reads
        self._proxies = TrustedProxies(settings.server.trusted_proxies)
        self._everyone = None if settings.authentication.enabled else EVERYONE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, self._closing(send))
        if is_private(scope):  # what the node asks itself was noted where it was asked for
            return await self._app(scope, receive, send)
        exchange = _Exchange(self, scope, send)
        try:
            await self._app({**scope, _NOTE: exchange.note}, receive, exchange.send)
        finally:
            exchange.end()

    def _closing(self, send: Send) -> Send:
        async def told(message: Message) -> None:
            if message["type"].startswith("lifespan.shutdown."):
                self._log.close()
            await send(message)

        return told


class _Exchange:
    """One request and its answer, or one socket."""

    def __init__(self, audited: Audited, scope: Scope, send: Send) -> None:
        self._audited, self._scope, self._send = audited, scope, send
        self._began, self._status = time.perf_counter(), 0
        self._id = secrets.token_hex(8)
        self._address = address_of(scope, audited._proxies)
        self.note = Note(audited._everyone, self._tell)

    async def send(self, message: Message) -> None:
        """Remember the status; a socket that opens is noted at once, for it may last for days."""
        match message["type"]:
            case "http.response.start" | "websocket.http.response.start":
                self._status = message["status"]
                headers = [*message.get("headers", ()), (b"x-request-id", self._id.encode())]
                message = {**message, "headers": headers}
            case "websocket.accept":
                self._status = _SWITCHED
                self._tell("socket")
            case "websocket.close" if not self._status:
                self._status = 403
        await self._send(message)

    def end(self) -> None:
        """After the last byte."""
        is_read = self.note.permission in (None, Permission.NONE, Permission.READ)
        succeeded = 100 <= self._status < 400
        if is_read and succeeded and not self._audited._notes_reads:
            return
        duration_ms = round((time.perf_counter() - self._began) * 1_000, 3)
        event = "socket_end" if self._status == _SWITCHED else "request"
        self._tell(event, duration_ms=duration_ms)

    def _tell(self, event: str, **members: Any) -> None:
        note, scope = self.note, self._scope
        principal, permission = note.principal, note.permission
        headers = dict(scope["headers"])
        client_id = next((headers[name] for name in _CLIENT_ID if name in headers), None)
        path = scope.get("raw_path") or scope["path"].encode()
        line: dict[str, Any] = {
            "time": iso_timestamp(time.time_ns() // 1_000_000),
            "event": event,
            "id": self._id,
            "client_id": None if client_id is None else client_id.decode("latin-1")[:100],
            "port": self._audited._port,
            "address": self._address,
            "principal": None if principal is None else principal.name[:_TEXT_MAX],
            "provider": None if principal is None else principal.provider,
            "method": scope.get("method", "WEBSOCKET"),
            "path": path.partition(b"?")[0].decode("latin-1")[:_TEXT_MAX],
            "route": note.route,
            "permission": None if permission is None else permission.word,
            "graphs": note.graphs(scope["query_string"]),
            "indexes": note.indexes(),
            "status": self._status or None,
            "reason": note.reason,
        }
        self._audited._log.note(line | members)
