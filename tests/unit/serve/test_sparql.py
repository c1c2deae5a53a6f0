"""/sparql: every way to send a query, every format to get the answer in."""

from typing import Any

import httpx
import pytest
from pyoxigraph import BlankNode, NamedNode, RdfFormat, parse
from rdflib import Graph

from tests.unit.serve.conftest import error_of, update

FORM = "application/x-www-form-urlencoded"
QUERY = "application/sparql-query"
JSON = "application/sparql-results+json"
C14N = "http://www.w3.org/ns/rdf-canon#c14n"
DATA = """INSERT DATA {
  <http://x/s> <http://x/p> "a" .
  GRAPH <http://g/1> { <http://x/s> <http://x/p> "one" }
  GRAPH <http://g/2> { <http://x/s> <http://x/p> "two" }
}"""
ROWS = "SELECT ?o WHERE { <http://x/s> <http://x/p> ?o }"


@pytest.fixture(autouse=True)
def data(client: httpx.Client) -> None:
    update(client, DATA)


def values(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return sorted(row["o"]["value"] for row in answer.json()["results"]["bindings"])


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"method": "GET", "params": {"query": ROWS}}, id="GET"),
        pytest.param(
            {"method": "POST", "content": ROWS, "headers": {"Content-Type": QUERY}}, id="POST of the query"
        ),
        pytest.param(
            {"method": "POST", "content": ROWS, "headers": {"Content-Type": f"{QUERY}; charset=UTF-8"}},
            id="POST of the query with a charset",
        ),
        pytest.param({"method": "POST", "data": {"query": ROWS}}, id="POST of a form"),
        pytest.param(
            {"method": "POST", "params": {"query": ROWS}, "headers": {"Content-Type": FORM}},
            id="POST of an empty form, the query in the query string",
        ),
        pytest.param(
            {"method": "GET", "params": {"query": ROWS, "unknown": "1"}}, id="unknown parameters are let be"
        ),
        pytest.param({"method": "GET", "params": {"query": f"\ufeff{ROWS}"}}, id="GET, byte order mark"),
        pytest.param(
            {"method": "POST", "data": {"query": f"\ufeff{ROWS}"}}, id="POST of a form, byte order mark"
        ),
        pytest.param(
            {"method": "POST", "content": f"\ufeff{ROWS}".encode(), "headers": {"Content-Type": QUERY}},
            id="POST of the query, byte order mark",
        ),
        pytest.param(
            {"method": "GET", "params": {"query": f"\ufeff{ROWS} #{'.' * 5_000}"}},
            id="GET of a long text, byte order mark",
        ),
    ],
)
def test_ways_to_ask(client: httpx.Client, request_: dict[str, Any]) -> None:
    answer = client.request(url="/sparql", **request_)
    assert answer.json() == {
        "head": {"vars": ["o"]},
        "results": {"bindings": [{"o": {"type": "literal", "value": "a"}}]},
    }
    assert answer.headers["content-type"] == JSON
    assert "Accept" in answer.headers["vary"].split(", ")
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize(
    ("dataset", "found"),
    [
        pytest.param([], ["a"], id="none"),
        pytest.param([("default-graph-uri", "http://g/1")], ["one"], id="default graph"),
        pytest.param(
            [("default-graph-uri", "http://g/1"), ("default-graph-uri", "http://g/2")],
            ["one", "two"],
            id="merged default graphs",
        ),
        pytest.param([("named-graph-uri", "http://g/1")], [], id="named only: the default graph is empty"),
        pytest.param([("default-graph-uri", "http://g/none")], [], id="a graph that does not exist"),
    ],
)
@pytest.mark.parametrize("way", ["get", "direct", "form"])
def test_dataset_parameters(
    client: httpx.Client, way: str, dataset: list[tuple[str, Any]], found: list[str]
) -> None:
    if way == "get":
        answer = client.get("/sparql", params=[("query", ROWS), *dataset])
    elif way == "direct":
        answer = client.post("/sparql", params=dataset, content=ROWS, headers={"Content-Type": QUERY})
    else:
        body = str(httpx.QueryParams([("query", ROWS), *dataset]))
        answer = client.post("/sparql", content=body, headers={"Content-Type": FORM})
    assert values(answer) == found


