"""Read levels: what asks for one, that it is reached before anything is answered, and what fails."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from graphdb.errors import IndexNotReached, NotLeader, UnavailableError
from graphdb.node import Consistency
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_cluster import MemoryCluster
from tests.support.timing import quick_enough
from tests.unit.serve.conftest import error_of

TIME_LIMIT_S = 2.0
CHEAP = "SELECT ?o { <http://x/s> <http://x/p> ?o }"
NOT_CHEAP = "SELECT ?o { ?s ?p ?o . ?s ?q ?r }"
QUERY = {"Content-Type": "application/sparql-query"}
GRAPH = "/data?graph=http://x/g"


class LateBackend(MemoryBackend):
    """A follower that is behind: what the others have confirmed gets here when a reader asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.confirmed_elsewhere: list[str] = []
        self.reaching_s = 0.0
        self.waited_s: list[float] = []  # what wait_for_index was given

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        await super().reach(consistency, timeout_s)
        await asyncio.sleep(self.reaching_s)
        while self.confirmed_elsewhere:
            await self.update(parse_update(self.confirmed_elsewhere.pop(0), None), Dataset())

    async def wait_for_index(self, index: int, timeout_s: float) -> None:
        self.waited_s.append(timeout_s)
        await super().wait_for_index(index, timeout_s)


@pytest.fixture(scope="module")
def backend() -> LateBackend:
    return LateBackend()


@pytest.fixture(scope="module")
def base_url(backend: LateBackend) -> Iterator[str]:
    settings = Settings.model_validate({"server": {"query_timeout_seconds": TIME_LIMIT_S}})
    with serving(build_app(backend, settings)) as url:
        yield url


@pytest.fixture(autouse=True)
def as_usual(backend: LateBackend, client: httpx.Client) -> Iterator[None]:
    yield
    backend.peers, backend.waited_s = MemoryCluster(), []
    backend.confirmed_elsewhere, backend.reaching_s = [], 0.0


def levels(backend: LateBackend) -> list[str]:
    return [level.value for level, _ in backend.peers.reached]


# What asks for a level

L = Consistency.LINEARIZABLE.value
FORM = {"query": CHEAP}
ASKED: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
    "nothing": ("GET", "/sparql", {"params": FORM}, []),
    "local": ("GET", "/sparql", {"params": {**FORM, "consistency": "local"}}, []),
    "a local header": ("GET", "/sparql", {"params": FORM, "headers": {"X-Consistency": "local"}}, []),
    "leader": ("GET", "/sparql", {"params": {**FORM, "consistency": "leader"}}, ["leader"]),
    "a parameter": ("GET", "/sparql", {"params": {**FORM, "consistency": L}}, [L]),
    "a header": ("GET", "/sparql", {"params": FORM, "headers": {"X-Consistency": L}}, [L]),
    "any case": ("GET", "/sparql", {"params": FORM, "headers": {"x-CONSISTENCY": "LineariZable"}}, [L]),
    "any case in a parameter": ("GET", "/sparql", {"params": {**FORM, "consistency": "LEADER"}}, ["leader"]),
    "both": (
        "GET",
        "/sparql",
        {"params": {**FORM, "consistency": L}, "headers": {"X-Consistency": L.upper()}},
        [L],
    ),
    "a header twice": (
        "GET",
        "/sparql",
        {"params": FORM, "headers": [("X-Consistency", L), ("X-Consistency", L)]},
        [L],
    ),
    "a field of a form": ("POST", "/sparql", {"data": {**FORM, "consistency": L}}, [L]),
    "beside a form": ("POST", f"/sparql?consistency={L}", {"data": FORM}, [L]),
    "beside a body": ("POST", f"/sparql?consistency={L}", {"content": CHEAP, "headers": QUERY}, [L]),
    "an explanation": ("POST", "/sparql", {"data": {**FORM, "explain": "true", "consistency": L}}, [L]),
    "HEAD of a query": ("HEAD", "/sparql", {"params": {**FORM, "consistency": L}}, [L]),
    "a graph": ("GET", "/data", {"params": {"consistency": L}}, [L]),
    "a graph by header": ("GET", "/data", {"headers": {"X-Consistency": L}}, [L]),
    "a local graph": ("GET", "/data", {"params": {"consistency": "local"}}, []),
    "a dataset": ("GET", "/data", {"params": {"dataset": "all", "consistency": "leader"}}, ["leader"]),
    "HEAD of a graph": ("HEAD", "/data", {"params": {"consistency": L}}, [L]),
    "queries": ("GET", "/queries", {"params": {"consistency": L}}, []),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_asks_for_a_level(client: httpx.Client, backend: LateBackend, case: str) -> None:
    method, path, rest, expected = ASKED[case]
    backend.peers.reached.clear()
    assert client.request(method, path, **rest).status_code == 200
    assert levels(backend) == expected
    assert all(0.8 * TIME_LIMIT_S < left_s <= TIME_LIMIT_S for _, left_s in backend.peers.reached)


