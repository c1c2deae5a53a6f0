"""`/saved-queries`: queries that users keep in the service, for themselves or for everybody who may read."""

import re
from dataclasses import asdict
from typing import Annotated

import orjson
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphdb.access.permissions import Permission
from graphdb.access.principal import Principal
from graphdb.errors import NotFound
from graphdb.saved_queries import QueryDraft
from serve.access.request_scope import principal_of
from serve.backend import SavedQueries
from serve.bodies import JSON_TYPE, JsonBody, read_json
from serve.graph.writes import read_request_id
from serve.routing import resource

__all__ = ["SavedQueryBody", "saved_query_routes"]

_TEXT_CHARACTERS_MAX = 262_144
_BODY_BYTES_MAX = 1 << 20
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NOT_STORED = {"Cache-Control": "no-store"}


class SavedQueryBody(JsonBody):
    """A query to keep. view: how its answer is shown."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    query: Annotated[str, Field(min_length=1, max_length=_TEXT_CHARACTERS_MAX)]
    description: Annotated[str, Field(max_length=2_000)] = ""
    view: Annotated[str, Field(max_length=2_000)] | None = None
    shared: bool = False

    def draft(self) -> QueryDraft:
        return QueryDraft(self.name, self.description, self.query, self.view, self.shared)


def saved_query_routes(saved: SavedQueries) -> list[Route]:
    """The resources of saved queries."""
    endpoint = _SavedQueriesEndpoint(saved)
    return [
        resource("/saved-queries", get=endpoint.list, post=endpoint.create),
        resource("/saved-queries/{id}", get=endpoint.show, put=endpoint.replace, delete=endpoint.delete),
    ]


class _SavedQueriesEndpoint:
    """Whoever may read keeps queries of its own. To share one, or to change a shared one, needs Write."""

    def __init__(self, saved: SavedQueries) -> None:
        self._saved = saved

    async def list(self, request: Request) -> Response:
        found = self._saved.list(principal_of(request.scope))
        return _json({"queries": [asdict(one) for one in found]})

    async def show(self, request: Request) -> Response:
        return _json(asdict(self._saved.show(_id_of(request), principal_of(request.scope))))

    async def create(self, request: Request) -> Response:
        body = await read_json(request, SavedQueryBody, _BODY_BYTES_MAX)
        principal = principal_of(request.scope)
        _check_sharing(principal, body.shared)
        request_id = read_request_id(request, (body.model_dump_json(),))
        return _json(asdict(await self._saved.create(body.draft(), principal, request_id)))

    async def replace(self, request: Request) -> Response:
        body = await read_json(request, SavedQueryBody, _BODY_BYTES_MAX)
        principal, query_id = principal_of(request.scope), _id_of(request)
        known = self._saved.show(query_id, principal)
        _check_sharing(principal, body.shared or known.shared)
        request_id = read_request_id(request, (body.model_dump_json(),))
        return _json(asdict(await self._saved.replace(query_id, body.draft(), principal, request_id)))

    async def delete(self, request: Request) -> Response:
        request_id = read_request_id(request, ())
        await self._saved.delete(_id_of(request), principal_of(request.scope), request_id)
        return _json({"success": True})


def _check_sharing(principal: Principal, is_shared: bool) -> None:
    """Raises Forbidden."""
    if is_shared:
        principal.require(Permission.WRITE)


def _id_of(request: Request) -> str:
    """The id in the path. Raises NotFound for what cannot be one."""
    text: str = request.path_params["id"]
    if not _ID.fullmatch(text):
        raise NotFound("saved query", text[:100])
    return text


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), headers=_NOT_STORED, media_type=JSON_TYPE)
