"""`/openapi.json`, `/docs` (Swagger UI) and the GraphQL playground (GraphiQL), for browsers.

The pages and the files that they load are stored in two packages, whose `VENDORED.md` name their sources.
No page loads anything from another host.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from gzip import decompress
from importlib.resources import files

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serve.bodies import JSON_TYPE
from serve.errors import error_response
from serve.routing import resource

__all__ = ["DOCS", "PLAYGROUND", "SCRIPT", "StoredPage", "docs_routes"]

SCRIPT, STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # what draws these pages writes style sheets of its own
        "font-src data:",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",  # the workbench shows these pages in its frame
    )
)
_SAFE = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class StoredPage:
    """Of a package: the name of the page, and the files that it loads by media type."""

    package: str
    name: str
    files: Mapping[str, str]

    def page(self) -> Response:
        """The page itself."""
        headers = {**_SAFE, "Cache-Control": "no-cache", "Vary": "Accept"}
        body = _stored(self.package, self.name)
        return Response(body, headers=headers, media_type="text/html; charset=utf-8")

    async def get(self, request: Request) -> Response:
        """One file, by the `name` in the path."""
        name: str = request.path_params["name"]
        if name not in self.files:
            return error_response(404, f"there is nothing at {request.scope['path']}")
        headers = {**_SAFE, "Cache-Control": "public, max-age=3600", "Vary": "Accept-Encoding"}
        body, is_compressed = _file(self.package, name)
        if is_compressed and "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
        elif is_compressed:
            body = decompress(body)
        return Response(body, headers=headers, media_type=self.files[name])


@cache
def _file(package: str, name: str) -> tuple[bytes, bool]:
    """A file's bytes, and whether they are compressed."""
    compressed = files(package) / f"{name}.gz"
    return (compressed.read_bytes(), True) if compressed.is_file() else (_stored(package, name), False)


@cache
def _stored(package: str, name: str) -> bytes:
    return (files(package) / name).read_bytes()


DOCS = StoredPage(
    "serve.graph.api_docs",
    "docs.html",
    {"docs.js": SCRIPT, "docs.css": STYLE, "swagger-ui-bundle.js": SCRIPT, "swagger-ui.css": STYLE},
)
PLAYGROUND = StoredPage(
    "serve.graph.graphql.playground",
    "playground.html",
    {
        "playground.js": SCRIPT,
        "playground.css": STYLE,
        "react.production.min.js": SCRIPT,
        "react-dom.production.min.js": SCRIPT,
        "graphiql.min.js": SCRIPT,
        "graphiql.min.css": STYLE,
    },
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
