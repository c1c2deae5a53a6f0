"""Which updates do nothing but empty whole graphs: these need not be planned a quad at a time."""

from pyoxigraph import NamedNode

from graphdb.model import NamedGraph
from graphdb.sparql.syntax import (
    ClearGraph,
    DeleteWhere,
    DropGraph,
    GraphTarget,
    Modify,
    Operation,
    QuadPattern,
    Update,
)
from graphdb.sparql.terms import Iri, Variable
from graphdb.sparql.translation import pattern_of_group, pattern_of_quads
from graphdb.store.clearing import Emptied
from graphdb.store.view import StoreView

__all__ = ["emptied_by", "empties_graphs"]


def empties_graphs(update: Update) -> bool:
    """Whether an update does nothing else, in whatever state."""
    return len(update.operations) == 1 and _target(update.operations[0]) is not None


def emptied_by(update: Update, view: StoreView) -> Emptied | None:
    """What an update empties in a state all of which its writer sees; None where it does anything else. The
    protocol's dataset is not to be given. A graph that is named may not be there.
    """
    if len(update.operations) != 1:
        return None
    operation = update.operations[0]
    target = _target(operation)
    if target is None:
        return None
    named: list[NamedGraph] = list(view.named_graphs()) if target.kind in ("named", "all") else []
    if target.graph is not None:
        named = [NamedNode(target.graph.value)]
    graphs = [None, *named] if target.kind in ("default", "all") else named
    return Emptied(graphs, named if isinstance(operation, DropGraph) else ())


def _target(operation: Operation) -> GraphTarget | None:
    match operation:
        case ClearGraph(target) | DropGraph(target):
            return target
        case DeleteWhere():
            return _graphs_of(operation.pattern, None)
        case Modify(delete=delete, insert=None, using=()) if delete is not None:
            is_same = pattern_of_quads(delete) == pattern_of_group(operation.pattern)
            return _graphs_of(delete, operation.with_graph) if is_same else None
        case _:
            return None


def _graphs_of(pattern: tuple[QuadPattern, ...], default: Iri | None) -> GraphTarget | None:
    """The graphs all of whose quads match; None where not all quads of a graph do."""
    if len(pattern) != 1:
        return None
    quad = pattern[0]
    graph = quad.graph or default
    of_graph = [graph] if isinstance(graph, Variable) else []
    terms = [quad.subject, quad.predicate, quad.object, *of_graph]
    if len({term.name for term in terms if isinstance(term, Variable)}) < len(terms):
        return None
    if graph is None:
        return GraphTarget("default")
    return GraphTarget("named") if isinstance(graph, Variable) else GraphTarget("graph", graph)
