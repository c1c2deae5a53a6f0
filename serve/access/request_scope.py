"""The client of a request, by its ASGI scope: principal, address, origin; and internal requests.

The authentication middleware writes the principal into the scope, where clients cannot write. Internal
requests are those of the node's own processes. They come through a Unix domain socket that only this user
can open, or from other nodes, never through a port. A header names the principal that they are made for.
"""

import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from graphdb.access.lockout import TrustedProxies
from graphdb.access.principal import EVERYONE, Principal
from graphdb.access.visibility import Visibility
from graphdb.errors import NotAuthenticated
from graphdb.model import Author, Interface

__all__ = [
    "INTERFACE",
    "PRINCIPAL",
    "PRINCIPAL_HEADER",
    "InternalApplication",
    "address_of",
    "author_of",
    "internal_principal",
    "is_internal",
    "principal_of",
    "refused_origin",
    "remaining_s",
    "visibility_of",
]

PRINCIPAL = "graphdb.principal"
INTERFACE = "graphdb.interface"  # by which a request within the application came

_FORWARDED = b"x-forwarded-for"

PRINCIPAL_HEADER = "X-Graphdb-Principal"
_PRINCIPAL_HEADER = PRINCIPAL_HEADER.lower().encode()
_PRIVATE = "graphdb.private"  # in the scope, where no client can put anything


def principal_of(scope: Scope) -> Principal:
    """The principal of a request; `EVERYONE` if authentication is off."""
    principal: Principal = scope.get(PRINCIPAL, EVERYONE)
    return principal


def author_of(scope: Scope, interface: Interface) -> Author:
    """What the log says of who has written, by this interface if the request was not made within another."""
    principal = principal_of(scope)
    name = "" if principal is EVERYONE else principal.qualified_name
    return Author(name, scope.get(INTERFACE, interface))


def visibility_of(scope: Scope) -> Visibility:
    """What of the graph the principal may see."""
    return principal_of(scope).visibility


def remaining_s(scope: Scope) -> float | None:
    """Seconds until the credentials of a request expire; None if they do not."""
    expires_at = principal_of(scope).expires_at
    return None if expires_at is None else max(0.0, expires_at - time.time())


def address_of(scope: Scope, proxies: TrustedProxies) -> str:
    """The client's address, behind trusted proxies too; empty if the connection has none."""
    client = scope.get("client")
    peer = str(client[0]) if client else ""
    forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
    return proxies.client(peer, forwarded)


def refused_origin(headers: Headers, allowed: Sequence[str]) -> str | None:
    """Why the origin of a request is refused; None if it is allowed, or if there is none."""
    origin = headers.get("origin")
    if origin is None or "*" in allowed or origin in allowed:
        return None
    parts = urlsplit(origin)
    if parts.netloc == headers.get("host") and parts.scheme in ("http", "https"):
        return None
    return f"pages of {origin[:200]} are not let in: server.cors does not name it"


class InternalApplication:
    """ASGI middleware that marks requests as internal."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, _PRIVATE: True}, receive, send)


def is_internal(scope: Scope) -> bool:
    """Whether the request is internal."""
    return _PRIVATE in scope


def internal_principal(scope: Scope) -> Principal:
    """The principal that an internal request is made for. Raises NotAuthenticated without one."""
    found = [value for name, value in scope["headers"] if name == _PRINCIPAL_HEADER]
    try:
        [text] = found
        return Principal.from_json(text.decode("ascii"))
    except ValueError:
        raise NotAuthenticated(f"the header {PRINCIPAL_HEADER} is missing or malformed") from None
