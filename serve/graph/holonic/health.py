"""/holonic/health: whether the holonic interface is there; it is asked before anybody knows."""

import orjson
from starlette.requests import Request
from starlette.responses import Response

from graphdb.config.service import Holonic
from serve.json_bodies import JSON_TYPE

__all__ = ["HolonicHealthEndpoint"]


class HolonicHealthEndpoint:
    """GET of /holonic/health, mounted always; 503 in plain text where the rest of /holonic is not."""

    def __init__(self, holonic: Holonic) -> None:
        self._holonic = holonic

    async def get(self, _request: Request) -> Response:
        headers = {"Cache-Control": "no-store"}
        if not self._holonic.enabled:
            text = "holonic is not configured: [holonic] enabled is false\n"
            return Response(text, 503, headers, media_type="text/plain")
        body = {"available": True, "default_tenant": self._holonic.default_tenant}
        return Response(orjson.dumps(body), headers=headers, media_type=JSON_TYPE)
