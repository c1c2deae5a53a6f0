"""RDF4J's REST API outside of transactions: what its requests do, and what is refused."""

from typing import Any

import httpx
import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from graphdb.rdf.binary import read_binary_quads, write_binary_quads
from tests.unit.serve.conftest import dump, update

ROOT = "/repositories/graphdb"
TURTLE, QUADS = {"Content-Type": "text/turtle"}, {"Content-Type": "application/n-quads"}
BINARY = "application/x-binary-rdf"
A = "<urn:a> <urn:p> <urn:b>"


def sent(client: httpx.Client, method: str, path: str, status: int = 204, **options: Any) -> httpx.Response:
    answer = client.request(method, ROOT + path, **options)
    assert answer.status_code == status, answer.text
    if status == 204:
        assert not answer.content
    return answer


def add(client: httpx.Client, body: str, **parameters: Any) -> None:
    sent(client, "POST", "/statements", content=body, headers=QUADS, params=parameters)


def test_statements_are_added_and_read_by_pattern(client: httpx.Client) -> None:
    add(client, f'{A} .\n{A} <urn:g> .\n<urn:a> <urn:q> "é"@en <urn:g> .')
    sent(client, "POST", "/statements", content=f"{A} .", headers=TURTLE, params={"context": "<urn:h>"})

    def read(**parameters: Any) -> list[str]:
        return sorted(sent(client, "GET", "/statements", 200, params=parameters).text.splitlines())

    assert read() == dump(client)
    assert read(context="null") == [f"{A} ."]
    assert read(context=["null", "<urn:h>"]) == [f"{A} .", f"{A} <urn:h> ."]
    assert read(pred="<urn:q>") == read(obj='"é"@en') == ['<urn:a> <urn:q> "é"@en <urn:g> .']
    assert read(subj="<urn:none>") == []
    assert read(subj="_:b", infer="true") == []


def test_one_document_in_several_contexts(client: httpx.Client) -> None:
    contexts = ["<urn:g>", "null"]
    sent(client, "POST", "/statements", content=f"{A} .", headers=TURTLE, params={"context": contexts})
    assert dump(client) == [f"{A} .", f"{A} <urn:g> ."]
    sent(
        client,
        "POST",
        "/statements",
        content=f"GRAPH <urn:x> {{ {A} }}",
        headers={"Content-Type": "application/x-trig"},
        params={"context": "<urn:h>"},
    )
    assert f"{A} <urn:h> ." in dump(client)
    assert len(dump(client)) == 3


def test_put_replaces_a_context_or_everything(client: httpx.Client) -> None:
    add(client, f"{A} .\n{A} <urn:g> .\n{A} <urn:h> .")
    context = {"context": "<urn:g>"}
    sent(client, "PUT", "/statements", content="<urn:x> <urn:p> 1 .", headers=TURTLE, params=context)
    assert [line for line in dump(client) if "urn:g" in line] == [
        '<urn:x> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g> .'
    ]
    for content_type in (QUADS, {"Content-Type": "application/trig"}):
        sent(client, "PUT", "/statements", content="", headers=content_type, params=context)
    assert dump(client) == [f"{A} .", f"{A} <urn:h> ."]
    sent(client, "PUT", "/statements", content=f"{A} <urn:new> .", headers=QUADS)
    assert dump(client) == [f"{A} <urn:new> ."]
    graphs = client.get("/sparql", params={"query": "SELECT ?g { GRAPH ?g {} }"}).json()
    assert len(graphs["results"]["bindings"]) == 1
    sent(client, "PUT", "/statements", content="", headers=QUADS)
    assert dump(client) == []


def test_statements_are_deleted_by_pattern(client: httpx.Client) -> None:
    add(client, f"{A} .\n{A} <urn:g> .\n<urn:a> <urn:q> <urn:c> <urn:g> .\n<urn:x> <urn:q> <urn:c> .")
    sent(client, "DELETE", "/statements", params={"pred": "<urn:q>", "context": "<urn:g>"})
    assert len(dump(client)) == 3
    sent(client, "DELETE", "/statements", params={"subj": "<urn:a>"})
    assert dump(client) == ["<urn:x> <urn:q> <urn:c> ."]
    sent(client, "DELETE", "/statements", params={"context": ["null", "<urn:none>"]})
    assert dump(client) == []
    add(client, f"{A} .\n{A} <urn:g> .")
    sent(client, "DELETE", "/statements")
    assert dump(client) == []


