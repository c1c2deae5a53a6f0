"""`/mcp`: the Model Context Protocol over streamable HTTP, without sessions. A tool's requests go through the
application as those of its caller, and so with the caller's rights.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from graphdb.errors import Forbidden, Overloaded, UnavailableError
from graphdb.model import Interface
from serve.access.request_scope import INTERFACE, principal_of, refused_origin
from serve.graph.local_search import LocalSearch
from serve.inner_requests import ask_within
from serve.mcp.graph_calls import ANSWER_BYTES_MAX, Reply, ToolFailure

__all__ = ["McpEndpoint"]

_BODY_BYTES_MAX = 4 << 20
_CALLS_MAX = 64
_FORM = b"application/x-www-form-urlencoded"

_scope: ContextVar[Scope] = ContextVar("mcp_scope")


class McpEndpoint:
    """POST of /mcp; without sessions, GET and DELETE mean nothing. Owned by the application, on its loop.

    The package `mcp` is imported at the first request.
    """

    def __init__(self, origins: tuple[str, ...], search: LocalSearch | None, *, may_update: bool) -> None:
        """origins: those of `server.cors`. search: None without a search port. may_update: offer the tool
        update.
        """
        self._origins, self._search, self._may_update = origins, search, may_update
        self.application: ASGIApp | None = None  # takes the requests of tools; set before the first request
        self._manager: Any = None
        self._running: asyncio.Task[None] | None = None
        self._starting, self._ends = asyncio.Lock(), asyncio.Event()
        self._calls = 0

    async def handle(self, request: Request) -> Response:
        """One message of a client, and its answer."""
        refused = refused_origin(request.headers, self._origins)
        if refused is not None:
            raise Forbidden(principal_of(request.scope).name, "Read", refused)
        if self._calls >= _CALLS_MAX:
            raise Overloaded("too many calls of tools are under way")
        if self._manager is None:
            await self._start()
        return _Handled(self)

    async def stop(self) -> None:
        """End what is under way."""
        self._ends.set()
        if self._running is not None:
            await self._running

    async def _start(self) -> None:
        async with self._starting:
            if self._manager is not None:
                return
            make_manager = await asyncio.to_thread(_import_manager)
            has_search = self._search is not None
            manager = make_manager(self._calls_for, has_search, self._may_update, _BODY_BYTES_MAX)
            ready = asyncio.Event()
            self._running = asyncio.create_task(self._run(manager, ready))
            await ready.wait()
            self._manager = manager

    async def _run(self, manager: Any, ready: asyncio.Event) -> None:
        async with manager.run():
            ready.set()
            await self._ends.wait()

    def _calls_for(self, _context: Any) -> "InnerCalls":
        assert self.application is not None
        return InnerCalls(self.application, _scope.get(), self._search)

    async def take(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the package."""
        self._calls += 1
        token = _scope.set(scope)
        try:
            await self._manager.handle_request(scope, receive, send)
        finally:
            _scope.reset(token)
            self._calls -= 1


def _import_manager() -> Any:
    """What makes the manager of the package's transport. It takes a second of processor time."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from serve.mcp.mcp_server import make_server

    logging.getLogger("mcp").setLevel(logging.WARNING)

    def make(calls_for: Any, may_search: bool, may_update: bool, bytes_max: int) -> Any:
        server = make_server(calls_for, may_search=may_search, may_update=may_update)
        return StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=bytes_max
        )

    return make


class _Handled(Response):
    """The answer that the package gives."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        super().__init__()
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint.take(scope, receive, send)


class InnerCalls:
    """See `GraphCalls`: requests within the application, as the principal of the request in scope."""

    def __init__(self, application: ASGIApp, scope: Scope, search: LocalSearch | None) -> None:
        self._application, self._scope, self._search = application, scope, search

    @property
    def has_search(self) -> bool:
        """See `GraphCalls.has_search`."""
        return self._search is not None

    async def graph(
        self,
        path: str,
        form: Mapping[str, str],
        *,
        accept: str = "application/json",
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> Reply:
        """See `GraphCalls.graph`."""
        body = urlencode(form).encode()
        kept = [(name, value) for name, value in self._scope["headers"] if name == b"host"]
        headers = [*kept, (b"accept", accept.encode()), (b"content-type", _FORM)]
        headers.append((b"content-length", b"%d" % len(body)))
        scope = {
            **{name: value for name, value in self._scope.items() if name not in ("state", "path_params")},
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            INTERFACE: Interface.MCP,
        }
        answer = await ask_within(self._application, scope, body, bytes_max)
        kept_headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
        return Reply(answer.status, kept_headers, answer.body, answer.is_complete)

    async def search(self, path: str, body: Mapping[str, Any]) -> Reply:
        """See `GraphCalls.search`. Like a search in a query, it finds what its caller may find."""
        assert self._search is not None
        try:
            answer = await self._search.post(path, body, principal_of(self._scope))
        except UnavailableError as error:
            raise ToolFailure(str(error)) from None
        return Reply(answer.status_code, dict(answer.headers), answer.content)
