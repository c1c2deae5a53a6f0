"""From which pages a browser may call: those of this service, and those that `server.cors` names."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers

__all__ = ["refused_origin"]


def refused_origin(headers: Headers, allowed: Sequence[str]) -> str | None:
    """Why the page that a request comes from is not let in; None where it is, or where there is none."""
    origin = headers.get("origin")
    if origin is None or "*" in allowed or origin in allowed:
        return None
    parts = urlsplit(origin)
    if parts.netloc == headers.get("host") and parts.scheme in ("http", "https"):
        return None
    return f"pages of {origin[:200]} are not let in: server.cors does not name it"
