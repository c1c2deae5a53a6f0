"""The routes under /holonic, matched on the undecoded path, so that an IRI in it may contain slashes."""

from collections.abc import Callable

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from graphdb.config.service import Holonic
from graphdb.holonic.names import Layer
from serve.bodies import JSON_TYPE
from serve.errors import error_response
from serve.graph.holonic.holonic_service import HolonicService
from serve.graph.holonic.holons import DepthEndpoint, HolonsEndpoint, LayerEndpoint, MembraneEndpoint
from serve.graph.holonic.portals import PortalsEndpoint
from serve.routing import ByRawPath, resource

__all__ = ["holonic_routes"]


class HolonicHealthEndpoint:
    """GET of /holonic/health, which always exists; 503 in plain text while holons are off."""

    def __init__(self, holonic: Holonic) -> None:
        self._holonic = holonic

    async def get(self, _request: Request) -> Response:
        headers = {"Cache-Control": "no-store"}
        if not self._holonic.enabled:
            text = "holonic is not configured: [holonic] enabled is false\n"
            return Response(text, 503, headers, media_type="text/plain")
        body = {"available": True, "default_tenant": self._holonic.default_tenant}
        return Response(orjson.dumps(body), headers=headers, media_type=JSON_TYPE)


def holonic_routes(
    service: HolonicService,
    portals: PortalsEndpoint,
    membrane: MembraneEndpoint,
    index: Callable[[], dict[str, str]],
) -> list[Route]:
    """The routes under /holonic; only its health while holons are off.

    index makes the headers of failures.
    """
    holonic = service.settings.holonic
    health = resource("/holonic/health", get=HolonicHealthEndpoint(holonic).get)
    if not holonic.enabled:
        return [health]
    holons = HolonsEndpoint(service)
    layers = (
        resource(f"/holonic/holons/{{iri}}/{layer.value}", index, post=LayerEndpoint(service, layer).post)
        for layer in Layer
    )
    routes = [
        resource("/holonic/holons", index, get=holons.get_all, post=holons.post),
        resource("/holonic/holons/{iri}", index, get=holons.get),
        *layers,
        resource("/holonic/holons/{iri}/membrane", index, get=membrane.get),
        resource("/holonic/portals", index, get=portals.get_all, post=portals.post),
        resource("/holonic/portals/{iri}/run", index, post=portals.run),
        resource("/holonic/depth", index, get=DepthEndpoint(service).get),
    ]
    return [health, Route("/holonic/{path:path}", ByRawPath(routes, _not_found))]


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    message = f"there is nothing at {scope['path']}; an IRI in the path is percent-encoded, its slashes too"
    await error_response(404, message)(scope, receive, send)
