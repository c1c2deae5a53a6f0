"""Resources at their own IRIs, and `/.well-known/void`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyoxigraph import DefaultGraph, RdfFormat, Store
from rdflib import RDF, VOID, Graph, Literal, Namespace, URIRef
from rdflib.compare import to_isomorphic

from graphdb.config import Settings
from serve.graph.linked_data.void import VoidEndpoint
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import key, settings_of
from tests.unit.serve.conftest import error_of, update

BASES = ["https://data.example/id/", "https://data.example/id/special/"]
X = Namespace("https://data.example/id/")
DATA = """PREFIX : <https://data.example/id/> INSERT DATA {
  :ada a :Person ; :name "Ada" ; :address [ :city "London" ] .
  :charles a :Person ; :name "Charles" .
  GRAPH :more { :ada :age 36 . :m%C3%BCller a :Person . <https://data.example/id/q?x=1> :name "query" } }"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    settings = Settings.model_validate({"linked_data": {"base_iris": BASES}})
    with serving(build_app(MemoryBackend(), settings)) as url:
        yield url


@pytest.fixture
def data(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client:
        update(client, "DROP ALL")
        update(client, DATA)
        yield client


def read(answer: httpx.Response) -> Graph:
    """By the engine's parsers, as rdflib's terms."""
    assert answer.status_code == 200, answer.text
    kind = answer.headers["content-type"].partition(";")[0]
    store = Store()
    store.load(answer.content, RdfFormat.from_media_type(kind))
    return Graph().parse(data=store.dump(format=RdfFormat.N_TRIPLES, from_graph=DefaultGraph()), format="nt")


@pytest.mark.parametrize(
    "accept",
    ["text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json", "*/*"],
)
def test_a_description_is_negotiated(data: httpx.Client, accept: str) -> None:
    answer = data.get("/id/ada", headers={"Accept": accept})
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind == ("text/turtle" if accept == "*/*" else accept)
    graph = read(answer)
    assert set(graph.objects(X.ada, X.name)) == {Literal("Ada")}
    assert set(graph.objects(X.ada, X.age)) == {Literal(36)}
    [address] = graph.objects(X.ada, X.address)
    assert set(graph.objects(address, X.city)) == {Literal("London")}
    assert len(graph) == 5


def test_rdflib_reads_a_resource_by_its_address(data: httpx.Client) -> None:
    graph = Graph().parse(f"{data.base_url}/id/charles", format="turtle")
    assert set(graph.objects(X.charles, X.name)) == {Literal("Charles")}


def test_a_browser_is_sent_to_the_workbench(data: httpx.Client) -> None:
    page = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    answer = data.get("/id/ada", headers={"Accept": page})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/#/explore?iri=https%3A%2F%2Fdata.example%2Fid%2Fada"


def test_names_are_taken_as_they_are_sent(data: httpx.Client) -> None:
    assert len(read(data.get("/id/m%C3%BCller"))) == 1
    assert len(read(data.get("/id/q?x=1"))) == 1


@pytest.mark.parametrize("path", ["/id/nobody", "/id/", "/elsewhere/ada", "/id/ada/x", "/id/%20", "/id/more"])
def test_other_paths_are_unknown(data: httpx.Client, path: str) -> None:
    answer = data.get(path)
    assert answer.status_code == 404
    error_of(answer)


def test_own_paths_come_first(data: httpx.Client) -> None:
    assert data.get("/sparql", params={"query": "ASK {}"}).status_code == 200
    assert data.post("/id/ada", content=b"").status_code == 405


@pytest.mark.parametrize("accept", ["text/turtle", "application/ld+json", "*/*"])
def test_void(data: httpx.Client, accept: str) -> None:
    graph = read(data.get("/.well-known/void", headers={"Accept": accept}))
    [dataset] = graph.subjects(VOID.sparqlEndpoint, URIRef(f"{data.base_url}/sparql"))
    assert graph.value(dataset, RDF.type) == VOID.Dataset
    assert graph.value(dataset, VOID.triples) == Literal(9)
    properties = {
        graph.value(part, VOID.property): graph.value(part, VOID.triples).toPython()  # type: ignore[union-attr]
        for part in graph.objects(dataset, VOID.propertyPartition)
    }
    assert properties == {RDF.type: 3, X.name: 3, X.address: 1, X.city: 1, X.age: 1}
    [people] = graph.objects(dataset, VOID.classPartition)
    assert graph.value(people, VOID["class"]) == X.Person
    assert graph.value(people, VOID.entities) == Literal(3)
    pairs = {
        graph.value(part, VOID.property): graph.value(part, VOID.triples).toPython()  # type: ignore[union-attr]
        for part in graph.objects(people, VOID.propertyPartition)
    }
    assert pairs == {RDF.type: 3, X.name: 2, X.address: 1}


CHANGES = [
    "INSERT DATA { <urn:a> <urn:b> 1 }",
    "PREFIX : <https://data.example/id/> INSERT DATA { :charles a :Man . GRAPH :more { :ada a :Woman } }",
    "PREFIX : <https://data.example/id/> DELETE DATA { :ada a :Person } ; INSERT DATA { :ada a :Woman, 1 }",
    "PREFIX : <https://data.example/id/> DROP GRAPH :more",
    "PREFIX : <https://data.example/id/> DELETE WHERE { ?s :name ?n }",
    "CLEAR ALL",
]


def test_counts_follow_the_changes(data: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()
    count = VoidEndpoint._count

    async def counted(*arguments: Any) -> Any:
        asked.append(arguments)
        return await count(*arguments)

    monkeypatch.setattr(VoidEndpoint, "_count", counted)
    data.get("/.well-known/void")
    asked.clear()
    for change in CHANGES:
        index = update(data, change).json()["snapshot_index"]
        followed = data.get("/.well-known/void")
        assert followed.headers["X-Snapshot-Index"] == str(index)
        assert not asked
        anew = data.get("/.well-known/void", headers={"Cache-Control": "no-cache"})
        assert len(asked) == 1
        asked.clear()
        assert to_isomorphic(read(followed)) == to_isomorphic(read(anew)), change


def test_a_change_that_is_too_large_to_follow_is_counted_in_a_while(data: httpx.Client) -> None:
    before = data.get("/.well-known/void")
    update(data, f"INSERT DATA {{ {' '.join(f'<urn:a> <urn:b> {number} .' for number in range(20_001))} }}")
    after = data.get("/.well-known/void")
    assert after.headers["X-Snapshot-Index"] == before.headers["X-Snapshot-Index"]
    assert to_isomorphic(read(after)) == to_isomorphic(read(before))


def test_credentials_are_needed(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    linked = Settings.model_validate({"linked_data": {"base_iris": BASES}}).linked_data
    settings = settings.model_copy(update={"linked_data": linked})
    with (
        serving(build_app(MemoryBackend(), settings)) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        client.post("/update", data={"update": DATA}, headers=key("writer")).raise_for_status()
        for path in ("/id/ada", "/.well-known/void"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers=key("reader")).status_code == 200
