"""/holonic/holons and /holonic/depth: holons, their layers, their membrane, and how deep they are nested."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from pyoxigraph import NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from graphdb.holonic.names import Layer, Tenant
from graphdb.holonic.queries import CountedHolon, Solution, holons_of, holons_query, parents_of, parents_query
from graphdb.holonic.registry import HolonRecord, NewHolon, Registry, depths, holon_quads, layer_link
from graphdb.node import MergedGraphs
from graphdb.rdf.canonical import escaped_controls
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.pieces import PieceWriter, Sink
from graphdb.rdf.reading import read_quads
from graphdb.rdf.writing import write_quads
from serve.answers import Pipe, WorkerAnswer
from serve.backend import AnswerStream, GraphReads
from serve.bodies import JSON_TYPE, read_json
from serve.graph.holonic.holonic_service import HolonBody, HolonicService, LayerBody, iri_of, now
from serve.graph.shacl import ShaclEndpoint, ValidationReader
from serve.graph.writes import confirm
from serve.routing import without_body

__all__ = ["DepthEndpoint", "HolonsEndpoint", "LayerEndpoint", "MembraneEndpoint", "open_holon"]

_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class OpenHolon:
    """A holon with iterators over the quads of its layers, to be read on the thread that opened it."""

    tenant: Tenant
    record: HolonRecord
    quads: dict[str, Iterator[Quad]]  # by graph
    index: int  # its state is at this log index or later


def open_holon(reads: GraphReads, tenant: Tenant, iri: NamedNode) -> OpenHolon:
    """Open all layers of a holon in one state. Raises NotFound.

    Opening takes less time than a change. If a change happens during each of many attempts, the result of the
    last attempt is used: each graph is then of one state, which is not before that of the registry.
    """
    for _ in range(_ATTEMPTS):
        before = reads.exact_index()
        opened = _open(reads, tenant, iri)
        if before is not None and before == reads.exact_index():
            break
    return opened


def _open(reads: GraphReads, tenant: Tenant, iri: NamedNode) -> OpenHolon:
    index = reads.snapshot_index()
    record = HolonRecord.of(tenant, iri, Registry(tenant, reads).statements(iri))
    quads = {graph: reads.quads_matching(None, None, None, NamedNode(graph)) for _, graph in record.graphs}
    return OpenHolon(tenant, record, quads, index)


def write_holon(holon: OpenHolon, sink: Sink) -> None:
    """Write the document to sink in chunks of about 64 kB. Graphs without triples are left out."""
    pieces = PieceWriter(sink)
    for piece in _document(holon):
        pieces.write(piece)
    pieces.close()


def _document(holon: OpenHolon) -> Iterator[bytes]:
    record = holon.record
    head = {
        "iri": record.iri,
        "label": record.label,
        "member_of": record.member_of,
        "tenant": holon.tenant.name,
        "created_at": record.created_at,
    }
    yield orjson.dumps(head)[:-1] + b',"layers":{'
    for number, layer in enumerate(Layer):
        yield b'%s"%s":[' % (b"," if number else b"", layer.value.encode())
        yield from _layer(holon, layer)
        yield b"]"
    yield b"}}"


def _layer(holon: OpenHolon, layer: Layer) -> Iterator[bytes]:
    separator = b""
    for graph in (graph for of, graph in holon.record.graphs if of is layer):
        quads = holon.quads.pop(graph)
        first = next(quads, None)
        if first is not None:
            yield separator + b'{"graph":%s,"ntriples":"' % orjson.dumps(graph)
            yield from _ntriples(_Counted(first, quads))
            separator = b","


class _Counted:
    """Quads that are counted while they are read."""

    def __init__(self, first: Quad, rest: Iterator[Quad]) -> None:
        self._first, self._rest = first, rest
        self.count = 0

    def __iter__(self) -> Iterator[Quad]:
        self.count += 1
        yield self._first
        for quad in self._rest:
            self.count += 1
            yield quad


def _ntriples(quads: _Counted) -> Iterator[bytes]:
    """Canonical N-Triples as the rest of a JSON string, and the number of triples."""
    for chunk in write_quads(quads, RdfSyntax.N_TRIPLES):
        yield orjson.dumps(escaped_controls(chunk.decode()))[1:-1]
    yield b'","triples":%d}' % quads.count


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
        """Every holon, with the number of triples in each graph of its layers."""
        tenant = self._service.tenant(request)

        def body(solutions: Iterable[Solution]) -> dict[str, Any]:
            return {"holons": [_shown(tenant, holon) for holon in holons_of(tenant, solutions)]}

        return await self._service.listed(request, holons_query(tenant), body)

    async def get(self, request: Request) -> Response:
        """One holon, with the triples of its layers as N-Triples."""
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


class LayerEndpoint:
    """POST to one of the layers."""

    def __init__(self, service: HolonicService, layer: Layer) -> None:
        self._service, self._layer = service, layer

    async def post(self, request: Request) -> Response:
        """Add Turtle to the graph of a layer. Triples can only be added."""
        tenant, holon = self._service.tenant(request), iri_of(request)
        body = await read_json(request, LayerBody, self._service.settings.server.max_body_bytes)
        graph = tenant.layer_graph(holon, self._layer, body.graph_slug)
        (await self._service.registry(request, tenant)).check_holon(holon)  # before the text is parsed
        link = layer_link(tenant, holon, self._layer, graph)

        def quads() -> Iterator[Quad]:
            yield link
            yield from _parsed(body.turtle, graph)

        confirmation = await self._service.write(
            request, body, tenant, quads, lambda registry: registry.check_holon(holon)
        )
        return confirm(confirmation, graph=graph.value)


def _parsed(turtle: str, graph: NamedNode) -> Iterator[Quad]:
    """Turtle as quads of a graph, with new blank nodes. Relative IRIs need an @base in the text."""
    for quad in read_quads(turtle.encode(), RdfSyntax.TURTLE):
        yield Quad(quad.subject, quad.predicate, quad.object, graph)


class MembraneEndpoint:
    """GET of the membrane of a holon."""

    def __init__(self, service: HolonicService, reader: ValidationReader, validations: ShaclEndpoint) -> None:
        self._service, self._reader, self._validations = service, reader, validations

    async def get(self, request: Request) -> Response:
        """The report of a validation of the whole interior; in JSON with the holon's IRI."""
        tenant, iri = self._service.tenant(request), iri_of(request)
        record = HolonRecord.of(tenant, iri, (await self._service.registry(request, tenant)).statements(iri))
        shapes, data = record.layer(Layer.BOUNDARY), record.layer(Layer.INTERIOR)
        asked = self._reader.ask_about(request, MergedGraphs(shapes), MergedGraphs(data))
        if asked.report_syntax is not None:
            return await self._validations.answer(asked)
        return await self._validations.answer(asked, lambda stream: _Introduced(stream, {"iri": iri.value}))


class _Introduced:
    """A JSON object from a reader, with further members before its own."""

    def __init__(self, stream: AnswerStream, members: dict[str, str]) -> None:
        self.query_id, self.where = stream.query_id, stream.where
        self.snapshot_index, self.is_exact = stream.snapshot_index, stream.is_exact
        self._stream = stream
        self._before = orjson.dumps(members)[:-1] + b","

    async def read(self) -> bytes | None:
        """See `serve.backend.AnswerStream`."""
        piece = await self._stream.read()
        if piece and self._before:
            before, self._before = self._before, b""
            return before + piece.removeprefix(b"{")
        return piece

    def close(self) -> None:
        """See `serve.backend.AnswerStream`."""
        self._stream.close()


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
