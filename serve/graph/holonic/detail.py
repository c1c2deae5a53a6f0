"""One holon as JSON, with the N-Triples of its layers: written while they are read, however many they are."""

from collections.abc import Iterator
from dataclasses import dataclass

import orjson
from pyoxigraph import NamedNode, Quad

from graphdb.holonic.names import Layer, Tenant
from graphdb.holonic.registry import HolonRecord, Registry
from graphdb.rdf.canonical import escaped_controls
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.pieces import PieceWriter, Sink
from graphdb.rdf.writing import write_quads
from serve.backend import GraphReads

__all__ = ["OpenHolon", "open_holon", "write_holon"]

_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class OpenHolon:
    """A holon and the quads of its layers' graphs, still to be read: on the thread that has opened it."""

    tenant: Tenant
    record: HolonRecord
    quads: dict[str, Iterator[Quad]]  # by graph
    index: int  # it is of this log index or of a later one


def open_holon(reads: GraphReads, tenant: Tenant, iri: NamedNode) -> OpenHolon:
    """Open all of a holon in one state. Raises NotFound.

    Opening takes less time than a change does. Should there be a change during each of many attempts, what
    the last one has opened has to do: each graph is then of one state, and of none before the registry's.
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
    """Hand the document to sink in chunks of some 64 kB. Graphs without triples are not in it."""
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
    """Quads, counted while they are taken."""

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
    """Canonical N-Triples within a JSON string, its end, and how many triples they were."""
    for chunk in write_quads(quads, RdfSyntax.N_TRIPLES):
        yield orjson.dumps(escaped_controls(chunk.decode()))[1:-1]
    yield b'","triples":%d}' % quads.count
