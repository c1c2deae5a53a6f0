"""`AccessGate`: stands before a whole application and asks everyone who they are.

It says no to whoever is nobody, on every path alike, so that nobody learns from it which paths there
are. What the others may do is for the routes to say (`needs.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphdb.access.permissions import Permission
from graphdb.access.principal import ANYONE, NOBODY, Principal
from graphdb.errors import Forbidden, GraphDBError, NotAuthenticated
from serve.access.admitted import PRINCIPAL
from serve.access.audit import note_of
from serve.access.doorman import Doorman
from serve.access.origins import refused_origin
from serve.access.private_entrance import given_principal, is_private
from serve.access.sockets import ADMISSION, SocketAdmission, credentials_of_query
from serve.routing import refuse_websocket

__all__ = ["AccessGate"]

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_BODY_READ_MAX = 1 << 20  # of a refused request; the connection ends rather than bring more of it


@dataclass(frozen=True, slots=True)
class AccessGate:
    """ASGI. public are paths that are answered to everyone by GET and HEAD; origins those of `server.cors`;
    refusal makes an error an answer, as the port behind does.
    """

    app: ASGIApp
    doorman: Doorman
    refusal: Callable[[GraphDBError], Response]
    public: frozenset[str] = frozenset()
    origins: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, _stopping(send, self.doorman))
        try:
            if scope["type"] == "websocket":
                scope = await self._socket(scope)
            else:
                scope = {**scope, PRINCIPAL: await self._principal(scope)}
        except GraphDBError as error:
            note_of(scope).refused(error)
            return await self._refuse(error, scope, receive, send)
        await self.app(scope, receive, _kept_private(send))

    async def _principal(self, scope: Scope) -> Principal:
        if is_private(scope):
            return given_principal(scope)
        if scope["path"] in self.public and scope["method"] in ("GET", "HEAD"):
            return ANYONE
        principal = await self.doorman.admit(scope)
        note_of(scope).principal = principal
        if principal is None:
            raise NotAuthenticated("this needs credentials")
        principal.require(Permission.READ)
        if scope["method"] not in _SAFE:
            self._check_origin(scope, principal)
        return principal

    async def _socket(self, scope: Scope) -> Scope:
        """A socket may open without credentials: then it has to sign in."""
        if is_private(scope):
            return {**scope, PRINCIPAL: given_principal(scope)}
        principal = await self.doorman.admit(scope)
        if principal is None:
            given = credentials_of_query(scope["query_string"])
            if given is not None:
                principal = await self.doorman.verify(given, self.doorman.address(scope))
        note = note_of(scope)
        note.principal = principal
        if principal is not None:
            principal.require(Permission.READ)
        admission = SocketAdmission(self.doorman, self.doorman.address(scope), principal, note)
        return {**scope, PRINCIPAL: principal or NOBODY, ADMISSION: admission}

    def _check_origin(self, scope: Scope, principal: Principal) -> None:
        """A browser sends a password that it remembers wherever a page wants, also a page of others."""
        refused = refused_origin(Headers(raw=scope["headers"]), self.origins)
        if refused is not None:
            raise Forbidden(principal.name, Permission.WRITE.word, refused)

    async def _refuse(self, error: GraphDBError, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self.refusal(error)
        if scope["type"] == "websocket":
            await receive()
            return await refuse_websocket(answer, send)
        if _brings_much(scope):
            answer.headers["Connection"] = "close"
        await answer(scope, receive, send)


def _brings_much(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    return b"transfer-encoding" in headers or not length.isdigit() or int(length) > _BODY_READ_MAX


def _kept_private(send: Send) -> Send:
    """What one principal is told is not for a cache that others share."""

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            if all(name.lower() != b"cache-control" for name, _ in headers):
                message = {**message, "headers": [*headers, (b"cache-control", b"private")]}
        await send(message)

    return told


def _stopping(send: Send, doorman: Doorman) -> Send:
    """The doorman goes when the application has shut down."""

    async def told(message: Message) -> None:
        if message["type"].startswith("lifespan.shutdown."):
            await doorman.stop()
        await send(message)

    return told
