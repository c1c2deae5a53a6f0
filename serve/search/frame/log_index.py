"""Searches on behalf of a query of the graph: they wait for the log index that the query reads."""

import contextlib
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from graphdb.errors import GraphDBError
from serve.access.request_scope import is_internal

__all__ = ["LOG_INDEX_HEADER", "AtLogIndex", "Reach"]

LOG_INDEX_HEADER = "x-log-index"
_HEADER = LOG_INDEX_HEADER.encode()

Reach = Callable[[str, int], Awaitable[None]]


class AtLogIndex:
    """ASGI middleware. An internal request with the header waits until its index has that log entry."""

    def __init__(self, app: ASGIApp, reach: Reach) -> None:
        """reach: waits until an index has a log entry, see `SearchNode.reach`. Where it fails, the
        application says why.
        """
        self._app, self._reach = app, reach

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_internal(scope):
            given = [value for name, value in scope["headers"] if name == _HEADER]
            if given:
                with contextlib.suppress(GraphDBError):  # the same befalls the request
                    await self._reach(unquote(scope["path"].split("/")[1]), int(given[0]))
        await self._app(scope, receive, send)