def test_binary_rdf_goes_both_ways(client: httpx.Client) -> None:
    quads = [
        Quad(NamedNode("urn:a"), NamedNode("urn:p"), Literal("é", language="en"), NamedNode("urn:g")),
        Quad(NamedNode("urn:a"), NamedNode("urn:p"), Literal(5), DefaultGraph()),
    ]
    body = b"".join(write_binary_quads(quads))
    sent(client, "POST", "/statements", content=body, headers={"Content-Type": BINARY})
    answer = sent(client, "GET", "/statements", 200, headers={"Accept": BINARY})
    assert answer.headers["content-type"] == BINARY
    assert set(read_binary_quads(answer.content)) == set(quads)
    text = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    built = sent(client, "GET", "", 200, params={"query": text}, headers={"Accept": BINARY})
    assert len(list(read_binary_quads(built.content))) == 2
    truncated = client.post(f"{ROOT}/statements", content=body[:-3], headers={"Content-Type": BINARY})
    assert truncated.status_code == 400
    assert truncated.text.startswith("MALFORMED DATA: ")


def test_blank_nodes_keep_their_labels_if_asked(client: httpx.Client) -> None:
    add(client, "_:keep <urn:p> 'a' .".replace("'", '"'), preserveNodeId="true")
    add(client, '_:keep <urn:p> "b" .', preserveNodeId="true")
    add(client, '_:keep <urn:p> "c" .')
    found = sent(client, "GET", "/statements", 200, params={"subj": "_:keep"}).text
    assert found.count("_:keep") == 2
    assert "_:keep" not in "".join(line for line in dump(client) if '"c"' in line)


def test_queries_read_the_union_of_all_graphs_and_take_bindings(client: httpx.Client) -> None:
    add(client, f"{A} .\n<urn:a> <urn:p> <urn:c> <urn:g> .")

    def rows(**parameters: Any) -> int:
        asked = {"query": "SELECT ?o { ?s ?p ?o }", "queryLn": "SPARQL"} | parameters
        form = client.post(ROOT, data=asked)
        got = client.get(ROOT, params=asked)
        assert form.json() == got.json()
        return len(got.json()["results"]["bindings"])

    assert rows() == 2
    assert rows(**{"default-graph-uri": "urn:g"}) == 1
    assert rows(**{"$o": "<urn:c>"}) == 1
    assert rows(query="SELECT ?o { ?s ?p ?o FILTER (?x = ?o) }", **{"$x": "<urn:b>"}) == 1
    assert rows(query="SELECT ?o { <a> ?p ?o }", baseURI="<urn:>") == 2
    plain = client.get("/sparql", params={"query": "SELECT ?o { ?s ?p ?o }"})
    assert len(plain.json()["results"]["bindings"]) == 1


def test_updates_are_applied(client: httpx.Client) -> None:
    text = {"update": "INSERT DATA { <urn:a> <urn:p> <urn:b> }"}
    sent(client, "POST", "/statements", data=text)
    sent(
        client,
        "POST",
        "/statements",
        content="INSERT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }",
        headers={"Content-Type": "application/sparql-update"},
        params={"$s": "<urn:a>"},
    )
    assert len(dump(client)) == 2
    assert client.post(f"{ROOT}/statements", params=text, data={"other": "1"}).status_code == 400


def test_contexts_and_sizes(client: httpx.Client) -> None:
    add(client, f"{A} .\n{A} <urn:g> .\n<urn:x> <urn:p> _:b <urn:g> .")
    update(client, "CREATE GRAPH <urn:empty>")
    for path in ("/contexts", "/rdf-graphs"):
        found = sent(client, "GET", path, 200, headers={"Accept": "text/csv"}).text.split()
        assert found == ["contextID", "urn:g"]
    for context, size in ((None, 3), ("null", 1), ("<urn:g>", 2), ("<urn:none>", 0), ("_:b", 0)):
        parameters = {} if context is None else {"context": context}
        assert sent(client, "GET", "/size", 200, params=parameters).text == str(size)
    assert client.get("/rest/repositories/graphdb/size").json()["total"] == 3


def test_namespaces(client: httpx.Client) -> None:
    sent(client, "PUT", "/namespaces/ex", content="http://example.org/")
    sent(client, "PUT", "/namespaces/b", content="urn:b:")
    assert sent(client, "GET", "/namespaces/ex", 200).text == "http://example.org/"
    found = sent(client, "GET", "/namespaces", 200, headers={"Accept": "text/csv"}).text
    assert found.split() == ["prefix,namespace", "b,urn:b:", "ex,http://example.org/"]
    sent(client, "DELETE", "/namespaces/ex")
    sent(client, "GET", "/namespaces/ex", 404)
    sent(client, "DELETE", "/namespaces")
    table = sent(client, "GET", "/namespaces", 200, headers={"Accept": "application/sparql-results+json"})
    assert table.json()["results"]["bindings"] == []
    assert client.put(f"{ROOT}/namespaces/ex", content="no iri").status_code == 400


