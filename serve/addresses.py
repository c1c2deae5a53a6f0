"""The IRI that a request was sent to, as the client knows it."""

import re
from functools import lru_cache

from starlette.requests import Request

from graphdb.errors import InvalidParameter

__all__ = ["is_authority", "request_iri"]

_AUTHORITY = re.compile(rb"(?:(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_AUTHORITY_BYTES_MAX = 512


@lru_cache(maxsize=256)
def is_authority(host: bytes) -> bool:
    """Whether a Host header says a host, and a port where it has one (RFC 9110, section 7.2)."""
    return len(host) <= _AUTHORITY_BYTES_MAX and _AUTHORITY.fullmatch(host) is not None


def request_iri(request: Request) -> str:
    """The request's absolute IRI without its query, percent-encoding as sent.

    Raises InvalidParameter for a Host header that is no authority: the IRI would be none either.
    """
    host = request.headers.get("host") or _own_address(request)
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    return f"{request.scope['scheme']}://{_authority(host)}{path.decode('latin-1')}"


def _authority(host: str) -> str:
    if not is_authority(host.encode("latin-1")):
        raise InvalidParameter("Host", f"{host!r} is not a host with an optional port")
    return host


def _own_address(request: Request) -> str:
    """For HTTP/1.0, which needs no Host header."""
    host, port = request.scope.get("server") or ("localhost", None)
    if ":" in host:  # IPv6; a zone means something to this machine alone (RFC 6874)
        host = f"[{host.partition('%')[0]}]"
    return f"{host}:{port}" if port else host
