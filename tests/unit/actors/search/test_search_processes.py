"""Searches that processes beside the port answer are those of the port: of now, whatever happens to them."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from actors.search import search_processes
from actors.search.process_messages import LongSearch
from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.segments.operations import Action, Operation
from tests.support.busy_search import busy_node, busy_port, processes_of, until_handed_on
from tests.support.search_nodes import indexed
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


async def test_the_same_answers_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with busy_node(tmp_path, monkeypatch, DOCUMENTS) as (node, ask):
        alone = [await ask(body) for body in BODIES]
        assert processes_of(node).searches == 0  # nobody waited
        await until_handed_on(node, ask)
        for body, wanted in zip(BODIES, alone, strict=True):
            assert await asyncio.gather(*(ask(body) for _ in range(6))) == [wanted] * 6
        (pid,) = processes_of(node).pids

        # what was refreshed is found by whoever answers, before and after the process has heard of it
        removed = DocumentWrite("books", Operation(Action.DELETE, "3"))
        for _ in range(2):
            await node.write([indexed(1_000), removed], "true")
            found = {"query": {"terms": {"number": [3, 1_000]}}}
            answers = await asyncio.gather(*(ask(found) for _ in range(6)))
            assert [[hit["_id"] for hit in one["hits"]["hits"]] for _, one in answers] == [["1000"]] * 6
            await until_handed_on(node, ask)
            await node.flush()

        # a process that is killed is missed by nobody, and there is another one
        answering = asyncio.gather(*(ask(found) for _ in range(6)))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        assert await answering == answers
        await until_handed_on(node, ask)
        (other,) = processes_of(node).pids
        assert other != pid
    with pytest.raises(ProcessLookupError):
        os.kill(other, 0)


async def test_connections_of_a_busy_port_are_lent_and_answered_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy_node(tmp_path, monkeypatch, DOCUMENTS) as (node, ask):
        bodies = [
            {name: value for name, value in body.items() if name != "request_cache"}
            for body in (*BODIES, *MORE_BODIES)
        ]
        alone = [await ask(body) for body in bodies]
        processes = processes_of(node)
        async with busy_port(node, monkeypatch) as port:
            await port.until_lent()
            for body, wanted in zip(bodies, alone, strict=True):
                assert await asyncio.gather(*(port.search(body) for _ in range(6))) == [wanted] * 6

            # whoever was told of a change sees it
            for number in range(1_000, 1_020):
                await port.until_lent()
                removed = DocumentWrite("books", Operation(Action.DELETE, str(number - 1)))
                await node.write([indexed(number), removed], "true")
                found = {"query": {"range": {"number": {"gte": 999}}}}
                answers = await asyncio.gather(*(port.search(found) for _ in range(6)))
                assert [[hit["_id"] for hit in one["hits"]["hits"]] for _, one in answers] == [
                    [str(number)]
                ] * 6
            for path, status in (("_close", 400), ("_open", 200)):
                await port.until_lent() if status == 400 else None
                (await port.client.post(f"/books/{path}")).raise_for_status()
                statuses = [one for one, _ in await asyncio.gather(*(port.search(found) for _ in range(6)))]
                assert statuses == [status] * 6

            # a process that is killed is missed by nobody
            await port.until_lent()
            (pid,) = processes.pids
            answering = asyncio.gather(*(port.search(found) for _ in range(6)))
            await asyncio.sleep(0)
            os.kill(pid, signal.SIGKILL)
            assert await answering == answers

            # what the processes do not know of is not for them
            await port.until_lent()
            settings = {"persistent": {"search.allow_expensive_queries": "false"}}
            (await port.client.put("/_cluster/settings", json=settings)).raise_for_status()
            prefix = {"query": {"prefix": {"title": "b"}}}
            refused = [status for status, _ in await asyncio.gather(*(port.search(prefix) for _ in range(6)))]
            assert refused == [400] * 6


def test_idle_time_is_within_that_of_the_processors() -> None:
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 < search_processes.idle_s() <= uptime_s * (os.cpu_count() or 1) + 10


async def test_what_is_idle_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_processes, "_IDLE_S", 0.0)
    monkeypatch.setattr(search_processes, "_LOOK_S", 0.1)
    async with busy_node(tmp_path, monkeypatch, DOCUMENTS) as (node, ask):
        async with asyncio.timeout(HANG_S):
            while not processes_of(node).pids:
                await asyncio.gather(*(ask(BODIES[0]) for _ in range(4)))
            while processes_of(node).pids:  # noqa: ASYNC110 - it ends when it has been idle
                await asyncio.sleep(0.01)
        assert (await ask(BODIES[0]))[0] == 200


async def test_one_that_is_killed_while_it_starts_is_started_again_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy_node(tmp_path, monkeypatch, DOCUMENTS) as (node, ask):
        processes = processes_of(node)
        async with asyncio.timeout(HANG_S):
            for pause_s in (1, 2):
                while not processes._processes:
                    await asyncio.gather(*(ask(BODIES[0]) for _ in range(4)))
                (starting,) = processes._processes
                assert not starting.is_ready
                os.kill(starting.pid, signal.SIGKILL)
                await starting.ended.wait()
                while processes._processes:  # noqa: ASYNC110 - it is followed until its end is noticed
                    await asyncio.sleep(0)
                assert processes._start_after - time.monotonic() <= pause_s
            await until_handed_on(node, ask)
        (pid,) = processes.pids
        assert pid != starting.pid


TOPS = {f"top{number}": {"top_hits": {"size": 1}} for number in range(3)}


async def test_a_short_search_with_a_long_answer_is_no_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process may be killed for what it takes; the port would not try it again then."""
    long = []

    def take(process: Any, message: object) -> None:
        long.extend([message] if isinstance(message, LongSearch) else [])
        taken(process, message)

    taken = search_processes._Process._take
    monkeypatch.setattr(search_processes._Process, "_take", take)
    async with busy_node(tmp_path, monkeypatch, DOCUMENTS) as (node, ask):
        for number in (7_000, 8_000):  # others than before: a merge would change the scores of changed ones
            body = orjson.dumps({"number": number, "title": "a long story", "text": "x" * 1_500_000})
            await node.write([DocumentWrite("books", Operation(Action.INDEX, str(number), body))], "true")
        short, whole = ({"query": {"match": {"title": "long"}}, "size": size} for size in (1, 2))
        wanted = await ask(short), await ask(whole)
        assert [len(answer["hits"]["hits"]) for _, answer in wanted] == [1, 2]
        await until_handed_on(node, ask)
        assert await asyncio.gather(*(ask(short) for _ in range(6))) == [wanted[0]] * 6
        assert not long
        assert await asyncio.gather(*(ask(whole) for _ in range(6))) == [wanted[1]] * 6
        assert long


