"""Searches that processes beside the port answer are those of the port: of now, whatever happens to them."""

import asyncio
import os
import signal
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
from actors.search.search_node import SearchNode
from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.segments.operations import Action, Operation
from serve.port.protocol import PortProtocol
from serve.search.searching import connection_load
from serve.search.searching.quick_searches import QuickSearches
from serve.search_app import build_search_app
from tests.support.search_nodes import indexed, open_node
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio
DOCUMENTS = 40
BODIES: tuple[dict[str, Any], ...] = (
    {"query": {"match": {"title": "book 7"}}},
    {"query": {"match": {"title": "number"}}, "sort": [{"number": "desc"}], "size": 3, "_source": ["number"]},
    {
        "size": 0,
        "aggs": {"sizes": {"histogram": {"field": "number", "interval": 10}}},
        "request_cache": False,
    },
    {
        "query": {"match": {"title": "the"}},
        "highlight": {"fields": {"title": {}}},
        "from": 5,
        "explain": True,
    },
    {"query": {"match": {"title": 7}}, "unknown": 1},
    {"query": {"match": {"title": "the"}}, "knn": {"field": "nowhere", "query_vector": [1], "k": 1}},
)
MORE_BODIES: tuple[dict[str, Any], ...] = (
    {},
    {"query": {"match_phrase": {"title": "book 7"}}, "track_total_hits": False, "from": 1},
    {"size": 0, "aggs": {"one": {"histogram": {"field": "number", "interval": 7}}}},
    {"size": 0, "query": {"match": {"title": "book"}}, "aggs": {"two": {"avg": {"field": "number"}}}},
    {"query": {"bool": {"must": {"match": {"title": "book"}}, "filter": {"range": {"number": {"gte": 9}}}}}},
    {"query": {"terms": {"number": {"index": "books", "id": "3", "path": "number"}}}},
)

Ask = Callable[..., Awaitable[tuple[int, Any]]]


