"""The IRI that a request was sent to, as the client knows it."""

import re
from functools import lru_cache

from starlette.requests import Request

from graphdb.errors import InvalidParameter

__all__ = ["request_iri"]

_AUTHORITY = re.compile(
    r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+(?::\d*)?|\[[0-9A-Fa-f:.]+\](?::\d*)?", re.ASCII
)


def request_iri(request: Request) -> str:
    """The request's absolute IRI without its query, percent-encoding as sent.

    Raises InvalidParameter for a Host header that is no authority: the IRI would be none either.
    """
    host = request.headers.get("host") or _own_address(request)
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    return f"{request.scope['scheme']}://{_authority(host)}{path.decode('latin-1')}"


@lru_cache(maxsize=256)
def _authority(host: str) -> str:
    if not _AUTHORITY.fullmatch(host):
        raise InvalidParameter("Host", f"{host!r} is not a host with an optional port")
    return host


def _own_address(request: Request) -> str:
    """For HTTP/1.0, which needs no Host header."""
    host, port = request.scope.get("server") or ("localhost", None)
    return f"{host}:{port}" if port else host
