"""`Workbench`: the page at `/` for browsers, its files, and what it has to know before anybody signs in.

The files are built by `scripts/workbench` from `source/` and stored compressed in `assets/`. Their names hold
a hash of their content, so browsers keep them for ever. The page may load and call this service only.
"""

import re
import secrets
from functools import cache
from gzip import decompress
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from graphdb.config import Settings
from serve.bodies import JSON_TYPE
from serve.errors import error_response
from serve.graph.browser_pages import DOCS, PLAYGROUND
from serve.negotiation import wants_page
from serve.routing import Handler, resource
from serve.workbench.provider_sign_in import ProviderSignIn

__all__ = ["Workbench"]

ASSETS = "serve.workbench.assets"
PAGE = "index.html"
_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}\.(js|css|json|svg)", re.ASCII)
_HOST = re.compile(r"([A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?", re.ASCII)
_FOR_EVER = "public, max-age=31536000, immutable"
_NO_PROVIDER = "there is no OpenID Connect provider: see [authentication.oidc]"
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Workbench:
    """The workbench of one application."""

    def __init__(self, settings: Settings) -> None:
        self._server, self._search = settings.server, settings.search
        self._graphql = settings.graphql
        self._about = _about(settings)
        oidc = settings.authentication.oidc if settings.authentication.enabled else None
        self._provider = None if oidc is None else ProviderSignIn(oidc)

    @property
    def is_enabled(self) -> bool:
        return self._server.workbench

    def is_public(self, scope: Scope) -> bool:
        """Whether a request needs no credentials: for the page and its files, which hold no data, and to
        sign in.
        """
        path: str = scope["path"]
        if self.is_enabled and scope["method"] == "POST":
            return path == "/workbench/sign-in"
        if not self.is_enabled or scope["method"] not in ("GET", "HEAD"):
            return False
        if path == "/":
            return wants_page(Headers(raw=scope["headers"]).get("accept"))
        return path in ("/workbench/config.json", "/workbench/sign-in") or path.startswith(
            ("/workbench/assets/", "/workbench/frames/")
        )

    def routes(self) -> list[Route]:
        """Nothing if it is switched off."""
        if not self.is_enabled:
            return []
        return [
            resource("/workbench/config.json", get=self._get_config),
            resource("/workbench/assets/{name}", get=_get_asset),
            resource("/workbench/frames/docs", get=_get_docs),
            resource("/workbench/frames/docs/{name}", get=DOCS.get),
            *self._graphiql_routes(),
            resource("/workbench/sign-in", get=self._tell_provider, post=self._exchange),
        ]

    def _graphiql_routes(self) -> list[Route]:
        if not (self._graphql.enabled and self._graphql.playground):
            return []
        return [
            resource("/workbench/frames/graphql", get=_get_graphiql),
            resource("/workbench/frames/graphql/playground/{name}", get=PLAYGROUND.get),
        ]

    def root(self, otherwise: Handler) -> Handler:
        """GET of /: the page for browsers; otherwise for programs."""
        if not self.is_enabled:
            return otherwise

        async def get(request: Request) -> Response:
            if wants_page(request.headers.get("accept")):
                return self._page(request)
            answer = await otherwise(request)
            answer.headers["Vary"] = "Accept"
            return answer

        return get

    def _page(self, request: Request) -> Response:
        # The editor makes style sheets of its own; they carry this word.
        nonce = secrets.token_urlsafe(16)
        headers = {
            **_SAFE,
            "Content-Security-Policy": self._policy(request.headers.get("host", ""), nonce),
            "Cache-Control": "no-cache",
            "Vary": "Accept",
        }
        body = _stored(PAGE).replace(b"{nonce}", nonce.encode())
        return Response(body, headers=headers, media_type="text/html; charset=utf-8")

    def _policy(self, host: str, nonce: str) -> str:
        images = ["'self'", "data:", "blob:", *self._server.workbench_image_hosts]
        if self._server.workbench_tiles is not None:
            tiles = urlsplit(self._server.workbench_tiles)
            images.append(f"{tiles.scheme}://{tiles.netloc}")
        return "; ".join(
            (
                "default-src 'none'",
                "script-src 'self'",
                f"style-src 'self' 'nonce-{nonce}'",
                f"img-src {' '.join(images)}",
                " ".join(["connect-src 'self'", *self._search_hosts(host)]),
                "frame-src 'self'",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            )
        )

    def _search_hosts(self, host: str) -> list[str]:
        """Port 9200 as the page calls it; without a scheme, which is then that of the page."""
        if not self._search.enabled:
            return []
        if self._search.publish_address is not None:
            return [self._search.publish_address]
        found = _HOST.fullmatch(host)
        return [f"{found[1]}:{self._search.port}"] if found else []

    async def _tell_provider(self, request: Request) -> Response:
        if self._provider is None:
            return error_response(404, _NO_PROVIDER)
        return await self._provider.tell(request)

    async def _exchange(self, request: Request) -> Response:
        if self._provider is None:
            return error_response(404, _NO_PROVIDER)
        return await self._provider.exchange(request)

    async def _get_config(self, _request: Request) -> Response:
        return Response(self._about, headers={**_SAFE, "Cache-Control": "no-cache"}, media_type=JSON_TYPE)


def _about(settings: Settings) -> bytes:
    """What the page has to know before anybody signs in."""
    server, search, access = settings.server, settings.search, settings.authentication
    ways: dict[str, Any] = {
        "password": access.ldap is not None or (access.basic is not None and access.basic.enabled),
        "api_key": bool(access.api_keys),
        "token": access.jwt is not None,
        "oidc": None if access.oidc is None else {"client_id": access.oidc.client_id},
    }
    return orjson.dumps(
        {
            "version": version("graphdb"),
            "authentication": {"required": access.enabled, **ways},
            "search": {"port": search.port, "address": search.publish_address} if search.enabled else None,
            "graphql": {
                "enabled": settings.graphql.enabled,
                "playground": settings.graphql.playground,
            },
            "cluster": settings.cluster.enabled,
            "query_timeout_seconds": server.query_timeout_seconds,
            "max_body_bytes": server.max_body_bytes,
            "tiles": server.workbench_tiles,
            "image_hosts": list(server.workbench_image_hosts),
        }
    )


async def _get_asset(request: Request) -> Response:
    name: str = request.path_params["name"]
    if not (_NAME.fullmatch(name) and (files(ASSETS) / f"{name}.gz").is_file()):
        return error_response(404, f"there is nothing at {request.scope['path']}")
    headers = {**_SAFE, "Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    body = _stored(f"{name}.gz")
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        body = decompress(body)
    return Response(body, headers=headers, media_type=_TYPES[name.rpartition(".")[2]])


# In the frame of the workbench, GraphiQL and the API reference get the credentials of its tab. So their
# pages, which hold no data, need none themselves; at /docs and /graphql they do.
async def _get_docs(_request: Request) -> Response:
    return DOCS.page()


async def _get_graphiql(_request: Request) -> Response:
    return PLAYGROUND.page()


@cache
def _stored(name: str) -> bytes:
    return (files(ASSETS) / name).read_bytes()
