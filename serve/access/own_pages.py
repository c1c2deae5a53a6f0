"""`OwnPages`: which pages of browsers may call the search port, and the CORS headers that tell browsers so.

The workbench is a page of the graph port. To a browser, the search port of the same host is another origin.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["OwnPages"]

_METHODS = "GET, HEAD, PUT, POST, DELETE"
_EXPOSED = "Retry-After, WWW-Authenticate, X-Elastic-Product"
_KEPT_S = "600"  # how long a browser keeps the answer to a preflight request


@dataclass(frozen=True, slots=True)
class OwnPages:
    """ASGI middleware of the search port, before authentication: a preflight request has no credentials.

    pages_port: the graph port, whose pages may call this one if they are of the same host and scheme; None if
    none may. origins: those of `server.cors`.
    """

    app: ASGIApp
    pages_port: int | None
    origins: tuple[str, ...]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(raw=scope["headers"])
        origin = headers.get("origin")
        if origin is None or not self._admits(origin, headers.get("host", ""), scope["scheme"]):
            return await self.app(scope, receive, send)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return await _preflight(origin, headers)(scope, receive, send)
        allowed = [(b"access-control-expose-headers", _EXPOSED.encode()), *_allowed(origin)]
        await self.app(_as_own(scope), receive, _with(allowed, send))

    def _admits(self, origin: str, host: str, scheme: str) -> bool:
        if "*" in self.origins or origin in self.origins:
            return True
        if self.pages_port is None:
            return False
        try:
            page, here = urlsplit(origin), urlsplit(f"//{host}")
            port = page.port or {"http": 80, "https": 443}.get(page.scheme)
            is_here = bool(page.hostname) and page.hostname == here.hostname
        except ValueError:
            return False
        return is_here and port == self.pages_port and page.scheme == scheme


def _as_own(scope: Scope) -> Scope:
    """Without Origin: it has been checked, and what follows compares it with this port's own address."""
    return {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"origin"]}


def _allowed(origin: str) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]


def _preflight(origin: str, headers: Headers) -> Response:
    answer = Response(status_code=204)
    answer.headers["Access-Control-Allow-Origin"] = origin
    answer.headers["Access-Control-Allow-Methods"] = _METHODS
    answer.headers["Access-Control-Allow-Headers"] = headers.get("access-control-request-headers", "")
    answer.headers["Access-Control-Max-Age"] = _KEPT_S
    answer.headers["Vary"] = "Origin, Access-Control-Request-Headers"
    return answer


def _with(added: Iterable[tuple[bytes, bytes]], send: Send) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return told
