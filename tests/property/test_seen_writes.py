"""Random updates by principals who do not see everything, against a twin that holds only what they see."""

from collections.abc import Callable
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.access.annotations import ALLOWED_SID, REIFIES, VisibleQuads, is_annotating
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import VisibleState, has_hidden_quads, planned_by
from graphdb.errors import Forbidden, RequestError
from graphdb.model import ChangeSet, GraphName
from graphdb.rdf.canonical import canonical_lines
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.sparql.syntax import Update
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.updates.planner import UpdateContext, plan_update
from tests.property.strategies import GRAPHS, RESOURCES, quads
from tests.property.twin import Twin, store_of, twin, twin_of
from tests.property.update_texts import OperationText, block, has_blank_node, requests, written

SIDS = ["S-1-1", "S-1-2", "S-1-3"]
REIFIERS: list[NamedNode | BlankNode] = [*(BlankNode(f"r{number}") for number in range(4)), RESOURCES[0]]

sids = st.sampled_from([{SIDS[0]}, {SIDS[1]}, {SIDS[0], SIDS[2]}, set()])
some_graphs = st.frozensets(
    st.sampled_from(["http://example.org/*", *(graph.value for graph in GRAPHS)]), max_size=2
)
visibilities = st.builds(
    Visibility,
    default_graph=st.sampled_from([True, True, True, False]),
    patterns=st.sampled_from([frozenset({"*"})] * 3) | some_graphs,
    sids=st.frozensets(st.sampled_from(SIDS), max_size=2),
)


@st.composite
def annotated(draw: st.DrawFn) -> Twin:
    """A state of which some triples, and some that are not there, are annotated."""
    there = draw(st.lists(quads, min_size=2, max_size=8))
    about = draw(st.lists(st.sampled_from(there), min_size=1, max_size=6)) + draw(st.lists(quads, max_size=1))
    annotations: list[Quad] = []
    for number, quad in enumerate(about):
        graph: GraphName = quad.graph_name
        triple = draw(st.sampled_from([quad.triple, quad.triple, _innermost(quad)]))
        reifier = draw(st.sampled_from([BlankNode(f"own{number}"), *REIFIERS]))
        annotations.append(Quad(reifier, REIFIES, triple, graph))
        annotations += (Quad(reifier, ALLOWED_SID, Literal(sid), graph) for sid in sorted(draw(sids)))
        if draw(st.booleans()):
            said = Quad(reifier, RESOURCES[1], draw(st.sampled_from(RESOURCES)), graph)
            annotations.append(said)
            if draw(st.booleans()):
                other = draw(st.sampled_from([BlankNode(f"other{number}"), *REIFIERS]))
                annotations += [
                    Quad(other, REIFIES, said.triple, graph),
                    Quad(other, RESOURCES[1], RESOURCES[0], graph),
                ]
    return twin([*there, *annotations], draw(st.sets(st.sampled_from(GRAPHS), max_size=1)))


def _innermost(quad: Quad) -> Triple:
    triple = quad.triple
    while isinstance(triple.object, Triple):
        triple = triple.object
    return triple


@st.composite
def about(draw: st.DrawFn, state: Twin) -> OperationText:
    """What is there inserted or deleted; or reified, or annotated; or copied with its graph."""
    quad = draw(st.sampled_from(sorted(state.quads, key=str)))
    graph = quad.graph_name
    if isinstance(graph, BlankNode):
        graph = GRAPHS[0]
        quad = Quad(quad.subject, quad.predicate, quad.object, graph)
    kind = draw(st.sampled_from(["INSERT", "INSERT", "DELETE", "COPY", "ADD", "MOVE", "attack"]))
    if kind in ("COPY", "ADD", "MOVE"):
        source, target = (
            "" if isinstance(graph, DefaultGraph) else str(graph),
            str(draw(st.sampled_from(GRAPHS))),
        )
        return OperationText(f"{kind} {source or 'DEFAULT'} TO {target}", False, source, target)
    if kind == "attack":
        reified = [q.object for q in state.quads if q.predicate == REIFIES and q.graph_name == graph]
        triples = sorted({quad.triple, *reified}, key=str)
        named = {q.subject for q in state.quads if q.graph_name == graph and isinstance(q.subject, NamedNode)}
        subject = draw(st.sampled_from(sorted({*named, RESOURCES[0]}, key=str)))
        reifying = Quad(subject, REIFIES, draw(st.sampled_from(triples)), graph)
        quad = draw(st.sampled_from([reifying, Quad(subject, ALLOWED_SID, Literal(SIDS[0]), graph)]))
    verb = "DELETE" if kind == "DELETE" and not has_blank_node(quad) else "INSERT"
    return OperationText(f"{verb} DATA {block([written(quad)])}")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Twin, list[OperationText]]:
    """A state and a request."""
    state = draw(annotated())
    operations = draw(requests)
    return state, [*draw(st.lists(about(state), max_size=2)), *operations[: draw(st.integers(0, 2))]]


