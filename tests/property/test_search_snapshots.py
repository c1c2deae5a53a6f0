"""Snapshots against a naive twin: indexes changed, kept, restored and deleted in a random order."""

import asyncio
import tempfile
from random import Random
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from serve.search_app import build_search_app
from tests.support.memory_search import MemorySearch

STEPS = 60
NAMES, SNAPSHOTS, IDS = ("a", "b", "c"), ("x", "y"), 8

Documents = dict[str, tuple[int, Any]]  # version and source by _id


class World:
    """A node, and what it should have: documents by index, whether it is closed, and by snapshot the same."""

    def __init__(self, http: httpx.AsyncClient, random: Random) -> None:
        self.http, self.random = http, random
        self.indexes: dict[str, Documents] = {}
        self.closed: set[str] = set()
        self.kept: dict[str, dict[str, Documents]] = {}
        self.versions: dict[tuple[str, str], int] = {}  # of what was deleted, as an index counts on

    async def call(self, method: str, path: str, body: Any = None) -> int:
        answer = await self.http.request(method, path, json=body)
        return answer.status_code

    async def step(self) -> None:
        weights = {self.write: 6, self.delete: 2, self.drop: 1, self.close: 2, self.open: 1}
        weights |= {self.keep: 2, self.restore: 4, self.restore_beside: 1, self.forget: 1}
        (chosen,) = self.random.choices(list(weights), list(weights.values()))
        await chosen()

    async def write(self) -> None:
        name, doc_id = self.random.choice(NAMES), str(self.random.randrange(IDS))
        source = {"n": self.random.randrange(1000)}
        status = await self.call("PUT", f"/{name}/_doc/{doc_id}", source)
        if name in self.closed:
            assert status == 400
            return
        assert status in (200, 201)
        documents = self.indexes.setdefault(name, {})
        version = documents[doc_id][0] if doc_id in documents else self.versions.pop((name, doc_id), 0)
        documents[doc_id] = version + 1, source

    async def delete(self) -> None:
        name, doc_id = self.random.choice(NAMES), str(self.random.randrange(IDS))
        if name in self.closed or doc_id not in self.indexes.get(name, {}):
            return
        assert await self.call("DELETE", f"/{name}/_doc/{doc_id}") == 200
        self.versions[name, doc_id] = self.indexes[name].pop(doc_id)[0] + 1

    def gone(self, name: str) -> None:
        self.indexes.pop(name, None)
        self.closed.discard(name)
        self.versions = {key: version for key, version in self.versions.items() if key[0] != name}

    async def drop(self) -> None:
        name = self.random.choice(NAMES)
        assert await self.call("DELETE", f"/{name}") == (200 if name in self.indexes else 404)
        self.gone(name)

    async def close(self) -> None:
        name = self.random.choice(NAMES)
        assert await self.call("POST", f"/{name}/_close") == (200 if name in self.indexes else 404)
        self.closed |= {name} & self.indexes.keys()

    async def open(self) -> None:
        name = self.random.choice(NAMES)
        assert await self.call("POST", f"/{name}/_open") == (200 if name in self.indexes else 404)
        self.closed.discard(name)

    async def keep(self) -> None:
        name = self.random.choice(SNAPSHOTS)
        status = await self.call("PUT", f"/_snapshot/r/{name}?wait_for_completion=true")
        assert status == (400 if name in self.kept else 200)
        self.kept.setdefault(name, {index: dict(one) for index, one in self.indexes.items()})

    async def restore(self) -> None:
        """In the place of what is closed or not there; all of the snapshot or nothing."""
        name = self.random.choice(SNAPSHOTS)
        path = f"/_snapshot/r/{name}/_restore?wait_for_completion=true"
        status = await self.call("POST", path)
        if name not in self.kept:
            assert status == 404
        elif self.kept[name].keys() & (self.indexes.keys() - self.closed):
            assert status == 500
        else:
            assert status == 200
            for index, documents in self.kept[name].items():
                self.gone(index)
                self.indexes[index] = dict(documents)

    async def restore_beside(self) -> None:
        name = self.random.choice(SNAPSHOTS)
        path = f"/_snapshot/r/{name}/_restore?wait_for_completion=true"
        body = {"rename_pattern": "(.+)", "rename_replacement": "new-$1"}
        assert await self.call("POST", path, body) == (200 if name in self.kept else 404)
        for index, documents in self.kept.get(name, {}).items():
            assert await self.found(f"new-{index}") == documents
            assert await self.call("DELETE", f"/new-{index}") == 200

    async def forget(self) -> None:
        name = self.random.choice(SNAPSHOTS)
        assert await self.call("DELETE", f"/_snapshot/r/{name}") == (200 if name in self.kept else 404)
        self.kept.pop(name, None)

    async def found(self, name: str) -> Documents:
        await self.call("POST", f"/{name}/_refresh")
        answer = await self.http.post(f"/{name}/_search", json={"size": 1000, "version": True})
        return {hit["_id"]: (hit["_version"], hit["_source"]) for hit in answer.json()["hits"]["hits"]}

    async def check(self) -> None:
        there = (await self.http.get("/*?expand_wildcards=all")).json()
        assert there.keys() == self.indexes.keys()
        for name in self.indexes.keys() - self.closed:
            assert await self.found(name) == self.indexes[name]
        snapshots = (await self.http.get("/_snapshot/r/_all")).json()["snapshots"]
        assert {one["snapshot"]: set(one["indices"]) for one in snapshots} == {
            name: set(indexes) for name, indexes in self.kept.items()
        }


async def _run(seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings.model_validate({"search": {"snapshot_paths": [directory]}})
        transport = httpx.ASGITransport(build_search_app(MemorySearch(), settings))
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as http:
            world = World(http, Random(seed))
            body = {"type": "fs", "settings": {"location": "r"}}
            assert await world.call("PUT", "/_snapshot/r", body) == 200
            for _ in range(STEPS):
                await world.step()
                await world.check()


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_done_the_indexes_are_those_of_a_naive_twin(seed: int) -> None:
    asyncio.run(_run(seed))
