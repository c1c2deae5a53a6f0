"""The routes under /holonic, found by the path as it was sent: a slash of an IRI is none of the path."""

from collections.abc import Callable

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from graphdb.holonic.names import Layer
from serve.errors import error_response
from serve.graph.holonic.depth import DepthEndpoint
from serve.graph.holonic.health import HolonicHealthEndpoint
from serve.graph.holonic.holons import HolonsEndpoint
from serve.graph.holonic.layers import LayerEndpoint
from serve.graph.holonic.membrane import MembraneEndpoint
from serve.graph.holonic.portals import PortalsEndpoint
from serve.graph.holonic.service import HolonicService
from serve.routing import ByRawPath, resource

__all__ = ["holonic_routes"]


def holonic_routes(
    service: HolonicService,
    portals: PortalsEndpoint,
    membrane: MembraneEndpoint,
    index: Callable[[], dict[str, str]],
) -> list[Route]:
    """Everything under /holonic; no more than its health where it is not enabled.

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