def text_of(operations: list[OperationText]) -> str:
    """One request; a blank node label may stand in one of its operations only."""
    return ";\n".join(operation.text.replace("_:", f"_:n{n}") for n, operation in enumerate(operations))


def seen_twin(visibility: Visibility, store: QuadStore) -> Twin:
    return twin_of(VisibleState(visibility, store))


def planned_as_seen(update: Update, store: QuadStore, visibility: Visibility) -> tuple[ChangeSet, ChangeSet]:
    """What the writer is told, and what really changes."""
    context = UpdateContext(fresh_of("n"))
    planned = planned_by(
        visibility, Overlay(store), fresh_of("c"), lambda s: store_of(seen_twin(visibility, s))
    )
    change = plan_update(update, planned.state, Dataset(), context)
    return change, planned.real_change(change)


def comparable(change: ChangeSet) -> tuple[object, ...]:
    """Without order, and without the labels of new blank nodes."""
    names = frozenset(change.dropped_graphs), frozenset(change.created_graphs)
    return frozenset(change.removed), canonical_lines(change.added), *names


def fresh_of(kind: str) -> Callable[[], BlankNode]:
    labels = count()
    return lambda: BlankNode(f"fresh{kind}{next(labels)}")


def is_said(store: QuadStore, quad: Quad) -> bool:
    return any(True for _ in store.quads_matching(None, None, quad.triple, quad.graph_name))


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(cases(), visibilities, visibilities)
def test_whoever_sees_a_part_writes_as_if_there_was_no_other(
    case: tuple[Twin, list[OperationText]], visibility: Visibility, other: Visibility
) -> None:
    state, operations = case
    store, update = store_of(state), parse_update(text_of(operations))
    before, seen = twin_of(store), seen_twin(visibility, store)
    others_before = frozenset(filter(VisibleQuads(other, store).sees, before.quads))
    expected: ChangeSet | RequestError
    try:
        expected = plan_update(update, Overlay(store_of(seen)), Dataset(), UpdateContext(fresh_of("n")))
    except RequestError as error:
        expected = error
    try:
        told, real = planned_as_seen(update, store, visibility)
    except Forbidden:
        if visibility.has_all_graphs:
            assert isinstance(expected, ChangeSet)
            assert any(
                quad.predicate in (REIFIES, ALLOWED_SID)
                or is_annotating(store, quad.subject, quad.graph_name)
                or is_said(store, quad)
                for quad in expected.added
            )
        return
    except RequestError:
        assert isinstance(expected, RequestError)
        return
    finally:
        assert twin_of(store) == before, "planning changes nothing"
    assert isinstance(expected, ChangeSet)
    assert comparable(told) == comparable(expected)
    assert not set(real.removed) - seen.quads, "nothing hidden is removed"
    assert set(real.removed) <= before.quads
    assert not set(real.added) & before.quads
    store.apply(real)
    after, sees = twin_of(store), VisibleQuads(visibility, store).sees
    assert after == before.after(real)
    twin_after = seen.after(told)
    assert {quad for quad in after.quads if sees(quad)} == {quad for quad in twin_after.quads if sees(quad)}
    lost = {quad for quad in twin_after.quads if not sees(quad)}
    assert lost <= set(told.added), "only what was inserted may be hidden by what was there"
    graphs_after = seen_twin(visibility, store).graphs
    assert graphs_after <= twin_after.graphs
    assert all(has_hidden_quads(store, graph) for graph in twin_after.graphs - graphs_after)
    carried = {quad for quad in real.added if quad not in told.added}
    assert all(quad.predicate in (REIFIES, ALLOWED_SID) for quad in carried)
    assert not carried or any(operation.source is not None for operation in operations)
    others_after = frozenset(filter(VisibleQuads(other, store).sees, after.quads))
    touched = set(real.removed) | set(real.added)
    assert others_before - touched == others_after - touched, "nobody else is shown or denied anything"


@given(annotated(), visibilities, st.sampled_from([DefaultGraph(), *GRAPHS]), st.sampled_from(GRAPHS))
def test_a_copy_is_protected_as_what_it_is_of(
    state: Twin, other: Visibility, source: GraphName, target: GraphName
) -> None:
    store = store_of(twin(q for q in state.quads if q.graph_name != target))
    visibility = Visibility(default_graph=True, patterns=frozenset({"*"}), sids=frozenset(SIDS[:2]))
    name = "DEFAULT" if isinstance(source, DefaultGraph) else str(source)
    update = parse_update(f"COPY SILENT {name} TO {target}")
    told, real = planned_as_seen(update, store, visibility)
    denied = {q.triple for q in VisibleState(visibility, store).dataset_quads() if q.graph_name == source}
    denied -= {q.triple for q in VisibleState(other, store).dataset_quads() if q.graph_name == source}
    store.apply(real)
    assert {q.triple for q in VisibleState(visibility, store).dataset_quads() if q.graph_name == target} == {
        q.triple for q in told.added
    }
    if other.sees_graph(source):
        copies = {q.triple for q in VisibleState(other, store).dataset_quads() if q.graph_name == target}
        assert not copies & denied
