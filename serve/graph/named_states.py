"""`/snapshots`: states of the past that have a name, and are kept for as long as they have it."""

from collections.abc import Callable
from dataclasses import asdict

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphdb.errors import IndexNotReached, InvalidParameter
from graphdb.history.named_states import KeptState
from graphdb.model import Interface
from graphdb.timestamps import iso_timestamp
from serve.access.request_scope import author_of
from serve.backend import NamedStates
from serve.bodies import JSON_TYPE
from serve.graph.answer_shapes import NamedStateList, NamedStateRecord
from serve.graph.history import HistoryEndpoint
from serve.graph.writes import read_request_id
from serve.parameters import Parameters
from serve.routing import resource

__all__ = ["named_state_routes"]

_NOT_STORED = {"Cache-Control": "no-store"}


def named_state_routes(
    named: NamedStates, history: HistoryEndpoint, index: Callable[[], dict[str, str]]
) -> list[Route]:
    """The resources of named states. history reads moments."""
    endpoint = _NamedStatesEndpoint(named, history, index)
    return [
        resource("/snapshots", index, get=endpoint.list),
        resource("/snapshots/{name}", index, get=endpoint.show, put=endpoint.create, delete=endpoint.delete),
    ]


class _NamedStatesEndpoint:
    """Names are the same for everybody; a name shows nothing of the state that its reader may not see."""

    def __init__(
        self, named: NamedStates, history: HistoryEndpoint, index: Callable[[], dict[str, str]]
    ) -> None:
        self._named, self._history, self._index = named, history, index

    async def list(self, request: Request) -> Response:
        records = [_record(kept) for kept in await self._named.list()]
        return self._json(asdict(NamedStateList(records)))

    async def show(self, request: Request) -> Response:
        return self._json(asdict(_record(await self._named.show(request.path_params["name"]))))

    async def create(self, request: Request) -> Response:
        name: str = request.path_params["name"]
        parameters = Parameters(request.scope["query_string"])
        request_id = read_request_id(request, (parameters.one("at") or "",))
        at = await self._history.moment("at", parameters)
        if at is None:  # what was confirmed before belongs to it, whichever node confirmed it
            await self._history.reach_present()
        author = author_of(request.scope, Interface.UNKNOWN)
        try:
            made = await self._named.create(name, at, author.name, request_id)
        except IndexNotReached as error:  # the node was opened again meanwhile
            raise InvalidParameter("at", str(error)) from None
        return self._json(asdict(_record(made)))

    async def delete(self, request: Request) -> Response:
        await self._named.delete(request.path_params["name"], read_request_id(request, ()))
        return self._json({"success": True})

    def _json(self, value: object) -> Response:
        return Response(orjson.dumps(value), headers=_NOT_STORED | self._index(), media_type=JSON_TYPE)


def _record(kept: KeptState) -> NamedStateRecord:
    state = kept.state
    return NamedStateRecord(
        state.name,
        state.log_index,
        iso_timestamp(state.named_at_ms),
        state.named_by or None,
        kept.is_kept,
        kept.history_bytes,
    )
