"""What queries and updates read, as patterns: never less than the truth."""

import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.config.limits import GateLimits
from graphdb.model import ChangeSet
from graphdb.planning.gate import read_query, read_update
from graphdb.transactions.read_pattern import ReadPattern
from graphdb.transactions.read_set import PATTERNS_MAX, ReadSet

A, B, P, Q, G, H = (NamedNode(f"urn:{name}") for name in "abpqgh")
IN_P, IN_Q = Quad(A, P, B), Quad(B, Q, Literal(1))
IN_G = Quad(A, P, B, G)


def read_by(text: str, *, has_dataset: bool = False, unites_graphs: bool = False) -> ReadSet:
    reads = ReadSet()
    query = read_query(text, None, GateLimits())
    reads.note_query(query, has_dataset=has_dataset, unites_graphs=unites_graphs)
    return reads


@pytest.mark.parametrize(
    ("text", "touching", "passing"),
    [
        ("SELECT * { ?s <urn:p> ?o }", [IN_P], [IN_Q, IN_G]),
        ("SELECT * { <urn:a> ?p ?o }", [IN_P], [IN_Q, IN_G]),
        ("SELECT * { ?s <urn:p> 5 }", [IN_P], [IN_Q]),
        ("SELECT * { ?s ?p ?o }", [IN_P, IN_Q], [IN_G]),
        ("SELECT * { GRAPH <urn:g> { ?s ?p ?o } }", [IN_G], [IN_P]),
        ("SELECT * { GRAPH ?g { ?s <urn:p> ?o } }", [IN_G], [IN_Q]),
        ("SELECT * { ?s <urn:p>/<urn:q> ?o }", [IN_P, IN_Q], [IN_G]),
        ("SELECT * { ?s ^<urn:p>|<urn:q>+ ?o }", [IN_P, IN_Q], [IN_G]),
        ("SELECT * { ?s <urn:q> ?o OPTIONAL { ?s <urn:p> ?x } }", [IN_P, IN_Q], [IN_G]),
        ("ASK { ?s <urn:q> ?o FILTER NOT EXISTS { ?s <urn:p> ?x } }", [IN_P, IN_Q], [IN_G]),
        ("SELECT (COUNT(*) AS ?n) { { SELECT ?s { ?s <urn:p> ?o } } }", [IN_P], [IN_Q]),
        ("SELECT * FROM <urn:g> { ?s <urn:p> ?o }", [IN_P, IN_G], [IN_Q]),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s <urn:p> ?o }", [IN_P], [IN_Q]),
        # what patterns cannot tell
        ("SELECT * { ?s <urn:p>* ?o }", [IN_P, IN_Q, IN_G], []),
        ("SELECT * { ?s !<urn:p> ?o }", [IN_P, IN_Q, IN_G], []),
        ("SELECT * { GRAPH ?g {} }", [IN_P, IN_Q, IN_G], []),
        ("SELECT * { GRAPH ?g { OPTIONAL { ?s <urn:p> ?o } } }", [IN_P, IN_Q, IN_G], []),
        ("SELECT * { GRAPH <urn:g> { { ?s <urn:p> ?o } UNION { VALUES ?s { 1 } } } }", [IN_P, IN_G], []),
        ("DESCRIBE <urn:a>", [IN_P, IN_Q, IN_G], []),
        ("SELECT * { VALUES ?x { 1 } }", [], [IN_P, IN_Q, IN_G]),
    ],
)
def test_queries(text: str, touching: list[Quad], passing: list[Quad]) -> None:
    reads = read_by(text)
    assert all(map(reads.concerns, touching))
    assert not any(map(reads.concerns, passing))
    for quad in touching:
        assert reads.is_touched_by(ChangeSet(added=(quad,)))
        assert reads.is_touched_by(ChangeSet(removed=(quad,)))


def test_the_union_of_all_graphs_and_other_datasets() -> None:
    for reads in (
        read_by("SELECT * { ?s <urn:p> ?o }", unites_graphs=True),
        read_by("SELECT * { ?s <urn:p> ?o }", has_dataset=True),
    ):
        assert reads.concerns(IN_G)
        assert not reads.concerns(IN_Q)


@pytest.mark.parametrize(
    ("text", "touching", "passing"),
    [
        ("INSERT DATA { <urn:a> <urn:p> 1 }", [], [IN_P, IN_G]),
        ("DELETE DATA { <urn:a> <urn:p> 1 }", [], [IN_P, IN_G]),
        ("DELETE WHERE { ?s <urn:p> ?o }", [IN_P], [IN_Q, IN_G]),
        ("INSERT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }", [IN_P], [IN_Q]),
        ("WITH <urn:g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", [IN_G], [IN_P]),
        ("INSERT { ?s ?p 1 } USING <urn:h> WHERE { ?s <urn:p> ?p }", [IN_P, IN_G], [IN_Q]),
        ("CLEAR GRAPH <urn:g>", [IN_G], [IN_P]),
        ("DROP DEFAULT", [IN_P, IN_Q], [IN_G]),
        ("DROP ALL", [IN_P, IN_Q, IN_G], []),
        ("COPY <urn:g> TO <urn:h>", [IN_G, Quad(A, P, B, H)], [IN_P]),
    ],
)
def test_updates(text: str, touching: list[Quad], passing: list[Quad]) -> None:
    reads = ReadSet()
    reads.note_update(read_update(text, None, GateLimits()), has_dataset=False, unites_graphs=False)
    assert all(map(reads.concerns, touching))
    assert not any(map(reads.concerns, passing))


def test_the_names_of_graphs() -> None:
    reads = ReadSet([ReadPattern(graph=G)])
    assert reads.is_touched_by(ChangeSet(created_graphs=(G,)))
    assert reads.is_touched_by(ChangeSet(dropped_graphs=(G,)))
    assert not reads.is_touched_by(ChangeSet(created_graphs=(H,)))
    assert not ReadSet([ReadPattern(predicate=P)]).is_touched_by(ChangeSet(created_graphs=(G,)))


def test_what_is_within_a_triple_term() -> None:
    inner = Triple(A, P, Literal(1))
    spoken_of, twice = Quad(B, P, inner, G), Quad(B, P, Triple(B, P, inner))
    reads = ReadSet([ReadPattern(within=A)])
    assert reads.concerns(spoken_of)
    assert reads.concerns(twice)
    assert not reads.concerns(Quad(A, P, B))
    assert not reads.concerns_graph(G)
    assert not ReadSet([ReadPattern(within=A, graph=H)]).concerns(spoken_of)


def test_too_many_patterns_are_everything() -> None:
    reads = ReadSet(ReadPattern(NamedNode(f"urn:s{n}"), P, None, DefaultGraph()) for n in range(PATTERNS_MAX))
    assert not reads.concerns(IN_G)
    reads.note(ReadPattern(A))
    assert reads.patterns == (ReadPattern(),)
    reads.note(ReadPattern(B))
    assert reads.patterns == (ReadPattern(),)
