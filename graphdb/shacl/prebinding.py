"""SPARQL of shapes, evaluated for all focus nodes at once (SHACL section 5.3 and appendix A: pre-binding).

Pre-binding gives $this its value before the query is evaluated, everywhere in it. LATERAL does that in the
engine: it evaluates the query for each focus node with the variable bound, down to filters and BIND. The
other variables that have a value before, such as the parameters of a component, come the same way, so that
the query has to project them too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Store

from graphdb.errors import EvaluationFailed
from graphdb.geo.function_calls import calls_functions
from graphdb.planning.engine_text import engine_text_of
from graphdb.shacl.data_graph import UNION_GRAPH, DataGraph, graph_of_quads
from graphdb.shacl.engine_terms import term_text
from graphdb.shacl.findings import Finding
from graphdb.shacl.paths import Path, PredicatePath
from graphdb.shacl.query_reading import SHAPES_GRAPH
from graphdb.shacl.shacl_names import XSD, Term
from graphdb.shacl.shape_tree import ComponentConstraint, Shape, ShapeQuery, SparqlConstraint
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.shapes_graph import short_name
from graphdb.shacl.sources import Source
from graphdb.shacl.value_queries import Pairs
from graphdb.sparql.algebra import AbstractQuery, Select
from graphdb.sparql.patterns import Aggregate, SolutionModifiers
from graphdb.sparql.terms import RdfLiteral, Variable
from graphdb.sparql.translation import abstract_query, columns_of
from graphdb.sparql.tree_walk import all_below, nodes_below
from graphdb.store.engine_query import engine_functions

__all__ = ["PreboundQueries"]

_SHAPES_GRAPH_NAME = NamedNode("urn:graphdb:shacl:shapes-graph")
_ALIKE_TWICE = ("MIN", "MAX", "SAMPLE")  # aggregates to which it is all the same how often a value comes


@dataclass(frozen=True, slots=True)
class _Parts:
    """A query taken apart, to stand within another: names are its columns, bound what has values before."""

    prologue: str
    select: str
    names: tuple[str, ...]
    bound: tuple[tuple[str, Term], ...]
    asks_shapes: bool
    counts: bool  # how often a triple is matched matters
    calls_geometry: bool


class PreboundQueries:
    """Those of one validation."""

    def __init__(self, graph: DataGraph, shapes: Shapes) -> None:
        self._graph = graph
        self._copies = _CopiedGraphs(graph, shapes)

    def select_findings(
        self, shape: Shape, constraint: SparqlConstraint | ComponentConstraint, source: Source
    ) -> Iterator[Finding]:
        """What a SELECT finds. Raises EvaluationFailed, also where the query says ?failure."""
        query, messages = _query_of(constraint)
        parts = _parts(query)
        text = (
            f"{parts.prologue} SELECT DISTINCT {' '.join(f'?{name}' for name in parts.names)} {{ "
            f"{source.enumerated('?this')} {self._bindings(parts)} LATERAL {{ {parts.select} }} }}"
        )
        constants = dict(query.bindings)
        for row in self._rows(parts, text):
            found = {name: term for name, term in zip(parts.names, row, strict=True) if term is not None}
            yield _finding(shape, constraint, found, constants, messages)

    def targets(self, query: ShapeQuery) -> Iterator[Term]:
        """The nodes that a target in SPARQL gives."""
        parts = _parts(query)
        pattern = f"{self._bindings(parts)} LATERAL {{ {parts.select} }}"
        text = f"{parts.prologue} SELECT DISTINCT ?this {{ {pattern} }}"
        for (node,) in self._rows(parts, text):
            if node is not None:
                yield node

    def ask_findings(self, shape: Shape, constraint: ComponentConstraint, pairs: Pairs) -> Iterator[Finding]:
        """The values for which an ASK says no."""
        query, messages = _query_of(constraint)
        parts = _parts(query)
        holds = f"OPTIONAL {{ {parts.select} }}"
        narrowed = pairs.narrowed(
            f"{self._bindings(parts)} LATERAL {{ {holds} }} FILTER(!BOUND(?graphdb_holds))"
        )
        text = f"{parts.prologue} SELECT DISTINCT ?this ?value {{ {narrowed} }}"
        bindings = dict(query.bindings)
        for focus, value in self._rows(parts, text):
            assert focus is not None
            yield Finding(shape, constraint, focus, value, bindings=bindings, messages=messages)

    def _bindings(self, parts: _Parts) -> str:
        """What gives the variables their values. No text can name a blank node."""
        texts = (
            f"BIND({self._constant(term)} AS ?{name})"
            for name, term in (
                *parts.bound,
                *([(SHAPES_GRAPH, _SHAPES_GRAPH_NAME)] if parts.asks_shapes else []),
            )
        )
        return " ".join(texts)

    def _constant(self, term: Term) -> str:
        if isinstance(term, NamedNode | Literal):
            return term_text(term)
        return f"{self._graph.functions.indexing((term,))}(0)"

    def _rows(self, parts: _Parts, text: str) -> Iterator[tuple[Term | None, ...]]:
        functions, aggregates = engine_functions(parts.calls_geometry)
        self._graph.functions.include(functions)
        return self._asked(parts).select(text, custom_aggregate_functions=aggregates)

    def _asked(self, parts: _Parts) -> DataGraph:
        if parts.asks_shapes:
            return self._copies.with_shapes
        return self._copies.each_triple_once if parts.counts else self._graph


def _query_of(
    constraint: SparqlConstraint | ComponentConstraint,
) -> tuple[ShapeQuery, tuple[Literal, ...]]:
    if isinstance(constraint, SparqlConstraint):
        return constraint.query, constraint.messages
    return constraint.validator.query, constraint.validator.messages


def _parts(shape_query: ShapeQuery) -> _Parts:
    query = shape_query.query
    used = {node.name for node in all_below(query) if isinstance(node, Variable)}
    bound = tuple((name, term) for name, term in shape_query.bindings if name in used)
    carried = [name for name, _ in bound] + [SHAPES_GRAPH] * (SHAPES_GRAPH in used)
    names = tuple(columns_of(query))
    asked = abstract_query(query)
    select = Select.of(asked.pattern)
    made = _carrying(select, carried) if names else _holding(select, carried)
    return _Parts(
        prologue=f"BASE <{asked.base}>\n" if asked.base is not None else "",
        select=engine_text_of(AbstractQuery("SELECT", made.pattern())),
        names=names,
        bound=bound,
        asks_shapes=SHAPES_GRAPH in used,
        counts=any(map(_counts, nodes_below(query))),
        calls_geometry=calls_functions(query),
    )


def _counts(node: object) -> bool:
    match node:
        case Aggregate():
            return not node.distinct and node.name not in _ALIKE_TWICE
        case SolutionModifiers():
            return node.limit is not None or node.offset is not None
    return False


def _carrying(select: Select, carried: list[str]) -> Select:
    """A SELECT with the carried variables among what it projects and groups by."""
    columns = select.variables or ()
    more = tuple([variable for variable in map(Variable, carried) if variable not in columns])
    keys = (*select.keys, *more) if select.keys else ()
    return replace(select, variables=(*columns, *more), keys=keys)


def _holding(select: Select, carried: list[str]) -> Select:
    """Of an ASK: a SELECT that binds ?graphdb_holds where the answer is yes."""
    holds = Variable("graphdb_holds")
    columns = (*map(Variable, ("this", "value", *carried)), holds)
    extends = (*select.extends, (holds, RdfLiteral("1", XSD + "integer", None, None)))
    return replace(select, variables=columns, extends=extends, length=1)


def _finding(
    shape: Shape,
    constraint: SparqlConstraint | ComponentConstraint,
    row: Mapping[str, Term],
    constants: Mapping[str, Term],
    messages: tuple[Literal, ...],
) -> Finding:
    """A solution as a violation (SHACL section 5.3.2)."""
    failure = row.get("failure")
    if failure == Literal("true", datatype=NamedNode(XSD + "boolean")):
        raise EvaluationFailed(f"the SPARQL of {short_name(shape.source)} reports a failure")
    focus, path, message = row["this"], row.get("path"), row.get("message")
    if isinstance(message, Literal):
        messages = (message,)
    own_path: Path | None = PredicatePath(path) if isinstance(path, NamedNode) else None
    value = row.get("value", focus if shape.path is None else None)
    return Finding(shape, constraint, focus, value, own_path, {**constants, **row}, messages)


class _CopiedGraphs:
    """Copies of the data graph in memory, for SPARQL that the store itself would answer wrongly.

    Each is made when it is first needed, once a validation.
    """

    def __init__(self, graph: DataGraph, shapes: Shapes) -> None:
        self._graph, self._shapes = graph, shapes

    @cached_property
    def with_shapes(self) -> DataGraph:
        """The data graph, and the shapes in the graph `_SHAPES_GRAPH_NAME`."""
        triples = self._shapes.triples
        beside = (Quad(each.subject, each.predicate, each.object, _SHAPES_GRAPH_NAME) for each in triples)
        return self._copy(beside)

    @cached_property
    def each_triple_once(self) -> DataGraph:
        """The union of graphs as a set: the engine finds a triple twice that is in two graphs."""
        store = self._graph.store
        if self._graph.name is not UNION_GRAPH or not _has_several_graphs(store):
            return self._graph
        return self._copy(quad for quad in store if quad.graph_name != DefaultGraph())

    def _copy(self, beside: Iterable[Quad]) -> DataGraph:
        store = Store()
        store.bulk_extend(self._triples())
        store.bulk_extend(beside)
        return self._graph.instead(store)

    def _triples(self) -> Iterator[Quad]:
        for quad in self._graph.quads_matching(None, None, None, graph_of_quads(self._graph.name)):
            yield Quad(quad.subject, quad.predicate, quad.object, DefaultGraph())


def _has_several_graphs(store: Store) -> bool:
    """Whether more than one graph may hold something."""
    of_default = next(store.quads_for_pattern(None, None, None, DefaultGraph()), None)
    return (of_default is not None) + len(list(islice(store.named_graphs(), 2))) > 1
