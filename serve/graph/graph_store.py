"""`/data`: whole graphs by the SPARQL 1.1 Graph Store HTTP Protocol, named directly or indirectly.

If the protocol and this service's interface differ, the interface takes precedence: without a parameter the
request is for the default graph, and every write answers 200 with the update confirmation.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from time import monotonic

from pyoxigraph import NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import InvalidParameter, LimitExceeded, NotAcceptable, UnknownGraph, UnsupportedMediaType
from graphdb.model import Interface
from graphdb.node import Consistency
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import PATCH_TYPE, ROWS_MAX, QuadPatch, read_patch
from graphdb.rdf.reading import read_quads
from graphdb.rdf.thrift import THRIFT_TYPE, read_thrift_quads
from graphdb.rdf.writing import write_quads
from serve.access.request_scope import visibility_of
from serve.answers import Pipe, WorkerAnswer, Workers
from serve.backend import GraphReads, Progress, Queries, Writing
from serve.bodies import body_chunks, media_type_name, read_body
from serve.errors import failure_response
from serve.graph.caching import EntityTags
from serve.graph.query_parameters import (
    consistency_of,
    read_as_of,
    read_consistency,
    read_min_index,
    refuse_as_of,
)
from serve.graph.writes import confirm, read_request_id, writes_of
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import Parameters, read_flag, read_graph_iri, request_iri
from serve.routing import without_body
from serve.spooled_bodies import as_lines

__all__ = ["PATCH_TYPE", "GraphStoreEndpoint"]

_SYNTAXES = (
    RdfSyntax.N_TRIPLES,
    RdfSyntax.TURTLE,
    RdfSyntax.RDF_XML,
    RdfSyntax.JSON_LD,
    RdfSyntax.TRIG,
    RdfSyntax.N_QUADS,
    RdfSyntax.N_TRIPLES_STAR,
)
_DATASET_SYNTAXES = (RdfSyntax.N_QUADS, RdfSyntax.TRIG, RdfSyntax.JSON_LD)
_NAMES = {
    "ntriples": RdfSyntax.N_TRIPLES,
    "nt": RdfSyntax.N_TRIPLES,
    "turtle": RdfSyntax.TURTLE,
    "ttl": RdfSyntax.TURTLE,
    "rdfxml": RdfSyntax.RDF_XML,
    "rdf": RdfSyntax.RDF_XML,
    "jsonld": RdfSyntax.JSON_LD,
    "trig": RdfSyntax.TRIG,
    "nquads": RdfSyntax.N_QUADS,
    "nq": RdfSyntax.N_QUADS,
}


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of a request: one graph (None: the default graph), or with is_dataset everything."""

    graph: NamedNode | None
    is_named: bool  # by the path or a parameter, also as the default graph
    is_dataset: bool = False


