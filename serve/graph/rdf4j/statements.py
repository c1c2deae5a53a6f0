"""`/repositories/{id}/statements` and `/rdf-graphs`: statements by pattern, and whole graphs.

Source: RDF4J's REST API, protocol version 12.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter
from graphdb.model import Confirmation, GraphName, Interface
from graphdb.planning.gate import read_update
from graphdb.rdf.binary import read_binary_quads, write_binary_quads
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.rdf.writing import write_quads
from graphdb.sparql.dataset import Dataset
from serve.access.request_scope import visibility_of
from serve.answers import Pipe, WorkerAnswer, Workers
from serve.backend import GraphReads, GraphWrites, Queries, Writing
from serve.bodies import body_chunks
from serve.graph.query_parameters import read_as_of
from serve.graph.rdf4j.wire import (
    Pattern,
    Written,
    choose_written,
    no_content,
    read_base,
    read_pattern,
    syntax_of_body,
)
from serve.graph.writes import read_request_id, writes_of
from serve.parameters import Parameters, read_flag, read_graph_iri, request_iri
from serve.routing import without_body
from serve.spooled_bodies import as_lines

__all__ = ["StatementsEndpoint", "matching", "placed", "read_document", "statements_answer"]


class StatementsEndpoint:
    """Reading and writing statements, outside of transactions."""

    def __init__(
        self,
        queries: Queries,
        writing: Writing,
        workers: Workers,
        limits: GateLimits,
        body_bytes_max: int,
    ) -> None:
        self._queries, self._writing, self._workers = queries, writing, workers
        self._limits, self._body_bytes_max = limits, body_bytes_max

    async def get(self, request: Request) -> Response:
        """The statements of a pattern."""
        parameters = Parameters(request.scope["query_string"])
        return await self._read(request, parameters, read_pattern(parameters))

    async def post(self, request: Request) -> Response:
        """Add the statements of the body."""
        parameters = Parameters(request.scope["query_string"])
        return await self._write(request, parameters, read_pattern(parameters).contexts, replace=False)

    async def put(self, request: Request) -> Response:
        """Replace the statements of the contexts, or all, by those of the body."""
        parameters = Parameters(request.scope["query_string"])
        return await self._write(request, parameters, read_pattern(parameters).contexts, replace=True)

    async def delete(self, request: Request) -> Response:
        """Delete the statements of a pattern."""
        pattern = read_pattern(Parameters(request.scope["query_string"]))
        return no_content((await self._delete(request, pattern)).snapshot_index)

    # whole graphs: their name is in the path, or a parameter

    async def get_graph(self, request: Request) -> Response:
        """The statements of one graph; none if it does not exist."""
        parameters = Parameters(request.scope["query_string"])
        return await self._read(
            request, parameters, Pattern(None, None, None, (_graph_of(request, parameters),))
        )

    async def post_graph(self, request: Request) -> Response:
        """Add the body to one graph."""
        parameters = Parameters(request.scope["query_string"])
        return await self._write_graph(request, parameters, replace=False)

    async def put_graph(self, request: Request) -> Response:
        """Replace one graph by the body."""
        parameters = Parameters(request.scope["query_string"])
        return await self._write_graph(request, parameters, replace=True)

    async def delete_graph(self, request: Request) -> Response:
        """Delete one graph; no error if it does not exist."""
        graph = _graph_of(request, Parameters(request.scope["query_string"]))
        done = await self._delete(request, Pattern(None, None, None, (graph,)))
        return no_content(done.snapshot_index)

    async def _read(self, request: Request, parameters: Parameters, pattern: Pattern) -> Response:
        written = choose_written(request, parameters)
        read_flag(parameters, "infer")  # nothing is inferred
        as_of, timeout_s = read_as_of(parameters), self._workers.time_limit_s
        reads = await self._queries.reads(visibility_of(request.scope), as_of, timeout_s)
        return statements_answer(request, self._workers, reads, pattern, written)

    async def _write_graph(self, request: Request, parameters: Parameters, *, replace: bool) -> Response:
        """Relative IRIs are resolved against the graph's."""
        graph = _graph_of(request, parameters)
        base_iri = graph.value if isinstance(graph, NamedNode) else None
        return await self._write(request, parameters, (graph,), replace=replace, base_iri=base_iri)

    async def _write(
        self,
        request: Request,
        parameters: Parameters,
        contexts: tuple[GraphName, ...] | None,
        *,
        replace: bool,
        base_iri: str | None = None,
    ) -> Response:
        syntax = syntax_of_body(request)
        base_iri = read_base(parameters) or base_iri
        keeps = read_flag(parameters, "preserveNodeId") is True
        writes = writes_of(self._writing, request, Interface.RDF4J)
        body = body_chunks(request, self._body_bytes_max)
        shown = syntax.name if syntax is not None else "BINARY"
        request_id = read_request_id(request, (shown,))
        target = _Target.of(contexts)
        if syntax is not None and (contexts is None or (target.is_one and not syntax.carries_graphs)):
            confirmation = await writes.write_graph(
                body,
                syntax,
                graph=target.graph,
                whole_dataset=contexts is None and syntax.carries_graphs,
                replace=replace,
                clear=replace and contexts is None,
                base_iri=(base_iri or request_iri(request)) if syntax.takes_base else None,
                keep_blank_nodes=keeps,
                request_id=request_id,
            )
        else:
            quads_of = _Reading(syntax, base_iri or request_iri(request), keeps, contexts)
            confirmation = await _write_rewritten(writes, body, quads_of, replace, request_id)
        return no_content(confirmation.snapshot_index)

    async def _delete(self, request: Request, pattern: Pattern) -> Confirmation:
        update = read_update(_deletion(pattern), None, self._limits)
        writes = writes_of(self._writing, request, Interface.RDF4J)
        return await writes.update(update, Dataset(), read_request_id(request, ()))


