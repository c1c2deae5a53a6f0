"""`/alerts`: queries that are evaluated at an interval, and webhooks that are called with their answers."""

from typing import Literal

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphdb.alerts.definition import Definition
from serve.access.request_scope import principal_of
from serve.answers import unless_gone
from serve.backend import AlertRequests
from serve.bodies import JSON_TYPE, JsonBody, read_body, read_json
from serve.graph.writes import read_request_id
from serve.parameters import read_path_text
from serve.routing import ByRawPath, not_found, resource

__all__ = ["AlertBody", "alert_routes"]

_BODY_BYTES_MAX = 4 << 20
_NO_BODY_BYTES_MAX = 65_536


class AlertBody(JsonBody):
    """An alert to create."""

    name: str
    query: str
    condition: str
    interval_seconds: int
    webhook: str
    notify: Literal["interval", "change"] = "interval"
    secret: str | None = None


def alert_routes(alerts: AlertRequests, body_bytes_max: int) -> list[Route]:
    """The resources of alerts."""
    endpoint = _AlertsEndpoint(alerts, min(body_bytes_max, _BODY_BYTES_MAX))
    named = [
        resource("/alerts/{alert}", get=endpoint.show, delete=endpoint.delete),
        resource("/alerts/{alert}/pause", post=endpoint.pause),
        resource("/alerts/{alert}/resume", post=endpoint.resume),
        resource("/alerts/{alert}/history", get=endpoint.history),
        resource("/alerts/{alert}/test", post=endpoint.test),
    ]
    return [
        resource("/alerts", get=endpoint.list, post=endpoint.create),
        Route("/alerts/{path:path}", ByRawPath(named, not_found)),
    ]


class _AlertsEndpoint:
    def __init__(self, alerts: AlertRequests, body_bytes_max: int) -> None:
        self._alerts, self._body_bytes_max = alerts, body_bytes_max

    def _of(self, request: Request) -> AlertRequests:
        """The alerts that the principal may access."""
        return self._alerts.of(principal_of(request.scope))

    async def list(self, request: Request) -> Response:
        return _json({"alerts": self._of(request).show_all()})

    async def create(self, request: Request) -> Response:
        body = await read_json(request, AlertBody, self._body_bytes_max)
        request_id = read_request_id(request, (body.model_dump_json(),))
        definition = Definition(**body.model_dump())
        return _json(await self._of(request).create(definition, request_id))

    async def show(self, request: Request) -> Response:
        return _json(self._of(request).show(_named(request)))

    async def delete(self, request: Request) -> Response:
        await self._of(request).delete(_named(request), read_request_id(request, ()))
        return _json({"success": True})

    async def pause(self, request: Request) -> Response:
        await read_body(request, _NO_BODY_BYTES_MAX)
        return _json(await self._of(request).pause(_named(request), read_request_id(request, ())))

    async def resume(self, request: Request) -> Response:
        await read_body(request, _NO_BODY_BYTES_MAX)
        return _json(await self._of(request).resume(_named(request), read_request_id(request, ())))

    async def history(self, request: Request) -> Response:
        return _json({"history": self._of(request).history(_named(request))})

    async def test(self, request: Request) -> Response:
        await read_body(request, _NO_BODY_BYTES_MAX)
        return _json(await unless_gone(request, self._of(request).test(_named(request))))


def _named(request: Request) -> str:
    """The id or name in the path."""
    return read_path_text(request.path_params["alert"])


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), media_type=JSON_TYPE)
