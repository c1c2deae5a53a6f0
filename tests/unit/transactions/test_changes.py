"""What a transaction wants, and its commit as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Store, Triple

from graphdb.errors import LimitExceeded
from graphdb.store.quad_store import QuadStore
from graphdb.transactions.changes import TransactionCommit, Wanted
from graphdb.transactions.read_pattern import ReadPattern
from tests.unit.rdf.random_quads import quads as random_quads

A, P, G = (NamedNode(f"urn:{name}") for name in "apg")
PATTERNS = st.builds(
    ReadPattern,
    st.sampled_from([None, A, BlankNode("b")]),
    st.sampled_from([None, P]),
    st.sampled_from([None, A, Literal("x\n", language="en"), Triple(A, P, Literal(1))]),
    st.sampled_from([None, DefaultGraph(), G, BlankNode("g")]),
    st.sampled_from([None, A, BlankNode("b")]),
)


@given(
    st.integers(0, 2**60),
    st.lists(PATTERNS),
    random_quads(),
    st.dictionaries(st.sampled_from([G, BlankNode("g")]), st.booleans()),
)
def test_a_commit_travels(
    index: int, reads: list[ReadPattern], quads: list[Quad], graphs: dict[NamedNode | BlankNode, bool]
) -> None:
    wanted = {quad: number % 2 == 0 for number, quad in enumerate(quads)}
    commit = TransactionCommit(index, tuple(reads), wanted, graphs)
    assert TransactionCommit.decode(commit.encode()) == commit


@pytest.mark.parametrize("data", [b"", b"\x01", b"\xff" * 40, b"\x02\x00\x00\x00" + bytes(8) + b"{}"])
def test_what_is_no_commit(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        TransactionCommit.decode(data)


def test_the_last_word_counts_and_only_real_changes_are_made() -> None:
    wanted = Wanted(10)
    there, gone, new = Quad(A, P, Literal(1)), Quad(A, P, Literal(2)), Quad(A, P, Literal(3), G)
    wanted.take([there, gone, new], present=True)
    wanted.take([gone], present=False)
    store = QuadStore(Store())
    store._store.extend([there, gone])
    change = wanted.change_in(store)
    assert (change.removed, change.added, change.created_graphs) == ((gone,), (new,), (G,))
    store.apply(change)
    assert not wanted.change_in(store)


def test_a_graph_that_was_written_to_stays() -> None:
    """Though another transaction drops it before the commit, and nothing is left of what was written."""
    wanted = Wanted(10)
    wanted.take([Quad(A, P, Literal(1), G)], present=True)
    wanted.take([Quad(A, P, Literal(1), G)], present=False)
    assert wanted.change_in(QuadStore(Store())).created_graphs == (G,)


def test_quads_are_in_the_form_of_the_store() -> None:
    wanted = Wanted(10)
    wanted.take([Quad(A, P, Literal("01", datatype=Literal(1).datatype))], present=True)
    wanted.take([Quad(A, P, Literal(1))], present=False)
    assert list(wanted.quads.values()) == [False]


def test_it_is_bounded() -> None:
    with pytest.raises(LimitExceeded):
        Wanted(2).take((Quad(A, P, Literal(n)) for n in range(3)), present=True)
