"""What is said of a query that cannot be read, or of patterns that match nothing."""

import httpx
import pytest

from tests.unit.serve.conftest import error_of, update

DATA = """PREFIX : <https://museum.example/ontology#> INSERT DATA {
  <urn:ada> a :Painter ; :paintedBy "x" . GRAPH <urn:g> { <urn:ada> <https://other.example/title> "T" } }"""


@pytest.fixture
def museum(client: httpx.Client) -> httpx.Client:
    update(client, DATA)
    return client


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT * {\n  ?s m:paintedBy ?o }",
            "syntax error at line 2, column 6: the prefix 'm:' is not declared; "
            "perhaps PREFIX m: <https://museum.example/ontology#>",
        ),
        (
            "ASK { ?s a mu:Painters }",
            "syntax error at line 1, column 12: the prefix 'mu:' is not declared; "
            "perhaps PREFIX mu: <https://museum.example/ontology#>",
        ),
        (
            "ASK { ?s o:title ?t }",
            "syntax error at line 1, column 10: the prefix 'o:' is not declared; "
            "perhaps PREFIX o: <https://other.example/>",
        ),
        (
            "ASK { ?s foaf:name ?t }",
            "syntax error at line 1, column 10: the prefix 'foaf:' is not declared; "
            "usually PREFIX foaf: <http://xmlns.com/foaf/0.1/>",
        ),
        (
            "PREFIX museum: <urn:m:> ASK { ?s musem:xyzzy ?t }",
            "syntax error at line 1, column 34: the prefix 'musem:' is not declared; "
            "'museum:' is, as <urn:m:>",
        ),
        ("ASK { ?s x:xyzzy ?t }", "syntax error at line 1, column 10: the prefix 'x:' is not declared"),
    ],
)
def test_a_prefix_that_is_not_declared(museum: httpx.Client, query: str, message: str) -> None:
    for answer in (
        museum.get("/sparql", params={"query": query}),
        museum.post("/sparql", data={"query": query}),
        museum.get("/ds/query", params={"query": query}),
    ):
        assert answer.status_code == 400
        assert error_of(answer) == message
    checked = museum.post(
        "/sparql/check", content=query, headers={"Content-Type": "application/sparql-query"}
    ).json()
    assert checked["error"] == message.partition(": ")[2]
    rdf4j = museum.get("/repositories/graphdb", params={"query": query})
    assert rdf4j.text == f"MALFORMED QUERY: {message}"


def test_prefixes_that_clients_keep_come_first(museum: httpx.Client) -> None:
    museum.put("/repositories/graphdb/namespaces/m", content="urn:kept:").raise_for_status()
    answer = museum.get("/sparql", params={"query": "ASK { ?s m:paintedBy ?o }"})
    museum.delete("/repositories/graphdb/namespaces").raise_for_status()
    assert error_of(answer).endswith("perhaps PREFIX m: <urn:kept:>")


def test_an_update_too(museum: httpx.Client) -> None:
    answer = museum.post("/update", data={"update": "DELETE WHERE { ?s m:paintedBy ?o }"})
    assert answer.status_code == 400
    assert error_of(answer).endswith("perhaps PREFIX m: <https://museum.example/ontology#>")


def test_an_explanation_names_what_matches_nothing(museum: httpx.Client) -> None:
    query = """PREFIX m: <https://museum.example/ontology#>
        SELECT * { ?s m:paintedby ?o ; a m:Painter ; <https://other.example/tittle> ?t }"""
    hints = museum.get("/sparql", params={"query": query, "explain": "true"}).json()["hints"]
    assert hints == [
        "nothing matches ?s <https://museum.example/ontology#paintedby> ?o; known terms near "
        "<https://museum.example/ontology#paintedby>: <https://museum.example/ontology#paintedBy>, "
        "<https://museum.example/ontology#Painter>",
        "nothing matches ?s <https://other.example/tittle> ?t; known terms near "
        "<https://other.example/tittle>: <https://other.example/title>",
    ]
    good = museum.get("/sparql", params={"query": "SELECT * { ?s ?p ?o }", "explain": "true"}).json()
    assert good["hints"] == []
