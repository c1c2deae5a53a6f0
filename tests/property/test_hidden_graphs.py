"""Random graphs that are emptied, hidden first and removed a line at a time, against a plain store that never
had them: whatever is read, before, between and after, is the same.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, QueryBoolean, QuerySolutions, Store

from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.rdf.quad_lines import ClearedLines
from graphdb.sparql.dataset import Dataset
from graphdb.store import apply, hidden_graphs
from graphdb.store.clearing import Emptied, clear_lines
from graphdb.store.engine_query import engine_query
from graphdb.store.quad_store import QuadStore
from graphdb.store.seen_dataset import seen_dataset
from tests.property.strategies import GRAPHS, PREDICATES
from tests.property.twin import Twin, changes, store_of, twin_of, twins

TEXTS = [
    "SELECT * { ?s ?p ?o }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    f"SELECT * {{ GRAPH {GRAPHS[0]} {{ ?s ?p ?o }} }}",
    f"SELECT * {{ GRAPH ?g {{ ?s ?p ?o }} GRAPH {GRAPHS[1]} {{ ?s ?q ?x }} }}",
    f"ASK {{ GRAPH {GRAPHS[1]} {{ ?s {PREDICATES[0]} ?o }} }}",
]
NAMES = "SELECT * { GRAPH ?g {} }"
DATASETS = [
    Dataset(),
    Dataset((GRAPHS[0],)),
    Dataset((GRAPHS[0], GRAPHS[1]), (GRAPHS[1], GRAPHS[2])),
    Dataset((), (GRAPHS[0],)),
]


@pytest.fixture(scope="module", autouse=True)
def _few_are_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden_graphs, "_QUADS_MIN", 0)
        patch.setattr(hidden_graphs, "_BLOCK_BYTES", 1)
        patch.setattr(apply, "_PUT_BACK_MAX", -1)
        yield


def without_blank_names(state: Twin) -> Twin:
    """Names of graphs are IRIs: the others keep a graph from being hidden."""
    quads = (in_graph(quad) if _is_blank(quad.graph_name) else quad for quad in state.quads)
    return Twin(frozenset(quads), frozenset(g if not _is_blank(g) else GRAPHS[0] for g in state.graphs))


def in_graph(quad: Quad) -> Quad:
    return Quad(quad.subject, quad.predicate, quad.object, GRAPHS[0])


def _is_blank(graph: GraphName) -> bool:
    return isinstance(graph, BlankNode)


def emptied(
    state: Twin, store: QuadStore, cleared: set[NamedGraph], dropped: bool, path: Path
) -> ClearedLines:
    names = sorted(cleared, key=str)
    change = clear_lines(store, Emptied(names, names if dropped else ()), path)
    assert change.removed is not None
    count = sum(quad.graph_name in cleared for quad in state.quads)
    return ClearedLines(change.removed, count, change.cleared_graphs, change.dropped_graphs)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), twins, st.booleans(), st.booleans())
def test_what_is_read(data: st.DataObject, state: Twin, dropped: bool, may_be_blank: bool) -> None:
    state = state if may_be_blank else without_blank_names(state)
    store = store_of(state)
    try:
        follow(data, state, store, dropped)
    finally:
        store.let_go()


def follow(data: st.DataObject, state: Twin, store: QuadStore, dropped: bool) -> None:
    store.hides_cleared = True
    wanted = data.draw(st.sets(st.sampled_from(GRAPHS), min_size=1))
    cleared: set[NamedGraph] = {graph for graph in wanted if graph in state.graphs}
    gone = {quad for quad in state.quads if quad.graph_name in cleared}
    expected = state.after(ChangeSet(tuple(gone), (), tuple(cleared) if dropped else ()))
    with tempfile.TemporaryDirectory() as directory:
        lines = Path(directory) / "lines"
        store.apply_many(emptied(state, store, cleared, dropped, lines))
    if gone and not any(map(_is_blank, state.graphs)):
        assert store.is_removing, "this is about graphs that are hidden"
    compare(store, expected, dropped)
    while store.is_removing:
        change = data.draw(changes(expected))
        waits = store.hides(change)
        names = {*change.created_graphs, *change.dropped_graphs}
        concerned = {quad.graph_name for quad in (*change.added, *change.removed)} | names
        assert waits == (not concerned.isdisjoint(cleared) or any(map(_is_blank, names)))
        if data.draw(st.booleans()):
            store.apply(change)
            expected = expected.after(change)
            assert store.is_removing is not waits, "what concerns a hidden graph comes after it"
        else:
            store.remove_some()
        compare(store, expected, dropped)
    store.hides_cleared = False
    assert twin_of(QuadStore(store._store)) == expected, "the engine has lost it all"


def compare(store: QuadStore, expected: Twin, dropped: bool) -> None:
    plain = store_of(expected)
    assert twin_of(store) == expected
    texts = [*TEXTS, NAMES] if dropped or not store.is_removing else TEXTS
    for one, other in ((store, plain), (store.uniting_graphs(), plain.uniting_graphs())):
        for text in texts:
            for dataset in DATASETS:
                if text is NAMES and dataset:
                    continue  # the engine finds a graph that is named so, whether or not it is there
                assert answer(one, text, dataset) == answer(other, text, dataset)
        for default in GRAPHS:
            assert answer(one, TEXTS[0], Dataset(), default) == answer(other, TEXTS[0], Dataset(), default)
        assert rows(one.matching(None, None, None, None)) == rows(other.matching(None, None, None, None))
    for graph in (None, DefaultGraph(), *GRAPHS):
        for predicate in (None, PREDICATES[0]):
            found = store.quads_matching(None, predicate, None, graph)
            assert rows(found) == rows(plain.quads_matching(None, predicate, None, graph))
    for graph in GRAPHS:
        assert store.graph_exists(graph) is (graph in expected.graphs)
        assert rows(store.matching(None, None, None, graph)) == rows(plain.matching(None, None, None, graph))
        if graph in expected.graphs:
            assert rows(store.graph_quads(graph)) == rows(plain.graph_quads(graph))
        assert object_rows(store, graph) == object_rows(plain, graph)
        assert dumped(store, graph) == dumped(plain, graph)
    for quad in expected.quads:
        assert store.contains(quad)
    compare_in_a_reader(store, plain, texts)


def compare_in_a_reader(store: QuadStore, plain: QuadStore, texts: list[str]) -> None:
    """With the engine's quads as they are, and the names of what is hidden."""
    for text in texts:
        default, named = seen_dataset(
            store._store, store._hidden.now.graphs, None, None, union_default_graph=False
        )
        found = engine_query(
            store._store,
            text,
            base_iri=None,
            default_graph=default,
            named_graphs=named,
            union_default_graph=False,
        )
        assert _counted(found) == answer(plain, text, Dataset())


