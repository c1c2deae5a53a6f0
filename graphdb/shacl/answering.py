"""A whole validation as a reader performs it: from the words of a request to the bytes of the report."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import orjson
from pyoxigraph import DefaultGraph, NamedNode, Store, Triple

from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter, UnknownGraph
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.pieces import PieceWriter, Sink
from graphdb.rdf.reading import read_quads
from graphdb.rdf.writing import write_triples
from graphdb.shacl.data_graph import UNION_GRAPH, DataGraphName
from graphdb.shacl.report import ValidationReport, report_triples, result_json, stats_json
from graphdb.shacl.shapes import read_shapes
from graphdb.shacl.validation import validate
from graphdb.shacl.vocabulary import SH, XSD

__all__ = ["answer_validation", "check_known", "data_graph_named", "shapes_in_document", "shapes_in_graph"]

_RESULTS_AT_ONCE = 100
_PREFIXES = {"sh": SH, "xsd": XSD}


def answer_validation(
    store: Store,
    data_graph: DataGraphName,
    shapes: Iterable[Triple],
    report_syntax: RdfSyntax | None,
    sink: Sink,
    clock: Callable[[], float],
    limits: GateLimits,
) -> None:
    """Validate, and hand the report on in pieces of some 64 kB; report_syntax None is the interface's JSON.

    clock tells seconds; limits are for SPARQL in the shapes. Raises MalformedShapes, EvaluationFailed,
    NotAcceptable, and what shapes raises.
    """
    began = clock()
    report = validate(store, data_graph, read_shapes(shapes, limits))
    duration_ms = round((clock() - began) * 1000)
    if report_syntax is None:
        _write_json(report, duration_ms, sink)
        return
    for piece in write_triples(report_triples(report), report_syntax, prefixes=_PREFIXES):
        sink(piece)


def data_graph_named(name: str) -> DataGraphName:
    """What requests and settings call "default", "union" or by an IRI."""
    if name == "default":
        return None
    return UNION_GRAPH if name == "union" else NamedNode(name)


def shapes_in_graph(graph: str, store: Store) -> Iterator[Triple]:
    """The triples of a named graph. Raises UnknownGraph."""
    name = NamedNode(graph)
    check_known(name, store)
    return (quad.triple for quad in store.quads_for_pattern(None, None, None, name))


def check_known(graph: DataGraphName, store: Store) -> None:
    """Raise UnknownGraph for a named graph that does not exist."""
    if isinstance(graph, NamedNode) and not store.contains_named_graph(graph):
        raise UnknownGraph(graph.value)


def shapes_in_document(content: bytes, syntax: RdfSyntax) -> Iterator[Triple]:
    """The triples of a document. Raises RdfSyntaxError, and InvalidParameter where it has a named graph."""
    for quad in read_quads(content, syntax):
        if not isinstance(quad.graph_name, DefaultGraph):
            raise InvalidParameter("shapes", f"are in a named graph of the document, {quad.graph_name}")
        yield quad.triple


def _write_json(report: ValidationReport, duration_ms: int, sink: Sink) -> None:
    """`report_json`, without having all of it in memory once more."""
    writer = PieceWriter(sink)
    writer.write(b'{"conforms":%s,"results":[' % orjson.dumps(report.conforms))
    results, separator = map(result_json, report.results), b""
    while batch := list(islice(results, _RESULTS_AT_ONCE)):
        writer.write(separator + orjson.dumps(batch)[1:-1])
        separator = b","
    writer.write(b'],"stats":%s}' % orjson.dumps(stats_json(report, duration_ms)))
    writer.close()
