"""/holonic/portals: declaring portals, listing them, and running one."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import InvalidParameter
from graphdb.holonic.names import Layer, Tenant
from graphdb.holonic.queries import Solution, portals_of, portals_query
from graphdb.holonic.registry import (
    HolonRecord,
    NewPortal,
    Portal,
    Registry,
    check_construct,
    portal_quads,
    read_construct,
    source_dataset,
)
from graphdb.model import Interface
from graphdb.node import QueryRequest
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from serve.access.request_scope import visibility_of
from serve.backend import AnswerStream
from serve.bodies import read_json, read_optional_json
from serve.graph.asked_query import QueryReader
from serve.graph.holonic.holonic_service import HolonicService, PortalBody, RunBody, iri_of, now
from serve.graph.query_answers import QueryAnswers
from serve.graph.responses import BACKSTOP_S, past_limit
from serve.graph.writes import confirm, read_request_id, writes_of
from serve.parameters import Parameters, read_flag, read_graph_iri

__all__ = ["PortalsEndpoint"]

_RUN_BODY_BYTES_MAX = 4_096


class PortalsEndpoint:
    """POST and GET of /holonic/portals, POST of /holonic/portals/{iri}/run."""

    def __init__(self, service: HolonicService, reader: QueryReader, answers: QueryAnswers) -> None:
        self._service, self._reader, self._answers = service, reader, answers

    async def post(self, request: Request) -> Response:
        """Declare a portal."""
        tenant = self._service.tenant(request)
        body = await read_json(request, PortalBody, self._service.settings.server.max_body_bytes)
        query = await run_in_threadpool(read_construct, body.construct_query, self._service.settings.security)
        self._service.queries.check_query(query)
        new = NewPortal(body.iri, body.source, body.target, body.construct_query, now())
        confirmation = await self._service.write(
            request,
            body,
            tenant,
            lambda: portal_quads(tenant, new),
            lambda registry: registry.check_new_portal(new),
        )
        return confirm(confirmation, graph=tenant.layer_graph(new.source, Layer.BOUNDARY).value)

    async def get_all(self, request: Request) -> Response:
        """The portals of the tenant, or of one source."""
        tenant = self._service.tenant(request)
        text = Parameters(request.scope["query_string"]).one("source")
        source = None if text is None else read_graph_iri("source", text)
        if source is not None:
            (await self._service.registry(request, tenant)).check_holon(source)

        def body(solutions: Iterable[Solution]) -> dict[str, Any]:
            return {"portals": [_shown(portal) for portal in portals_of(tenant, solutions)]}

        return await self._service.listed(request, portals_query(tenant, source), body)

    async def run(self, request: Request) -> Response:
        """Evaluate a portal: the result is returned as RDF, or stored in the target's projection."""
        tenant, iri = self._service.tenant(request), iri_of(request)
        parameters = self._reader.parameters(request.scope["query_string"])
        if parameters.query is not None or parameters.dataset:
            raise InvalidParameter("query string", "names a query or a dataset; both are the portal's")
        is_stored = await _wants_store(request)
        registry = await self._service.registry(request, tenant)
        portal = registry.portal(iri)
        dataset = _dataset(registry, tenant, portal)
        if is_stored:
            return await self._store(request, tenant, portal, dataset)
        asked = await self._reader.ask(request, replace(parameters, dataset=dataset), portal.construct_query)
        check_construct(asked.query)
        return await self._answers.answer(asked)

    async def _store(self, request: Request, tenant: Tenant, portal: Portal, dataset: Dataset) -> Response:
        """Replace the stored result of the portal.

        The result has no annotations, so triples that an annotation protects are left out for every
        principal.
        """
        settings, visibility = self._service.settings, visibility_of(request.scope)
        reads = await self._service.queries.reads(visibility.without_sids)
        writes = writes_of(self._service.writing, request, Interface.HOLONIC)
        request_id = read_request_id(request, ("store",))
        (await self._service.registry(request, tenant)).check_holon(portal.target)
        query = await run_in_threadpool(read_construct, portal.construct_query, settings.security)
        limit_s = settings.server.query_timeout_seconds
        graph = tenant.portal_graph(portal.target, portal.iri)
        stream = await reads.start_query(QueryRequest(query, dataset, ResultFormat.N_TRIPLES, limit_s))
        try:
            confirmation = await writes.write_graph(
                _pieces(stream, limit_s),
                RdfSyntax.N_TRIPLES,
                graph=graph,
                whole_dataset=False,
                replace=True,
                base_iri=None,
                request_id=request_id,
                precondition=lambda state: Registry(tenant, state).check_holon(portal.target),
            )
        finally:
            stream.close()
        return confirm(confirmation, graph=graph.value)


async def _wants_store(request: Request) -> bool:
    """By the parameter `store` or the member of the body. Raises InvalidParameter for both."""
    parameter = read_flag(Parameters(request.scope["query_string"]), "store")
    member = (await read_optional_json(request, RunBody, _RUN_BODY_BYTES_MAX)).store
    if parameter is not None and member is not None:
        raise InvalidParameter("store", "given in the query string and in the body")
    return bool(parameter or member)


def _dataset(registry: Registry, tenant: Tenant, portal: Portal) -> Dataset:
    record = HolonRecord.of(tenant, portal.source, registry.statements(portal.source))
    return source_dataset(record.graphs, tenant.layer_graph(portal.source, Layer.INTERIOR))


async def _pieces(stream: AnswerStream, limit_s: float) -> AsyncIterator[bytes]:
    """The pieces of the answer. Raises QueryTimeout shortly after the limit, if the reader has not."""
    ends = asyncio.get_running_loop().time() + limit_s + BACKSTOP_S
    while True:
        try:
            async with asyncio.timeout_at(ends):
                piece = await stream.read()
        except TimeoutError:
            raise past_limit(limit_s) from None
        if piece is None:
            return
        yield piece


def _shown(portal: Portal) -> dict[str, str]:
    return {
        "iri": portal.iri.value,
        "source": portal.source.value,
        "target": portal.target.value,
        "construct_query": portal.construct_query,
    }
