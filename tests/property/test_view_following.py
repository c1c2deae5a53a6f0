"""A view that follows the changes of a graph is always what `VisibleQuads` shows of all its quads."""

from collections.abc import Sequence
from operator import add

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Store, Triple

from graphdb.access.annotations import ALLOWED_SID, REIFIES, VisibleQuads
from graphdb.access.view_following import NestedTerms, hidden_by_annotations, step_of_view
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import VisibleState
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.store.net_change import compose
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

G, H = NamedNode("urn:g:one"), NamedNode("urn:h:two")
NAMED: tuple[NamedGraph, ...] = (G, H, BlankNode("g"))
GRAPHS: tuple[GraphName, ...] = (DefaultGraph(), *NAMED)
NODES = tuple(NamedNode(f"urn:n:{name}") for name in "ab")
REIFIERS: tuple[NamedNode | BlankNode, ...] = (*(BlankNode(f"r{number}") for number in range(3)), NODES[1])

_plain = st.builds(Triple, st.sampled_from(NODES), st.sampled_from(NODES), st.sampled_from(NODES))
_triples = st.recursive(
    _plain, lambda inner: st.builds(Triple, st.sampled_from(NODES), st.just(NODES[0]), inner), max_leaves=3
)
_sids = st.sampled_from([Literal("S-1"), Literal("S-2"), Literal("S-3"), Literal("S-1", language="en")])
_said = st.builds(Triple, st.sampled_from(REIFIERS), st.just(NODES[0]), st.sampled_from(NODES))
_about_said = st.builds(
    Triple, st.sampled_from([*REIFIERS, *NODES]), st.sampled_from([REIFIES, NODES[1]]), _said
)
_statements = st.one_of(
    _triples,
    _said,
    _about_said,
    st.builds(Triple, st.sampled_from(NODES), st.just(NODES[0]), _about_said),
    st.builds(Triple, st.sampled_from(REIFIERS), st.just(REIFIES), _triples),
    st.builds(Triple, st.sampled_from(REIFIERS), st.just(ALLOWED_SID), _sids),
)
_quads = st.builds(
    lambda t, g: Quad(t.subject, t.predicate, t.object, g), _statements, st.sampled_from(GRAPHS)
)


@st.composite
def _related(draw: st.DrawFn) -> list[Quad]:
    """Some of: a triple annotated by one reifier, and another one's statements of it, with what is said of
    these.
    """
    triple, said = draw(_triples), draw(_said)
    annotating, about = draw(st.permutations(REIFIERS))[:2]
    triples = [
        Triple(annotating, REIFIES, triple),
        Triple(annotating, ALLOWED_SID, Literal("S-1")),
        Triple(said.subject, REIFIES, triple),
        said,
        Triple(about, REIFIES, said),
        Triple(about, NODES[0], NODES[0]),
    ]
    some = draw(st.lists(st.sampled_from(triples), min_size=1, max_size=6, unique=True))
    graph = draw(st.sampled_from(GRAPHS[:2]))
    return [Quad(one.subject, one.predicate, one.object, graph) for one in some]


# what a write does: quads toggled, graphs made empty or dropped
_writes = st.tuples(st.lists(_quads, max_size=6) | _related(), st.none() | st.sampled_from(NAMED))
_visibilities = st.builds(
    Visibility,
    st.just(False),
    st.booleans(),
    st.sampled_from([(), ("*",), ("urn:g:*",), ("urn:h:two",)]).map(frozenset),
    st.sampled_from([(), ("S-1",), ("S-2", "S-3")]).map(frozenset),
)


def change_of(state: QuadStore, toggled: Sequence[Quad], graph: NamedGraph | None) -> ChangeSet:
    """A real change of the state."""
    overlay = Overlay(state)
    for quad in dict.fromkeys(toggled):
        if overlay.contains(quad):
            overlay.push(ChangeSet(removed=(quad,)))
        else:
            name = quad.graph_name
            created = () if isinstance(name, DefaultGraph) or overlay.graph_exists(name) else (name,)
            overlay.push(ChangeSet(added=(quad,), created_graphs=created))
    if graph is not None:
        if overlay.graph_exists(graph):
            overlay.push(ChangeSet(tuple(overlay.graph_quads(graph)), (), (graph,)))
        else:
            overlay.push(ChangeSet(created_graphs=(graph,)))
    return overlay.pending


def naive(visibility: Visibility, state: QuadStore) -> tuple[set[Quad], set[GraphName]]:
    visible_quads = VisibleQuads(visibility, state)
    return (
        {quad for quad in state.dataset_quads() if visible_quads.sees(quad)},
        set(VisibleState(visibility, state).named_graphs()),
    )


def contents(view: QuadStore) -> tuple[set[Quad], set[GraphName]]:
    return set(view.dataset_quads()), set(view.named_graphs())


@settings(deadline=None)
@given(_visibilities, st.lists(st.lists(_writes, min_size=1, max_size=2), max_size=8))
def test_a_view_is_what_is_seen_after_each_change(
    visibility: Visibility, batches: list[list[tuple[list[Quad], NamedGraph | None]]]
) -> None:
    state, view, nested = QuadStore(Store()), QuadStore(Store()), NestedTerms()
    for batch in batches:
        parts = []
        for toggled, graph in batch:
            parts.append(change_of(state, toggled, graph))
            state.apply(parts[-1])
            nested.note(parts[-1])
        step = step_of_view(visibility, view, parts, state, nested)
        assert all(view.contains(quad) for quad in step.removed)
        assert not any(view.contains(quad) for quad in step.added)
        view.apply(step)
        assert contents(view) == naive(visibility, state)


@settings(deadline=None)
@given(_visibilities, st.builds(add, _related(), st.lists(_quads, max_size=20)))
def test_what_annotations_hide_is_found_from_them(visibility: Visibility, quads: list[Quad]) -> None:
    state = QuadStore(Store())
    state.apply(compose(change_of(state, quads, None)))
    nested = NestedTerms(state.dataset_quads())
    hidden = set(hidden_by_annotations(visibility, state, nested))
    visible_quads = VisibleQuads(visibility, state)
    in_visibility = {quad for quad in state.dataset_quads() if visibility.sees_graph(quad.graph_name)}
    assert hidden == {quad for quad in in_visibility if not visible_quads.sees(quad)}
