"""Transactions as requests, of a real node behind the application: actions, permissions, many at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyoxigraph import NamedNode, Quad

from graphdb.access.api_keys import key_digest
from graphdb.config import Settings
from graphdb.rdf.binary import write_binary_quads
from serve.graph_app import build_app
from tests.support.shards import open_shard
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

ROOT = "/repositories/graphdb"
TURTLE = {"Content-Type": "text/turtle"}
BINARY = {"Content-Type": "application/x-binary-rdf"}
A = "<urn:a> <urn:p> <urn:b> ."
WILDCARD = NamedNode("http://www.openrdf.org/schema/sesame#wildcard")
NIL = NamedNode("http://rdf4j.org/schema/rdf4j#nil")


@asynccontextmanager
async def served(directory: Path, **sections: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with open_shard(directory, **sections) as shard:
        settings = Settings.model_validate(
            {**sections, "server": {"data_dir": directory, **sections.get("server", {})}}
        )
        transport = httpx.ASGITransport(build_app(shard, settings))
        async with httpx.AsyncClient(transport=transport, base_url="http://node", timeout=HANG_S) as client:
            yield client


async def begin(client: httpx.AsyncClient, **options: Any) -> str:
    answer = await client.post(f"{ROOT}/transactions", **options)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


async def act(client: httpx.AsyncClient, address: str, action: str, status: int = 200, **options: Any) -> str:
    parameters = {"action": action, **options.pop("params", {})}
    answer = await client.put(address, params=parameters, **options)
    assert answer.status_code == status, answer.text
    return answer.text


async def test_all_actions(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        level = {"isolation-level": "http://www.openrdf.org/schema/sesame#SNAPSHOT"}
        address = await begin(client, data=level)
        await act(client, address, "ADD", content=A, headers=TURTLE)
        await act(
            client, address, "ADD", content=A, headers=TURTLE, params={"context": ["<urn:g>", "<urn:h>"]}
        )
        assert await act(client, address, "SIZE") == "3"
        assert await act(client, address, "SIZE", params={"context": "<urn:g>"}) == "1"
        await act(client, address, "UPDATE", params={"update": "INSERT DATA { <urn:x> <urn:q> 1 }"})
        await act(client, address, "UPDATE", content="DELETE WHERE { <urn:none> ?p ?o }")
        found = await act(client, address, "GET", params={"pred": "<urn:q>"})
        assert found.startswith("<urn:x>")
        ask = {"query": "ASK { <urn:a> ?p ?o }"}
        assert "true" in await act(client, address, "QUERY", params=ask)
        assert "true" in await act(client, address, "QUERY", content=ask["query"])
        assert (await client.get(f"{ROOT}/size")).text == "0"

        async def delete(*quads: Quad) -> None:
            body = b"".join(write_binary_quads(quads))
            await act(client, address, "DELETE", content=body, headers=BINARY)

        await delete(Quad(NamedNode("urn:a"), WILDCARD, WILDCARD, NIL))
        assert await act(client, address, "SIZE") == "3"
        await delete(Quad(NamedNode("urn:a"), WILDCARD, WILDCARD, NamedNode("urn:g")))
        assert await act(client, address, "SIZE") == "2"
        await delete(Quad(NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b")))
        assert await act(client, address, "SIZE") == "1"
        assert int(await act(client, address, "PING")) == 60_000
        assert (await client.post(address, params={"action": "PING"})).text == "60000"
        await act(client, address, "PREPARE")
        await act(client, address, "COMMIT")
        assert (await client.get(f"{ROOT}/size")).text == "1"
        await act(client, address, "SIZE", 404)
        assert (await client.delete(address)).status_code == 404


async def test_what_is_refused_leaves_the_transaction_as_it_was(tmp_path: Path) -> None:
    async with served(tmp_path, repository={"max_transaction_quads": 5}) as client:
        address = await begin(client)
        await act(client, address, "ADD", content=A, headers=TURTLE)
        many = "".join(f"<urn:{number}> <urn:p> 1 ." for number in range(9))
        refused: list[tuple[str, int, dict[str, Any]]] = [
            ("ADD", 400, {"content": f"{A} broken", "headers": TURTLE}),
            ("ADD", 400, {"content": b"BRDF\x00\x00\x00\x02", "headers": BINARY}),
            ("ADD", 415, {"content": A, "headers": {"Content-Type": "image/png"}}),
            ("ADD", 400, {"content": many, "headers": TURTLE}),
            ("UPDATE", 400, {"content": "INSERT"}),
            ("UPDATE", 400, {"content": "LOAD <http://localhost/>"}),
            ("UPDATE", 400, {"content": f"INSERT DATA {{ {many} }}"}),
            ("QUERY", 400, {"content": "SELECT"}),
            ("GET", 400, {"params": {"subj": "x"}}),
            ("DANCE", 400, {}),
        ]
        for action, status, options in refused:
            await act(client, address, action, status, **options)
        assert await act(client, address, "SIZE") == "1"
        assert (await client.post(f"{ROOT}/transactions?isolation-level=LOUD")).status_code == 400
        await act(client, address, "COMMIT")
        assert (await client.get(f"{ROOT}/size")).text == "1"


async def test_who_may_do_what(tmp_path: Path) -> None:
    keys = [
        {"name": name, "key_sha256": key_digest(name), "roles": [role]}
        for name, role in (("ada", "reader"), ("bob", "reader"), ("eve", "writer"))
    ]
    access = {"enabled": True, "api_keys": keys}
    async with served(tmp_path, authentication=access, authorization={}) as client:
        ada, bob, eve = ({"X-API-Key": name} for name in ("ada", "bob", "eve"))
        assert (await client.post(f"{ROOT}/transactions")).status_code == 401
        reading = await begin(client, headers=ada)
        assert await act(client, reading, "SIZE", headers=ada) == "0"
        for action in ("ADD", "DELETE"):
            await act(client, reading, action, 403, content=A, headers=ada | TURTLE)
        await act(client, reading, "UPDATE", 403, content="DROP ALL", headers=ada)
        for stranger in (bob, eve):
            await act(client, reading, "SIZE", 404, headers=stranger)
            assert (await client.delete(reading, headers=stranger)).status_code == 404
        await act(client, reading, "COMMIT", headers=ada)
        writing = await begin(client, headers=eve)
        await act(client, writing, "ADD", content=A, headers=eve | TURTLE)
        await act(client, writing, "COMMIT", headers=eve)
        assert (await client.get(f"{ROOT}/size", headers=ada)).text == "1"
        assert (await client.put(f"{ROOT}/namespaces/a", content="urn:a:", headers=ada)).status_code == 403


async def test_a_thousand_begins_are_bounded_and_leave_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, repository={"max_transactions": 20}) as client:
        answers = await asyncio.gather(*(client.post(f"{ROOT}/transactions") for _ in range(1_000)))
        begun = [answer.headers["location"] for answer in answers if answer.status_code == 201]
        refused = [answer for answer in answers if answer.status_code == 503]
        assert (len(begun), len(refused)) == (20, 980)
        assert all(answer.headers["retry-after"] for answer in refused)
        for address in begun:
            await act(client, address, "ADD", content=A, headers=TURTLE)
        for address in begun[:4]:
            assert await act(client, address, "SIZE") == "1"
        for address in begun:
            assert (await client.delete(address)).status_code == 204
        await client.post("/update", data={"update": "INSERT DATA { <urn:x> <urn:p> 1 }"})
        for _ in range(200):
            left = {path.name for path in (tmp_path / "scratch").iterdir()}
            if not any(name.startswith("transaction-") for name in left) and len(left) <= 1:
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError(left)
        assert len([await begin(client) for _ in range(20)]) == 20