@dataclass(frozen=True, slots=True)
class _Target:
    """Where statements are written: with is_one to one graph (None: the default graph)."""

    is_one: bool
    graph: NamedNode | None = None

    @classmethod
    def of(cls, contexts: Sequence[GraphName] | None) -> "_Target":
        match contexts:
            case [NamedNode() as graph]:
                return cls(True, graph)
            case [DefaultGraph()]:
                return cls(True)
        return cls(False)


def matching(reads: GraphReads, pattern: Pattern) -> Iterator[Quad]:
    """The quads of a pattern, of one state for each context."""
    for graph in pattern.contexts or (None,):
        yield from reads.quads_matching(pattern.subject, pattern.predicate, pattern.object, graph)


def statements_answer(
    request: Request, workers: Workers, reads: GraphReads, pattern: Pattern, written: Written
) -> Response:
    """The quads of a pattern in the syntax that the client prefers, streamed."""
    head = {"Content-Type": written.media_type, "Vary": "Accept", "Cache-Control": "no-cache"}
    if request.method == "HEAD":
        return without_body(head | {"X-Snapshot-Index": str(reads.snapshot_index())})

    def produce(pipe: Pipe) -> None:
        pipe.headers = head | {"X-Snapshot-Index": str(reads.snapshot_index())}
        quads = matching(reads, pattern)
        chunks = write_binary_quads(quads) if written.syntax is None else write_quads(quads, written.syntax)
        for chunk in chunks:
            pipe.write(chunk)

    return WorkerAnswer(workers, produce)


class _Reading:
    """How a body is read whose quads are not stored as they stand in it."""

    def __init__(
        self,
        syntax: RdfSyntax | None,
        base_iri: str,
        keeps_blank_nodes: bool,
        contexts: tuple[GraphName, ...] | None,
    ) -> None:
        self.contexts = contexts
        self._syntax, self._base_iri, self._keeps = syntax, base_iri, keeps_blank_nodes

    def quads(self, document: IO[bytes]) -> Iterator[Quad]:
        """Those to be stored. Raises RdfSyntaxError."""
        found = read_document(document, self._syntax, self._base_iri, keep_blank_nodes=self._keeps)
        return placed(found, self.contexts)


