"""Applying, composing and overlaying changes against a naive twin."""

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Quad, QuerySolutions

from graphdb.errors import UnknownGraph
from graphdb.model import ChangeSet
from graphdb.sparql.dataset import Dataset
from graphdb.store.net_change import compose
from graphdb.store.overlay import Overlay
from graphdb.store.stored_form import stored_form
from graphdb.store.view import StoreView
from tests.property.strategies import GRAPHS, quads
from tests.property.twin import Twin, changes, named_graph_of, store_of, twin_of, twins


@given(twins, st.data())
def test_applying_a_change_twice_is_applying_it_once(state: Twin, data: st.DataObject) -> None:
    change = data.draw(changes(state))
    store = store_of(state)
    for _ in range(2):
        store.apply(change)
        assert twin_of(store) == state.after(change)


@given(twins, st.data(), st.integers(1, 5))
def test_the_parts_of_a_change_do_what_the_change_does(state: Twin, data: st.DataObject, size: int) -> None:
    change = data.draw(changes(state))
    store = store_of(state)
    for _ in range(2):
        store.apply_many(iter(parts_of(change, size)))
        assert twin_of(store) == state.after(change)


@given(twins, st.data())
def test_composed_changes_do_what_they_do_one_after_the_other(state: Twin, data: st.DataObject) -> None:
    first = data.draw(changes(state))
    second = data.draw(changes(state.after(first)))
    third = data.draw(changes(state.after(first).after(second)))
    end = state.after(first).after(second).after(third)

    composed = compose(first, second, third)

    assert same(composed, state.change_to(end)), "the composition is net: only real changes are in it"
    assert same(composed, compose(compose(first, second), third))
    assert same(composed, compose(first, compose(second, third)))
    assert same(composed, compose(ChangeSet(), composed))


@given(twins, st.data())
def test_an_overlay_answers_as_the_store_will(state: Twin, data: st.DataObject) -> None:
    store = store_of(state)
    overlay = Overlay(store)
    end = state
    for _ in range(data.draw(st.integers(0, 3))):
        change = data.draw(changes(end))
        overlay.push(change)
        end = end.after(change)
        assert len(list(overlay.quads_matching(None, None, None, None))) == len(end.quads)
    with overlay.request() as request:
        assert_answers_as(overlay, end, data)
        assert same(overlay.pending, state.change_to(end))
        for _ in range(data.draw(st.integers(0, 3))):
            change = data.draw(changes(end))
            request.push(change)
            end = end.after(change)
        assert_answers_as(request, end, data)
    assert twin_of(store) == state, "readers of the store have seen nothing"


@settings(max_examples=30)
@given(twins, st.data())
def test_a_request_queries_its_own_changes(state: Twin, data: st.DataObject) -> None:
    store = store_of(state)
    end = state
    with Overlay(store).request() as request:
        for _ in range(3):
            change = data.draw(changes(end))
            request.push(change)
            end = end.after(change)
            answer = request.applied_store().query_text(
                "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }", Dataset()
            )
            assert isinstance(answer, QuerySolutions)
            found = sorted((str(row[0]), str(row[1]), str(row[2]), str(row[3])) for row in answer)
            assert found == sorted(
                (str(q.subject), str(q.predicate), str(q.object), str(named_graph_of(q))) for q in end.quads
            )
    assert twin_of(store) == state


def assert_answers_as(view: StoreView, state: Twin, data: st.DataObject) -> None:
    assert twin_of(view) == state
    for quad in stored_form([data.draw(quads)]):
        assert view.contains(quad) == (quad in state.quads)
        assert_matches_as(view, state, quad, data.draw(st.tuples(*[st.booleans()] * 4)))
    for graph in [None, *GRAPHS]:
        exists = graph is None or graph in state.graphs
        if graph is not None:
            assert view.graph_exists(graph) == exists
        try:
            found = list(view.graph_quads(graph))
        except UnknownGraph:
            assert not exists
        else:
            assert exists
            assert sorted(map(str, found)) == sorted(
                str(q) for q in state.quads if named_graph_of(q) == graph
            )


def assert_matches_as(view: StoreView, state: Twin, quad: Quad, given: tuple[bool, ...]) -> None:
    """Whatever of the quad's terms is given."""
    subject, predicate, object_, graph = (
        term if is_given else None for term, is_given in zip(quad, given, strict=True)
    )
    found = list(view.quads_matching(subject, predicate, object_, graph))
    wanted = [
        each
        for each in state.quads
        if all(term == own or not is_given for term, own, is_given in zip(quad, each, given, strict=True))
    ]
    assert sorted(map(str, found)) == sorted(map(str, wanted))


def parts_of(change: ChangeSet, size: int) -> list[ChangeSet]:
    """A change in pieces of at most size quads: the graphs first, removals before additions."""
    parts = [ChangeSet(dropped_graphs=change.dropped_graphs, created_graphs=change.created_graphs)]
    parts += (ChangeSet(removed=change.removed[at : at + size]) for at in range(0, len(change.removed), size))
    parts += (ChangeSet(added=change.added[at : at + size]) for at in range(0, len(change.added), size))
    return parts


def same(one: ChangeSet, other: ChangeSet) -> bool:
    """Whether two changes are the same but for the order inside them."""
    return all(
        len(mine) == len(set(mine)) and set(mine) == set(theirs)
        for mine, theirs in (
            (one.removed, other.removed),
            (one.added, other.added),
            (one.dropped_graphs, other.dropped_graphs),
            (one.created_graphs, other.created_graphs),
        )
    )
