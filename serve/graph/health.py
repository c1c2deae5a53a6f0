"""`/health`: how the node is, in the shape of the interface's health record."""

from collections.abc import Callable
from dataclasses import asdict, replace

import orjson
from starlette.requests import Request
from starlette.responses import Response

from graphdb.node import NodeStatus, worse_status
from serve.backend import Admin, Changes

__all__ = ["HealthEndpoint", "node_health"]


class HealthEndpoint:
    """GET /health: 200 while requests are served, 503 with the same record while they are not."""

    def __init__(self, changes: Changes, admin: Admin, search_word: Callable[[], str] | None) -> None:
        """search_word: how the node's search port is: healthy, degraded, starting. None where it has none."""
        self._changes, self._admin = changes, admin
        self._search_word = search_word

    async def get(self, _request: Request) -> Response:
        status = node_health(self._admin.status(), self._search_word)
        record = {**asdict(status), "embedded_store": asdict(self._changes.embedded_store())}
        if status.reason is None:
            del record["reason"]
        code = 200 if status.status in ("healthy", "degraded") else 503
        headers = {"Cache-Control": "no-store"} | ({"Retry-After": "1"} if code == 503 else {})
        return Response(orjson.dumps(record), code, headers, media_type="application/json")


def node_health(graph: NodeStatus, search_word: Callable[[], str] | None) -> NodeStatus:
    """The status of the whole node, all of whose ports are to take requests."""
    if search_word is None:
        return graph
    return replace(graph, status=worse_status(graph.status, search_word()))
