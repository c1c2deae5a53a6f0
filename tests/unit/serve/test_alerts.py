"""`/alerts` over memory: what is answered, and what is refused."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.remote_host import RemoteHost, answering, remote_host
from tests.unit.serve.conftest import error_of, update

SETTINGS = Settings.model_validate({"security": {"webhook_allow": ["127.0.0.9"]}})
WEBHOOK = "http://127.0.0.9:9/hook"
ALERT: dict[str, Any] = {
    "name": "many",
    "query": "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "condition": "result > 1",
    "interval_seconds": 60,
    "webhook": WEBHOOK,
}


@pytest.fixture(scope="module")
def backend() -> MemoryBackend:
    return MemoryBackend(settings=SETTINGS)


@pytest.fixture(scope="module")
def base_url(backend: MemoryBackend) -> Iterator[str]:
    with serving(build_app(backend, SETTINGS)) as url:
        yield url


@pytest.fixture
def http(client: httpx.Client) -> httpx.Client:
    """A client of a node without alerts."""
    for alert in client.get("/alerts").json()["alerts"]:
        assert client.delete(f"/alerts/{alert['id']}").json() == {"success": True}
    return client


def test_an_alert_from_its_making_to_its_end(http: httpx.Client) -> None:
    assert http.get("/alerts").json() == {"alerts": []}
    answer = http.post("/alerts", json=ALERT)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    assert made == ALERT | {
        "id": made["id"],
        "notify": "interval",
        "signed": False,
        "status": "active",
        "created_at": made["created_at"],
        "last_evaluated_at": None,
        "last_value": None,
        "last_fired_at": None,
        "fire_count": 0,
        "last_error": None,
    }
    assert made["created_at"].endswith("Z")
    assert http.get("/alerts").json() == {"alerts": [made]}
    for name in (made["id"], "many"):
        assert http.get(f"/alerts/{name}").json() == made
        assert http.get(f"/alerts/{name}/history").json() == {"history": []}
        assert http.post(f"/alerts/{name}/pause").json()["status"] == "paused"
        assert http.post(f"/alerts/{name}/resume").json()["status"] == "active"
    assert error_of(http.post("/alerts", json=ALERT)) == "the alert <many> exists already"
    assert http.post("/alerts", json=ALERT).status_code == 409
    assert http.delete("/alerts/many").json() == {"success": True}
    for method, path in [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("GET", "/history"),
        ("POST", "/test"),
    ]:
        answer = http.request(method, f"/alerts/many{path}")
        assert (answer.status_code, error_of(answer)) == (404, "there is no alert many")


@pytest.mark.parametrize("name", ["two words", "größer", "a/b?c#d", "100 %", "+"])
def test_names_stand_in_paths_percent_encoded(http: httpx.Client, name: str) -> None:
    http.post("/alerts", json=ALERT | {"name": name})
    assert http.get(f"/alerts/{quote(name, safe='')}").json()["name"] == name


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"name": ""}, "name: has to be printable text"),
        ({"name": 5}, "name: Input should be a valid string"),
        ({"query": "SELECT * {"}, "syntax error at line 1"),
        ({"query": ""}, "syntax error"),
        ({"query": "INSERT DATA { <urn:a> <urn:b> <urn:c> }"}, "query: this is an update"),
        ({"query": "CONSTRUCT WHERE { ?s ?p ?o }"}, "query: this is CONSTRUCT"),
        ({"query": "DESCRIBE <urn:a>"}, "query: this is DESCRIBE"),
        ({"query": "ASK " + "{" * 600 + "}" * 600}, "nested deeper"),
        ({"condition": "result is large"}, "condition: has to be the word result"),
        ({"interval_seconds": 0}, "interval_seconds: has to be 1 to"),
        ({"interval_seconds": 1.5}, "interval_seconds: Input should be a valid integer"),
        ({"interval_seconds": "60"}, "interval_seconds: Input should be a valid integer"),
        ({"interval_seconds": True}, "interval_seconds: Input should be a valid integer"),
        ({"webhook": "no URL"}, "webhook: WEBHOOK to no URL is not allowed"),
        ({"webhook": "ftp://files.example/"}, "only http and https are"),
        ({"webhook": "http://user:password@hooks.example/"}, "it holds credentials"),
        ({"webhook": "http://10.0.0.1/"}, r"by \[security\] webhook_allow: no rule covers"),
        ({"webhook": "http://[::1]/"}, "no rule covers the address ::1"),
        ({"webhook": "http://[::ffff:169.254.169.254]/"}, r"no rule covers the address 169\.254\.169\.254"),
        ({"webhook": "http://localhost:1/"}, "which is not public"),
        ({"webhook": "http://localhost.localdomain/"}, "which is not public"),
        ({"webhook": "http://ip6-localhost/"}, "which is not public"),
        ({"webhook": "http://2130706433/"}, "an unusual spelling"),
        ({"webhook": "http:///"}, "there is no host"),
        ({"notify": "sometimes"}, "notify: Input should be 'interval' or 'change'"),
        ({"secret": "short"}, "secret: has 5 characters"),
        ({"intervall": 3}, "intervall: Extra inputs"),
        ({"webhook": None}, "webhook"),
    ],
)
def test_what_is_refused(http: httpx.Client, members: dict[str, Any], told: str) -> None:
    answer = http.post("/alerts", json=ALERT | members)
    assert answer.status_code == 400, answer.text
    assert re.search(told, error_of(answer)), answer.text
    assert http.get("/alerts").json() == {"alerts": []}


def test_what_is_no_body(http: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[]", b"null", b"\xff", b'{"name": "\\ud800"}', b"[" * 100_000):
        assert http.post("/alerts", content=body, headers=headers).status_code == 400
    for missing in ("name", "query", "condition", "interval_seconds", "webhook"):
        members = {name: value for name, value in ALERT.items() if name != missing}
        assert error_of(http.post("/alerts", json=members)) == f"{missing}: Field required"
    assert http.post("/alerts", content="name=x").status_code == 415
    assert http.put("/alerts", json=ALERT).status_code == 405
    assert http.patch("/alerts/many").status_code == 405
    assert http.get("/alerts/%ff").status_code == 400
    assert http.get("/alerts/%zz").status_code == 400


def test_service_to_a_host_that_is_not_allowed(http: httpx.Client) -> None:
    query = "ASK { SERVICE <http://10.0.0.1/> { ?s ?p ?o } }"
    assert http.post("/alerts", json=ALERT | {"query": query}).status_code == 403


def test_a_key_makes_it_safe_to_try_again(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "once"}
    made = http.post("/alerts", json=ALERT, headers=headers).json()
    assert http.post("/alerts", json=ALERT, headers=headers).json() == made
    assert http.post("/alerts", json=ALERT | {"name": "x"}, headers=headers).status_code == 422
    assert len(http.get("/alerts").json()["alerts"]) == 1


def test_secrets_are_not_told(http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    secret = "whsec_c2VjcmV0IG9mIHRoZSByZWNlaXZlcg=="
    made = http.post("/alerts", json=ALERT | {"secret": secret})
    told = made.text + http.get("/alerts").text + http.get("/alerts/many").text + caplog.text
    assert secret not in told
    assert made.json()["signed"] is True
    refused = http.post("/alerts", json=ALERT | {"secret": secret + "!", "name": "x"})
    assert (refused.status_code, secret in refused.text) == (400, False)


@pytest.fixture
def receiver() -> Iterator[RemoteHost]:
    with remote_host(answering(b"thanks"), "127.0.0.9") as host:
        yield host


def test_a_trial(http: httpx.Client, receiver: RemoteHost) -> None:
    update(http, "INSERT DATA { <urn:a> <urn:b> 1, 2, 3 }")
    http.post("/alerts", json=ALERT | {"webhook": receiver.url})
    tried = http.post("/alerts/many/test").json()
    assert tried == {
        "result": 3,
        "snapshot_index": tried["snapshot_index"],
        "holds": True,
        "delivered": True,
        "status_code": 200,
        "error": None,
    }
    assert b'"test":true' in receiver.requests[0]
    receiver.answer = answering(status=500)
    tried = http.post("/alerts/many/test").json()
    assert (tried["delivered"], tried["status_code"]) == (False, 500)
    assert tried["error"] == "the webhook answers 500"
    assert len(receiver.requests) == 2, "once each"
    assert http.get("/alerts/many").json()["fire_count"] == 0
    assert http.get("/alerts/many/history").json() == {"history": []}


def test_alerts_are_no_triples(http: httpx.Client) -> None:
    http.post("/alerts", json=ALERT | {"secret": "a secret of the receiver"})
    query = {"query": "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"}
    assert http.get("/sparql", params=query).json()["results"]["bindings"] == []
    assert http.get("/data?dataset=all&format=nquads").text == ""
