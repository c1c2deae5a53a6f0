"""`AuthenticationMiddleware` authenticates each request; `SocketSession` is one WebSocket's sign-in.

Every path is treated alike, so a client without credentials does not learn which paths exist. What a
principal may do is decided by the routes (`authorization.py`).
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphdb.access.credentials import MEMBER_NAMES, Credentials, credentials_of_members
from graphdb.access.permissions import Permission
from graphdb.access.principal import ANYONE, EVERYONE, NOBODY, Principal
from graphdb.access.visibility import NO_VISIBILITY, Visibility
from graphdb.errors import Forbidden, GraphDBError, NotAuthenticated
from serve.access.audit import Note, note_of
from serve.access.authentication import Authenticator
from serve.access.request_scope import PRINCIPAL, internal_principal, is_internal, refused_origin
from serve.parameters import Parameters
from serve.routing import refuse_websocket

__all__ = ["SIGN_IN_S", "AuthenticationMiddleware", "SocketSession", "session_of"]

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_BODY_READ_MAX = 1 << 20  # bytes; a refused request with a larger body has its connection closed

SESSION = "graphdb.session"  # in the scope
_CHECK_S = 60.0  # how often the expiry of a session is checked, because the clock may be set
SIGN_IN_S = 10.0  # a socket without credentials is closed after this time


@dataclass(frozen=True, slots=True)
class AuthenticationMiddleware:
    """ASGI middleware.

    is_public: whether a request is answered to every client. origins: those of `server.cors`. refusal turns
    an error into a response, as the port behind it does.
    """

    app: ASGIApp
    authenticator: Authenticator
    refusal: Callable[[GraphDBError], Response]
    is_public: Callable[[Scope], bool] = lambda scope: False
    origins: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, _stopping(send, self.authenticator))
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
        if is_internal(scope):
            return internal_principal(scope)
        if self.is_public(scope):
            return ANYONE
        principal = await self.authenticator.admit(scope)
        note_of(scope).principal = principal
        if principal is None:
            raise NotAuthenticated("this needs credentials")
        principal.require(Permission.READ)
        if scope["method"] not in _SAFE:
            self._check_origin(scope, principal)
        return principal

    async def _socket(self, scope: Scope) -> Scope:
        """The scope with a session. A socket may open without credentials: then its client has to sign in."""
        if is_internal(scope):
            return {**scope, PRINCIPAL: internal_principal(scope)}
        principal = await self.authenticator.admit(scope)
        if principal is None:
            given = credentials_of_query(scope["query_string"])
            if given is not None:
                principal = await self.authenticator.verify(given, self.authenticator.address(scope))
        note = note_of(scope)
        note.principal = principal
        if principal is not None:
            principal.require(Permission.READ)
        session = SocketSession(self.authenticator, self.authenticator.address(scope), principal, note)
        return {**scope, PRINCIPAL: principal or NOBODY, SESSION: session}

    def _check_origin(self, scope: Scope, principal: Principal) -> None:
        """A browser sends a stored password with any request of a page, also of another origin."""
        refused = refused_origin(Headers(raw=scope["headers"]), self.origins)
        if refused is not None:
            raise Forbidden(principal.name, Permission.WRITE.word, refused)

    async def _refuse(self, error: GraphDBError, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self.refusal(error)
        if scope["type"] == "websocket":
            await receive()
            return await refuse_websocket(answer, send)
        if _has_large_body(scope):
            answer.headers["Connection"] = "close"
        await answer(scope, receive, send)


def _has_large_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    return b"transfer-encoding" in headers or not length.isdigit() or int(length) > _BODY_READ_MAX


def _kept_private(send: Send) -> Send:
    """Add `Cache-Control: private` to responses without Cache-Control: shared caches must not keep them."""

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            if all(name.lower() != b"cache-control" for name, _ in headers):
                message = {**message, "headers": [*headers, (b"cache-control", b"private")]}
        await send(message)

    return told


def _stopping(send: Send, authenticator: Authenticator) -> Send:
    """Stop the authenticator when the application has shut down."""

    async def told(message: Message) -> None:
        if message["type"].startswith("lifespan.shutdown."):
            await authenticator.stop()
        await send(message)

    return told


class SocketSession:
    """The principal of one WebSocket, which may sign in, or renew its credentials, by a message."""

    def __init__(
        self,
        authenticator: Authenticator | None,
        address: str,
        principal: Principal | None,
        note: Note | None = None,
    ) -> None:
        """authenticator None: authentication is off. A sign-in is written to note."""
        self._authenticator, self._address, self._note = authenticator, address, note
        self.principal = principal
        self._known = asyncio.Event()

    @property
    def visibility(self) -> Visibility:
        """What of the graph the client may see; nothing before it has signed in."""
        return NO_VISIBILITY if self.principal is None else self.principal.visibility

    async def hold(self) -> None:
        """Return when the client has not signed in within SIGN_IN_S, or when its credentials have expired."""
        if self.principal is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SIGN_IN_S):
                    await self._known.wait()
        while self.principal is not None:
            expires_at = self.principal.expires_at
            if expires_at is not None and expires_at <= time.time():
                return
            # The client may sign in again meanwhile.
            wait_s = _CHECK_S if expires_at is None else min(_CHECK_S, expires_at - time.time())
            await asyncio.sleep(max(0.0, wait_s))

    async def sign_in(self, members: Mapping[str, Any]) -> None:
        """Verify the credentials in a message. A second sign-in has to be by the same principal.

        Raises NotAuthenticated, Forbidden, LockedOut, UnavailableError.
        """
        if self._authenticator is None:
            return
        try:
            principal = await self._verified(self._authenticator, members)
        except GraphDBError as error:
            if self._note is not None:
                self._note.tell("sign_in", outcome="refused", reason=str(error))
            raise
        self.principal = principal
        self._known.set()
        if self._note is not None:
            self._note.principal = principal
            self._note.tell("sign_in", outcome="ok")

    async def _verified(self, authenticator: Authenticator, members: Mapping[str, Any]) -> Principal:
        await authenticator.check_lockout(self._address)
        principal = await authenticator.verify(credentials_of_members(members), self._address)
        principal.require(Permission.READ)
        known = self.principal
        if known is not None and (known.name, known.provider) != (principal.name, principal.provider):
            raise Forbidden(principal.name, Permission.READ.word, f"this socket is {known.name}'s")
        return principal


def session_of(scope: Scope) -> SocketSession:
    """The session of a socket; one of `EVERYONE` if authentication is off."""
    found: SocketSession | None = scope.get(SESSION)
    return SocketSession(None, "", EVERYONE) if found is None else found


def credentials_of_query(query_string: bytes) -> Credentials | None:
    """Credentials in a query string, because browsers cannot set headers of a WebSocket; None without any.

    Raises NotAuthenticated, InvalidParameter, LimitExceeded.
    """
    parameters = Parameters(query_string)
    members = {name: value for name in MEMBER_NAMES if (value := parameters.one(name)) is not None}
    return credentials_of_members(members) if members else None