def rows(quads: Iterator[Quad]) -> Counter[Quad]:
    return Counter(quads)


def answer(store: QuadStore, text: str, dataset: Dataset, default: NamedNode | None = None) -> object:
    return _counted(store.query_text(text, dataset, default_graph=default))


def _counted(found: object) -> object:
    if isinstance(found, QueryBoolean):
        return bool(found)
    assert isinstance(found, QuerySolutions)
    return Counter(tuple(str(term) for term in row) for row in found)


def object_rows(store: QuadStore, graph: NamedNode) -> list[bytes]:
    reading = store.object_rows(PREDICATES[0], graph)
    try:
        text = b"".join(iter(reading.read, b""))
    finally:
        reading.close()
    return sorted(text.splitlines())


def dumped(store: QuadStore, graph: NamedNode) -> list[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "triples"
        store.dump_graph(graph, path)
        return sorted(path.read_bytes().splitlines())


def test_a_copy_is_complete(tmp_path: Path) -> None:
    """It waits for the removal; one that hides does not, and says what it hides."""
    state = without_blank_names(Twin(frozenset(), frozenset(GRAPHS)))
    quads = [Quad(NamedNode(f"urn:{i}"), PREDICATES[0], NamedNode("urn:o"), GRAPHS[i % 2]) for i in range(9)]
    state = state.after(ChangeSet(added=tuple(quads)))
    store = QuadStore(Store(tmp_path / "store"))
    store.apply(ChangeSet(added=tuple(quads), created_graphs=tuple(GRAPHS)))
    store.hides_cleared = True
    store.apply_many(emptied(state, store, {GRAPHS[0]}, True, tmp_path / "lines"))
    store.remove_some()
    assert store.checkpoint_hiding(tmp_path / "hiding") == {GRAPHS[0]}
    assert store.is_removing
    kept = {quad for quad in quads if quad.graph_name == GRAPHS[1]}
    left = {*Store.read_only(str(tmp_path / "hiding"))}
    assert left > kept
    assert len(left) == len(quads) - 1, "a removal is half done"
    store.checkpoint(tmp_path / "whole")
    assert not store.is_removing
    copy = Store.read_only(str(tmp_path / "whole"))
    assert {*copy} == kept
    assert {*copy.named_graphs()} == {*GRAPHS[1:]}
    store.let_go()
