"""`/health`: how the node is, in the shape of the interface's health record."""

from dataclasses import asdict

import orjson
from starlette.requests import Request
from starlette.responses import Response

from serve.backend import Backend

__all__ = ["HealthEndpoint"]


class HealthEndpoint:
    """GET /health: 200 while requests are served, 503 with the same record while they are not."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def get(self, _request: Request) -> Response:
        status = self._backend.status()
        record = {**asdict(status), "embedded_store": asdict(self._backend.embedded_store())}
        code = 200 if status.status in ("healthy", "degraded") else 503
        headers = {"Cache-Control": "no-store"} | ({"Retry-After": "1"} if code == 503 else {})
        return Response(orjson.dumps(record), code, headers, media_type="application/json")
