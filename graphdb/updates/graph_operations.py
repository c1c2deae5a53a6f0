"""Graph management: what CLEAR, DROP, CREATE, COPY, MOVE and ADD change in a state of the store.

Source: SPARQL 1.1 Update, sections 3.1.5 and 3.2. The default graph always exists; None stands for it. What
may fail by the specification fails here, and SILENT is the caller's affair.
"""

from collections.abc import Iterable, Iterator

from pyoxigraph import DefaultGraph, Quad

from graphdb.errors import AlreadyExists
from graphdb.model import ChangeSet, NamedGraph
from graphdb.store.net_change import compose
from graphdb.store.stored_form import stored_form
from graphdb.store.view import StoreView

__all__ = ["add", "change_of", "clear", "copy", "create", "drop", "move"]


def change_of(view: StoreView, removed: Iterable[Quad], added: Iterable[Quad]) -> ChangeSet:
    """The real change of removing quads, then adding quads; both may repeat and hold what is no change."""
    # lists are made, not generators, and none for what is empty: most changes have a quad or two
    wanted = dict.fromkeys(stored_form(added)) if added else {}
    unwanted = dict.fromkeys(stored_form(removed)) if removed else {}
    gone = tuple([quad for quad in unwanted if quad not in wanted and view.contains(quad)])
    new = tuple([quad for quad in wanted if not view.contains(quad)])
    return ChangeSet(gone, new, created_graphs=_created(view, new) if new else ())


def clear(view: StoreView, graphs: Iterable[NamedGraph | None]) -> ChangeSet:
    """Empty graphs, which stay.

    Raises UnknownGraph.
    """
    return ChangeSet(removed=tuple(quad for graph in graphs for quad in view.graph_quads(graph)))


def drop(view: StoreView, graphs: Iterable[NamedGraph | None]) -> ChangeSet:
    """Empty graphs, and take the names of the named ones away.

    Raises UnknownGraph.
    """
    doomed = tuple(graphs)
    return ChangeSet(
        removed=clear(view, doomed).removed,
        dropped_graphs=tuple(graph for graph in doomed if graph is not None),
    )


def create(view: StoreView, graph: NamedGraph) -> ChangeSet:
    """Make an empty graph.

    Raises AlreadyExists.
    """
    if view.graph_exists(graph):
        raise AlreadyExists("graph", graph.value)
    return ChangeSet(created_graphs=(graph,))


def add(view: StoreView, source: NamedGraph | None, target: NamedGraph | None) -> ChangeSet:
    """Put the quads of source into target too, which comes into being if need be, even by an empty source.

    Raises UnknownGraph.
    """
    if source == target:
        return ChangeSet()
    new = tuple(quad for quad in _moved(view, source, target) if not view.contains(quad))
    return ChangeSet(added=new, created_graphs=_created_target(view, target))


def copy(view: StoreView, source: NamedGraph | None, target: NamedGraph | None) -> ChangeSet:
    """Make target the same as source.

    Raises UnknownGraph.
    """
    if source == target:
        return ChangeSet()
    wanted = dict.fromkeys(_moved(view, source, target))
    created = _created_target(view, target)
    before = iter(()) if created else view.graph_quads(target)
    return ChangeSet(
        removed=tuple(quad for quad in before if quad not in wanted),
        added=tuple(quad for quad in wanted if not view.contains(quad)),
        created_graphs=created,
    )


def move(view: StoreView, source: NamedGraph | None, target: NamedGraph | None) -> ChangeSet:
    """Make target what source is, and drop source.

    Raises UnknownGraph.
    """
    if source == target:
        return ChangeSet()
    return compose(copy(view, source, target), drop(view, (source,)))


def _moved(view: StoreView, source: NamedGraph | None, target: NamedGraph | None) -> Iterator[Quad]:
    """The quads of source as they will stand in target."""
    name = target or DefaultGraph()
    return (Quad(quad.subject, quad.predicate, quad.object, name) for quad in view.graph_quads(source))


def _created_target(view: StoreView, target: NamedGraph | None) -> tuple[NamedGraph, ...]:
    return () if target is None or view.graph_exists(target) else (target,)


def _created(view: StoreView, added: Iterable[Quad]) -> tuple[NamedGraph, ...]:
    """The graphs that these quads bring into being, in order of appearance."""
    names = dict.fromkeys([quad.graph_name for quad in added])
    return tuple(
        [graph for graph in names if not isinstance(graph, DefaultGraph) and not view.graph_exists(graph)]
    )
