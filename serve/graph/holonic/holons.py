"""/holonic/holons: declaring holons, all of a tenant, and one with every layer."""

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from graphdb.holonic.names import Layer, Tenant
from graphdb.holonic.queries import CountedHolon, Solution, holons_of, holons_query
from graphdb.holonic.registry import NewHolon, Registry, holon_quads
from serve.answers import Pipe, WorkerAnswer
from serve.graph.holonic.detail import open_holon, write_holon
from serve.graph.holonic.requests import HolonBody, iri_of, now
from serve.graph.holonic.service import HolonicService
from serve.graph.update import confirm
from serve.json_bodies import JSON_TYPE, read_json
from serve.routing import without_body

__all__ = ["HolonsEndpoint"]


class HolonsEndpoint:
    """POST and GET of /holonic/holons, GET of /holonic/holons/{iri}."""

    def __init__(self, service: HolonicService) -> None:
        self._service = service

    async def post(self, request: Request) -> Response:
        """Declare a holon."""
        tenant = self._service.tenant(request)
        body = await read_json(request, HolonBody, self._service.settings.server.max_body_bytes)
        new = NewHolon(body.iri, body.label, body.member_of, now())
        confirmation = await self._service.write(
            request,
            body,
            tenant,
            lambda: holon_quads(tenant, new),
            lambda registry: registry.check_new_holon(new),
        )
        return confirm(confirmation, graph=tenant.registry.value)

    async def get_all(self, request: Request) -> Response:
        """Every holon, with how much each graph of its layers holds."""
        tenant = self._service.tenant(request)

        def body(solutions: Iterable[Solution]) -> dict[str, Any]:
            return {"holons": [_shown(tenant, holon) for holon in holons_of(tenant, solutions)]}

        return await self._service.listed(request, holons_query(tenant), body)

    async def get(self, request: Request) -> Response:
        """One holon, with all that the graphs of its layers hold, in N-Triples."""
        tenant, iri = self._service.tenant(request), iri_of(request)
        reads = await self._service.reads(request)
        if request.method == "HEAD":
            Registry(tenant, reads).check_holon(iri)
            head = self._service.head(reads.snapshot_index())
            return without_body(head | {"Content-Type": JSON_TYPE})

        def produce(pipe: Pipe) -> None:
            holon = open_holon(reads, tenant, iri)
            pipe.headers = self._service.head(holon.index) | {"Content-Type": JSON_TYPE}
            write_holon(holon, pipe.write)

        return WorkerAnswer(self._service.workers, produce)


def _shown(tenant: Tenant, holon: CountedHolon) -> dict[str, Any]:
    record = holon.record
    layers: dict[str, list[dict[str, Any]]] = {layer.value: [] for layer in Layer}
    for layer, graph in record.graphs:
        if graph in holon.triples:
            layers[layer.value].append({"graph": graph, "triples": holon.triples[graph]})
    return {
        "iri": record.iri,
        "label": record.label,
        "member_of": record.member_of,
        "tenant": tenant.name,
        "created_at": record.created_at,
        "layers": layers,
    }
