"""POST of /holonic/holons/{iri}/{layer}: Turtle into a graph of one of a holon's four layers."""

from collections.abc import Iterator

from pyoxigraph import NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from graphdb.holonic.names import Layer
from graphdb.holonic.registry import layer_link
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from serve.graph.holonic.requests import LayerBody, iri_of
from serve.graph.holonic.service import HolonicService
from serve.graph.update import confirm
from serve.json_bodies import read_json

__all__ = ["LayerEndpoint"]


class LayerEndpoint:
    """POST to one of the layers."""

    def __init__(self, service: HolonicService, layer: Layer) -> None:
        self._service, self._layer = service, layer

    async def post(self, request: Request) -> Response:
        """Add what the Turtle says to the graph; it can only be added to."""
        tenant, holon = self._service.tenant(request), iri_of(request)
        body = await read_json(request, LayerBody, self._service.settings.server.max_body_bytes)
        graph = tenant.layer_graph(holon, self._layer, body.graph_slug)
        (await self._service.registry(request, tenant)).check_holon(holon)  # before much is parsed in vain
        link = layer_link(tenant, holon, self._layer, graph)

        def quads() -> Iterator[Quad]:
            yield link
            yield from _parsed(body.turtle, graph)

        confirmation = await self._service.write(
            request, body, tenant, quads, lambda registry: registry.check_holon(holon)
        )
        return confirm(confirmation, graph=graph.value)


def _parsed(turtle: str, graph: NamedNode) -> Iterator[Quad]:
    """Turtle as quads of a graph, its blank nodes like no others. Relative IRIs need an @base of its own."""
    for quad in read_quads(turtle.encode(), RdfSyntax.TURTLE):
        yield Quad(quad.subject, quad.predicate, quad.object, graph)
