"""Transactions over HTTP in a cluster: each lives on one node, and the others pass on what they are asked."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from serve.graph.rdf4j.peer_requests import PeerRequests
from serve.graph_app import build_app
from tests.support.clustered_shards import Nodes, nodes
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

ROOT = "/repositories/graphdb"
TURTLE = {"Content-Type": "text/turtle"}
BODY = "<urn:a> <urn:p> 1, 2 ."


@asynccontextmanager
async def three(directory: Path) -> AsyncIterator[tuple[Nodes, dict[int, httpx.AsyncClient]]]:
    """Three nodes, and a client of each."""
    async with nodes(directory, 1, 2, 3) as made, AsyncExitStack() as stack:
        await made.start(1, 2, 3)
        clients = {}
        for number, shard in made.shards.items():
            transport = httpx.ASGITransport(build_app(shard, made.logs.settings(number)))
            client = httpx.AsyncClient(transport=transport, base_url=f"http://node{number}", timeout=HANG_S)
            clients[number] = await stack.enter_async_context(client)
        yield made, clients


async def begin(client: httpx.AsyncClient) -> str:
    """The path of a new one."""
    answer = await client.post(f"{ROOT}/transactions")
    assert answer.status_code == 201, answer.text
    return httpx.URL(answer.headers["location"]).path


async def act(client: httpx.AsyncClient, path: str, action: str, **options: Any) -> httpx.Response:
    return await client.put(path, params={"action": action, **options.pop("params", {})}, **options)


async def test_each_node_passes_on_what_is_asked_about_others_transactions(tmp_path: Path) -> None:
    async with three(tmp_path) as (_, clients):
        path = await begin(clients[2])
        assert path.startswith(f"{ROOT}/transactions/2-")
        added = await act(clients[1], path, "ADD", content=BODY, headers=TURTLE)
        assert (added.status_code, added.content) == (200, b"")
        for number in (1, 2, 3):
            found = await act(clients[number], path, "GET", headers={"Accept": "application/n-triples"})
            assert found.headers["content-type"].startswith("application/n-triples")
            assert len(found.text.splitlines()) == 2
        refused = await act(clients[1], path, "ADD", content="<urn:a> nonsense", headers=TURTLE)
        assert (refused.status_code, refused.text.partition(":")[0]) == (400, "MALFORMED DATA")
        committed = await act(clients[3], path, "COMMIT")
        assert committed.status_code == 200, committed.text
        assert int(committed.headers["x-snapshot-index"]) > 0
        for number in (1, 2, 3):
            assert (await act(clients[number], path, "PING")).status_code == 404


async def test_rollback_and_what_never_was(tmp_path: Path) -> None:
    async with three(tmp_path) as (made, clients):
        path = await begin(clients[1])
        ended = await clients[2].delete(path)
        assert (ended.status_code, ended.content) == (204, b"")
        assert (await clients[3].delete(path)).status_code == 404
        for number, status in (("1", 404), ("9", 503), ("0", 503), ("12345678901", 404)):
            answer = await act(clients[2], f"{ROOT}/transactions/{number}-ab", "PING")
            assert answer.status_code == status, answer.text
        path = await begin(clients[3])
        await made.stop(3)
        assert (await act(clients[1], path, "PING")).status_code == 503


async def test_an_answer_that_is_too_long_to_be_passed_on_is_refused(tmp_path: Path) -> None:
    async with three(tmp_path) as (made, clients):
        path = await begin(clients[1])
        await act(clients[1], path, "ADD", content=BODY, headers=TURTLE)
        app = build_app(made.shards[1], made.logs.settings(1))
        made.shards[1].transactions.serve_others(PeerRequests(app, "http", 30).perform)
        refused = await act(clients[2], path, "GET")
        assert refused.status_code == 400
        assert "node 1" in refused.text
        assert (await act(clients[1], path, "GET")).status_code == 200
