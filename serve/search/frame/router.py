"""`SearchRouter`: finds the operation that answers a request; 400 and 405 without one.

Plain ASGI. It matches the path before it is decoded, so that an id may hold a slash (`%2F`), and catches
whatever an operation raises.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphdb.access.permissions import Permission
from graphdb.config import Settings
from graphdb.errors import Forbidden, GraphDBError
from graphdb.search.errors import SearchError, illegal_argument
from serve.access.audit import note_of
from serve.access.authorization import SEARCH_PERMISSIONS, PermissionTable, required_permission
from serve.access.request_scope import principal_of
from serve.answers import AnswerBroken
from serve.search.backend import SearchBackend
from serve.search.frame.answer import PRODUCT, Answer, failure, internal, rendered
from serve.search.frame.exchange import Body, Endpoint, Exchange, MediaType, SearchWork, content_type
from serve.search.frame.parameters import Parameters, decoded
from serve.search.frame.tasks import Tasks
from serve.search.frame.visible_node import VisibleNodes

__all__ = ["SearchRouter"]

log = logging.getLogger(__name__)

_READ = {
    Body.JSON: frozenset({"application/json"}),
    Body.LINES: frozenset({"application/json", "application/x-ndjson"}),
}
# Elasticsearch's types of errors for input that is refused before it is a request, by status.
_UNREAD = {
    408: "timeout_exception",
    414: "too_long_http_line_exception",
    431: "too_long_http_header_exception",
    503: "es_rejected_execution_exception",
}


@dataclass(frozen=True, slots=True)
class _Placed:
    endpoint: Endpoint
    names: tuple[str, ...]  # of the path
    need: Permission


@dataclass(slots=True)
class _Place:
    """A node of the tree of paths: below it, by literal segments and by a name."""

    literal: dict[str, "_Place"] = field(default_factory=dict)
    named: "_Place | None" = None
    endpoints: dict[str, "_Placed"] = field(default_factory=dict)  # by method

    def add(self, endpoint: Endpoint, needs: PermissionTable) -> None:
        place, names = self, []
        for segment in _segments(endpoint.path):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                place.named = place.named or _Place()
                place = place.named
            else:
                place = place.literal.setdefault(segment, _Place())
        for method in endpoint.methods:
            assert method not in place.endpoints, f"two operations at {method} {endpoint.path}"
            need = required_permission(needs, endpoint.path, method)
            place.endpoints[method] = _Placed(endpoint, tuple(names), need)

    def find(self, segments: Sequence[str], values: tuple[str, ...] = ()) -> "list[_Found]":
        """All places that the path leads to, those with literal segments first."""
        if not segments:
            return [_Found(self, values)] if self.endpoints else []
        head, rest = segments[0], segments[1:]
        found = self.literal[head].find(rest, values) if head in self.literal else []
        if self.named is not None:
            found += self.named.find(rest, (*values, head))
        return found


@dataclass(frozen=True, slots=True)
class _Found:
    place: _Place
    values: tuple[str, ...]  # of the named segments, in order, encoded


class SearchRouter:
    """The whole application."""

    def __init__(
        self,
        node: SearchBackend,
        settings: Settings,
        work: SearchWork,
        endpoints: Sequence[Endpoint],
        needs: PermissionTable = SEARCH_PERMISSIONS,
    ) -> None:
        """Raises LookupError for an endpoint without a permission in needs."""
        self._nodes, self._settings, self._work = VisibleNodes(node), settings, work
        self._tasks = Tasks(node.now_ms())
        self.endpoints = tuple(endpoints)
        self._root = _Place()
        for endpoint in endpoints:
            self._root.add(endpoint, needs)
        self._depth = max(endpoint.path.count("/") for endpoint in endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
            await response(scope, receive, send)
        except AnswerBroken:
            raise
        except ClientDisconnect:
            log.debug("a client went away before its request was complete")

    def malformed(self, message: str, status: int = 400) -> Response:
        """The response to input that is refused before it is a request."""
        answer = failure(SearchError(_UNREAD.get(status, "illegal_argument_exception"), message, status))
        return _plain(answer.value, answer.status)

    def refusal(self, error: GraphDBError) -> Response:
        """The answer to a request that does not even get here."""
        answer = failure(error)
        return _plain(answer.value, answer.status, dict(answer.headers))

    async def _answer(self, request: Request) -> Response:
        exchange: Exchange | None = None
        try:
            found = self._find(request)
            chosen = next((one for one in found if request.method in one.place.endpoints), None)
            if chosen is None:
                return _nobody(request, found)
            placed = chosen.place.endpoints[request.method]
            endpoint, note = placed.endpoint, note_of(request.scope)
            note.permission, note.route = placed.need, endpoint.path
            values = {
                name: decoded(value.encode("latin-1"))
                for name, value in zip(placed.names, chosen.values, strict=True)
            }
            if "index" in values:
                note.add_index(values["index"])
            principal = principal_of(request.scope)
            principal.require(placed.need)
            refused = _refused_type(request, endpoint)
            if refused is not None:
                return refused
            parameters = Parameters.of(request.scope["query_string"])
            node = self._nodes.of(principal)
            exchange = Exchange(node, self._settings, self._work, request, values, parameters, self._tasks)
            return await _performed(exchange, endpoint)
        except ClientDisconnect:
            raise
        except GraphDBError as error:
            if isinstance(error, Forbidden):
                note_of(request.scope).refused(error)
            return await _failed(exchange, error)
        except Exception as error:
            log.debug("%s %s failed", request.method, request.scope["path"], exc_info=True)
            return await _failed(exchange, internal(error))

    def _find(self, request: Request) -> list[_Found]:
        segments = _segments(_raw_path(request))
        return self._root.find(segments) if len(segments) <= self._depth else []


async def _performed(exchange: Exchange, endpoint: Endpoint) -> Response:
    exchange.parameters.check(exchange.path, endpoint.parameters)
    if endpoint.body is Body.NONE and _has_body(exchange.request):
        raise illegal_argument(f"request [{exchange.method} {exchange.path}] does not support having a body")
    result = await endpoint.handler(exchange)
    return await rendered(exchange, result if isinstance(result, Answer) else Answer(result))


async def _failed(exchange: Exchange | None, error: GraphDBError) -> Response:
    answer = failure(error)
    if exchange is not None:
        try:
            return await rendered(exchange, answer)
        except GraphDBError:
            log.debug("the parameters that say how to answer are wrong themselves: %s", error)
    return _plain(answer.value, answer.status, dict(answer.headers))


def _refused_type(request: Request, endpoint: Endpoint) -> Response | None:
    """406 where the body is of a type that the operation does not read."""
    header = request.headers.get("content-type")
    if endpoint.body is Body.NONE or not _has_body(request):
        return None
    if not header:
        return _plain({"error": "Content-Type header is missing", "status": 406}, 406)
    found = content_type(header)
    if found.name in _READ[endpoint.body]:
        return None
    return _plain({"error": f"Content-Type header [{header[:200]}] is not supported", "status": 406}, 406)


def _nobody(request: Request, found: list[_Found]) -> Response:
    """Another method is meant, or another path."""
    uri, allowed = _uri(request), sorted({method for one in found for method in one.place.endpoints})
    if not allowed:
        text = f"no handler found for uri [{uri}] and method [{request.method}]"
        return _plain({"error": text}, 400)
    headers = {"Allow": ",".join(allowed)}
    if request.method == "OPTIONS":
        return Response(status_code=200, headers={**PRODUCT, **headers})
    text = f"Incorrect HTTP method for uri [{uri}] and method [{request.method}]"
    text += f", allowed: [{', '.join(allowed)}]"
    return _plain({"error": text, "status": 405}, 405, headers)


def _plain(body: object, status: int, headers: dict[str, str] | None = None) -> Response:
    """An answer that no operation gave."""
    media_type = MediaType("application/json").of_answer()
    return Response(orjson.dumps(body), status, {**PRODUCT, **(headers or {})}, media_type)


def _has_body(request: Request) -> bool:
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def _uri(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return _raw_path(request) + (f"?{query}" if query else "")


def _raw_path(request: Request) -> str:
    raw: bytes = request.scope["raw_path"]
    return raw.partition(b"?")[0].decode("latin-1")


def _segments(path: str) -> list[str]:
    """Slashes at the end say nothing."""
    return path.rstrip("/").split("/")[1:]
