"""Which pages may open a WebSocket here."""

from collections.abc import Container
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

__all__ = ["origin_refusal"]


def origin_refusal(scope: Scope, allowed: Container[str]) -> str | None:
    """Why the page that a handshake comes from is not let in; None where it is, or it comes from no page.

    A browser sends cookies and reaches loopback from whatever page: so pages have to be let in. allowed is
    `server.cors`; the service's own pages are always.
    """
    headers = Headers(raw=scope["headers"])
    origin = headers.get("origin")
    if origin is None or "*" in allowed or origin in allowed:
        return None
    if urlsplit(origin).netloc == headers.get("host") and urlsplit(origin).scheme in ("http", "https"):
        return None
    return f"pages of {origin[:200]} are not let in: server.cors does not name it"