GREEDY: dict[str, Any] = {
    "size": 0,
    "aggs": {"each": {"terms": {"field": "number", "size": 6_000}, "aggs": TOPS}},
}


async def test_a_search_that_fills_the_memory_is_refused_and_its_process_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy_node(tmp_path, monkeypatch, DOCUMENTS) as (node, ask):
        await node.write([indexed(number) for number in range(DOCUMENTS, 3_000)], "true")
        await node.flush()
        wanted, whole = await ask(BODIES[0]), await ask(GREEDY)
        assert whole[0] == 200
        monkeypatch.setattr(search_processes._Process, "look_s", 0.002)
        first, ended = whole, []
        async with asyncio.timeout(HANG_S):
            while first[0] == 200:
                await until_handed_on(node, ask)
                (process,) = processes_of(node)._processes
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

        await until_handed_on(node, ask)
        (other,) = processes_of(node).pids
        assert other != ended[-1].pid
        assert await asyncio.gather(*(ask(GREEDY) for _ in range(3))) == [whole] * 3


async def test_a_search_that_does_not_end_is_refused_and_its_process_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy_node(tmp_path, monkeypatch, DOCUMENTS) as (node, ask):
        wanted = await ask(BODIES[0])
        await until_handed_on(node, ask)
        processes = processes_of(node)
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
        await until_handed_on(node, ask)
        (other,) = processes.pids
        assert other != process.pid
        assert await asyncio.gather(*(ask(BODIES[0]) for _ in range(6))) == [wanted] * 6
