"""The application on port 7001: one ASGI callable over a `Backend`, without Ray and without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from graphdb.config import Settings
from serve.answers import Workers
from serve.backend import Backend
from serve.graph.graph_store import GraphStoreEndpoint
from serve.graph.health import HealthEndpoint
from serve.graph.metrics import Metrics, MetricsEndpoint
from serve.graph.sparql import SparqlEndpoint
from serve.graph.update import UpdateEndpoint
from serve.routing import not_found, resource

__all__ = ["build_app"]

# More than cores: a worker whose client reads slowly waits, and takes nothing but its stack.
WORKER_THREADS = 64

ENDPOINTS = {
    "/sparql": "SPARQL queries, GET and POST",
    "/update": "SPARQL updates, POST",
    "/data": "whole graphs: GET, PUT, POST, DELETE, ?graph=IRI or ?default; GET ?dataset=all for everything",
    "/health": "how this node is",
    "/metrics": "counters for Prometheus",
}


def build_app(backend: Backend, settings: Settings) -> ASGIApp:
    """The application. It owns threads and gives them back when the server shuts it down (lifespan)."""
    workers = Workers(WORKER_THREADS, settings.server.query_timeout_seconds)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            workers.stop()

    router = Router(
        _routes(backend, workers, settings),
        # A redirect would answer a wrong path with a guess, and lose the body of a POST with some clients.
        redirect_slashes=False,
        default=not_found,
        lifespan=lifespan,
    )
    return _with_cors(router, settings.server.cors)


def _routes(backend: Backend, workers: Workers, settings: Settings) -> list[Route]:
    body_bytes_max, limits = settings.server.max_body_bytes, settings.security
    metrics = Metrics(backend)
    sparql = SparqlEndpoint(backend, workers, metrics, body_bytes_max, limits)
    update = UpdateEndpoint(backend, body_bytes_max, limits)
    data = GraphStoreEndpoint(backend, workers, body_bytes_max)
    data_methods = {"get": data.get, "put": data.put, "post": data.post, "delete": data.delete}
    return [
        resource("/sparql", get=sparql.get, post=sparql.post),
        resource("/update", post=update.post),
        resource("/data", **data_methods),
        resource("/data/{name:path}", **data_methods),
        resource("/health", get=HealthEndpoint(backend).get),
        resource("/metrics", get=MetricsEndpoint(metrics).get),
        resource("/", get=_list_endpoints),
    ]


async def _list_endpoints(_request: Request) -> Response:
    """What a newcomer with a browser sees first."""
    body = orjson.dumps({"service": "graphdb", "endpoints": ENDPOINTS}, option=orjson.OPT_INDENT_2)
    return Response(body, media_type="application/json")


def _with_cors(app: ASGIApp, origins: tuple[str, ...]) -> ASGIApp:
    """Let in browsers of other origins, where there are any to let in."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "HEAD", "PUT", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["X-Snapshot-Index", "Retry-After"],
    )