REFUSED: dict[str, tuple[dict[str, str], list[tuple[str, str]]]] = {
    "unknown": ({"consistency": "strong"}, []),
    "a space": ({"consistency": " leader"}, []),
    "empty": ({"consistency": ""}, []),
    "an unknown header": ({}, [("X-Consistency", "quorum")]),
    "an empty header": ({}, [("X-Consistency", "")]),
    "a list in the header": ({}, [("X-Consistency", "leader, leader")]),
    "no text in the header": ({}, [("X-Consistency", "\xff")]),
    "two levels": ({"consistency": "local"}, [("X-Consistency", "leader")]),
    "two headers": ({}, [("X-Consistency", "local"), ("X-Consistency", "linearizable")]),
    "a good parameter and a bad header": ({"consistency": "leader"}, [("X-Consistency", "none")]),
}


@pytest.mark.parametrize("path", ["/sparql", "/data"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_level_that_is_none(client: httpx.Client, backend: LateBackend, path: str, case: str) -> None:
    parameters, headers = REFUSED[case]
    backend.peers.reached.clear()
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    answer = client.get(path, params={"query": CHEAP, **parameters}, headers=raw)
    assert answer.status_code == 400
    assert "consistency" in error_of(answer).lower()
    assert backend.peers.reached == []


@pytest.mark.parametrize("path", ["/sparql", "/data"])
def test_a_level_given_twice(client: httpx.Client, path: str) -> None:
    answer = client.get(f"{path}?query=ASK{{}}&consistency=leader&consistency=leader")
    assert (answer.status_code, "2 times" in error_of(answer)) == (400, True)


# That it is reached before anything is answered


def elsewhere(backend: LateBackend, text: str) -> None:
    backend.confirmed_elsewhere.append(text)


@pytest.mark.parametrize("query", [CHEAP, NOT_CHEAP])
def test_a_query_sees_what_was_confirmed_elsewhere(
    client: httpx.Client, backend: LateBackend, query: str
) -> None:
    elsewhere(backend, "INSERT DATA { <http://x/s> <http://x/p> 1 }")
    asked = {"query": query, "format": "csv"}
    assert client.get("/sparql", params=asked).text == "o\r\n"
    answer = client.get("/sparql", params={**asked, "consistency": "linearizable"})
    assert answer.text == "o\r\n1\r\n"
    assert answer.headers["x-snapshot-index"] == str(backend.snapshot_index())


def test_neither_the_cache_nor_a_tag_hides_it(client: httpx.Client, backend: LateBackend) -> None:
    asked = {"query": NOT_CHEAP, "format": "csv"}
    headers = {"If-None-Match": client.get("/sparql", params=asked).headers["etag"]}
    assert client.get("/sparql", params=asked, headers=headers).status_code == 304
    elsewhere(backend, "INSERT DATA { <http://x/s> <http://x/p> 2 }")
    level = {"X-Consistency": "linearizable"}
    answer = client.get("/sparql", params=asked, headers=headers | level)
    assert (answer.status_code, answer.text) == (200, "o\r\n2\r\n")
    elsewhere(backend, "DELETE DATA { <http://x/s> <http://x/p> 2 }")
    assert client.get("/sparql", params=asked, headers=level).text == "o\r\n"


def test_an_unchanged_state_is_still_not_sent_again(client: httpx.Client) -> None:
    asked = {"query": NOT_CHEAP, "consistency": "linearizable"}
    tag = client.get("/sparql", params=asked).headers["etag"]
    assert client.get("/sparql", params=asked, headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_graph_that_was_made_elsewhere(client: httpx.Client, backend: LateBackend, method: str) -> None:
    elsewhere(backend, "INSERT DATA { GRAPH <http://x/g> { <http://x/s> <http://x/p> 3 } }")
    assert client.request(method, GRAPH).status_code == 404
    answer = client.request(method, GRAPH, headers={"X-Consistency": "leader"})
    assert answer.status_code == 200
    assert answer.headers["x-snapshot-index"] == str(backend.snapshot_index())
    tag = {"If-None-Match": answer.headers["etag"]}
    elsewhere(backend, "INSERT DATA { GRAPH <http://x/g> { <http://x/s> <http://x/p> 4 } }")
    assert client.request(method, GRAPH, headers=tag).status_code == 304
    assert client.request(method, f"{GRAPH}&consistency=linearizable", headers=tag).status_code == 200


# An index too, and the time limit of both


@pytest.mark.parametrize("path", ["/sparql", "/data"])
def test_an_index_is_waited_for_too(client: httpx.Client, backend: LateBackend, path: str) -> None:
    elsewhere(backend, "INSERT DATA { <http://x/s> <http://x/p> 5 }")
    index = backend.snapshot_index() + 1
    asked = {"query": CHEAP, "min_index": str(index), "consistency": "leader"}
    answer = client.get(path, params=asked)
    assert (answer.status_code, answer.headers["x-snapshot-index"]) == (200, str(index))
    assert levels(backend) == ["leader"]
    assert len(backend.waited_s) == 1


@pytest.mark.parametrize("path", ["/sparql", "/data"])
def test_both_waits_share_the_time_limit(client: httpx.Client, backend: LateBackend, path: str) -> None:
    backend.reaching_s = 0.5
    asked = {"query": CHEAP, "consistency": "leader", "min_index": "1000000"}
    for took in quick_enough(TIME_LIMIT_S + 0.4):
        backend.waited_s.clear()
        with took:
            answer = client.get(path, params=asked)
        assert took.seconds > TIME_LIMIT_S * 0.9
        assert answer.status_code == 503
        [waited_s] = backend.waited_s
        assert waited_s < TIME_LIMIT_S - 0.4


def test_the_clients_time_limit(client: httpx.Client, backend: LateBackend) -> None:
    began = time.monotonic()
    client.get("/sparql", params={"query": CHEAP, "consistency": "leader", "timeout": "0.5"})
    [(_, left_s)] = backend.peers.reached
    assert 0.5 - (time.monotonic() - began) < left_s <= 0.5


# Failures

FAILURES = [
    NotLeader("no node leads the cluster now", 2),
    IndexNotReached("the leader is at index 9, this node at 7"),
    UnavailableError("a majority of the nodes cannot be reached", 3),
]


@pytest.mark.parametrize("path", ["/sparql", "/data"])
@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_level_that_cannot_be_reached(
    client: httpx.Client, backend: LateBackend, path: str, error: UnavailableError
) -> None:
    backend.peers.error = error
    answer = client.get(path, params={"query": CHEAP, "consistency": "linearizable"})
    assert (answer.status_code, error_of(answer)) == (503, str(error))
    assert answer.headers["retry-after"] == str(error.retry_after_s)
    assert answer.headers["x-snapshot-index"] == str(backend.snapshot_index())
    assert client.get(path, params={"query": CHEAP}).status_code == 200