class GraphStoreEndpoint:
    """GET, HEAD, PUT, POST and DELETE of /data and of the paths below it."""

    def __init__(
        self,
        queries: Queries,
        progress: Progress,
        writing: Writing,
        workers: Workers,
        tags: EntityTags,
        body_bytes_max: int,
        load_bytes_max: int,
    ) -> None:
        """load_bytes_max: of the body of a bulk load."""
        self._queries, self._progress, self._writing, self._workers, self._tags = (
            queries,
            progress,
            writing,
            workers,
            tags,
        )
        self._body_bytes_max, self._load_bytes_max = body_bytes_max, load_bytes_max

    async def get(self, request: Request) -> Response:
        """The graph in the syntax that the client prefers. HEAD checks the same and reads nothing."""
        parameters = Parameters(request.scope["query_string"])
        return await self._get(request, parameters, _target(request, parameters))

    async def get_dataset(self, request: Request) -> Response:
        """Everything, as with `dataset=all`."""
        whole = _Target(None, is_named=True, is_dataset=True)
        return await self._get(request, Parameters(request.scope["query_string"]), whole)

    async def _get(self, request: Request, parameters: Parameters, target: _Target) -> Response:
        syntax = _choose_syntax(request, parameters.one("format"), target)
        ends = monotonic() + self._workers.time_limit_s
        await self._catch_up(request, parameters, ends)
        as_of, left_s = read_as_of(parameters), max(0.0, ends - monotonic())
        reads = await self._queries.reads(visibility_of(request.scope), as_of, left_s)
        if target.graph is not None and not reads.graph_exists(target.graph):
            error = UnknownGraph(target.graph.value)
            if as_of is None:
                raise error
            return failure_response(error, {"X-Snapshot-Index": str(reads.snapshot_index())})
        index = reads.exact_index()
        state = self._state(reads, reads.snapshot_index() if index is None else index, index, syntax)
        if "ETag" in state and self._tags.is_known(request, state["ETag"]):
            return without_body(state, 304)
        content_type = {"Content-Type": f"{syntax.media_type}; version=1.2"}
        if request.method == "HEAD":
            return without_body(content_type | state)

        def produce(pipe: Pipe) -> None:
            before = reads.exact_index()
            index = reads.snapshot_index()
            quads = _quads(reads, target, syntax)
            exact = before if before == reads.exact_index() else None
            pipe.headers = content_type | self._state(reads, index, exact, syntax)
            for chunk in write_quads(quads, syntax):
                pipe.write(chunk)

        return WorkerAnswer(self._workers, produce)

    async def _catch_up(self, request: Request, parameters: Parameters, ends: float) -> None:
        """Wait until readers on this node see a state that is as recent as the request requires; until ends
        at most, a time of monotonic().
        """
        consistency = consistency_of(request, read_consistency(parameters))
        min_index = read_min_index(parameters)
        if consistency is not Consistency.LOCAL:
            await self._progress.reach(consistency, ends - monotonic())
        if min_index:
            await self._progress.wait_for_index(min_index, max(0.0, ends - monotonic()))

    def _state(self, reads: GraphReads, index: int, exact: int | None, syntax: RdfSyntax) -> dict[str, str]:
        """The headers about the state of an answer: at this log index or later; exact if it is known."""
        head = {"Vary": "Accept", "Cache-Control": "no-cache", "X-Snapshot-Index": str(index)}
        if exact is not None:
            tag = self._tags.tag(exact, syntax.name.lower(), reads.view_key)
            head |= {"X-Snapshot-Index": str(exact), "ETag": tag}
        return head

    async def put(self, request: Request) -> Response:
        """Replace the graph; or every graph that the body names, if the request names none."""
        return await self._write(request, replace=True)

    async def post(self, request: Request) -> Response:
        """Merge the body into the graph; or into the graphs that it names, if the request names none. An RDF
        Patch is applied to the dataset. With bulk the body is a bulk load.
        """
        parameters = Parameters(request.scope["query_string"])
        if read_flag(parameters, "bulk"):
            return await self._load(request, _target(request, parameters))
        if media_type_name(request) == PATCH_TYPE:
            return await self._apply_patch(request)
        return await self._write(request, replace=False)

    async def put_dataset(self, request: Request) -> Response:
        """Replace the whole dataset by the body."""
        read: Callable[[bytes], Iterable[Quad]]
        if media_type_name(request) == THRIFT_TYPE:
            name, read = THRIFT_TYPE, _read_thrift
        else:
            syntax = _syntax_of(request)
            name, read = (
                syntax.name,
                partial(read_quads, syntax=syntax, base_iri=_base_iri(request, syntax, None)),
            )
        body = await read_body(request, self._body_bytes_max)
        quads = await asyncio.to_thread(lambda: _bounded(read(body)))
        return await self._patch(request, QuadPatch(added=quads, replaces_all=True), name)

    async def delete_dataset(self, request: Request) -> Response:
        """Remove every quad and graph."""
        return await self._patch(request, QuadPatch(replaces_all=True), "")

    async def _apply_patch(self, request: Request) -> Response:
        if _target(request, Parameters(request.scope["query_string"])).is_named:
            raise InvalidParameter("graph", "a patch names its graphs itself")
        patch = await asyncio.to_thread(read_patch, await read_body(request, self._body_bytes_max))
        return await self._patch(request, patch, PATCH_TYPE)

    async def _patch(self, request: Request, patch: QuadPatch, distinguished_by: str) -> Response:
        writes = writes_of(self._writing, request, Interface.GRAPH_STORE)
        return confirm(await writes.patch(patch, read_request_id(request, (distinguished_by,))))

    async def _load(self, request: Request, target: _Target) -> Response:
        """Add N-Quads, however many, as one change. Blank nodes keep their labels: they are the client's."""
        if target.is_named:
            raise InvalidParameter("bulk", "the lines name their graphs themselves")
        syntax = _syntax_of(request)
        if syntax is not RdfSyntax.N_QUADS:
            raise UnsupportedMediaType(syntax.media_type, (RdfSyntax.N_QUADS.media_type,))
        body = body_chunks(request, self._load_bytes_max)
        return await self._store(request, target, body, syntax, replace=False, keep_blank_nodes=True)

    async def _write(self, request: Request, *, replace: bool) -> Response:
        target = _writable_target(request)
        body = body_chunks(request, self._body_bytes_max)
        if media_type_name(request) != THRIFT_TYPE:
            return await self._store(request, target, body, _syntax_of(request), replace=replace)
        async with as_lines(body, read_thrift_quads, RdfSyntax.N_QUADS) as lines:
            return await self._store(request, target, lines, RdfSyntax.N_QUADS, replace=replace)

    async def _store(
        self,
        request: Request,
        target: _Target,
        body: AsyncIterator[bytes],
        syntax: RdfSyntax,
        *,
        replace: bool,
        keep_blank_nodes: bool = False,
    ) -> Response:
        confirmation = await writes_of(self._writing, request, Interface.GRAPH_STORE).write_graph(
            body,
            syntax,
            graph=target.graph,
            whole_dataset=syntax.carries_graphs and not target.is_named,
            replace=replace,
            base_iri=_base_iri(request, syntax, target.graph),
            keep_blank_nodes=keep_blank_nodes,
            # The body is streamed, so another body with the same key counts as the same request.
            request_id=read_request_id(request, (syntax.name,)),
        )
        return confirm(confirmation)

    async def delete(self, request: Request) -> Response:
        """Delete the named graph, or empty the default graph."""
        graph = _writable_target(request).graph
        writes = writes_of(self._writing, request, Interface.GRAPH_STORE)
        return confirm(await writes.delete_graph(graph, read_request_id(request, ())))


