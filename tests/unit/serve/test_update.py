"""/update: every way to send an update, and what is confirmed."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.conftest import dump, error_of, update

FORM = "application/x-www-form-urlencoded"
UPDATE = "application/sparql-update"
INSERT = 'INSERT DATA { <http://x/s> <http://x/p> "a" }'


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"content": INSERT, "headers": {"Content-Type": UPDATE}}, id="the update as body"),
        pytest.param({"data": {"update": INSERT}}, id="form"),
        pytest.param(
            {"content": f"\ufeff{INSERT}".encode(), "headers": {"Content-Type": UPDATE}},
            id="the update as body, byte order mark",
        ),
        pytest.param({"data": {"update": f"\ufeff{INSERT}"}}, id="form, byte order mark"),
    ],
)
def test_ways_to_send(client: httpx.Client, request_: dict[str, Any]) -> None:
    before = int(client.get("/sparql", params={"query": "ASK {}"}).headers["X-Snapshot-Index"])
    answer = client.post("/update", **request_)
    assert answer.status_code == 200
    confirmation = answer.json()
    assert isinstance(confirmation.pop("message"), str)
    assert confirmation == {"success": True, "snapshot_index": before + 1, "affected_triples": 1}
    assert dump(client) == ['<http://x/s> <http://x/p> "a" .']


def test_affected_triples_counts_real_changes(client: httpx.Client) -> None:
    update(client, INSERT)
    assert update(client, INSERT).json()["affected_triples"] == 0
    assert update(client, "DELETE WHERE { ?s ?p ?o } ; " + INSERT).json()["affected_triples"] == 0


@pytest.mark.parametrize("way", ["direct", "form", "form and query string"])
@pytest.mark.parametrize("parameter", ["using-graph-uri", "using-named-graph-uri"])
def test_using(client: httpx.Client, way: str, parameter: str) -> None:
    update(client, 'INSERT DATA { GRAPH <http://g/1> { <http://x/s> <http://x/p> "one" } }')
    where = "{ ?s ?p ?o }" if parameter == "using-graph-uri" else "{ GRAPH ?g { ?s ?p ?o } }"
    text = f"INSERT {{ <http://x/seen> <http://x/as> ?o }} WHERE {where}"
    using = {parameter: "http://g/1"}
    if way == "direct":
        answer = client.post("/update", params=using, content=text, headers={"Content-Type": UPDATE})
    elif way == "form":
        answer = client.post("/update", data={"update": text, **using})
    else:
        answer = client.post("/update", params=using, data={"update": text})
    assert answer.json()["affected_triples"] == 1
    assert '<http://x/seen> <http://x/as> "one" .' in dump(client)


def test_a_link_cannot_change_data(client: httpx.Client) -> None:
    assert client.get("/update", params={"update": INSERT}).status_code == 405
    answer = client.post("/update", params={"update": INSERT}, headers={"Content-Type": FORM})
    assert "update" in error_of(answer)
    assert answer.status_code == 400
    assert dump(client) == []


def test_a_request_is_atomic(client: httpx.Client) -> None:
    answer = client.post("/update", data={"update": f"{INSERT} ; DROP GRAPH <http://g/none>"})
    assert answer.status_code == 404
    assert dump(client) == []


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("CREATE GRAPH <http://g/1> ; CREATE GRAPH <http://g/1>", 409),
        ("DROP GRAPH <http://g/none>", 404),
        ("LOAD <http://127.0.0.1:9/data.ttl>", 403),
        ("INSERT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", 403),
    ],
)
def test_failures(client: httpx.Client, text: str, status: int) -> None:
    answer = client.post("/update", data={"update": text})
    assert answer.status_code == status
    error_of(answer)


def test_a_large_update(client: httpx.Client) -> None:
    rows = "".join(f"<http://x/{number}> <http://x/p> {number} .\n" for number in range(5_000))
    assert update(client, f"INSERT DATA {{ {rows} }}").json()["affected_triples"] == 5_000
