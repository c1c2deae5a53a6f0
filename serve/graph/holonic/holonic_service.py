"""`HolonicService`: what all endpoints under /holonic share: tenants, bodies, reads, atomic writes."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import orjson
from pydantic import Field, PlainValidator
from pyoxigraph import NamedNode, Quad
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graphdb.config import Settings
from graphdb.holonic.names import Tenant
from graphdb.holonic.queries import Solution
from graphdb.holonic.registry import Registry
from graphdb.model import Confirmation, Interface
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.writing import write_quads
from serve.access.request_scope import visibility_of
from serve.answers import Pipe, Workers, unless_gone
from serve.backend import GraphReads, Queries, Writing
from serve.bodies import JSON_TYPE, JsonBody
from serve.graph.notebook_answers import answer
from serve.graph.writes import read_request_id, writes_of
from serve.parameters import Parameters, read_graph_iri, read_path_text

__all__ = ["HolonBody", "HolonicService", "LayerBody", "PortalBody", "RunBody", "iri_of", "now", "nquads"]

_IRI_CHARACTERS_MAX = 4_096
_LABEL_CHARACTERS_MAX = 65_536


def _iri(value: object) -> NamedNode:
    if not isinstance(value, str):
        raise ValueError("has to be a string that is an absolute IRI")
    if len(value) > _IRI_CHARACTERS_MAX:
        raise ValueError(f"has {len(value)} characters, at most {_IRI_CHARACTERS_MAX} are allowed")
    try:
        return NamedNode(value)
    except ValueError as error:
        raise ValueError(f"{value!r} is not an absolute IRI: {error}") from None


_Iri = Annotated[NamedNode, PlainValidator(_iri, json_schema_input_type=str)]


class HolonBody(JsonBody):
    """A holon to declare."""

    iri: _Iri
    label: Annotated[str, Field(max_length=_LABEL_CHARACTERS_MAX)] | None = None
    member_of: _Iri | None = None


class LayerBody(JsonBody):
    """Triples to add to a layer."""

    turtle: str
    graph_slug: str | None = None


class PortalBody(JsonBody):
    """A portal to declare."""

    iri: _Iri
    source: _Iri
    target: _Iri
    construct_query: str


class RunBody(JsonBody):
    """Whether the result of a portal is stored."""

    store: bool | None = None


def tenant_of(parameters: Parameters, default: str) -> Tenant:
    """The tenant of a query string. Raises InvalidParameter."""
    name = parameters.one("tenant")
    return Tenant(default if name is None else name)


def iri_of(request: Request) -> NamedNode:
    """The IRI in a percent-encoded segment of the path. Raises InvalidParameter."""
    return read_graph_iri("path", read_path_text(request.path_params["iri"]))


def now() -> str:
    """The time as xsd:dateTime, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@asynccontextmanager
async def nquads(
    workers: Workers, quads: Callable[[], Iterable[Quad]]
) -> AsyncIterator[AsyncIterator[bytes]]:
    """An N-Quads document of the quads, in pieces. Errors of making them are raised while reading."""
    pipe = Pipe()

    def produce(pipe: Pipe) -> None:
        for chunk in write_quads(quads(), RdfSyntax.N_QUADS):
            pipe.write(chunk)

    workers.start(produce, pipe)
    try:
        yield _pieces(pipe)
    finally:
        pipe.close()


async def _pieces(pipe: Pipe) -> AsyncIterator[bytes]:
    while True:
        piece = await pipe.read()
        yield piece.data
        if piece.is_last:
            return


@dataclass(frozen=True, slots=True)
class HolonicService:
    """Shared code of the endpoints."""

    queries: Queries
    writing: Writing
    workers: Workers
    settings: Settings

    def tenant(self, request: Request) -> Tenant:
        """The tenant of a request. Raises InvalidParameter."""
        parameters = Parameters(request.scope["query_string"])
        return tenant_of(parameters, self.settings.holonic.default_tenant)

    async def reads(self, request: Request) -> GraphReads:
        """The graph that the principal may see."""
        return await self.queries.reads(visibility_of(request.scope))

    async def registry(self, request: Request, tenant: Tenant) -> Registry:
        """The tenant's registry as the principal sees it now."""
        return Registry(tenant, await self.reads(request))

    async def write(
        self,
        request: Request,
        body: JsonBody,
        tenant: Tenant,
        quads: Callable[[], Iterable[Quad]],
        check: Callable[[Registry], None],
    ) -> Confirmation:
        """Add quads as one atomic change, unless check raises for exactly the state that is changed.

        body: of the request. quads is called on a worker.
        """
        members = (f"{name} {value}" for name, value in body if value is not None)
        request_id = read_request_id(request, members)
        async with nquads(self.workers, quads) as document:
            return await writes_of(self.writing, request, Interface.HOLONIC).write_graph(
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
        """The response that body_of, called on a thread, makes from the solutions of a query."""
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
        """The headers of an answer at a log index or later."""
        return {"X-Snapshot-Index": str(index), "Cache-Control": "no-cache"}
