"""The service as clients that others have written see it: SPARQLWrapper, rdflib's stores, Comunica."""

import json
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode
from rdflib import Graph, Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore
from SPARQLWrapper import CSV, GET, JSON, N3, POST, TSV, TURTLE, XML, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import QueryBadFormed

from tests.support.npm_packages import npm_directory, why_not_installed
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = pytest.mark.ray

GRAPH = "urn:c:graph"
COMUNICA_SCRIPT = Path(__file__).parents[1] / "support/comunica_client.mjs"
ALICE, NAME, KNOWS = URIRef("urn:c:alice"), URIRef("urn:c:name"), URIRef("urn:c:knows")


@pytest.fixture(scope="module")
def people(service: Service) -> Iterator[Service]:
    """The shared service with three triples in a graph of this module."""
    service.update(
        f"""INSERT DATA {{ GRAPH <{GRAPH}> {{
            <{ALICE}> <{NAME}> "Alice"@en ; <{KNOWS}> <urn:c:bob> . <urn:c:bob> <{NAME}> "Bob" }} }}"""
    )
    yield service
    service.update(f"DROP GRAPH <{GRAPH}>")


def wrapper(service: Service, method: str = GET) -> Any:
    made: Any = SPARQLWrapper(f"{service.url}/sparql", f"{service.url}/update")
    made.setMethod(method)
    made.addDefaultGraph(GRAPH)
    return made


@pytest.mark.parametrize("method", [GET, POST])
def test_sparqlwrapper_selects_as_json(people: Service, method: str) -> None:
    client = wrapper(people, method)
    client.setQuery(f"SELECT ?name WHERE {{ ?s <{NAME}> ?name }} ORDER BY ?name")
    client.setReturnFormat(JSON)
    bindings = client.queryAndConvert()["results"]["bindings"]
    assert bindings == [
        {"name": {"type": "literal", "value": "Alice", "xml:lang": "en"}},
        {"name": {"type": "literal", "value": "Bob"}},
    ]


@pytest.mark.parametrize(
    ("result_format", "expected"),
    [(CSV, b"name\r\nAlice\r\n"), (TSV, b'?name\n"Alice"@en\n')],
    ids=["csv", "tsv"],
)
def test_sparqlwrapper_selects_as_text(people: Service, result_format: str, expected: bytes) -> None:
    client = wrapper(people)
    client.setQuery(f"SELECT ?name WHERE {{ <{ALICE}> <{NAME}> ?name }}")
    client.setReturnFormat(result_format)
    assert client.queryAndConvert() == expected


def test_sparqlwrapper_asks_as_xml(people: Service) -> None:
    client = wrapper(people)
    client.setQuery(f"ASK {{ <{ALICE}> <{KNOWS}> ?anybody }}")
    client.setReturnFormat(XML)
    document = client.queryAndConvert()
    assert document.getElementsByTagName("boolean")[0].firstChild.data == "true"


@pytest.mark.parametrize("result_format", [TURTLE, N3])
def test_sparqlwrapper_constructs(people: Service, result_format: str) -> None:
    client = wrapper(people)
    client.setQuery(f"CONSTRUCT {{ ?a <urn:c:knownBy> ?b }} WHERE {{ ?b <{KNOWS}> ?a }}")
    client.setReturnFormat(TURTLE)
    assert client.queryAndConvert().split() == b"<urn:c:bob> <urn:c:knownBy> <urn:c:alice> .".split()


def test_sparqlwrapper_updates(people: Service) -> None:
    client: Any = SPARQLWrapper(f"{people.url}/update")
    client.setMethod(POST)
    client.setQuery("INSERT DATA { GRAPH <urn:c:wrapped> { <urn:c:x> <urn:c:y> 1 } }")
    assert client.query().response.status == 200
    assert people.select("SELECT ?o { GRAPH <urn:c:wrapped> { <urn:c:x> <urn:c:y> ?o } }") == [{"o": "1"}]
    people.update("DROP GRAPH <urn:c:wrapped>")


def test_sparqlwrapper_understands_that_a_query_is_malformed(people: Service) -> None:
    client = wrapper(people)
    client.setQuery("SELECT WHERE")
    with pytest.raises(QueryBadFormed, match="line 1, column"):
        client.query()


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
def test_rdflib_reads_a_graph(people: Service, method: str) -> None:
    graph = Graph(SPARQLStore(f"{people.url}/sparql", method=method), URIRef(GRAPH))
    assert set(graph.predicate_objects(ALICE)) == {
        (NAME, Literal("Alice", lang="en")),
        (KNOWS, URIRef("urn:c:bob")),
    }
    assert len(graph) == 3


def test_one_address_for_queries_and_updates(people: Service) -> None:
    client: Any = SPARQLWrapper(f"{people.url}/sparql")
    client.setMethod(POST)
    client.setQuery("INSERT DATA { GRAPH <urn:c:one> { <urn:c:x> <urn:c:y> 1 } }")
    assert client.query().response.status == 200
    store = SPARQLUpdateStore(f"{people.url}/sparql", f"{people.url}/sparql", autocommit=True)
    graph: Any = Graph(store, URIRef("urn:c:one"))
    assert len(graph) == 1
    graph.remove((None, None, None))
    assert len(graph) == 0


def test_an_example_follows_the_changes(people: Service, tmp_path: Path) -> None:
    """A first run copies, a second one resumes."""
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/follow_changes.py"))
    for number in range(2):
        graph = f"GRAPH <urn:c:followed> {{ <urn:c:x> <urn:c:y> {number} }}"
        index = people.update(f"INSERT DATA {{ {graph} }}")["snapshot_index"]
        copy = example["follow"](people.url, tmp_path / "copy", index)
        quads = copy.quads_for_pattern(None, NamedNode("urn:c:y"), None, NamedNode("urn:c:followed"))
        assert len(list(quads)) == number + 1
        del copy, quads
    people.update("DROP GRAPH <urn:c:followed>")


def test_rdflib_adds_queries_and_removes(people: Service) -> None:
    store = SPARQLUpdateStore(f"{people.url}/sparql", f"{people.url}/update", autocommit=True)
    graph: Any = Graph(store, URIRef("urn:c:rdflib"))
    graph.add((ALICE, NAME, Literal('a "quoted"\nname', lang="de")))
    graph.add((ALICE, NAME, Literal(5)))
    assert {row.name.toPython() for row in graph.query(f"SELECT ?name {{ ?s <{NAME}> ?name }}")} == {
        'a "quoted"\nname',
        5,
    }
    graph.remove((ALICE, None, None))
    assert len(graph) == 0


# 82 MB, fetched once. Newer ones need Node 22.
COMUNICA = ("@comunica/query-sparql@4.4.1",)


def test_comunica_asks_and_updates(people: Service) -> None:
    if (reason := why_not_installed("comunica", COMUNICA)) is not None:
        pytest.skip(reason)
    script = shutil.copy(COMUNICA_SCRIPT, npm_directory("comunica"))  # beside what it imports
    done = subprocess.run(
        ["node", script, f"{people.url}/sparql"], capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        ["select", ["Ann", "Bob"]],
        ["ask", True],
        ["construct", 2],
        ["left", False],
    ]