@asynccontextmanager
async def _busy_node(directory: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[tuple[SearchNode, Ask]]:
    """A node that asks for one process as soon as two searches are there at a time; and how it is asked."""
    patch.setattr(search_processes, "_BUSY", 1)
    patch.setattr(search_processes, "_BUSY_S", HANG_S)
    patch.setattr(search_processes, "_BUSY_LEAST_S", 0.0)
    patch.setattr(search_processes, "_FREE", -1.0)  # however busy the machine is
    async with open_node(directory) as node:
        await node.write([indexed(number) for number in range(DOCUMENTS)], "true")
        await node.flush()
        await node.write([indexed(DOCUMENTS)], "true")  # in no file yet
        transport = httpx.ASGITransport(build_search_app(node, Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:

            async def ask(body: dict[str, Any]) -> tuple[int, Any]:
                parameters = {"request_cache": "false"} if body.get("size") == 0 else {}
                answer = await client.post("/books/_search", json=body, params=parameters)
                whole = answer.json()
                whole.pop("took", None)
                return answer.status_code, whole

            node.search_beside(1, "serve.deployments.search_process")
            yield node, ask


def _processes(node: SearchNode) -> search_processes.SearchProcesses:
    assert node.helpers is not None
    return node.helpers


async def _until_handed_on(node: SearchNode, ask: Ask) -> None:
    """Return when a process has answered a search of now."""
    processes = _processes(node)
    before = processes.searches
    async with asyncio.timeout(HANG_S):
        while processes.searches == before:
            await asyncio.gather(*(ask(BODIES[0]) for _ in range(4)))


async def test_the_same_answers_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _busy_node(tmp_path, monkeypatch) as (node, ask):
        alone = [await ask(body) for body in BODIES]
        assert _processes(node).searches == 0  # nobody waited
        await _until_handed_on(node, ask)
        for body, wanted in zip(BODIES, alone, strict=True):
            assert await asyncio.gather(*(ask(body) for _ in range(6))) == [wanted] * 6
        (pid,) = _processes(node).pids

        # what was refreshed is found by whoever answers, before and after the process has heard of it
        removed = DocumentWrite("books", Operation(Action.DELETE, "3"))
        for _ in range(2):
            await node.write([indexed(1_000), removed], "true")
            found = {"query": {"terms": {"number": [3, 1_000]}}}
            answers = await asyncio.gather(*(ask(found) for _ in range(6)))
            assert [[hit["_id"] for hit in one["hits"]["hits"]] for _, one in answers] == [["1000"]] * 6
            await _until_handed_on(node, ask)
            await node.flush()

        # a process that is killed is missed by nobody, and there is another one
        answering = asyncio.gather(*(ask(found) for _ in range(6)))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        assert await answering == answers
        await _until_handed_on(node, ask)
        (other,) = _processes(node).pids
        assert other != pid
    with pytest.raises(ProcessLookupError):
        os.kill(other, 0)


@asynccontextmanager
async def _port(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application behind a port of this event loop."""
    config = uvicorn.Config(app, http=PortProtocol, lifespan="off", log_level="critical", proxy_headers=False)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: PortProtocol(config, state, {}), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=HANG_S) as client:
            yield client
    finally:
        server.close()


async def test_connections_of_a_busy_port_are_lent_and_answered_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = 0
    note = QuickSearches._note

    def counted(self: QuickSearches, done: bytes) -> None:
        nonlocal answered
        answered += orjson.loads(done)[1]
        note(self, done)

    monkeypatch.setattr(QuickSearches, "_note", counted)
    monkeypatch.setattr(connection_load, "_BUSY", -1.0)
    monkeypatch.setattr(connection_load, "_LOOKED_AT_S", 0.02)
    monkeypatch.setattr(connection_load, "_AGAIN_S", 0.0)
    async with _busy_node(tmp_path, monkeypatch) as (node, ask):
        bodies = [
            {name: value for name, value in body.items() if name != "request_cache"}
            for body in (*BODIES, *MORE_BODIES)
        ]
        alone = [await ask(body) for body in bodies]
        processes = _processes(node)
        async with _port(build_search_app(node, Settings())) as client:

            async def search(body: dict[str, Any]) -> tuple[int, Any]:
                answer = await client.post("/books/_search", json=body)
                whole = answer.json()
                whole.pop("took", None)
                return answer.status_code, whole

            async def until_lent() -> None:
                before = answered
                async with asyncio.timeout(HANG_S):
                    while not processes.lent or answered == before:
                        await asyncio.gather(*(search(BODIES[0]) for _ in range(6)))

            await until_lent()
            for body, wanted in zip(bodies, alone, strict=True):
                assert await asyncio.gather(*(search(body) for _ in range(6))) == [wanted] * 6

            # whoever was told of a change sees it
            for number in range(1_000, 1_020):
                await until_lent()
                removed = DocumentWrite("books", Operation(Action.DELETE, str(number - 1)))
                await node.write([indexed(number), removed], "true")
                found = {"query": {"range": {"number": {"gte": 999}}}}
                answers = await asyncio.gather(*(search(found) for _ in range(6)))
                assert [[hit["_id"] for hit in one["hits"]["hits"]] for _, one in answers] == [
                    [str(number)]
                ] * 6
            for path, status in (("_close", 400), ("_open", 200)):
                await until_lent() if status == 400 else None
                (await client.post(f"/books/{path}")).raise_for_status()
                statuses = [one for one, _ in await asyncio.gather(*(search(found) for _ in range(6)))]
                assert statuses == [status] * 6

            # a process that is killed is missed by nobody
            await until_lent()
            (pid,) = processes.pids
            answering = asyncio.gather(*(search(found) for _ in range(6)))
            await asyncio.sleep(0)
            os.kill(pid, signal.SIGKILL)
            assert await answering == answers

            # what the processes do not know of is not for them
            await until_lent()
            settings = {"persistent": {"search.allow_expensive_queries": "false"}}
            (await client.put("/_cluster/settings", json=settings)).raise_for_status()
            prefix = {"query": {"prefix": {"title": "b"}}}
            refused = [status for status, _ in await asyncio.gather(*(search(prefix) for _ in range(6)))]
            assert refused == [400] * 6


def test_idle_time_is_within_that_of_the_processors() -> None:
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 < search_processes.idle_s() <= uptime_s * (os.cpu_count() or 1) + 10


async def test_what_is_idle_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_processes, "_IDLE_S", 0.0)
    monkeypatch.setattr(search_processes, "_LOOK_S", 0.1)
    async with _busy_node(tmp_path, monkeypatch) as (node, ask):
        async with asyncio.timeout(HANG_S):
            while not _processes(node).pids:
                await asyncio.gather(*(ask(BODIES[0]) for _ in range(4)))
            while _processes(node).pids:  # noqa: ASYNC110 - it ends when it has been idle
                await asyncio.sleep(0.01)
        assert (await ask(BODIES[0]))[0] == 200


TOPS = {f"top{number}": {"top_hits": {"size": 1}} for number in range(3)}
GREEDY: dict[str, Any] = {
    "size": 0,
    "aggs": {"each": {"terms": {"field": "number", "size": 6_000}, "aggs": TOPS}},
}


async def test_a_search_that_fills_the_memory_is_refused_and_its_process_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _busy_node(tmp_path, monkeypatch) as (node, ask):
        await node.write([indexed(number) for number in range(DOCUMENTS, 3_000)], "true")
        await node.flush()
        wanted, whole = await ask(BODIES[0]), await ask(GREEDY)
        assert whole[0] == 200
        monkeypatch.setattr(search_processes._Process, "look_s", 0.002)
        first, ended = whole, []
        async with asyncio.timeout(HANG_S):
            while first[0] == 200:
                await _until_handed_on(node, ask)
                (process,) = _processes(node)._processes
                # little more than it has, as others may have a gigabyte
                monkeypatch.setattr(process, "_memory_limit_mb", process.memory_mb() + 4)
                first, *others = await asyncio.gather(ask(GREEDY), *(ask(BODIES[0]) for _ in range(5)))
                assert others == [wanted] * 5
                ended.append(process)
        status, answer = first
        assert (status, answer["error"]["type"]) == (429, "circuit_breaking_exception")
        assert "memory" in answer["error"]["reason"]
        await ended[-1].ended.wait()
        assert ended[-1].has_filled_memory()

        await _until_handed_on(node, ask)
        (other,) = _processes(node).pids
        assert other != ended[-1].pid
        assert await asyncio.gather(*(ask(GREEDY) for _ in range(3))) == [whole] * 3


async def test_a_search_that_does_not_end_is_refused_and_its_process_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _busy_node(tmp_path, monkeypatch) as (node, ask):
        wanted = await ask(BODIES[0])
        await _until_handed_on(node, ask)
        processes = _processes(node)
        (process,) = processes._processes
        monkeypatch.setattr(processes, "_limit_s", 0.2)
        monkeypatch.setattr(search_processes, "_BEYOND_S", 0.2)
        os.kill(process.pid, signal.SIGSTOP)  # as one that comes to no place where it looks at the time
        answers: list[tuple[int, Any]] = []
        async with asyncio.timeout(HANG_S):
            while all(status == 200 for status, _ in answers):
                answers = await asyncio.gather(*(ask(BODIES[0]) for _ in range(6)))
        refused = [(status, answer) for status, answer in answers if status != 200]
        assert {answer["error"]["type"] for _, answer in refused} == {"timeout_exception"}
        assert all(answer == wanted for answer in answers if answer[0] == 200)
        await process.ended.wait()

        monkeypatch.setattr(processes, "_limit_s", HANG_S)
        await _until_handed_on(node, ask)
        (other,) = processes.pids
        assert other != process.pid
        assert await asyncio.gather(*(ask(BODIES[0]) for _ in range(6))) == [wanted] * 6
