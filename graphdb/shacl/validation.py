"""`validate`: a graph of a store against shapes, by one engine or the other, or by both.

`answer_validation` is a whole validation as a reader performs it: from the words of a request to the bytes of
the report.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal as OneOf

import orjson
from pyoxigraph import DefaultGraph, NamedNode, Quad, Store, Triple

from graphdb.config.limits import GateLimits
from graphdb.errors import EvaluationFailed, InvalidParameter, UnknownGraph
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.pieces import PieceWriter, Sink
from graphdb.rdf.reading import read_quads
from graphdb.rdf.writing import write_triples
from graphdb.shacl.compiled_engine import CompiledEngine, is_compilable
from graphdb.shacl.data_graph import UNION_GRAPH, DataGraph, DataGraphName
from graphdb.shacl.nesting import inner_shapes
from graphdb.shacl.prebinding import PreboundQueries
from graphdb.shacl.pyshacl_engine import pyshacl_results
from graphdb.shacl.report import ValidationReport, ValidationResult, report_triples, result_json, stats_json
from graphdb.shacl.shacl_names import SH, XSD, Node, Term
from graphdb.shacl.shape_tree import PropertyConstraint, Shape
from graphdb.shacl.shapes import Shapes, read_shapes
from graphdb.shacl.shapes_graph import short_name
from graphdb.shacl.sources import Source
from graphdb.shacl.targets import Targets

__all__ = [
    "Engine",
    "answer_validation",
    "check_known",
    "data_graph_named",
    "merged_graphs",
    "merged_triples",
    "shapes_in_document",
    "shapes_in_graph",
    "validate",
]

Engine = OneOf["auto", "compiled", "pyshacl"]


def _no_deadline() -> None:
    """As long as it takes."""


def validate(
    store: Store,
    data_graph: DataGraphName,
    shapes: Shapes,
    *,
    engine: Engine = "auto",
    focus: Iterable[Term] | None = None,
    check: Callable[[], None] = _no_deadline,
) -> ValidationReport:
    """Validate a graph of the store, as it is now, against all shapes.

    focus restricts the focus nodes of every shape to those among these. check is called before each step that
    may take long, and ends the validation by raising. "compiled" raises EvaluationFailed for shapes that only
    pySHACL can evaluate, to which "auto" leaves them, and them alone; "pyshacl" leaves it everything.
    Raises EvaluationFailed where SPARQL in the shapes fails.
    """
    return _Validation(DataGraph(store, data_graph, check), shapes, focus).report(engine)


class _Validation:
    def __init__(self, graph: DataGraph, shapes: Shapes, focus: Iterable[Term] | None) -> None:
        self._graph, self._shapes = graph, shapes
        self._prebound = PreboundQueries(graph, shapes)
        self._targets = Targets(graph, self._prebound, focus)

    def report(self, engine: Engine) -> ValidationReport:
        sources = {shape.node: self._targets.source(shape) for shape in self._shapes.targeted}
        sources = {node: source for node, source in sources.items() if not self._targets.is_empty(source)}
        used = {node: self._reachable(node) for node in sources}
        left = [node for node in sources if engine == "pyshacl" or not _is_compilable(used[node])]
        if left and engine == "compiled":
            raise EvaluationFailed(f"{short_name(left[0])} has a constraint that cannot be compiled")
        results = [
            *self._compiled({node: source for node, source in sources.items() if node not in left}),
            *self._by_pyshacl({node: self._targets.nodes(sources[node]) for node in left}),
        ]
        return ValidationReport(
            results=tuple(sorted(results, key=_order)),
            focus_nodes_validated=self._targets.count(sources.values()),
            constraints_checked=_count_constraints(shape for shapes in used.values() for shape in shapes),
        )

    def _compiled(self, sources: dict[Node, Source]) -> Iterator[ValidationResult]:
        engine = CompiledEngine(self._graph, self._shapes, self._targets, self._prebound)
        for node, source in sources.items():
            for finding in engine.findings(self._shapes[node], source):
                yield finding.result()

    def _by_pyshacl(self, focus: dict[Node, frozenset[Term]]) -> Iterator[ValidationResult]:
        return pyshacl_results(self._graph, self._shapes, focus) if focus else iter(())

    def _reachable(self, node: Node) -> list[Shape]:
        """The shape and those below it that are not deactivated, each once."""
        found: dict[Node, Shape] = {}
        waiting = [node]
        for each in waiting:
            shape = self._shapes[each]
            if each not in found and not shape.deactivated:
                found[each] = shape
                waiting.extend(inner_shapes(shape))
        return list(found.values())


def _is_compilable(shapes: Iterable[Shape]) -> bool:
    return all(is_compilable(constraint) for shape in shapes for constraint in shape.constraints)


def _count_constraints(shapes: Iterable[Shape]) -> int:
    """Of different shapes; sh:property only stands for others."""
    return sum(
        not isinstance(constraint, PropertyConstraint)
        for shape in {shape.node: shape for shape in shapes}.values()
        for constraint in shape.constraints
    )


def _order(result: ValidationResult) -> tuple[str, ...]:
    parts = result.focus_node, result.source_shape, result.component, result.path, result.value
    return tuple(map(str, parts))


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


def merged_graphs(graphs: Iterable[NamedNode], store: Store) -> tuple[Store, DataGraphName]:
    """A store, and its graph that has the triples of several graphs, each once.

    If more than one of them exists, this is a copy in memory, because the engine finds a triple twice that is
    in two graphs. A graph that does not exist has no triples.
    """
    found = [graph for graph in graphs if store.contains_named_graph(graph)]
    if len(found) == 1:
        return store, found[0]
    merged = Store()
    merged.bulk_extend(Quad(*triple) for triple in merged_triples(found, store))
    return merged, None


def merged_triples(graphs: Iterable[NamedNode], store: Store) -> Iterator[Triple]:
    """The triples of the graphs. A triple in two graphs is returned twice."""
    for graph in graphs:
        for quad in store.quads_for_pattern(None, None, None, graph):
            yield quad.triple


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
