"""Routes of the graph port that let in whoever may do what they do, and nobody else."""

from collections.abc import Mapping, Sequence

from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from graphdb.access.permissions import Permission
from graphdb.access.principal import NOBODY
from graphdb.errors import Forbidden, GraphDBError
from serve.access.admitted import principal_of
from serve.access.audit import note_of
from serve.access.needs import GRAPH_NEEDS, WEBSOCKET, needed
from serve.errors import failure_response
from serve.routing import ByRawPath, methods_of, refuse_websocket

__all__ = ["guarded"]

_HOLONIC = "/holonic/{path:path}"
_METHODS_BEHIND = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_NO_ROLES = "nobody may write holons: there is no section [authorization]"


def guarded(routes: Sequence[BaseRoute], *, enforced: bool, has_roles: bool = True) -> Sequence[BaseRoute]:
    """The same routes, with a guard before each where permissions are enforced.

    has_roles: whether there is a section [authorization], without which nobody writes holons. Raises
    LookupError for a route of which nobody has said what it needs.
    """
    return [_guarded(route, enforced, has_roles) for route in routes]


def _guarded(route: BaseRoute, enforced: bool, has_roles: bool) -> BaseRoute:
    assert isinstance(route, Route | WebSocketRoute)
    guard: _Guard
    if isinstance(route, WebSocketRoute):
        guard = _Guard(route.app, route.path, {WEBSOCKET: needed(GRAPH_NEEDS, route.path, WEBSOCKET)})
        return WebSocketRoute(route.path, guard) if enforced else route
    methods = _METHODS_BEHIND if isinstance(route.app, ByRawPath) else methods_of(route)
    needs = {method: needed(GRAPH_NEEDS, route.path, method) for method in methods}
    closed = route.path == _HOLONIC and not has_roles
    guard = _Guard(route.app, route.path, needs, _NO_ROLES if closed else None)
    return Route(route.path, guard) if enforced else route


class _Guard:
    """Before one route. A method that the route does not have is answered by it to whoever may read."""

    def __init__(
        self, app: ASGIApp, path: str, needs: Mapping[str, Permission], writes_refused: str | None = None
    ) -> None:
        """path as the route has it; writes_refused: why nobody may write, where nobody may."""
        self._app, self._path, self._needs, self._writes_refused = app, path, needs, writes_refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_socket = scope["type"] == "websocket"
        need = self._needs.get(WEBSOCKET if is_socket else scope["method"], Permission.READ)
        note = note_of(scope)
        note.permission, note.route = need, self._path
        principal = principal_of(scope)
        # A socket whose client signs in by a message has no principal before.
        waits = is_socket and principal is NOBODY and getattr(self._app, "signs_in", False)
        try:
            if not waits:
                principal.require(need)
            if need > Permission.READ and self._writes_refused is not None:
                raise Forbidden(principal.name, need.word, self._writes_refused)
        except GraphDBError as error:
            note.refused(error)
            answer = failure_response(error)
            if is_socket:
                await receive()
                await refuse_websocket(answer, send)
            else:
                await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)