def test_whole_graphs(client: httpx.Client) -> None:
    sent(client, "PUT", "/rdf-graphs/one", content=f"{A} .", headers=TURTLE)
    iri = f"{client.base_url}{ROOT}/rdf-graphs/one".replace("//repositories", "/repositories")
    assert dump(client) == [f"{A} <{iri}> ."]
    service = "/rdf-graphs/service"
    sent(client, "POST", service, content="<urn:x> <urn:p> 1 .", headers=TURTLE, params={"graph": iri})
    assert len(sent(client, "GET", "/rdf-graphs/one", 200).text.splitlines()) == 2
    sent(client, "DELETE", "/rdf-graphs/one")
    assert sent(client, "GET", service, 200, params={"graph": iri}).text == ""
    relative = {"graph": "http://e/dir/graph"}
    sent(client, "PUT", service, content="<#me> <other> <> .", headers=TURTLE, params=relative)
    line = "<http://e/dir/graph#me> <http://e/dir/other> <http://e/dir/graph>"
    assert dump(client) == [f"{line} <http://e/dir/graph> ."]
    sent(client, "DELETE", service, params=relative)
    sent(client, "POST", f"{service}?default", content=f"{A} .", headers=TURTLE)
    assert dump(client) == [f"{A} ."]
    sent(client, "GET", service, 400)
    sent(client, "GET", service, 400, params={"graph": "relative"})


def test_what_describes_the_server(client: httpx.Client) -> None:
    assert client.get("/protocol").text == "12"
    for accept in ("application/sparql-results+json", "application/x-binary-rdf-results-table"):
        answer = client.get("/repositories", headers={"Accept": accept})
        assert answer.headers["content-type"] == accept
        assert b"/repositories/graphdb" in answer.content
    assert client.get("/rest/repositories").json()[0]["id"] == "graphdb"
    assert client.get("/rest/repositories/graphdb").json()["id"] == "graphdb"
    assert client.get("/rest/locations").json()[0]["local"] is True
    assert client.get("/rest/security/authenticated-user").json()["grantedAuthorities"] == ["ROLE_ADMIN"]


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "begins"),
    [
        ("GET", "/repositories/other/size", {}, 404, "Unknown repository"),
        ("GET", "/rest/repositories/other", {}, 404, "{"),
        ("GET", ROOT, {"params": {"query": "SELECT"}}, 400, "MALFORMED QUERY: "),
        ("GET", ROOT, {}, 400, "query"),
        ("GET", ROOT, {"params": {"query": "ASK {}", "queryLn": "SeRQL"}}, 400, "queryLn"),
        ("GET", ROOT, {"params": {"query": "ASK {}", "limit": "5"}}, 400, "limit"),
        ("GET", ROOT, {"params": {"query": "ASK {?s ?p ?o}", "$s": "_:b"}}, 400, "$s"),
        ("GET", ROOT, {"params": {"query": "ASK {?s ?p ?o}", "$s} {": "<urn:a>"}}, 400, "$s"),
        ("GET", f"{ROOT}/statements", {"params": {"subj": "<urn:a> . <urn:b>"}}, 400, "subj"),
        ("GET", f"{ROOT}/statements", {"params": {"subj": '"literal"'}}, 400, "subj"),
        ("GET", f"{ROOT}/statements", {"params": {"pred": "_:b"}}, 400, "pred"),
        ("GET", f"{ROOT}/statements", {"params": {"obj": "<urn:a> <urn:g>"}}, 400, None),
        ("GET", f"{ROOT}/statements", {"params": {"context": '"x"'}}, 400, "context"),
        ("GET", f"{ROOT}/statements", {"headers": {"Accept": "image/png"}}, 406, None),
        ("DELETE", f"{ROOT}/statements", {"params": {"subj": "_:b"}}, 400, "subj"),
        ("DELETE", f"{ROOT}/statements", {"params": {"context": "_:b"}}, 400, "context"),
        ("POST", f"{ROOT}/statements", {"content": "x", "headers": TURTLE}, 400, "MALFORMED DATA: "),
        ("POST", f"{ROOT}/statements", {"content": "x"}, 415, "UNSUPPORTED FILE FORMAT: "),
        (
            "PUT",
            f"{ROOT}/statements",
            {"content": "", "headers": TURTLE, "params": {"context": ["<urn:a>", "null"]}},
            400,
            "context",
        ),
        ("POST", f"{ROOT}/transactions", {}, 503, None),
        ("PUT", f"{ROOT}/transactions/none", {"params": {"action": "COMMIT"}}, 404, None),
        ("PUT", f"{ROOT}/transactions/none", {"params": {"action": "DANCE"}}, 400, "action"),
        ("DELETE", f"{ROOT}/transactions/none", {}, 404, None),
        ("PATCH", f"{ROOT}/statements", {}, 405, None),
    ],
)
def test_what_is_refused(
    client: httpx.Client, method: str, path: str, options: dict[str, Any], status: int, begins: str | None
) -> None:
    answer = client.request(method, path, **options)
    assert answer.status_code == status, answer.text
    assert begins is None or answer.text.startswith(begins), answer.text
    assert "Traceback" not in answer.text
