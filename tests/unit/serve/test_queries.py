"""/queries: what is running, and an end to it."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import key, settings_of
from tests.unit.serve.conftest import error_of

ENDLESS = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
SILENT = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"


@pytest.fixture(autouse=True)
def data(client: httpx.Client, backend: MemoryBackend) -> None:
    s, p = NamedNode("http://x/s"), NamedNode("http://x/p")
    backend.store._store.extend(Quad(s, p, Literal(f"number {n}"), DefaultGraph()) for n in range(180))


@contextmanager
def asking(
    base_url: str, query: str, headers: Mapping[str, str] | None = None
) -> Iterator[list[httpx.Response | Exception]]:
    """Ask meanwhile; what came of it is in the list at the end."""
    found: list[httpx.Response | Exception] = []

    def ask() -> None:
        try:
            parameters = {"query": query}
            found.append(httpx.get(f"{base_url}/sparql", params=parameters, headers=headers, trust_env=False))
        except httpx.HTTPError as error:
            found.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    yield found
    thread.join()


def running(client: httpx.Client, count: int) -> list[dict[str, Any]]:
    """The list, once it is so long."""
    deadline = time.monotonic() + HANG_S
    while True:
        answer = client.get("/queries")
        assert answer.headers["cache-control"] == "no-store"
        assert set(answer.json()) == {"queries"}
        queries: list[dict[str, Any]] = answer.json()["queries"]
        if len(queries) == count:
            return queries
        assert time.monotonic() < deadline, queries
        time.sleep(0.01)


def test_nothing_runs(client: httpx.Client) -> None:
    assert client.get("/queries").json() == {"queries": []}


@pytest.mark.parametrize("query", [ENDLESS, SILENT])
def test_a_query_is_listed_and_cancelled(client: httpx.Client, base_url: str, query: str) -> None:
    with asking(base_url, query) as found:
        [shown] = running(client, 1)
        assert set(shown) == {
            *("id", "text", "form", "state", "where", "started_at", "age_seconds", "principal")
        }
        assert (shown["text"], shown["form"], shown["state"]) == (query, "SELECT", "running")
        assert (shown["where"], shown["principal"]) == ("thread", None)
        started = datetime.fromisoformat(shown["started_at"])
        assert 0 <= (datetime.now(UTC) - started).total_seconds() < HANG_S
        assert 0 <= shown["age_seconds"] < HANG_S
        time.sleep(0.2)  # by now the head of an answer that has rows is sent
        answer = client.delete(f"/queries/{shown['id']}")
        assert (answer.status_code, answer.json()) == (200, {"success": True})
        assert answer.headers["cache-control"] == "no-store"
        running(client, 0)
    [end] = found
    if query == ENDLESS:
        assert isinstance(end, httpx.RemoteProtocolError)
    else:
        assert isinstance(end, httpx.Response)
        assert (end.status_code, error_of(end)) == (503, "the query was cancelled")
        assert int(end.headers["retry-after"]) > 0


def test_only_admins_see_and_cancel_those_of_others(backend: MemoryBackend, tmp_path: Path) -> None:
    with serving(build_app(backend, settings_of(tmp_path))) as url:
        roles = ("admin", "writer", "reader")
        clients = {
            role: httpx.Client(base_url=url, trust_env=False, headers=key(role), timeout=HANG_S)
            for role in roles
        }
        with asking(url, ENDLESS, key("reader")):
            [shown] = running(clients["reader"], 1)
            assert shown["principal"] == "api_key:reader"
            address = f"/queries/{shown['id']}"
            assert running(clients["writer"], 0) == []
            for method in ("GET", "DELETE"):
                assert clients["writer"].request(method, address).status_code == 404
            assert clients["admin"].get(address).json()["id"] == shown["id"]
            assert clients["reader"].delete(address).status_code == 200
        with asking(url, ENDLESS, key("reader")):
            [shown] = running(clients["admin"], 1)
            assert clients["admin"].delete(f"/queries/{shown['id']}").status_code == 200
        for client in clients.values():
            client.close()


def test_two_queries(client: httpx.Client, base_url: str) -> None:
    with asking(base_url, ENDLESS), asking(base_url, ENDLESS + " #"):
        first, second = running(client, 2)
        assert first["id"] != second["id"]
        one = client.get(f"/queries/{second['id']}")
        assert (one.status_code, one.headers["cache-control"]) == (200, "no-store")
        assert one.json() | {"age_seconds": 0} == second | {"age_seconds": 0}
        assert client.delete(f"/queries/{second['id']}").status_code == 200
        [left] = running(client, 1)
        assert left["id"] == first["id"]
        assert client.delete(f"/queries/{first['id']}").status_code == 200


@pytest.mark.parametrize("query_id", ["none", "%20", "a%22b", "\u00e9"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_does_not_run(client: httpx.Client, method: str, query_id: str) -> None:
    answer = client.request(method, f"/queries/{query_id}")
    assert answer.status_code == 404
    assert "no query" in error_of(answer)


def test_methods(client: httpx.Client) -> None:
    assert client.delete("/queries").status_code == 405
    assert client.put("/queries/x").status_code == 405
    assert client.head("/queries").status_code == 200
