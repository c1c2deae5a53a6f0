"""Making the store of a view from a copy of the state that it is of."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from pyoxigraph import DefaultGraph, Quad, QuerySolutions, Store

from graphdb.access.view_following import NestedTerms, hidden_by_annotations, hidden_graphs
from graphdb.access.visibility import Visibility
from graphdb.model import ChangeSet, GraphName
from graphdb.sparql.dataset import Dataset
from graphdb.store.quad_store import ChangeListener, QuadStore

__all__ = ["build_view", "nested_terms", "remove_quads"]

_REMOVED_AT_ONCE = 10_000
_LOADED_AT_ONCE = 10_000
_NESTED = "?s ?p ?o FILTER(isTRIPLE(?o) && isTRIPLE(OBJECT(?o)))"


def build_view(
    visibility: Visibility,
    state: QuadStore,
    path: Path,
    listeners: Iterable[ChangeListener],
    *,
    union_default_graph: bool,
) -> tuple[QuadStore, NestedTerms]:
    """A store at path with what a visibility shows of a state, and the nested terms of that state.

    Hard links to the state less what is hidden; or, where more is hidden than seen, what is seen, loaded.
    The listeners hear of all changes. Raises StorageFull, CorruptionError.
    """
    names: list[GraphName] = [DefaultGraph(), *state.named_graphs()]
    seen = [name for name in names if visibility.sees_graph(name)]
    hidden = [name for name in names if not visibility.sees_graph(name)]
    nested = nested_terms(visibility, state)
    if hidden and _is_more(_quads_of(state, hidden), _quads_of(state, seen)):
        view = _opened(path, listeners, union_default_graph)
        created = tuple(name for name in seen if not isinstance(name, DefaultGraph))
        view.apply(ChangeSet(created_graphs=created))
        view.apply_many(_parts(_quads_of(state, seen)))
        unwanted = hidden_by_annotations(visibility, state, nested)
    else:
        state.checkpoint(path)
        view = _opened(path, listeners, union_default_graph)
        unwanted = chain(_quads_of(state, hidden), hidden_by_annotations(visibility, state, nested))
    remove_quads(view, unwanted)
    dropped = (name for name in hidden if not isinstance(name, DefaultGraph))
    view.apply(ChangeSet(dropped_graphs=(*dropped, *hidden_graphs(visibility, state, view))))
    return view, nested


def nested_terms(visibility: Visibility, *states: QuadStore) -> NestedTerms:
    """Those of the graphs that a visibility shows. The engine looks at all quads: a second a million."""
    quads = chain.from_iterable(map(_nested_quads, states))
    return NestedTerms(quad for quad in quads if visibility.sees_graph(quad.graph_name))


def remove_quads(view: QuadStore, unwanted: Iterator[Quad]) -> None:
    """Remove quads that are there, some of which may come more than once."""
    while removed := tuple(islice(unwanted, _REMOVED_AT_ONCE)):
        view.apply(ChangeSet(removed=tuple(dict.fromkeys(removed))))


def _quads_of(state: QuadStore, graphs: Iterable[GraphName]) -> Iterator[Quad]:
    return chain.from_iterable(state.quads_matching(None, None, None, graph) for graph in graphs)


def _opened(path: Path, listeners: Iterable[ChangeListener], union_default_graph: bool) -> QuadStore:
    """Its scratch copies lie beside it."""
    return QuadStore(
        Store(path), listeners, scratch_directory=path.parent, union_default_graph=union_default_graph
    )


def _parts(quads: Iterator[Quad]) -> Iterator[ChangeSet]:
    while part := tuple(islice(quads, _LOADED_AT_ONCE)):
        yield ChangeSet(added=part)


def _is_more(one: Iterator[Quad], other: Iterator[Quad]) -> bool:
    """Whether one has more quads than the other; that is counted to the end."""
    count = sum(1 for _ in other)
    return next(islice(one, count, None), None) is not None


def _nested_quads(state: QuadStore) -> Iterator[Quad]:
    for text in (f"SELECT * {{ {_NESTED} }}", f"SELECT * {{ GRAPH ?g {{ {_NESTED} }} }}"):
        rows = state.query_text(text, Dataset())
        assert isinstance(rows, QuerySolutions)
        for row in rows:
            graph = row["g"] if "?g" in text else DefaultGraph()
            yield Quad(row["s"], row["p"], row["o"], graph)
