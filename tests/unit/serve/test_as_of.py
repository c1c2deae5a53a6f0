"""`as_of` on everything that reads: which state answers, and what is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.unit.serve.conftest import SETTINGS, error_of, update

CHEAP = "SELECT ?o { <http://x/s> <http://x/p> ?o }"
FOR_A_READER = "SELECT (MAX(?o) AS ?m) { ?s <http://x/p> ?o }"
GRAPH = "http://x/g"
ONTOLOGY = """
PREFIX owl: <http://www.w3.org/2002/07/owl#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
INSERT DATA { <http://x/Thing> a owl:Class . <http://x/s> a <http://x/Thing> .
  <http://x/p> a owl:FunctionalProperty ; rdfs:domain <http://x/Thing> ; rdfs:range xsd:integer }
"""
SHAPES = """PREFIX sh: <http://www.w3.org/ns/shacl#>
[ a sh:NodeShape ; sh:targetNode <http://x/s> ; sh:property [ sh:path <http://x/p> ; sh:hasValue 2 ] ] ."""


@dataclass
class Past:
    """A service whose value was 1, then 2, then 3, each at a log index; GRAPH was there with 2 alone."""

    http: httpx.Client
    backend: MemoryBackend
    indexes: list[int]

    def query(self, text: str, method: str = "GET", **parameters: Any) -> httpx.Response:
        return self.http.request(method, "/sparql", params={"query": text, "format": "csv", **parameters})


@pytest.fixture(scope="module")
def past() -> Iterator[Past]:
    backend = MemoryBackend()
    with (
        serving(build_app(backend, SETTINGS)) as url,
        httpx.Client(base_url=url, timeout=HANG_S, trust_env=False) as http,
    ):
        update(http, ONTOLOGY)
        indexes = []
        for number in (1, 2, 3):
            text = "DELETE { ?s ?p ?o } INSERT { ?s ?p %d } WHERE { ?s ?p ?o FILTER(?p = <http://x/p>) }"
            if number == 1:
                text = "INSERT DATA { <http://x/s> <http://x/p> %d }"
            graph = f"INSERT DATA {{ GRAPH <{GRAPH}> {{ <http://x/s> <http://x/p> {number} }} }}"
            graph = graph if number == 2 else f"DROP SILENT GRAPH <{GRAPH}>"
            answer = update(http, f"{text % number} ; {graph}").json()
            indexes.append(answer["snapshot_index"])
        yield Past(http, backend, indexes)


@pytest.mark.parametrize("text", [CHEAP, FOR_A_READER])
def test_a_query_by_its_parameter(past: Past, text: str) -> None:
    for number, index in enumerate(past.indexes, 1):
        answer = past.query(text, as_of=index)
        assert answer.text.split()[1:] == [str(number)]
        assert answer.headers["X-Snapshot-Index"] == str(index)
        form = {"query": text, "as_of": str(index), "format": "csv"}
        assert past.http.post("/sparql", data=form).text == answer.text
        body = past.http.post(
            f"/sparql?as_of={index}&format=csv",
            content=text,
            headers={"Content-Type": "application/sparql-query"},
        )
        assert body.text == answer.text
    assert past.query(text).text.split()[1:] == ["3"]


@pytest.mark.parametrize("text", [CHEAP, FOR_A_READER])
def test_a_query_that_names_its_state(past: Past, text: str) -> None:
    for _ in range(2):  # the second time the plan of the text is known, and so is its shape
        for number, index in enumerate(past.indexes, 1):
            asked = text.replace("{", f"FROM <as-of:{index}> {{", 1)
            answer = past.query(asked)
            assert answer.text.split()[1:] == [str(number)]
            assert answer.headers["X-Snapshot-Index"] == str(index)


def test_a_query_that_names_its_state_and_graphs(past: Past) -> None:
    first, second, _ = past.indexes
    text = f"SELECT ?o FROM <{GRAPH}> FROM <as-of:%d> {{ ?s ?p ?o }}"
    assert past.query(text % second).text.split() == ["o", "2"]
    assert past.query(text % first).text.split() == ["o"]
    given: dict[str, Any] = {"default-graph-uri": GRAPH, "as_of": second}
    assert past.query("SELECT ?o { ?s ?p ?o }", **given).text.split() == ["o", "2"]


def test_the_same_state_may_be_named_twice(past: Past) -> None:
    asked = CHEAP.replace("{", f"FROM <as-of:{past.indexes[0]}> {{")
    assert past.query(asked, as_of=past.indexes[0]).status_code == 200
    assert "says" in error_of(past.query(asked, as_of=past.indexes[1]))


def test_entity_tags_hold_for_a_state(past: Past) -> None:
    one = past.query(CHEAP, as_of=past.indexes[0])
    tag = one.headers["ETag"]
    assert tag != past.query(CHEAP, as_of=past.indexes[1]).headers["ETag"]
    update(past.http, "INSERT DATA { <http://x/other> <http://x/q> 1 }")
    again = past.http.get(
        "/sparql",
        params={"query": CHEAP, "format": "csv", "as_of": past.indexes[0]},
        headers={"If-None-Match": tag},
    )
    assert again.status_code == 304
    head = past.query(CHEAP, "HEAD", as_of=past.indexes[0])
    assert head.headers["X-Snapshot-Index"] == str(past.indexes[0])


def test_an_explanation(past: Past) -> None:
    answer = past.query(FOR_A_READER, as_of=past.indexes[0], explain="true")
    assert answer.json()["evaluation"]["rows"] == 1
    assert answer.headers["X-Snapshot-Index"] == str(past.indexes[0])


def test_graphs(past: Past) -> None:
    first, second, third = past.indexes
    for index, status in ((first, 404), (second, 200), (third, 404)):
        for method in ("GET", "HEAD"):
            answer = past.http.request(method, "/data", params={"graph": GRAPH, "as_of": index})
            assert answer.status_code == status
            assert answer.headers["X-Snapshot-Index"] == str(index)
    answer = past.http.get("/data", params={"graph": GRAPH, "as_of": second, "format": "nt"})
    assert '"2"' in answer.text
    assert answer.headers["X-Snapshot-Index"] == str(second)
    dump = past.http.get("/data", params={"dataset": "all", "as_of": second, "format": "nq"})
    assert dump.text.count('"2"') == 2


def test_graphql(past: Past) -> None:
    first, second, third = past.indexes
    query = {"query": "{ thing { p } }"}
    for number, index in ((1, first), (2, second), (3, third)):
        answer = past.http.post(f"/graphql?as_of={index}", json=query)
        assert answer.json()["data"] == {"thing": [{"p": number}]}, answer.text
        assert answer.headers["X-Snapshot-Index"] == str(index)
        told = past.http.post("/graphql", json=query | {"extensions": {"as_of": index}})
        assert told.content == answer.content
    before = past.http.post("/graphql?as_of=0", json=query)
    assert before.json()["errors"], "there was no schema yet"
    named = past.http.post(f"/graphql?as_of={first}", json={"query": "{ __typename }"})
    assert named.headers["X-Snapshot-Index"] == str(first)


def test_graphql_refuses_to_change_the_past(past: Past) -> None:
    change = {"query": 'mutation { deleteThing(id: "http://x/s") { __typename } }'}
    answer = past.http.post(f"/graphql?as_of={past.indexes[0]}", json=change)
    assert "as_of" in answer.json()["errors"][0]["message"], answer.text
    for member in (True, [1], 1.5):
        told = past.http.post("/graphql", json={"query": "{ __typename }", "extensions": {"as_of": member}})
        assert "as_of" in error_of(told)


def test_validation(past: Past) -> None:
    for number, index in enumerate(past.indexes, 1):
        answer = past.http.post(
            "/shacl/validate",
            params={"as_of": index},
            content=SHAPES,
            headers={"Content-Type": "text/turtle"},
        )
        assert answer.json()["conforms"] == (number == 2), answer.text
        assert answer.headers["X-Snapshot-Index"] == str(index)


def test_clients_of_rdf4j(past: Past) -> None:
    for number, index in enumerate(past.indexes, 1):
        given: dict[str, Any] = {"query": CHEAP, "as_of": index}
        answer = past.http.get("/repositories/graphdb", params=given, headers={"Accept": "text/csv"})
        assert answer.text.split()[1] == str(number)
        statements = past.http.get(
            "/repositories/graphdb/statements",
            params={"pred": "<http://x/p>", "as_of": index},
            headers={"Accept": "application/n-triples"},
        )
        assert f'"{number}"' in statements.text


@pytest.mark.parametrize(
    "as_of",
    ["-1", "1.5", "yesterday", "", "2026-13-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "9" * 30],
)
def test_what_is_no_moment(past: Past, as_of: str) -> None:
    answer = past.query(CHEAP, as_of=as_of)
    assert answer.status_code == 400
    assert "as_of" in error_of(answer)
    assert past.http.get("/data", params={"default": "", "as_of": as_of}).status_code == 400


def test_a_moment_of_the_future(past: Past) -> None:
    answer = past.query(CHEAP, as_of=past.indexes[-1] + 100, timeout="100ms")
    assert answer.status_code == 400
    assert "as_of" in error_of(answer)


def test_what_is_no_longer_kept(past: Past) -> None:
    first, second, _ = past.indexes
    past.backend.logged.forget_before(second + 1)
    try:
        assert past.query(CHEAP, as_of=second).status_code == 200
        answer = past.query(CHEAP, as_of=first)
        assert answer.status_code == 410
        assert answer.json()["oldest_index"] == second
    finally:
        past.backend.logged.forget_before(1)


def test_the_past_is_not_changed(past: Past) -> None:
    changes = [
        (
            "POST",
            "/update?as_of=1",
            "INSERT DATA { <http://x/a> <http://x/p> 1 }",
            "application/sparql-update",
        ),
        ("PUT", f"/data?graph={GRAPH}&as_of=1", "", "text/turtle"),
        ("DELETE", f"/data?graph={GRAPH}&as_of=1", "", "text/turtle"),
        (
            "POST",
            "/update",
            "INSERT { ?s ?p 9 } USING <as-of:1> WHERE { ?s ?p ?o }",
            "application/sparql-update",
        ),
    ]
    for method, path, content, media_type in changes:
        answer = past.http.request(method, path, content=content, headers={"Content-Type": media_type})
        assert answer.status_code == 400, path


def test_clauses_that_name_no_state(past: Past) -> None:
    for clause in ("FROM <as-of:>", "FROM NAMED <as-of:1>", "FROM <as-of:1> FROM <as-of:2>"):
        assert past.query(CHEAP.replace("{", f"{clause} {{")).status_code == 400, clause


def test_what_describes_a_repository(past: Past) -> None:
    """Sizes and contexts, in which the graph is only in the second state."""
    _, second, third = past.indexes
    for index, graphs in ((second, 1), (third, 0)):
        found = past.http.get("/repositories/graphdb/contexts", params={"as_of": index})
        assert len(found.json()["results"]["bindings"]) == graphs, found.text
        assert found.headers["X-Snapshot-Index"] == str(index)
        listed = past.http.get("/repositories/graphdb/rdf-graphs", params={"as_of": index})
        assert listed.json()["results"] == found.json()["results"]
        size = past.http.get("/repositories/graphdb/size", params={"as_of": index}).text
        assert past.http.get("/rest/repositories/graphdb/size", params={"as_of": index}).json()[
            "total"
        ] == int(size)
        counted = past.query(
            "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }", as_of=index
        )
        assert counted.text.split() == ["n", size]
    schema = past.http.get("/graphql/schema", params={"as_of": past.indexes[0]})
    assert "thing" in schema.text
    assert schema.headers["X-Snapshot-Index"] == str(past.indexes[0])


@pytest.mark.parametrize("path", ["/.well-known/void", "/changes", "/history", "/diff"])
def test_what_is_not_asked_of_the_past_says_so(past: Past, path: str) -> None:
    answer = past.http.get(path, params={"as_of": "1", "follow": "false", "from": "1"})
    assert "as_of" in error_of(answer)


def test_a_parameter_that_names_no_graph_but_a_state(past: Past) -> None:
    """It would be an empty graph, and so an answer that looks like one of the past."""
    name = f"as-of:{past.indexes[0]}"
    for parameter in ("default-graph-uri", "named-graph-uri"):
        given: dict[str, Any] = {parameter: name}
        assert "as_of" in error_of(past.query(CHEAP, **given))
    form = {"update": "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "using-graph-uri": name}
    assert "as_of" in error_of(past.http.post("/update", data=form))


def test_shapes_that_ask_the_past_are_malformed(past: Past) -> None:
    shapes = """@prefix sh: <http://www.w3.org/ns/shacl#> .
        <urn:S> a sh:NodeShape ; sh:targetNode <http://x/s> ; sh:sparql [
          sh:select "SELECT $this FROM <as-of:1> { $this <http://x/p> 1 }" ] ."""
    answer = past.http.post("/shacl/validate", content=shapes, headers={"Content-Type": "text/turtle"})
    assert answer.status_code == 400
    assert "a state of the past is not read here" in error_of(answer)
