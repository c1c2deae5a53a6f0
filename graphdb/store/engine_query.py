"""The one call that asks the engine a query; of the store, it knows pyoxigraph's alone."""

from collections.abc import Iterable
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, QueryBoolean, QuerySolutions, QueryTriples, Store

from graphdb.store.engine_errors import request_failures

__all__ = ["engine_query"]

_Graph: TypeAlias = NamedNode | BlankNode | DefaultGraph  # what the engine takes


def engine_query(
    store: Store,
    text: str,
    *,
    base_iri: str | None,
    default_graph: NamedNode | Iterable[NamedNode] | None,
    named_graphs: Iterable[NamedNode] | None,
    union_default_graph: bool,
) -> QuerySolutions | QueryTriples | QueryBoolean:
    """Start evaluating a text made for the engine, whose own FROM clauses, if any, do not count.

    None stands for the store's own default graph and for all its named graphs; union_default_graph makes the
    union of all graphs the default graph, where none is given.
    Raises EvaluationFailed. Taking rows may raise pyoxigraph's own errors: see `request_failures`.
    """
    with request_failures():
        return store.query(
            text,
            base_iri=base_iri,
            use_default_graph_as_union=union_default_graph and default_graph is None and named_graphs is None,
            default_graph=_given(default_graph),
            named_graphs=None if named_graphs is None else list(named_graphs),
        )


def _given(graph: NamedNode | Iterable[NamedNode] | None) -> "NamedNode | list[_Graph] | None":
    return graph if graph is None or isinstance(graph, NamedNode) else list(graph)
