"""/holonic/depth: how deep the holons of a tenant are nested."""

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from graphdb.holonic.queries import Solution, parents_of, parents_query
from graphdb.holonic.registry import depths
from serve.graph.holonic.service import HolonicService

__all__ = ["DepthEndpoint"]


class DepthEndpoint:
    """GET of /holonic/depth."""

    def __init__(self, service: HolonicService) -> None:
        self._service = service

    async def get(self, request: Request) -> Response:
        """The longest chain of memberships of the tenant, and of each holon."""
        tenant = self._service.tenant(request)

        def body(solutions: Iterable[Solution]) -> dict[str, Any]:
            found = depths(parents_of(solutions))
            deepest = max((depth for depth in found.values() if depth is not None), default=0)
            holons = [{"iri": iri, "depth": depth} for iri, depth in found.items()]
            return {"tenant": tenant.name, "depth": deepest, "holons": holons}

        return await self._service.listed(request, parents_query(tenant), body)