def test_named_graphs_of_the_dataset(client: httpx.Client) -> None:
    query = "SELECT ?o { GRAPH ?g { ?s ?p ?o } }"
    assert values(client.get("/sparql", params={"query": query})) == ["one", "two"]
    assert values(client.get("/sparql", params={"query": query, "named-graph-uri": "http://g/2"})) == ["two"]


def test_the_protocols_dataset_wins_over_from(client: httpx.Client) -> None:
    query = "SELECT ?o FROM <http://g/1> { ?s ?p ?o }"
    assert values(client.get("/sparql", params={"query": query})) == ["one"]
    assert values(client.get("/sparql", params={"query": query, "default-graph-uri": "http://g/2"})) == [
        "two"
    ]


SELECT_FORMATS = {
    "application/sparql-results+json": (JSON, b'{"head":'),
    "application/json": ("application/json", b'{"head":'),
    "application/sparql-results+xml": ("application/sparql-results+xml", b"<?xml"),
    "text/csv": ("text/csv; charset=utf-8", b"o\r\na\r\n"),
    "text/tab-separated-values": ("text/tab-separated-values; charset=utf-8", b'?o\n"a"\n'),
    "application/x-ndjson": ("application/x-ndjson", b'{"o":{"type":"literal","value":"a"}}\n'),
}


@pytest.mark.parametrize("accept", SELECT_FORMATS)
def test_formats_of_select(client: httpx.Client, accept: str) -> None:
    answer = client.get("/sparql", params={"query": ROWS}, headers={"Accept": accept})
    media_type, start = SELECT_FORMATS[accept]
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert answer.content.startswith(start)


@pytest.mark.parametrize("form", ["CONSTRUCT WHERE { ?s ?p ?o }", "DESCRIBE <http://x/s>"])
@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/turtle", "text/turtle; charset=utf-8"),
        ("application/n-triples", "application/n-triples"),
        (f'application/n-triples;profile="{C14N}"', f'application/n-triples; profile="{C14N}"'),
    ],
)
def test_formats_of_graphs(client: httpx.Client, form: str, accept: str, media_type: str) -> None:
    answer = client.get("/sparql", params={"query": form}, headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert answer.text == '<http://x/s> <http://x/p> "a" .\n'


def test_the_default_of_graphs_is_an_array_of_triples(client: httpx.Client) -> None:
    for headers in ({}, {"Accept": JSON}, {"Accept": "application/json"}):
        answer = client.get("/sparql", params={"query": "CONSTRUCT WHERE { ?s ?p ?o }"}, headers=headers)
        assert answer.json() == ['<http://x/s> <http://x/p> "a" .']


def test_ask(client: httpx.Client) -> None:
    assert client.get("/sparql", params={"query": "ASK {}"}).json() == {"head": {}, "boolean": True}
    xml = client.get("/sparql", params={"query": "ASK { ?s ?p 1 }", "format": "xml"})
    assert xml.headers["content-type"] == "application/sparql-results+xml"
    assert "<boolean>false</boolean>" in xml.text


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("json", JSON),
        ("XML", "application/sparql-results+xml"),
        ("csv", "text/csv; charset=utf-8"),
        ("tsv", "text/tab-separated-values; charset=utf-8"),
        ("ndjson", "application/x-ndjson"),
        ("text/csv", "text/csv; charset=utf-8"),
    ],
)
def test_format_wins_over_accept(client: httpx.Client, name: str, media_type: str) -> None:
    accept = {"Accept": "application/sparql-results+xml"}
    answer = client.get("/sparql", params={"query": ROWS, "format": name}, headers=accept)
    assert answer.headers["content-type"] == media_type


@pytest.mark.parametrize("form", ["CONSTRUCT WHERE", "DESCRIBE ?s WHERE"])
@pytest.mark.parametrize(("name", "media_type"), [("xml", "application/rdf+xml"), ("n3", "text/turtle")])
def test_format_names_of_graphs(client: httpx.Client, form: str, name: str, media_type: str) -> None:
    answer = client.get("/sparql", params={"query": f"{form} {{ ?s ?p ?o }}", "format": name})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, media_type)


def test_the_first_known_of_several_formats_counts(client: httpx.Client) -> None:
    answer = client.get("/sparql", params={"query": ROWS, "format": ["table", "tsv", "xml"]})
    assert answer.headers["content-type"] == "text/tab-separated-values; charset=utf-8"


