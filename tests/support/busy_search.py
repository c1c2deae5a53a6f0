"""Search nodes with a process beside them, which searches as soon as two searches are there at a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import uvicorn
from uvicorn.server import ServerState

from actors.search import search_processes
from actors.search.open_search import SearchConfig
from actors.search.search_node import SearchNode
from graphdb.config import Settings
from serve.port.protocol import PortProtocol
from serve.search.searching import connection_load
from serve.search.searching.quick_searches import QuickSearches
from serve.search_app import build_search_app
from tests.support.search_nodes import indexed, open_node
from tests.support.timing import HANG_S

__all__ = ["Ask", "BusyPort", "busy_node", "busy_port", "processes_of", "until_handed_on"]

Ask = Callable[..., Awaitable[tuple[int, Any]]]
"""Search by a body, in `books` or another index: the status, and the answer but for `took`."""

_MATCH = {"query": {"match": {"title": "book 7"}}}


@asynccontextmanager
async def busy_node(
    directory: Path, patch: pytest.MonkeyPatch, documents: int, config: SearchConfig | None = None
) -> AsyncIterator[tuple[SearchNode, Ask]]:
    """The node, and how it is asked without a port. It has `books`: so many, and one more in no file."""
    patch.setattr(search_processes, "_BUSY", 1)
    patch.setattr(search_processes, "_BUSY_S", HANG_S)
    patch.setattr(search_processes, "_BUSY_LEAST_S", 0.0)
    patch.setattr(search_processes, "_FREE", -1.0)  # however busy the machine is
    async with open_node(directory, config) as node:
        await node.write([indexed(number) for number in range(documents)], "true")
        await node.flush()
        await node.write([indexed(documents)], "true")
        transport = httpx.ASGITransport(build_search_app(node, Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
            node.search_beside(1, "serve.deployments.search_process")
            yield node, _asking(client)


def _asking(client: httpx.AsyncClient) -> Ask:
    async def ask(body: dict[str, Any], index: str = "books") -> tuple[int, Any]:
        cached = body.get("size") == 0 and str(client.base_url) == "http://node"
        parameters = {"request_cache": "false"} if cached else {}
        answer = await client.post(f"/{index}/_search", json=body, params=parameters)
        whole = answer.json()
        whole.pop("took", None)
        return answer.status_code, whole

    return ask


def processes_of(node: SearchNode) -> search_processes.SearchProcesses:
    """They have to be there."""
    assert node.helpers is not None
    return node.helpers


async def until_handed_on(node: SearchNode, ask: Ask, index: str = "books") -> None:
    """Return when a process has answered a search of an index of now."""
    processes = processes_of(node)
    before = processes.searches
    async with asyncio.timeout(HANG_S):
        while processes.searches == before:
            await asyncio.gather(*(ask(_MATCH, index) for _ in range(4)))


class BusyPort:
    """A port of a node, at this event loop, which lends connections as soon as there are two."""

    def __init__(self, node: SearchNode, client: httpx.AsyncClient) -> None:
        self._node = node
        self.client = client
        self.search = _asking(client)
        self.answered = 0  # searches, by processes on connections that they have borrowed

    async def until_lent(self, body: dict[str, Any] = _MATCH, index: str = "books") -> None:
        """Return when a process has answered such searches, and has connections."""
        before = self.answered
        async with asyncio.timeout(HANG_S):
            while not processes_of(self._node).lent or self.answered == before:
                await asyncio.gather(*(self.search(body, index) for _ in range(6)))


@asynccontextmanager
async def busy_port(node: SearchNode, patch: pytest.MonkeyPatch) -> AsyncIterator[BusyPort]:
    """Of a node of `busy_node`."""
    patch.setattr(connection_load, "_BUSY", -1.0)
    patch.setattr(connection_load, "_LOOKED_AT_S", 0.02)
    patch.setattr(connection_load, "_AGAIN_S", 0.0)
    app = build_search_app(node, Settings())
    config = uvicorn.Config(app, http=PortProtocol, lifespan="off", log_level="critical", proxy_headers=False)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: PortProtocol(config, state, {}), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    note = QuickSearches._note_lent
    try:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=HANG_S) as client:
            port = BusyPort(node, client)

            def counted(self: QuickSearches, done: bytes) -> None:
                port.answered += orjson.loads(done)[1]
                note(self, done)

            patch.setattr(QuickSearches, "_note_lent", counted)
            yield port
    finally:
        server.close()
