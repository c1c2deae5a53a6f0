"""What a query is given as its dataset while some graphs of the store are hidden from it."""

from collections.abc import Collection, Iterable
from typing import TypeAlias

from pyoxigraph import DefaultGraph, NamedNode, Store

from graphdb.model import GraphName, NamedGraph

__all__ = ["DefaultGraphs", "seen_dataset"]

DefaultGraphs: TypeAlias = NamedNode | Iterable[GraphName] | None


def seen_dataset(
    store: Store,
    hidden: Collection[GraphName],
    default: DefaultGraphs,
    named: Iterable[NamedNode] | None,
    *,
    union_default_graph: bool,
) -> tuple[DefaultGraphs, Iterable[NamedGraph] | None]:
    """The default graphs and the named graphs of a query (None: the store's) without hidden graphs."""
    if not hidden:
        return default, named
    others = [graph for graph in (store.named_graphs() if named is None else named) if graph not in hidden]
    if default is None and named is None and union_default_graph:
        return [DefaultGraph(), *others], others
    if default is not None:
        graphs = [default] if isinstance(default, NamedNode) else default
        default = [graph for graph in graphs if graph not in hidden]
    return default, others
