"""Which graphs a write names: where one is hidden from whoever writes, nothing is written."""

from collections.abc import Iterator

from pyoxigraph import DefaultGraph, NamedNode

from graphdb.access.sight import Sight
from graphdb.errors import Forbidden
from graphdb.model import GraphName
from graphdb.sparql.syntax import (
    AddGraph,
    ClearGraph,
    CopyGraph,
    CreateGraph,
    DropGraph,
    GraphTarget,
    Load,
    MoveGraph,
    Operation,
    Update,
)

__all__ = ["check_graph", "check_targets", "forbidden"]


def forbidden(reason: str) -> Forbidden:
    """What only an admin may write."""
    return Forbidden("whoever writes", "Admin", reason)


def check_graph(sight: Sight, graph: GraphName | None) -> None:
    """Raises Forbidden where a graph (None: the default graph) is hidden, whether it exists or not."""
    name = graph or DefaultGraph()
    if not sight.sees_graph(name):
        text = "the default graph" if isinstance(name, DefaultGraph) else f"the graph {name}"
        raise forbidden(f"{text} is not visible to whoever writes")


def check_targets(sight: Sight, update: Update) -> None:
    """Raises Forbidden where an operation on whole graphs names a hidden one, SILENT or not.

    What other operations write to is known when they are planned.
    """
    if not sight.has_all_graphs:
        for operation in update.operations:
            for graph in _named(operation):
                check_graph(sight, graph)


def _named(operation: Operation) -> Iterator[NamedNode | None]:
    match operation:
        case Load(into=into) if into is not None:
            yield NamedNode(into.value)
        case CreateGraph(graph):
            yield NamedNode(graph.value)
        case ClearGraph(target) | DropGraph(target) if target.kind in ("graph", "default"):
            yield _graph(target)
        case CopyGraph(source, target) | MoveGraph(source, target) | AddGraph(source, target):
            yield _graph(source)
            yield _graph(target)


def _graph(target: GraphTarget) -> NamedNode | None:
    return NamedNode(target.graph.value) if target.graph is not None else None
