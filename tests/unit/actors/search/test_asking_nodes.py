"""What the search port of one node asks of that of another one, through their logs."""

import asyncio
from pathlib import Path

import pytest

from graphdb.errors import LogUnavailable, NotLeader, Overloaded
from tests.support.memory_log import MemoryLog
from tests.support.search_cluster import search_cluster
from tests.support.search_nodes import started

pytestmark = pytest.mark.anyio


async def test_the_other_node_answers_while_both_ports_work(tmp_path: Path) -> None:
    async with search_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        nodes = {number: await cluster.opened(number) for number in (1, 2, 3)}

        async def answer(request: bytes) -> bytes:
            if request == b"refused":
                raise Overloaded("not now", 3)
            await asyncio.sleep(0.01)
            return request * 2

        with pytest.raises(LogUnavailable, match="answers no other one"):
            await nodes[1].ask_other(2, b"early", 5)
        for node in nodes.values():
            node.serve_others(answer)

        async def ask(asking: int, asked: int) -> None:
            for number in range(20):
                request = b"%d of %d" % (number, asking)
                assert await nodes[asking].ask_other(asked, request, 10) == request * 2

        await asyncio.gather(
            *(ask(one, other) for one in nodes for other in nodes if one != other),
            *(cluster.insert(number) for number in range(5)),
        )
        with pytest.raises(Overloaded, match="not now"):
            await nodes[1].ask_other(2, b"refused", 5)
        await cluster.stop(3)
        with pytest.raises((LogUnavailable, NotLeader)):
            await nodes[1].ask_other(3, b"gone", 1)


async def test_a_node_that_stands_alone_asks_nobody(tmp_path: Path) -> None:
    async with started(tmp_path, MemoryLog()) as node:
        with pytest.raises(LogUnavailable, match="stands alone"):
            await node.ask_other(2, b"", 1)
