"""How the processes of a node, and other nodes, come in where authentication is on: for somebody."""

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from graphdb.access.permissions import Permission
from graphdb.access.principal import NODE, Principal
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import UnavailableError
from graphdb.search.errors import SearchError
from serve.graph_app import build_app
from serve.port.listen import Listen
from serve.port.server import PortServer
from serve.search.frame.peer_requests import PeerRequests
from serve.search.graph.local_graph import LocalGraph
from serve.search_app import build_search_app
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_search import MemorySearch
from tests.support.service import free_port
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import settings_of

READER = Principal(
    "rea\u20acder", "jwt", frozenset({"reader"}), permission=Permission.READ, visibility=FULL_VISIBILITY
)
STRANGER = Principal("stranger", "jwt", frozenset({"stranger"}))


@pytest.fixture
def socket_path() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:  # a socket's path is short; pytest's are not
        yield f"{directory}/graph.sock"


@pytest.fixture
def port(socket_path: str, tmp_path: Path) -> Iterator[int]:
    class Hosted:
        speaks_websocket = True

        def __init__(self) -> None:
            self.app = build_app(MemoryBackend(), settings_of(tmp_path))

        async def start(self) -> None:
            pass

        async def close(self) -> None:
            pass

    async def host() -> Hosted:
        return Hosted()

    number = free_port()
    server = PortServer(Listen("127.0.0.1", number), host, socket_path)
    assert server.ready.wait(HANG_S)
    yield number
    server.stop(10)


async def asked(socket_path: str, principal: Principal) -> Any:
    graph = LocalGraph(socket_path, 5)
    try:
        return (await graph.acting_for(principal).select("ASK {}"))["boolean"]
    finally:
        await graph.close()


@pytest.mark.usefixtures("port")
def test_somebody_may_have_more_roles_than_fit_into_headers_elsewhere(socket_path: str) -> None:
    roles = frozenset(f"cn=role-{number},ou=roles,dc=example" for number in range(5_000))
    assert asyncio.run(asked(socket_path, replace(READER, roles=roles))) is True


@pytest.mark.usefixtures("port")
def test_the_socket_asks_for_somebody(socket_path: str) -> None:
    assert asyncio.run(asked(socket_path, READER)) is True
    assert asyncio.run(asked(socket_path, NODE)) is True
    with pytest.raises(SearchError, match="stranger does not have the permission Read") as raised:
        asyncio.run(asked(socket_path, STRANGER))
    assert (raised.value.kind, raised.value.status) == ("security_exception", 403)


@pytest.mark.usefixtures("port")
@pytest.mark.parametrize("headers", [[], [("X-Graphdb-Principal", "x")], [("X-Graphdb-Principal", "[]")]])
def test_the_socket_refuses_who_asks_for_nobody(socket_path: str, headers: list[tuple[str, str]]) -> None:
    transport = httpx.HTTPTransport(uds=socket_path)
    with httpx.Client(transport=transport, base_url="http://graph") as client:
        assert client.get("/health", headers=headers).status_code == 401


def test_the_port_believes_none_of_it(port: int) -> None:
    headers = {"X-Graphdb-Principal": NODE.to_json()}
    answer = httpx.get(f"http://127.0.0.1:{port}/health", headers=headers, trust_env=False)
    assert answer.status_code == 401
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"


def test_another_node_asks_for_somebody(tmp_path: Path) -> None:
    peers = PeerRequests(build_search_app(MemorySearch(), settings_of(tmp_path)))

    def status(method: str, path: str, *principal: str) -> int:
        head = orjson.dumps([method, path, {}, *principal])
        return int(asyncio.run(peers.perform(head + b"\n{}")).partition(b"\n")[0])

    assert status("POST", "/_search", READER.to_json()) == 200
    assert status("PUT", "/books", READER.to_json()) == 403
    assert status("POST", "/_search", STRANGER.to_json()) == 403
    assert status("POST", "/_search", "x") == 401
    with pytest.raises(UnavailableError):
        status("POST", "/_search")
