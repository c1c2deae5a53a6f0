"""`HolonicService`: the way of every request under /holonic to the graph."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson
from pyoxigraph import Quad
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graphdb.config import Settings
from graphdb.holonic.names import Tenant
from graphdb.holonic.queries import Solution
from graphdb.holonic.registry import Registry
from graphdb.model import Confirmation
from graphdb.rdf.formats import RdfSyntax
from serve.access.request_scope import visibility_of
from serve.answers import Workers, unless_gone
from serve.backend import GraphReads, Queries, Writing
from serve.graph.holonic.documents import nquads
from serve.graph.holonic.requests import tenant_of
from serve.graph.idempotency import read_request_id
from serve.graph.notebook_answers import answer
from serve.json_bodies import JSON_TYPE, JsonBody
from serve.parameters import Parameters

__all__ = ["HolonicService"]


@dataclass(frozen=True, slots=True)
class HolonicService:
    """What the endpoints share."""

    queries: Queries
    writing: Writing
    workers: Workers
    settings: Settings

    def tenant(self, request: Request) -> Tenant:
        """The tenant of a request. Raises InvalidParameter."""
        parameters = Parameters(request.scope["query_string"])
        return tenant_of(parameters, self.settings.holonic.default_tenant)

    async def reads(self, request: Request) -> GraphReads:
        """The graph as whoever asks sees it."""
        return await self.queries.reads(visibility_of(request.scope))

    async def registry(self, request: Request, tenant: Tenant) -> Registry:
        """The tenant's registry as it is now, for whoever asks."""
        return Registry(tenant, await self.reads(request))

    async def write(
        self,
        request: Request,
        body: JsonBody,
        tenant: Tenant,
        quads: Callable[[], Iterable[Quad]],
        check: Callable[[Registry], None],
    ) -> Confirmation:
        """Add quads as one atomic change, if check raises nothing about the very state that it changes.

        body is that of the request, as it was read. quads is called on a worker.
        """
        members = (f"{name} {value}" for name, value in body if value is not None)
        request_id = read_request_id(request, members)
        async with nquads(self.workers, quads) as document:
            return await self.writing.writes(visibility_of(request.scope)).write_graph(
                document,
                RdfSyntax.N_QUADS,
                graph=None,
                whole_dataset=True,
                replace=False,
                base_iri=None,
                request_id=request_id,
                precondition=lambda state: check(Registry(tenant, state)),
            )

    async def listed(
        self, request: Request, query: str, body_of: Callable[[list[Solution]], object]
    ) -> Response:
        """The answer that body_of, called on a thread, makes of the solutions of a query."""
        reads = await self.reads(request)
        index = reads.snapshot_index()
        settings = self.settings
        limit_s = settings.server.query_timeout_seconds
        asking = answer(reads, query, "SELECT", settings.security, limit_s)
        results = await unless_gone(request, asking)

        def encoded() -> bytes:
            return orjson.dumps(body_of(orjson.loads(results)["results"]["bindings"]))

        return Response(await run_in_threadpool(encoded), headers=self.head(index), media_type=JSON_TYPE)

    @staticmethod
    def head(index: int) -> dict[str, str]:
        """The headers of an answer that is of a log index or of a later one."""
        return {"X-Snapshot-Index": str(index), "Cache-Control": "no-cache"}
