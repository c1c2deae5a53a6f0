"""Resources: one path with its methods, including HEAD and OPTIONS, and the responses to its errors.

Each is plain ASGI and catches its own errors, so no middleware is needed between the server and a handler.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from graphdb.errors import GraphDBError
from graphdb.store.engine_errors import disk_failure
from serve.answers import AnswerBroken
from serve.errors import error_response, failure_response

__all__ = [
    "ByRawPath",
    "Failed",
    "Handler",
    "Responding",
    "methods_of",
    "not_found",
    "refuse_websocket",
    "resource",
    "resource_where",
    "responding",
    "without_body",
]

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Failed: TypeAlias = Callable[[GraphDBError, Mapping[str, str]], Response]
"""Makes the response to an error, with further headers, as `failure_response` does."""

Responding: TypeAlias = Callable[[Handler], ASGIApp]
"""Makes ASGI of a handler. An error of it becomes a response with its status."""

log = logging.getLogger(__name__)


class _Resource:
    """One handler for each method. An error of a handler becomes a response with its status."""

    def __init__(
        self,
        handlers: dict[str, Handler],
        failure_headers: Callable[[], dict[str, str]],
        failed: Failed,
        only: Mapping[str, str],
    ) -> None:
        self._handlers, self._failed, self._only = handlers, failed, only
        self._failure_headers = failure_headers
        self.methods = tuple(handlers)
        self._allow = {"Allow": ", ".join([*handlers, "OPTIONS"])}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if any(scope["path_params"][name] != value for name, value in self._only.items()):
            return await not_found(scope, receive, send)
        handler = self._handlers.get(scope["method"], self._other_method)
        await _respond(handler, self._failure_headers, self._failed, scope, receive, send)

    async def _other_method(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=self._allow)
        return error_response(405, f"{request.method} is not allowed here", self._allow)


async def _respond(
    handler: Handler,
    failure_headers: Callable[[], dict[str, str]],
    failed: Failed,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    try:
        response = await handler(Request(scope, receive))
        await response(scope, receive, send)
    except AnswerBroken:
        raise
    except ClientDisconnect:
        log.debug("a client went away before its request was complete")
    except GraphDBError as error:
        await failed(error, failure_headers())(scope, receive, send)
    except Exception as error:
        ours = disk_failure(error)
        if ours is not None:
            await failed(ours, failure_headers())(scope, receive, send)
            return
        log.exception("%s %s failed", scope["method"], scope["path"])
        await error_response(500, "internal server error")(scope, receive, send)


def responding(failure_headers: Callable[[], dict[str, str]]) -> Responding:
    """What makes ASGI of a handler, as `resource` does."""
    return lambda handler: partial(_respond, handler, failure_headers, failure_response)


def resource(
    path: str,
    failure_headers: Callable[[], dict[str, str]] = dict,
    failed: Failed = failure_response,
    **handlers: Handler,
) -> Route:
    """A route with one handler for each method, such as `get=read`; the handler of GET also answers HEAD.

    failure_headers makes further headers of the responses to failed requests, and failed those responses.
    """
    return resource_where({}, path, failure_headers, failed, **handlers)


def resource_where(
    only: Mapping[str, str],
    path: str,
    failure_headers: Callable[[], dict[str, str]],
    failed: Failed,
    **handlers: Handler,
) -> Route:
    """As `resource`. only: the values of parameters of the path with which the path is known."""
    by_method = {method.upper(): handler for method, handler in handlers.items()}
    if "GET" in by_method:
        by_method["HEAD"] = by_method["GET"]
    return Route(path, _Resource(by_method, failure_headers, failed, only))


class ByRawPath:
    """Routes by the percent-encoded path, so that a name in it may contain slashes. Parameters of the path
    are still encoded: see `serve.parameters.read_path_text`.
    """

    def __init__(self, routes: Sequence[Route], otherwise: ASGIApp) -> None:
        self.routes = routes
        self._router = Router(routes, redirect_slashes=False, default=otherwise)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw_path = scope.get("raw_path") or scope["path"].encode()
        await self._router({**scope, "path": raw_path.decode("latin-1")}, receive, send)


def methods_of(route: Route) -> tuple[str, ...]:
    """The methods that a route made by `resource` has a handler for."""
    assert isinstance(route.app, _Resource), f"{route.path} is no resource"
    return route.app.methods


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """ASGI: answers requests to unknown paths."""
    answer = error_response(404, f"there is nothing at {scope['path']}")
    if scope["type"] == "websocket":
        await receive()
        await refuse_websocket(answer, send)
    else:
        await answer(scope, receive, send)


async def refuse_websocket(answer: Response, send: Send) -> None:
    """Answer a WebSocket handshake that the application has received like any other request."""
    head = {"status": answer.status_code, "headers": answer.raw_headers}
    await send({"type": "websocket.http.response.start", **head})
    await send({"type": "websocket.http.response.body", "body": bytes(answer.body)})


def without_body(headers: dict[str, str], status: int = 200) -> Response:
    """A response without a body: to HEAD, with the headers of GET as far as they are known; or a 304."""
    response = Response(status_code=status, headers=headers)
    del response.headers["content-length"]
    return response