def test_canonical_triples_by_parameter(client: httpx.Client) -> None:
    update(client, 'INSERT DATA { [] <http://x/q> "tab\\tand\\u0007bell", "x"@EN-us }')
    parameters = {
        "query": "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o FILTER isBlank(?s) }",
        "format": "ntriples-c14n",
    }
    assert client.get("/sparql", params=parameters).text == (
        '_:c14n0 <http://x/q> "tab\\tand\\u0007bell" .\n_:c14n0 <http://x/q> "x"@en-us .\n'
    )


def test_snapshot_index(client: httpx.Client) -> None:
    written = int(update(client, "INSERT DATA { <http://x/a> <http://x/b> 1 }").headers["X-Snapshot-Index"])
    for query in (ROWS, "SELECT * { ?s ?p ?o . ?s ?q ?r }"):
        assert int(client.get("/sparql", params={"query": query}).headers["X-Snapshot-Index"]) == written


@pytest.mark.parametrize("query", [ROWS, "SELECT ?o { ?s ?p ?o . ?s ?q ?r }", "ASK {}"])
def test_head_answers_as_get_without_a_body(client: httpx.Client, query: str) -> None:
    answer = client.head(
        "/sparql", params={"query": query}, headers={"Accept": "application/sparql-results+xml"}
    )
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "application/sparql-results+xml"
    assert "content-length" not in answer.headers
    assert client.head("/sparql", params={"query": "SELECT"}).status_code == 400


def test_options(client: httpx.Client) -> None:
    answer = client.options("/sparql")
    assert answer.status_code == 204
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST", "OPTIONS"}


def test_other_methods(client: httpx.Client) -> None:
    answer = client.delete("/sparql", params={"query": ROWS})
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST", "OPTIONS"}
    error_of(answer)


def test_relative_iris_resolve_against_the_request(client: httpx.Client) -> None:
    query = "SELECT ?o { BIND(<there> AS ?o) }"
    assert values(client.get("/sparql", params={"query": query})) == [f"{client.base_url}/there"]


@pytest.mark.parametrize(
    ("accept", "syntax"),
    [
        ("text/turtle", RdfFormat.TURTLE),
        ("application/rdf+xml", RdfFormat.RDF_XML),
        ("application/n-triples", RdfFormat.N_TRIPLES),
        ("application/ld+json", RdfFormat.JSON_LD),
        ("text/html;q=0.1, text/turtle, */*;q=0.1", RdfFormat.TURTLE),
    ],
)
def test_service_description(client: httpx.Client, accept: str, syntax: RdfFormat) -> None:
    answer = client.get("/sparql", headers={"Accept": accept})
    assert answer.status_code == 200
    endpoint = NamedNode("http://www.w3.org/ns/sparql-service-description#endpoint")
    [quad] = [quad for quad in parse(answer.content, syntax) if quad.predicate == endpoint]
    assert isinstance(quad.subject, BlankNode)
    assert quad.object == NamedNode(f"{client.base_url}/sparql")


def test_the_service_description_says_what_the_data_are(client: httpx.Client) -> None:
    """As agents look for it: prefixes that clients keep, and VoID."""
    update(client, "INSERT DATA { <urn:x:a> a <urn:x:C> ; <urn:x:p> 1 }")
    client.put("/repositories/graphdb/namespaces/x", content="urn:x:").raise_for_status()
    found = Graph().parse(data=client.get("/sparql", headers={"Accept": "text/turtle"}).text, format="turtle")
    client.delete("/repositories/graphdb/namespaces").raise_for_status()
    query = """PREFIX void: <http://rdfs.org/ns/void#> PREFIX sh: <http://www.w3.org/ns/shacl#>
        SELECT ?prefix ?namespace ?class ?property { [] sh:prefix ?prefix ; sh:namespace ?namespace .
          [] void:class ?class ; void:propertyPartition [ void:property ?property ] }"""
    rows = sorted(tuple(map(str, row)) for row in found.query(query))  # type: ignore[arg-type]
    kind = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    assert rows == [("x", "urn:x:", "urn:x:C", kind), ("x", "urn:x:", "urn:x:C", "urn:x:p")]


def test_cors(client: httpx.Client) -> None:
    known = client.get("/sparql", params={"query": "ASK {}"}, headers={"Origin": "http://app.example"})
    assert known.headers["access-control-allow-origin"] == "http://app.example"
    other = client.get("/sparql", params={"query": "ASK {}"}, headers={"Origin": "http://other.example"})
    assert "access-control-allow-origin" not in other.headers
