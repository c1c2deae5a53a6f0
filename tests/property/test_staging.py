"""Documents put into graphs, and graphs deleted, against naive set differences."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, NamedNode, Quad

from graphdb.errors import InvalidParameter, RdfSyntaxError, UnknownGraph
from graphdb.store.overlay import Overlay
from graphdb.store.staging import StagedBody, graph_deletion
from graphdb.store.stored_form import stored_form
from tests.property.strategies import GRAPHS, datasets, graph_names
from tests.property.twin import Twin, named_graph_of, store_of, twin, twin_of, twins

SIZES = st.sampled_from([1, 3, 1000])  # quads per part; documents larger than that wait in a store
TARGETS = st.sampled_from([None, *GRAPHS])


def in_graph(quads: list[Quad], graph: NamedNode | None) -> list[Quad]:
    return [Quad(q.subject, q.predicate, q.object, graph or DefaultGraph()) for q in quads]


@given(twins, datasets, TARGETS, st.booleans(), SIZES)
def test_a_document_put_into_one_graph(
    before: Twin, document: list[Quad], graph: NamedNode | None, replace: bool, size: int
) -> None:
    document = in_graph(document, None)
    kept = [q for q in before.quads if not replace or named_graph_of(q) != graph]
    expected = twin([*kept, *in_graph(document, graph)], before.graphs | ({graph} if graph else set()))

    staged = StagedBody(document, graph=graph, whole_dataset=False, directory=None, quads_per_part=size)

    assert_leads(before, staged, replace, size, expected)


@given(twins, datasets, st.booleans(), SIZES)
def test_a_document_that_names_its_graphs(
    before: Twin, document: list[Quad], replace: bool, size: int
) -> None:
    named = {q.graph_name for q in document}
    kept = [q for q in before.quads if not replace or q.graph_name not in named]
    expected = twin([*kept, *document], before.graphs)

    staged = StagedBody(document, graph=None, whole_dataset=True, directory=None, quads_per_part=size)

    assert_leads(before, staged, replace, size, expected)


def assert_leads(before: Twin, staged: StagedBody, replace: bool, size: int, expected: Twin) -> None:
    """The parts are small, together the exact difference between before and expected, and lead there."""
    store = store_of(before)
    with staged:
        parts = list(staged.parts(Overlay(store), replace=replace))
    assert all(part.affected_triples <= size for part in parts)
    assert sum(part.affected_triples for part in parts) == before.change_to(expected).affected_triples
    store.apply_many(iter(parts))
    assert twin_of(store) == expected


@given(twins, graph_names, SIZES)
def test_a_deleted_graph(before: Twin, name: NamedNode | DefaultGraph, size: int) -> None:
    graph = None if isinstance(name, DefaultGraph) else name
    store = store_of(before)
    if graph is not None and graph not in before.graphs:
        with pytest.raises(UnknownGraph):
            graph_deletion(store, graph)
        return
    parts = list(graph_deletion(store, graph, quads_per_part=size))
    assert all(part.affected_triples <= size for part in parts)
    store.apply_many(parts)
    kept = [q for q in before.quads if named_graph_of(q) != graph]
    assert twin_of(store) == twin(kept, before.graphs - {graph})


def test_a_named_graph_in_a_document_with_a_target() -> None:
    document = [Quad(GRAPHS[0], GRAPHS[0], GRAPHS[0], GRAPHS[1])]
    with pytest.raises(InvalidParameter):
        StagedBody(document, graph=GRAPHS[0], whole_dataset=False, directory=None)


def test_a_large_document_on_disk_is_deleted_in_the_end(tmp_path: Path) -> None:
    document = [Quad(GRAPHS[0], GRAPHS[0], NamedNode(f"urn:{number}")) for number in range(10)]
    with StagedBody(
        document, graph=None, whole_dataset=False, directory=tmp_path, quads_per_part=3
    ) as staged:
        assert len(list(tmp_path.iterdir())) == 1
        parts = list(staged.parts(store_of(twin([])), replace=True))
    assert sorted(str(q) for part in parts for q in part.added) == sorted(map(str, document))
    assert not list(tmp_path.iterdir())


def test_a_document_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[Quad]:
        for number in range(10):
            yield Quad(GRAPHS[0], GRAPHS[0], NamedNode(f"urn:{number}"))
        raise RdfSyntaxError("cut", 11, 1)

    with pytest.raises(RdfSyntaxError, match="line 11"):
        StagedBody(broken(), graph=None, whole_dataset=False, directory=tmp_path, quads_per_part=3)
    assert not list(tmp_path.iterdir())


@given(datasets)
def test_numbers_written_otherwise_are_no_change(document: list[Quad]) -> None:
    store = store_of(twin(document))
    with StagedBody(document, graph=None, whole_dataset=True, directory=None) as staged:
        assert not list(staged.parts(store, replace=True))
    assert set(stored_form(document)) == twin_of(store).quads