def read_document(
    document: IO[bytes], syntax: RdfSyntax | None, base_iri: str | None, *, keep_blank_nodes: bool
) -> Iterator[Quad]:
    """The quads of a document; syntax None is binary RDF. Raises RdfSyntaxError."""
    if syntax is None:
        return read_binary_quads(document, fresh_blank_nodes=not keep_blank_nodes)
    base_iri = base_iri if syntax.takes_base else None
    return read_quads(document, syntax, base_iri=base_iri, fresh_blank_nodes=not keep_blank_nodes)


def placed(quads: Iterable[Quad], contexts: Sequence[GraphName] | None) -> Iterator[Quad]:
    """The quads in each of the contexts, wherever they stood; without contexts as they are."""
    if contexts is None:
        yield from quads
        return
    for quad in quads:
        for graph in contexts:
            yield Quad(quad.subject, quad.predicate, quad.object, graph)


async def _write_rewritten(
    writes: GraphWrites,
    body: AsyncIterator[bytes],
    reading: _Reading,
    replace: bool,
    request_id: bytes | None,
) -> Confirmation:
    """Store the quads of a body as lines, which have all that was asked for in them."""
    target = _Target.of(reading.contexts)
    if replace and reading.contexts is not None and not target.is_one:
        raise InvalidParameter("context", "PUT replaces one graph that has a name, or everything")
    syntax = RdfSyntax.N_TRIPLES if target.is_one else RdfSyntax.N_QUADS
    async with as_lines(body, reading.quads, syntax) as lines:
        return await writes.write_graph(
            lines,
            syntax,
            graph=target.graph,
            whole_dataset=not target.is_one,
            replace=replace,
            clear=replace and reading.contexts is None,
            base_iri=None,
            keep_blank_nodes=True,  # they are fresh already, unless they are to be kept
            request_id=request_id,
        )


def _graph_of(request: Request, parameters: Parameters) -> GraphName:
    """The graph that the path names (`/rdf-graphs/{name}`), or a parameter (`/rdf-graphs/service`)."""
    if "name" in request.path_params:
        return read_graph_iri("path", request_iri(request))
    iri, default = parameters.one("graph"), parameters.one("default")
    if (iri is None) is (default is None):
        raise InvalidParameter("graph", "name one graph, by graph=IRI or default")
    return DefaultGraph() if iri is None else read_graph_iri("graph", iri)


def _deletion(pattern: Pattern) -> str:
    """An update that deletes what a pattern matches. Raises InvalidParameter."""
    if not pattern.has_terms:
        if pattern.contexts is None:
            return "DROP ALL"
        return " ; ".join(f"DROP SILENT {_target(graph)}" for graph in pattern.contexts)
    terms = [
        f"?{name}" if term is None else str(term)
        for name, term in (("s", pattern.subject), ("p", pattern.predicate), ("o", pattern.object))
    ]
    triple = " ".join(terms)
    if any(isinstance(term, BlankNode) for term in (pattern.subject, pattern.object)):
        raise InvalidParameter("subj, obj", "blank nodes can be deleted in a transaction only")
    if pattern.contexts is None:
        return f"DELETE WHERE {{ {triple} }} ; DELETE WHERE {{ GRAPH ?g {{ {triple} }} }}"
    return " ; ".join(
        f"DELETE WHERE {{ {triple} }}"
        if isinstance(graph, DefaultGraph)
        else f"DELETE WHERE {{ GRAPH {graph} {{ {triple} }} }}"
        for graph in map(_nameable, pattern.contexts)
    )


def _target(graph: GraphName) -> str:
    return "DEFAULT" if isinstance(graph, DefaultGraph) else f"GRAPH {_nameable(graph)}"


def _nameable(graph: GraphName) -> GraphName:
    if isinstance(graph, BlankNode):
        raise InvalidParameter("context", "blank nodes can be deleted in a transaction only")
    return graph
