"""What is noted of requests on both ports, and what is not."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from actors.access.audit_file import AuditFile
from graphdb.config import Settings
from serve.access.access_backend import AccessBackend
from serve.graph_app import build_app
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_graph import MemoryGraph
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import KEYS, basic, key, settings_of, token

PROXIES = {"trusted_proxies": ["127.0.0.0/8"]}
SECRETS = (*KEYS.values(), "of writer", "of admin", "wrong one")


@dataclass
class Noted:
    """Both ports, over one file."""

    graph: httpx.Client
    search: httpx.Client


def noted(
    directory: Path, ask: Callable[[Noted], None], audit: dict[str, Any] | None = None, **changed: Any
) -> list[dict[str, Any]]:
    """What is in the file once ask has been asked, in the order of the requests: a line is written when all
    of an answer has been sent, and the next request may come before.
    """
    numbers = itertools.count()
    hooks = {"request": [lambda request: request.headers.setdefault("X-Opaque-Id", str(next(numbers)))]}
    plain = settings_of(directory, PROXIES, **changed).model_dump()
    settings = Settings.model_validate({**plain, "audit": {"enabled": True, **(audit or {})}})
    path = directory / "audit.log"

    @contextmanager
    def running() -> Iterator[Noted]:
        backends = [AccessBackend(audit=AuditFile(path, settings.audit)) for _ in range(2)]
        graph_of_search = MemoryGraph("INSERT DATA { <urn:a> <urn:p> 1 }")
        with (
            serving(build_app(MemoryBackend(), settings, backends[0])) as graph,
            serving(build_search_app(MemorySearch(graph_of_search), settings, backends[1])) as search,
            httpx.Client(base_url=graph, trust_env=False, timeout=HANG_S, event_hooks=hooks) as graph_client,
            httpx.Client(
                base_url=search, trust_env=False, timeout=HANG_S, event_hooks=hooks
            ) as search_client,
        ):
            yield Noted(graph_client, search_client)

    with running() as ports:
        ask(ports)
    text = path.read_text()
    assert not [secret for secret in SECRETS if secret in text]
    lines = [json.loads(line) for line in text.splitlines()]
    return sorted(lines, key=lambda line: int(line["client_id"] or 0) if line["event"] == "request" else 0)


def test_a_write(tmp_path: Path) -> None:
    text = "PREFIX g: <urn:g:> INSERT DATA { GRAPH g:one { <urn:a> <urn:secret> 1 } } ;"
    text += "CLEAR SILENT GRAPH <urn:two>"
    told: dict[str, str] = {}

    def ask(ports: Noted) -> None:
        headers = {**key("writer"), "X-Forwarded-For": "203.0.113.9", "X-Opaque-Id": "4711"}
        answer = ports.graph.post("/update?x=y", data={"update": text}, headers=headers)
        assert answer.status_code == 200
        told["id"] = answer.headers["x-request-id"]

    (line,) = noted(tmp_path, ask)
    assert line.pop("time").endswith("Z")
    assert 0 < line.pop("duration_ms") < 30_000
    assert line == {
        "event": "request",
        "id": told["id"],
        "client_id": "4711",
        "port": "graph",
        "address": "203.0.113.9",
        "principal": "writer",
        "provider": "api_key",
        "method": "POST",
        "path": "/update",
        "route": "/update",
        "permission": "Write",
        "graphs": ["urn:g:one", "urn:two"],
        "indexes": [],
        "status": 200,
        "reason": None,
    }


def test_graphs_that_are_read(tmp_path: Path) -> None:
    text = (
        "SELECT * FROM <urn:from> FROM NAMED <urn:named> { GRAPH <urn:in> { ?s ?p ?o } GRAPH ?g { ?s ?p 1 } }"
    )

    def ask(ports: Noted) -> None:
        for _ in range(2):  # the second is remembered
            assert (
                ports.graph.get("/sparql", params={"query": text}, headers=key("reader")).status_code == 200
            )
        form = {"query": "ASK {}", "default-graph-uri": "urn:of-form"}
        assert ports.graph.post("/sparql", data=form, headers=key("reader")).status_code == 200
        ports.graph.get("/data", params={"graph": "urn:whole"}, headers=key("reader"))
        metrics = ports.graph.get("/metrics", headers=key("reader")).text
        assert "service_service_audit_lines_dropped_total 0.0" in metrics

    found = noted(tmp_path, ask)
    assert [line["graphs"] for line in found] == [
        ["urn:from", "urn:named", "urn:in"],
        ["urn:from", "urn:named", "urn:in"],
        ["urn:of-form"],
        ["urn:whole"],
        [],
    ]
    assert [line["status"] for line in found] == [200, 200, 200, 404, 200]


def test_indexes(tmp_path: Path) -> None:
    def ask(ports: Noted) -> None:
        ports.search.put("/books", headers=basic("admin"))
        ports.search.put("/books/_doc/1", json={"a": 1}, headers=token("writer"))
        ports.search.get("/books,films*/_search", headers=key("reader"))
        ports.search.delete("/books", headers=key("writer"))

    found = noted(tmp_path, ask)
    assert [(line["principal"], line["provider"]) for line in found] == [
        ("admin", "basic"),
        ("writer", "jwt"),
        ("reader", "api_key"),
        ("writer", "api_key"),
    ]
    assert [line["indexes"] for line in found] == [["books"], ["books"], ["books,films*"], ["books"]]
    assert [line["route"] for line in found] == [
        "/{index}",
        "/{index}/_doc/{id}",
        "/{index}/_search",
        "/{index}",
    ]
    assert [line["permission"] for line in found] == ["Admin", "Write", "Read", "Admin"]
    assert found[-1]["status"] == 403
    assert found[-1]["reason"] == "writer does not have the permission Admin, which this needs"


@pytest.mark.parametrize("port", ["graph", "search"])
def test_who_is_refused(tmp_path: Path, port: str) -> None:
    def ask(ports: Noted) -> None:
        client = getattr(ports, port)
        assert client.get("/").status_code == 401
        assert client.get("/", headers=key("stranger")).status_code == 403
        assert client.get("/", headers=basic("admin", "wrong one")).status_code == 401
        assert client.get("/", headers={"Authorization": "Bearer wrong one"}).status_code == 401
        assert client.get("/", headers=key("admin")).status_code == 429

    found = noted(tmp_path, ask, rate_limiting={"max_attempts": 2})
    assert [(line["status"], line["principal"]) for line in found] == [
        (401, None),
        (403, "stranger"),
        (401, None),
        (401, None),
        (429, None),
    ]
    assert all(line["reason"] for line in found)
    assert {line["address"] for line in found} == {"127.0.0.1"}


def test_nobody_forges_a_line(tmp_path: Path) -> None:
    def ask(ports: Noted) -> None:
        ports.graph.get("/%0A%7B%22event%22:%22forged%22%7D", headers=key("reader"))
        ports.graph.get("/data", params={"graph": 'urn:x"\n{"event":"forged"}\u2028'}, headers=key("reader"))

    found = noted(tmp_path, ask)
    assert [line["event"] for line in found] == ["request"] * 2
    assert found[1]["graphs"] == ['urn:x"\n{"event":"forged"}\u2028']


def test_reads_that_succeed_may_be_left_out(tmp_path: Path) -> None:
    def ask(ports: Noted) -> None:
        for port in (ports.graph, ports.search):
            port.get("/", headers=key("reader"))
            port.get("/nothing/at/all/here", headers=key("reader"))
        ports.graph.post("/update", data={"update": "CLEAR ALL"}, headers=key("writer"))

    found = noted(tmp_path, ask, {"reads": False})
    assert [(line["port"], line["status"]) for line in found] == [
        ("graph", 404),
        ("search", 400),
        ("graph", 200),
    ]


def test_without_authentication_everyone_is_noted(tmp_path: Path) -> None:
    def ask(ports: Noted) -> None:
        ports.graph.post("/update", data={"update": "CLEAR ALL"})
        ports.graph.get("/")

    found = noted(tmp_path, ask, {"reads": False}, enabled=False)
    assert [(line["principal"], line["permission"]) for line in found] == [("everyone", "Write")]


def test_sockets(tmp_path: Path) -> None:
    def ask(ports: Noted) -> None:
        url = str(ports.graph.base_url).replace("http", "ws").rstrip("/")
        with connect(f"{url}/ws", proxy=None) as socket:
            for members in ({"api_key": "wrong one"}, {"api_key": KEYS["reader"]}):
                socket.send(json.dumps({"id": 1, "method": "signin", "params": [members]}))
                socket.recv()
            socket.send(json.dumps({"id": 2, "method": "query", "params": ["LIVE SELECT * FROM <urn:T>"]}))
            socket.recv()
        with pytest.raises(InvalidStatus):
            connect(f"{url}/ws?api_key=wrong%20one", proxy=None)
        with connect(
            f"{url}/graphql/ws?api_key={KEYS['writer']}",
            subprotocols=[Subprotocol("graphql-transport-ws")],
            proxy=None,
        ):
            pass

    # a socket may end after the next one has begun
    found = noted(tmp_path, ask)
    begun = list(dict.fromkeys(line["id"] for line in found))
    found.sort(key=lambda line: begun.index(line["id"]))
    kinds = [(line["event"], line["path"], line["principal"], line["status"]) for line in found]
    assert kinds == [
        ("socket", "/ws", None, 101),
        ("sign_in", "/ws", None, 101),
        ("sign_in", "/ws", "reader", 101),
        ("operation", "/ws", "reader", 101),
        ("socket_end", "/ws", "reader", 101),
        ("request", "/ws", None, 401),
        ("socket", "/graphql/ws", "writer", 101),
        ("socket_end", "/graphql/ws", "writer", 101),
    ]
    assert [line.get("outcome") for line in found[1:3]] == ["refused", "ok"]
    assert len({line["id"] for line in found[:5]}) == 1
