"""The one call that asks the engine a query; of the store, it knows pyoxigraph's alone."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, QueryBoolean, QuerySolutions, QueryTriples, Store

from graphdb.geometry.functions import AGGREGATES, FUNCTIONS
from graphdb.sparql.term_order import ENGINE_AGGREGATES, ENGINE_FUNCTIONS
from graphdb.store.engine_errors import request_failures
from graphdb.store.search_tables import BLANK_FUNCTIONS

__all__ = ["Ask", "EngineAnswer", "engine_functions", "engine_query", "first_full"]

EngineAnswer: TypeAlias = QuerySolutions | QueryTriples | QueryBoolean
Ask: TypeAlias = Callable[[str], EngineAnswer]
"""Begins to evaluate a text on some store and dataset."""

_Functions: TypeAlias = tuple[dict[NamedNode, Any], dict[NamedNode, Any]]
_OWN: _Functions = {**ENGINE_FUNCTIONS, **BLANK_FUNCTIONS}, {**ENGINE_AGGREGATES}
_WITH_GEOMETRY: _Functions = (
    {**ENGINE_FUNCTIONS, **BLANK_FUNCTIONS, **FUNCTIONS},
    {**ENGINE_AGGREGATES, **AGGREGATES},
)

_Graph: TypeAlias = NamedNode | BlankNode | DefaultGraph  # what the engine takes


def engine_query(
    store: Store,
    text: str,
    *,
    base_iri: str | None,
    default_graph: NamedNode | Iterable[_Graph] | None,
    named_graphs: Iterable[NamedNode | BlankNode] | None,
    union_default_graph: bool,
    calls_geometry: bool = False,
) -> EngineAnswer:
    """Start evaluating a text made for the engine, whose own FROM clauses, if any, do not count.

    None stands for the store's own default graph and for all its named graphs; union_default_graph makes the
    union of all graphs the default graph, where none is given. calls_geometry gives the text the functions of
    GeoSPARQL: ours, also where the engine has one of its own, which knows neither reference systems nor GML.
    Raises EvaluationFailed. Taking rows may raise pyoxigraph's own errors: see `request_failures`.
    """
    functions, aggregates = engine_functions(calls_geometry)
    with request_failures():
        return store.query(
            text,
            base_iri=base_iri,
            use_default_graph_as_union=union_default_graph and default_graph is None and named_graphs is None,
            default_graph=_given(default_graph),
            named_graphs=None if named_graphs is None else list(named_graphs),
            custom_functions=functions,
            custom_aggregate_functions=aggregates,
        )


def engine_functions(calls_geometry: bool) -> _Functions:
    """The functions and the aggregates that a text made for the engine may call; not to be changed."""
    return _WITH_GEOMETRY if calls_geometry else _OWN


def first_full(ask: Ask, attempts: Sequence[str], rows: int, text: str) -> EngineAnswer:
    """The answer to the first of some attempts at a SELECT that has so many rows, else that to its text.

    An attempt is evaluated twice, so it should be short. Raises as `engine_query`.
    """
    for attempt in attempts:
        answer = ask(attempt)
        assert isinstance(answer, QuerySolutions)
        with request_failures():
            if sum(1 for _ in answer) >= rows:
                return ask(attempt)
    return ask(text)


def _given(graph: NamedNode | Iterable[_Graph] | None) -> "NamedNode | list[_Graph] | None":
    return graph if graph is None or isinstance(graph, NamedNode) else list(graph)
