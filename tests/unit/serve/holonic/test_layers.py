"""Turtle into the layers of holons."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pyoxigraph import NamedNode, Quad

from graphdb.holonic.names import Layer, Tenant
from graphdb.holonic.registry import NewHolon, holon_quads
from graphdb.model import ChangeSet, GraphName
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.store.view import Subject, Term
from serve.graph.holonic.holons import open_holon
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.conftest import dump
from tests.unit.serve.holonic.conftest import A, B, Holons, confirmed, in_path, refused, update

NOON = "2026-01-01T12:00:00Z"
LAYERS = [layer.value for layer in Layer]
PREFIXED = '@prefix x: <http://x/> . x:s a x:C ; x:p "ä\\u0085\\u007F\\"\\n"@EN-us .'
LINES = [
    "<http://x/s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://x/C> .",
    '<http://x/s> <http://x/p> "ä\\u0085\\u007F\\"\\n"@en-us .',
]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer(holons: Holons, layer: str) -> None:
    confirmed(holons.declare(A))
    confirmation = confirmed(holons.add(A, layer, PREFIXED))
    assert confirmation["affected_triples"] == 2
    assert confirmation["graph"].endswith(f":{layer}")
    assert holons.layer(A, layer) == LINES
    assert {name for name, graphs in holons.detail(A)["layers"].items() if graphs} == {layer}
    answer = holons.http.get("/data", params={"graph": confirmation["graph"]})
    assert answer.text.count("\n") == 2


def test_writes_add(holons: Holons) -> None:
    confirmed(holons.declare(A))
    first = confirmed(holons.add(A, "context", "<urn:s> <urn:p> 1 ."))
    second = confirmed(holons.add(A, "context", "<urn:s> <urn:p> 1, 2 ."))
    assert (first["affected_triples"], second["affected_triples"]) == (1, 1)
    assert first["graph"] == second["graph"]
    assert len(holons.layer(A, "context")) == 2


def test_graphs_by_slug(holons: Holons) -> None:
    confirmed(holons.declare(A))
    graphs = [
        confirmed(holons.add(A, "interior", f"<urn:s> <urn:p> {number} .", graph_slug=slug))["graph"]
        for number, slug in enumerate([None, "a.b", "a.b", None])
    ]
    assert graphs == [graphs[0], f"{graphs[0]}:a.b", f"{graphs[0]}:a.b", graphs[0]]
    shown = holons.detail(A)["layers"]["interior"]
    assert [(graph["graph"], graph["triples"]) for graph in shown] == [(graphs[0], 2), (graphs[1], 2)]


def test_blank_nodes_of_two_writes_are_two(holons: Holons) -> None:
    confirmed(holons.declare(A))
    turtle = "_:x <urn:p> _:y . _:y <urn:p> _:x ."
    confirmed(holons.add(A, "interior", turtle))
    confirmed(holons.add(A, "interior", turtle))
    lines = [line.split() for line in holons.layer(A, "interior")]
    assert len({line[0] for line in lines}) == 4
    assert {line[0] for line in lines} == {line[2] for line in lines}


def test_triple_terms(holons: Holons) -> None:
    confirmed(holons.declare(A))
    confirmed(holons.add(A, "interior", "<urn:s> <urn:p> <urn:o> {| <urn:q> 1 |} . "))
    assert any("<<( <urn:s> <urn:p> <urn:o> )>>" in line for line in holons.layer(A, "interior"))


def test_an_empty_document(holons: Holons) -> None:
    confirmed(holons.declare(A))
    assert confirmed(holons.add(A, "interior", ""))["affected_triples"] == 0
    assert holons.detail(A)["layers"]["interior"] == []


@pytest.mark.parametrize(
    ("members", "status", "reason"),
    [
        ({"turtle": "<urn:s> <urn:p> 1 . <urn:s> <urn:p> "}, 400, "malformed RDF at line 1, column 3"),
        ({"turtle": "<urn:s> <urn:p> x:o ."}, 400, "prefix"),
        ({"turtle": "<s> <urn:p> 1 ."}, 400, "No scheme found in an absolute IRI"),
        ({"turtle": "<urn:s> <urn:p> <urn:o> <urn:g> ."}, 400, "malformed RDF"),
        ({"turtle": "GRAPH <urn:holonic:other:registry> { <urn:s> <urn:p> 1 }"}, 400, "malformed RDF"),
        ({"turtle": "<urn:s> <urn:p> " + "<<( <urn:a> <urn:b> " * 3000}, 400, "nested triples"),
        ({"turtle": 'INSERT DATA { <urn:s> <urn:p> "x" }'}, 400, "malformed RDF"),
        ({"turtle": "<urn:s> <urn:p> 1 .", "graph_slug": ""}, 400, "graph_slug: ''"),
        ({"turtle": "<urn:s> <urn:p> 1 .", "graph_slug": "a:b"}, 400, "graph_slug: 'a:b'"),
        ({"turtle": "<urn:s> <urn:p> 1 .", "graph_slug": "x> <urn:y"}, 400, "graph_slug: "),
        (
            {"turtle": "<urn:s> <urn:p> 1 .", "graph_slug": 1},
            400,
            "graph_slug: Input should be a valid string",
        ),
        ({"turtle": "<urn:s> <urn:p> 1 .", "graph": "urn:g"}, 400, "graph: Extra inputs are not permitted"),
        ({"turtle": None}, 400, "turtle: Input should be a valid string"),
        ({}, 400, "turtle: Field required"),
        ({"turtle": "x" * 1_000_000}, 413, "larger than 1000000 bytes"),
    ],
)
def test_what_is_refused_leaves_nothing(
    holons: Holons, members: dict[str, Any], status: int, reason: str
) -> None:
    confirmed(holons.declare(A))
    before = dump(holons.http)
    answer = holons.http.post(f"/holonic/holons/{in_path(A)}/interior", json=members)
    assert reason in refused(answer, status)
    assert dump(holons.http) == before


def test_a_holon_that_is_not_declared(holons: Holons) -> None:
    confirmed(holons.declare(A))
    assert "there is no holon" in refused(holons.add(B, "interior", "<urn:s> <urn:p> 1 ."), 404)


def test_queries_see_the_graphs_by_way_of_the_registry(holons: Holons) -> None:
    confirmed(holons.declare(A))
    confirmed(holons.add(A, "projection", "<urn:s> <urn:p> 1 .", graph_slug="v1"))
    query = f"""
        PREFIX h: <urn:graphdb:holonic#>
        SELECT ?o WHERE {{
            GRAPH <urn:holonic:usual:registry> {{ <{A}> h:hasProjection ?graph }} GRAPH ?graph {{ ?s ?p ?o }}
        }}"""
    answer = holons.http.get("/sparql", params={"query": query})
    assert [row["o"]["value"] for row in answer.json()["results"]["bindings"]] == ["1"]


def test_what_others_write_into_a_graph_is_shown(holons: Holons) -> None:
    confirmed(holons.declare(A))
    graph = confirmed(holons.add(A, "interior", "<urn:s> <urn:p> 1 ."))["graph"]
    update(holons.http, f"DELETE WHERE {{ GRAPH <{graph}> {{ ?s ?p 1 }} }}")
    assert holons.detail(A)["layers"]["interior"] == []
    update(holons.http, f"INSERT DATA {{ GRAPH <{graph}> {{ <urn:s> <urn:p> 'x' }} }}")
    assert holons.layer(A, "interior") == ['<urn:s> <urn:p> "x" .']


def test_a_large_layer(holons: Holons) -> None:
    """More than goes out in one chunk."""
    confirmed(holons.declare(A))
    turtle = "".join(f'<urn:s:{number}> <urn:p> "{"x" * (number % 50)}\\n" .\n' for number in range(12_000))
    assert confirmed(holons.add(A, "interior", turtle))["affected_triples"] == 12_000
    assert holons.layer(A, "interior") == sorted(turtle.splitlines())


class ChangingBackend(MemoryBackend):
    """A change is applied right behind each of the first few lookups of a graph."""

    def __init__(self, updates: list[str]) -> None:
        super().__init__()
        self.updates = updates

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        found = super().quads_matching(subject, predicate, object_, graph)
        if self.updates:
            asyncio.run(self.update(parse_update(self.updates.pop(0), None), Dataset()))
        return found


def test_a_detail_is_of_one_state() -> None:
    tenant, iri = Tenant("usual"), NamedNode(A)
    graphs = [tenant.layer_graph(iri, layer) for layer in (Layer.INTERIOR, Layer.BOUNDARY)]
    node = ChangingBackend([])
    node.store.apply(ChangeSet(added=tuple(holon_quads(tenant, NewHolon(iri, None, None, NOON)))))
    node.updates = [
        f"INSERT DATA {{ GRAPH {graph} {{ <urn:s> <urn:p> {number} }} }}"
        for number in range(7)
        for graph in graphs
    ]
    opened = open_holon(node, tenant, iri)
    assert (node.updates, opened.index) == ([], node.snapshot_index())
    assert [len(list(opened.quads[graph.value])) for graph in graphs] == [7, 7]
