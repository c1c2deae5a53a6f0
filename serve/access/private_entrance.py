"""The entrance for the service's own processes: whoever comes through it is believed.

It is served on a Unix domain socket that this user alone can open, or called by what other nodes ask; never
on a port. Who such a request is made for stands in one of its headers; one that says nothing is refused.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from graphdb.access.principal import Principal
from graphdb.errors import NotAuthenticated

__all__ = ["PRINCIPAL_HEADER", "PrivateEntrance", "given_principal", "is_private"]

PRINCIPAL_HEADER = "X-Graphdb-Principal"
_NAME = PRINCIPAL_HEADER.lower().encode()
_PRIVATE = "graphdb.private"  # in the scope, where no client can put anything


class PrivateEntrance:
    """The same application, for those who have let each other in already."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, _PRIVATE: True}, receive, send)


def is_private(scope: Scope) -> bool:
    """Whether the request came this way."""
    return _PRIVATE in scope


def given_principal(scope: Scope) -> Principal:
    """For whom it was made. Raises NotAuthenticated where it does not say so."""
    found = [value for name, value in scope["headers"] if name == _NAME]
    try:
        [text] = found
        return Principal.from_json(text.decode("ascii"))
    except ValueError:
        raise NotAuthenticated(f"the header {PRINCIPAL_HEADER} is missing or malformed") from None