def _syntax_of(request: Request) -> RdfSyntax:
    """The syntax of the body. Raises UnsupportedMediaType."""
    return RdfSyntax.from_media_type(request.headers.get("content-type", ""))


def _read_thrift(body: bytes) -> Iterator[Quad]:
    return read_thrift_quads(BytesIO(body))


def _bounded(found: Iterable[Quad]) -> tuple[Quad, ...]:
    """Raises RdfSyntaxError, LimitExceeded."""
    quads = tuple(islice(found, ROWS_MAX + 1))
    if len(quads) > ROWS_MAX:
        raise LimitExceeded("quads that replace a dataset", len(quads), ROWS_MAX)
    return quads


def _quads(reads: GraphReads, target: _Target, syntax: RdfSyntax) -> Iterator[Quad]:
    """The quads of the answer. JSON-LD of one graph does not name the graph, as in Turtle."""
    if target.is_dataset:
        return reads.dataset_quads()
    quads = reads.graph_quads(target.graph)
    if syntax is RdfSyntax.JSON_LD and target.graph is not None:
        return (Quad(*quad.triple) for quad in quads)
    return quads


def _base_iri(request: Request, syntax: RdfSyntax, graph: NamedNode | None) -> str | None:
    """The base of relative IRIs in a body: the graph, else the request's IRI (RFC 3986, section 5.1.3)."""
    if graph is not None:
        return graph.value
    return request_iri(request) if syntax.takes_base else None


def _writable_target(request: Request) -> _Target:
    parameters = Parameters(request.scope["query_string"])
    refuse_as_of(parameters, "the past cannot be changed")
    target = _target(request, parameters)
    if target.is_dataset:
        raise InvalidParameter(
            "dataset", "can only be read as a whole; a PUT without it replaces what its body names"
        )
    return target


def _target(request: Request, parameters: Parameters) -> _Target:
    """Direct naming by the path, indirect by one of the parameters graph, default and dataset."""
    given = [name for name in ("graph", "default", "dataset") if name in parameters]
    directly = "name" in request.path_params
    if len(given) + directly > 1:
        raise InvalidParameter(given[-1], "the graph is named twice")
    if directly:
        return _Target(read_graph_iri("path", request_iri(request)), is_named=True)
    if "dataset" in given:
        if parameters.one("dataset") != "all":
            raise InvalidParameter("dataset", 'can only be "all"')
        return _Target(None, is_named=True, is_dataset=True)
    iri = parameters.one("graph")
    if iri is not None:
        return _Target(read_graph_iri("graph", iri), is_named=True)
    return _Target(None, is_named=parameters.one("default") is not None)


def _offers(syntaxes: tuple[RdfSyntax, ...]) -> tuple[Offer[RdfSyntax], ...]:
    return tuple(Offer(MediaType(syntax.media_type), syntax) for syntax in syntaxes)


_GRAPH_OFFERS, _DATASET_OFFERS = _offers(_SYNTAXES), _offers(_DATASET_SYNTAXES)


def _choose_syntax(request: Request, name: str | None, target: _Target) -> RdfSyntax:
    """By the parameter `format` (a short name or a media type), else by Accept."""
    offers = _DATASET_OFFERS if target.is_dataset else _GRAPH_OFFERS
    if name is None:
        return choose(", ".join(request.headers.getlist("accept")), offers).value
    if "/" in name:
        return choose(name, offers).value
    syntax = _NAMES.get(name.lower())
    if syntax is None:
        raise InvalidParameter("format", f"{name!r} is not known; known are {', '.join(_NAMES)}")
    if all(syntax is not offer.value for offer in offers):
        raise NotAcceptable(f"format={name}", tuple(offer.media_type.name for offer in offers))
    return syntax
