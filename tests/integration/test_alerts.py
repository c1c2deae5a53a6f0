"""Alerts of a running service, with a real receiver."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import orjson
import pytest

from tests.support.remote_host import RemoteHost, answering, remote_host
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]

CONFIG = """
[security]
webhook_allow = ["127.0.0.1"]

[alerts]
webhook_timeout_seconds = 1
webhook_attempts = 60
webhook_backoff_seconds = 0.05
"""


@pytest.fixture(scope="module")
def alerting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("alerting")
    (directory / "graphdb.toml").write_text(CONFIG)
    service = Service(directory / "data", "--config", str(directory / "graphdb.toml"))
    try:
        yield service.start()
    finally:
        service.close()


@pytest.fixture
def receiver() -> Iterator[RemoteHost]:
    with remote_host(answering()) as host:
        yield host


def ask(service: Service, method: str, path: str, **body: Any) -> dict[str, Any]:
    answer = httpx.request(method, service.url + path, json=body or None, timeout=HANG_S, trust_env=False)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def make(service: Service, name: str, webhook: str, **members: Any) -> dict[str, Any]:
    """An alert on how many triples have the name as their subject."""
    query = f"SELECT (COUNT(*) AS ?n) {{ <urn:{name}> ?p ?o }}"
    body = {"query": query, "condition": "result > 0", "interval_seconds": 1, "webhook": webhook}
    return ask(service, "POST", "/alerts", name=name, **body | members)


def last_of(service: Service, name: str) -> str | None:
    """What has become of the last delivery."""
    history = ask(service, "GET", f"/alerts/{name}/history")["history"]
    return history[0]["status"] if history else None


def note(service: Service, name: str) -> None:
    service.update(f"INSERT DATA {{ <urn:{name}> <urn:p> {time.time_ns()} }}")


def until(holds: Callable[[], object], timeout_s: float = 60) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < give_up_at, "it has not come true"
        time.sleep(0.02)


def keys(receiver: RemoteHost) -> list[bytes]:
    return [
        line.partition(b": ")[2]
        for request in receiver.requests
        for line in request.split(b"\r\n")
        if line.lower().startswith(b"idempotency-key")
    ]


def test_it_fires_and_is_tried_and_stops(alerting: Service, receiver: RemoteHost) -> None:
    make(alerting, "first", receiver.url)
    tried = ask(alerting, "POST", "/alerts/first/test")
    assert (tried["result"], tried["holds"], tried["delivered"]) == (0, False, True)
    note(alerting, "first")
    until(lambda: len(receiver.requests) >= 4)
    told = orjson.loads(receiver.requests[1].partition(b"\r\n\r\n")[2])
    assert (told["alert"]["name"], told["result"]) == ("first", 1)
    assert ask(alerting, "POST", "/alerts/first/pause")["status"] == "paused"
    until(lambda: last_of(alerting, "first") == "delivered")
    count = len(receiver.requests)
    time.sleep(2.5)
    assert len(receiver.requests) == count
    assert ask(alerting, "DELETE", "/alerts/first") == {"success": True}
    told_times = keys(receiver)
    assert len(set(told_times)) == len(told_times)


def test_what_fails_is_tried_again(alerting: Service, receiver: RemoteHost) -> None:
    answers = iter([answering(status=500), lambda connection: time.sleep(1.2), lambda connection: None])
    receiver.answer = lambda connection: next(answers, answering())(connection)
    note(alerting, "again")
    make(alerting, "again", receiver.url, interval_seconds=600)
    until(lambda: last_of(alerting, "again") == "delivered")
    (delivery,) = ask(alerting, "GET", "/alerts/again/history")["history"]
    assert (delivery["attempts"], delivery["status_code"]) == (4, 200)
    assert [key.decode() for key in keys(receiver)] == [delivery["id"]] * 4
    ask(alerting, "DELETE", "/alerts/again")


def test_a_redirect_into_a_private_network(alerting: Service, receiver: RemoteHost) -> None:
    with remote_host(answering(), "127.0.0.2") as private:
        receiver.answer = answering(status=308, headers=(f"Location: {private.url}",))
        note(alerting, "redirected")
        make(alerting, "redirected", receiver.url, interval_seconds=600)
        until(lambda: ask(alerting, "GET", "/alerts/redirected")["status"] == "error")
        assert "127.0.0.2" in ask(alerting, "GET", "/alerts/redirected")["last_error"]
        assert private.requests == []
    ask(alerting, "DELETE", "/alerts/redirected")


def test_a_query_that_somebody_ends(alerting: Service, receiver: RemoteHost) -> None:
    """It is listed as any other, and its end makes an error."""
    graph = " ".join(f"<urn:slow{number}> <urn:slow> {number} ." for number in range(300))
    alerting.update(f"INSERT DATA {{ {graph} }}")
    crossed = " ".join(f"?s{number} <urn:slow> ?o{number} ." for number in range(6))
    query = f"SELECT (COUNT(*) AS ?n) {{ {crossed} FILTER(?o0 + ?o1 + ?o2 + ?o3 + ?o4 + ?o5 = 750) }}"
    make(alerting, "slow", receiver.url, query=query)
    until(lambda: running(alerting))
    (listed,) = running(alerting)
    assert (listed["principal"], listed["form"]) == ("alert slow", "SELECT")
    httpx.delete(f"{alerting.url}/queries/{listed['id']}", timeout=HANG_S, trust_env=False)
    until(lambda: ask(alerting, "GET", "/alerts/slow")["status"] == "error")
    assert ask(alerting, "GET", "/alerts/slow")["last_error"]
    ask(alerting, "DELETE", "/alerts/slow")


def running(service: Service) -> list[dict[str, Any]]:
    queries: list[dict[str, Any]] = ask(service, "GET", "/queries")["queries"]
    return queries


def test_it_is_told_after_kill_9(alerting: Service, receiver: RemoteHost) -> None:
    note(alerting, "survivor")
    made = make(alerting, "survivor", receiver.url, interval_seconds=600, secret="a secret of the receiver")
    until(lambda: ask(alerting, "GET", "/alerts/survivor")["fire_count"] == 1)
    until(lambda: last_of(alerting, "survivor") == "delivered")
    receiver.answer = answering(status=500)
    make(alerting, "pending", receiver.url, query="ASK {}", notify="change", interval_seconds=1)
    until(lambda: len(receiver.requests) >= 2)
    before = ask(alerting, "GET", "/alerts/survivor/history")
    alerting.kill()
    alerting.start()
    assert ask(alerting, "GET", "/alerts/survivor/history") == before
    after = ask(alerting, "GET", "/alerts/survivor")
    assert (after["id"], after["fire_count"], after["signed"]) == (made["id"], 1, True)
    receiver.answer = answering()
    until(lambda: last_of(alerting, "pending") == "delivered")
    assert len(set(keys(receiver))) == 2, "one for each firing, also across the kill"
    until(lambda: ask(alerting, "GET", "/alerts/pending")["last_value"] == 1)
    assert ask(alerting, "GET", "/alerts/pending")["fire_count"] == 1
    for name in ("survivor", "pending"):
        ask(alerting, "DELETE", f"/alerts/{name}")
