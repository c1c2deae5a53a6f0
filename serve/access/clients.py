"""The address that a request comes from, behind proxies that are trusted too."""

from starlette.types import Scope

from graphdb.access.lockout import TrustedProxies

__all__ = ["address_of"]

_FORWARDED = b"x-forwarded-for"


def address_of(scope: Scope, proxies: TrustedProxies) -> str:
    """The client's; empty where the connection has none."""
    client = scope.get("client")
    peer = str(client[0]) if client else ""
    forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
    return proxies.client(peer, forwarded)
