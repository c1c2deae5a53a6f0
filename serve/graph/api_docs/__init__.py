"""`/openapi.json` and `/docs`: what the port offers, for programs and for people.

The page is Swagger UI, from files beside this one: `VENDORED.md` says which.
Nothing is loaded from elsewhere.
"""

import asyncio

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serve.graph.stored_page import SCRIPT, STYLE, StoredPage
from serve.json_bodies import JSON_TYPE
from serve.routing import resource

__all__ = ["DOCS", "docs_routes"]

DOCS = StoredPage(
    __name__,
    "docs.html",
    {"docs.js": SCRIPT, "docs.css": STYLE, "swagger-ui-bundle.js": SCRIPT, "swagger-ui.css": STYLE},
)


def docs_routes() -> list[Route]:
    """The document, the page and its files."""
    document = _DocumentEndpoint()
    return [
        resource("/openapi.json", get=document.get),
        resource("/docs", get=_page),
        resource("/docs/{name}", get=DOCS.get),
    ]


async def _page(_request: Request) -> Response:
    return DOCS.page()


class _DocumentEndpoint:
    """GET of /openapi.json. The document is made when it is first asked for, on a thread."""

    def __init__(self) -> None:
        self._body: bytes | None = None

    async def get(self, request: Request) -> Response:
        if self._body is None:
            app: FastAPI = request.scope["app"]
            self._body = await asyncio.to_thread(lambda: orjson.dumps(app.openapi()))
        return Response(self._body, headers={"Cache-Control": "no-cache"}, media_type=JSON_TYPE)
