"""`Idempotency-Key`: what is one request, and what a key may look like."""

import httpx
import pytest

from tests.unit.serve.conftest import dump, error_of, update

UPDATE = {"Content-Type": "application/sparql-update"}
COUNT_UP = """
    DELETE { <urn:n> <urn:is> ?n } INSERT { <urn:n> <urn:is> ?next }
    WHERE { <urn:n> <urn:is> ?n BIND (?n + 1 AS ?next) }
"""
THREE = ['<urn:n> <urn:is> "3"^^<http://www.w3.org/2001/XMLSchema#integer> .']


def count_up(client: httpx.Client, key: str, path: str = "/update") -> httpx.Response:
    return client.post(path, content=COUNT_UP, headers={**UPDATE, "Idempotency-Key": key})


def test_an_update_that_is_sent_again_takes_effect_once(client: httpx.Client) -> None:
    update(client, "INSERT DATA { <urn:n> <urn:is> 1 }")
    first, again, other = (count_up(client, key) for key in ("once-1", '"once-1"', "once-2"))
    assert first.json()["message"] == "update applied"
    assert again.json() == {**first.json(), "message": "applied before"}
    assert again.headers["X-Snapshot-Index"] == first.headers["X-Snapshot-Index"]
    assert other.json()["snapshot_index"] == first.json()["snapshot_index"] + 1
    assert dump(client) == THREE


def test_a_key_for_another_request_is_refused(client: httpx.Client) -> None:
    update(client, "INSERT DATA { <urn:n> <urn:is> 1 }")
    assert count_up(client, "other-1").status_code == 200
    headers = {**UPDATE, "Idempotency-Key": "other-1"}
    answer = client.post("/update", content=COUNT_UP + " ", headers=headers)
    assert answer.status_code == 422
    assert error_of(answer).startswith("Idempotency-Key: this key was used for another request")
    form = {"update": COUNT_UP, "using-graph-uri": "urn:g"}
    assert client.post("/update", data=form, headers={"Idempotency-Key": "other-1"}).status_code == 422


def test_a_form_and_a_body_are_the_same_request(client: httpx.Client) -> None:
    update(client, "INSERT DATA { <urn:n> <urn:is> 2 }")
    assert count_up(client, "form-1").json()["message"] == "update applied"
    answer = client.post("/update", data={"update": COUNT_UP}, headers={"Idempotency-Key": "form-1"})
    assert answer.json()["message"] == "applied before"
    assert dump(client) == THREE


def test_a_key_counts_for_its_target(client: httpx.Client) -> None:
    update(client, "INSERT DATA { <urn:n> <urn:is> 1 }")
    for path in ("/update", "/update?x=1"):
        assert count_up(client, "target-1", path).json()["message"] == "update applied"
    assert dump(client) == THREE


def test_whole_graphs(client: httpx.Client) -> None:
    def send(method: str, name: str, content: bytes = b"<urn:a> <urn:b> <urn:c> .") -> str:
        headers = {"Content-Type": "text/turtle", "Idempotency-Key": "graph-1"}
        answer = client.request(method, "/data", params={"graph": name}, content=content, headers=headers)
        assert answer.status_code == 200, answer.text
        message: str = answer.json()["message"]
        return message

    steps = [("PUT", "urn:g"), ("POST", "urn:h"), ("PUT", "urn:h"), ("DELETE", "urn:g"), ("PUT", "urn:g")]
    expected = ["update applied", "update applied", "update applied", "update applied", "applied before"]
    # POST and PUT of the same body change nothing where it stands already: other content for each
    contents = [b"<urn:a> <urn:b> %d ." % number for number in range(4)]
    assert [send(*step, content) for step, content in zip(steps, [*contents, b""], strict=True)] == expected
    assert dump(client) == ['<urn:a> <urn:b> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:h> .']
    headers = {"Content-Type": "application/n-triples", "Idempotency-Key": "graph-1"}
    answer = client.put("/data", params={"graph": "urn:h"}, content=b"", headers=headers)
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param('""', "is empty", id="empty in quotes"),
        pytest.param("k" * 256, "has 256 characters, at most 255", id="long"),
        pytest.param(f'"{"k" * 256}"', "has 256 characters, at most 255", id="long in quotes"),
        pytest.param('"abc', "printable ASCII", id="half a quote"),
        pytest.param('"abc";p=1', "printable ASCII", id="with a parameter"),
        pytest.param("k\u00e9y".encode("latin-1"), "printable ASCII", id="not ASCII"),
    ],
)
def test_keys_that_are_none(client: httpx.Client, key: str | bytes, reason: str) -> None:
    given = [(b"Idempotency-Key", key if isinstance(key, bytes) else key.encode())]
    headers = [*given, (b"Content-Type", b"application/sparql-update")]
    answer = client.post("/update", content="INSERT DATA { <urn:a> <urn:b> 1 }", headers=headers)
    assert answer.status_code == 400
    assert f"Idempotency-Key: {reason}" in error_of(answer).replace("has to be ", "")
    assert dump(client) == []


def test_the_longest_key_and_one_with_escapes(client: httpx.Client) -> None:
    update(client, "INSERT DATA { <urn:n> <urn:is> 1 }")
    assert count_up(client, f'"{"k" * 255}"').json()["message"] == "update applied"
    assert count_up(client, "k" * 255).json()["message"] == "applied before"
    assert count_up(client, r'"say \"a\\b\""').json()["message"] == "update applied"
    assert count_up(client, r"say " + '"a\\b"').json()["message"] == "applied before"
    assert dump(client) == THREE


def test_one_key_only(client: httpx.Client) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), *UPDATE.items()]
    answer = client.post("/update", content=COUNT_UP, headers=headers)
    assert answer.status_code == 400
    assert error_of(answer) == "Idempotency-Key: given 2 times, may be given once"
