"""Canonical labels and lines: the same whatever the order and the labels, and bounded on poison."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, CanonicalizationAlgorithm, Dataset, Literal, NamedNode, Quad, Triple

from graphdb.errors import LimitExceeded
from graphdb.rdf.canonical import canonical_labels, canonical_lines, canonical_nquads, canonical_ntriples
from tests.unit.rdf.random_quads import quads

A, P = NamedNode("http://e/a"), NamedNode("http://e/p")


def relabelled(term: object, labels: dict[str, str]) -> object:
    if isinstance(term, BlankNode):
        return BlankNode(labels[term.value])
    if isinstance(term, Triple):
        return Triple(*(relabelled(part, labels) for part in term))  # type: ignore[arg-type]
    return term


@settings(deadline=None)
@given(quads(), st.randoms(use_true_random=False))
def test_labels_and_order_do_not_show(items: list[Quad], rng: random.Random) -> None:
    names = ["x", "c14n1", "a"]
    rng.shuffle(names)
    labels = dict(zip(["a", "b0", "c"], names, strict=True))
    others = [Quad(*(relabelled(term, labels) for term in item)) for item in items]  # type: ignore[arg-type]
    rng.shuffle(others)
    assert b"".join(canonical_nquads(others * 2)) == b"".join(canonical_nquads(items))


@settings(deadline=None)
@given(quads(triple_terms=False))
def test_without_triple_terms_the_engine_finds_the_same(items: list[Quad]) -> None:
    dataset = Dataset(items)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    assert canonical_lines(items) == sorted(f"{quad} .\n" for quad in dataset)


def test_blank_nodes_in_triple_terms_are_told_apart_by_where_they_stand() -> None:
    def graph(first: str, second: str) -> list[Quad]:
        one = Quad(A, P, Triple(BlankNode(first), P, BlankNode(second)))
        return [one, Quad(BlankNode(first), P, A), Quad(BlankNode(second), P, A)]

    assert canonical_lines(graph("x", "y")) == canonical_lines(graph("y", "x"))
    assert canonical_lines(graph("x", "y")) != canonical_lines(graph("x", "x"))
    assert set(canonical_labels(graph("x", "y"))) == {"x", "y"}


def test_escapes_are_those_of_the_interface() -> None:
    text = "\b\t\n\f\r\"\\ \x00\x0b\x1f\x7f\x80\x85\x9f\xa0\ufffe\uffff'é\U0001f600"
    (line,) = b"".join(canonical_ntriples([Triple(A, P, Literal(text))])).decode().splitlines()
    escaped = (
        r"\b\t\n\f\r\"\\ \u0000\u000B\u001F\u007F\u0080\u0085\u009F"
        + "\xa0"
        + r"\uFFFE\uFFFF"
        + "'é\U0001f600"
    )
    assert line == f'<http://e/a> <http://e/p> "{escaped}" .'


def test_language_tags_are_in_lower_case() -> None:
    document = b"".join(canonical_ntriples([Triple(A, P, Literal("x", language="EN-Latn-gb"))]))
    assert document == b'<http://e/a> <http://e/p> "x"@en-latn-gb .\n'


def test_lines_are_sorted_by_code_point() -> None:
    values = ["\U0001f600", "\ufb01", "a", "B"]
    lines = (
        b"".join(canonical_ntriples(Triple(A, P, Literal(value)) for value in values)).decode().split("\n")
    )
    assert [line.split('"')[1] for line in lines[:-1]] == ["B", "a", "\ufb01", "\U0001f600"]


def test_a_long_chain_of_like_nodes_needs_no_deep_stack() -> None:
    chain = [Quad(BlankNode(f"x{i}"), P, BlankNode(f"x{i + 1}")) for i in range(150)]
    assert len(canonical_labels(chain)) == 151


@pytest.mark.parametrize("size", [10, 60])
def test_poison_is_refused_in_bounded_time(size: int) -> None:
    nodes = [BlankNode(f"x{i}") for i in range(size)]
    with pytest.raises(LimitExceeded):
        canonical_lines(Quad(one, P, other) for one in nodes for other in nodes if one != other)


def test_chunks_are_whole_lines_and_nothing_is_lost() -> None:
    chunks = list(canonical_ntriples(Triple(A, P, Literal(f"{i:05}")) for i in range(2_500)))
    assert len(chunks) == 3
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    assert b"".join(chunks).count(b"\n") == 2_500
