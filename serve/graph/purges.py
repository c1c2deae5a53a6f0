"""`/history/purge`: takes a resource or a graph from all states there were. `PurgeMark`: tells whoever reads
such a state.
"""

from collections.abc import Callable
from dataclasses import asdict

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphdb.errors import Forbidden, InvalidParameter, UnavailableError
from graphdb.history.purges import PurgeRecord
from graphdb.history.purging import PurgeScope
from graphdb.model import Interface
from graphdb.timestamps import iso_timestamp
from serve.access.request_scope import author_of, visibility_of
from serve.backend import Purges
from serve.bodies import JSON_TYPE
from serve.graph.answer_shapes import PurgeList, PurgeShown
from serve.graph.writes import read_request_id
from serve.parameters import Parameters, read_graph_iri
from serve.routing import resource

__all__ = ["PURGED_HEADER", "PurgeMark", "purge_routes"]

PURGED_HEADER = "X-History-Purged"
_HEADER = PURGED_HEADER.lower().encode()
_INDEX = b"x-snapshot-index"
_NOT_STORED = {"Cache-Control": "no-store"}


def purge_routes(purges: Purges, index: Callable[[], dict[str, str]], timeout_s: float) -> list[Route]:
    """The resource of purges. timeout_s: how long a request waits for one to be done."""
    endpoint = _PurgeEndpoint(purges, index, timeout_s)
    return [resource("/history/purge", index, get=endpoint.list, post=endpoint.purge)]


class _PurgeEndpoint:
    """Who may administer sees all purges; what was purged is never shown."""

    def __init__(self, purges: Purges, index: Callable[[], dict[str, str]], timeout_s: float) -> None:
        self._purges, self._index, self._timeout_s = purges, index, timeout_s

    async def list(self, request: Request) -> Response:
        """The purges there were, in the order of the log."""
        found = PurgeList([_shown(record) for record in self._purges.list()])
        return self._json(asdict(found), 200)

    async def purge(self, request: Request) -> Response:
        """Purge a resource or a graph: 200 once no node has it, 202 while some node is still at it."""
        parameters = Parameters(request.scope["query_string"])
        request_id = read_request_id(request, ())
        given = [(kind, text) for kind in ("resource", "graph") if (text := parameters.one(kind)) is not None]
        if len(given) != 1:
            raise InvalidParameter("resource", "has to be given, or graph in its place: an IRI")
        author = author_of(request.scope, Interface.PURGE)
        if not visibility_of(request.scope).is_whole:
            raise Forbidden(author.name, "Admin", "only who sees the whole graph may purge anything of it")
        [(kind, text)] = given
        iri = read_graph_iri(kind, text).value
        scope = PurgeScope("resource" if kind == "resource" else "graph", iri)
        record = await self._purges.purge(scope, author.name, request_id, self._timeout_s)
        return self._json(asdict(_shown(record)), 200 if record.is_done else 202)

    def _json(self, value: object, status: int) -> Response:
        headers = _NOT_STORED | self._index()
        return Response(orjson.dumps(value), status, headers=headers, media_type=JSON_TYPE)


def _shown(record: PurgeRecord) -> PurgeShown:
    return PurgeShown(
        record.log_index,
        record.kind,
        iso_timestamp(record.purged_at_ms),
        record.purged_by or None,
        record.is_done,
        list(record.waiting),
        record.digest,
        record.salt,
    )


class PurgeMark:
    """ASGI middleware: answers of a state before the last purge have its log index in X-History-Purged."""

    def __init__(self, app: ASGIApp, last_index: Callable[[], int]) -> None:
        """last_index: see `serve.backend.Purges`."""
        self._app, self._last_index = app, last_index

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (last_index := self._known()):
            return await self._app(scope, receive, send)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                index = next((value for name, value in headers if name == _INDEX), None)
                if index is not None and int(index) < last_index:
                    message = {**message, "headers": [*headers, (_HEADER, b"%d" % last_index)]}
            await send(message)

        await self._app(scope, receive, marked)

    def _known(self) -> int:
        try:
            return self._last_index()
        except UnavailableError:
            return 0
