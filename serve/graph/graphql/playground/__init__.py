"""GraphiQL, served from files beside this one: `VENDORED.md` says which. Nothing is loaded from elsewhere."""

from collections.abc import Mapping
from functools import cache
from gzip import decompress
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from serve.errors import error_response

__all__ = ["FILES", "Playground"]

# Our own, then those of npm packages as they came, but compressed.
FILES: Mapping[str, str] = {
    "playground.js": "text/javascript; charset=utf-8",
    "playground.css": "text/css; charset=utf-8",
    "react.production.min.js": "text/javascript; charset=utf-8",
    "react-dom.production.min.js": "text/javascript; charset=utf-8",
    "graphiql.min.js": "text/javascript; charset=utf-8",
    "graphiql.min.css": "text/css; charset=utf-8",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # the editor writes style sheets of its own
        "font-src data:",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_SAFE = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Playground:
    """The page, and the files that it is made of."""

    def page(self) -> Response:
        """What GET /graphql shows in a browser."""
        headers = {**_SAFE, "Cache-Control": "no-cache", "Vary": "Accept"}
        return Response(_stored("playground.html"), headers=headers, media_type="text/html; charset=utf-8")

    async def get(self, request: Request) -> Response:
        """One file of FILES."""
        name: str = request.path_params["name"]
        if name not in FILES:
            return error_response(404, f"there is nothing at {request.scope['path']}")
        headers = {**_SAFE, "Cache-Control": "public, max-age=3600", "Vary": "Accept-Encoding"}
        body, is_compressed = _file(name)
        if is_compressed and "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
        elif is_compressed:
            body = decompress(body)
        return Response(body, headers=headers, media_type=FILES[name])


@cache
def _file(name: str) -> tuple[bytes, bool]:
    """A file's bytes, and whether they are compressed."""
    folder = files(__name__)
    compressed = folder / f"{name}.gz"
    return (compressed.read_bytes(), True) if compressed.is_file() else (_stored(name), False)


@cache
def _stored(name: str) -> bytes:
    return (files(__name__) / name).read_bytes()
