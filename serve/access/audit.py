"""`Audited`: ASGI middleware around the whole application that writes each request to the audit log.

Other modules add to the request's `Note` in the scope: the authentication middleware the principal, the route
its name and permission, the request's parser the graphs. Credentials, query strings and texts of queries are
not written.
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
from serve.access.access_backend import AuditLog
from serve.access.request_scope import address_of, is_internal

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
    """What is known of one request or socket; filled in while it is answered."""

    __slots__ = ("_graphs", "_indexes", "permission", "principal", "reason", "route", "syntax", "tell")

    def __init__(self, principal: Principal | None, tell: "Callable[..., None]") -> None:
        """tell(event, **members) writes a line about an event within the request."""
        self.principal, self.tell = principal, tell
        self.route: str | None = None
        self.permission: Permission | None = None
        self.reason: str | None = None  # why it was refused
        self.syntax: Query | Update | None = None
        self._graphs: list[str] = []
        self._indexes: list[str] = []

    def refused(self, error: Exception) -> None:
        """Keep the reason of a refusal. Errors of authentication contain no credentials."""
        self.reason = str(error)[:_TEXT_MAX]

    def add_graphs(self, graphs: Iterable[str]) -> None:
        self._graphs += graphs

    def add_index(self, names: str) -> None:
        """names: as in the path, with commas and patterns."""
        self._indexes.append(names)

    def graphs(self, query_string: bytes) -> list[str]:
        """All graphs that are known, including those of the parameters."""
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
    """The note of a request; an unused one if the audit log is off."""
    found: Note | None = scope.get(_NOTE)
    return Note(None, lambda *_, **__: None) if found is None else found


class Audited:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, settings: Settings, port: str, log: AuditLog) -> None:
        """port: `graph` or `search`. The log is closed when the application has shut down."""
        self._app, self._port, self._log = app, port, log
        self._notes_reads = settings.audit.reads
        self._proxies = TrustedProxies(settings.server.trusted_proxies)
        self._everyone = None if settings.authentication.enabled else EVERYONE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, self._closing(send))
        if is_internal(scope):  # the request of the user that caused it is in the log
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
        """Remember the status. An opened socket is written at once, because it may stay open for days."""
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
