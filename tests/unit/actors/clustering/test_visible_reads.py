"""Reading and listening at any node by whoever does not see everything, while another node writes."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.config.limits import GateLimits
from graphdb.errors import GraphDBError
from graphdb.live.live_queries import read_live_query
from graphdb.live.notifications import Notification
from graphdb.node import Consistency
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.clustered_shards import nodes
from tests.support.shards import Shard
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

OPEN, SECRET = NamedNode("urn:open"), NamedNode("urn:secret")
SOME = Visibility(default_graph=True, patterns=frozenset({"urn:open"}))
ONE = Visibility(default_graph=True, patterns=frozenset({"urn:open"}), sids=frozenset({"S-1"}))
PREFIX = "PREFIX : <urn:> PREFIX acl: <urn:graphdb:acl#> "
PROTECTED = "{| acl:allowedSid 'S-1' |}"


class Heard:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def opened(self, subscription: str, index: int) -> None:
        """Nothing to remember."""

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        assert isinstance(notification.result, dict)
        self.told.append((notification.action, str(notification.result["id"])))

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        self.told.append(("END", str(error)))


async def write(node: Shard, text: str) -> None:
    await asyncio.wait_for(
        node.writes(FULL_VISIBILITY).update(parse_update(PREFIX + text), Dataset()), HANG_S
    )


async def seen(node: Shard, visibility: Visibility) -> list[str]:
    await node.reach(Consistency.LINEARIZABLE, 10)
    reads = await node.reads(visibility)
    found = (quad for graph in (OPEN, SECRET) for quad in reads.quads_matching(None, None, None, graph))
    return sorted(str(quad.subject).strip("<>").removeprefix("urn:") for quad in found)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not condition():  # noqa: ASYNC110 a sink is called, it does not wait
            await asyncio.sleep(0.01)


async def test_every_node_shows_each_visibility_its_part_of_what_any_node_wrote(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        await write(
            cluster.shards[1],
            f"INSERT DATA {{ GRAPH :open {{ :a :p 1 . :b :p 2 {PROTECTED} }} GRAPH :secret {{ :c :p 3 }} }}",
        )
        for node in cluster.shards.values():
            assert (await seen(node, SOME), await seen(node, ONE)) == (["a"], ["a", "b"])
        hide = f"INSERT DATA {{ GRAPH :open {{ :a :p 1 {PROTECTED} . :d :p 4 }} }}"
        await write(cluster.shards[2], hide)
        for node in cluster.shards.values():
            assert (await seen(node, SOME), await seen(node, ONE)) == (["d"], ["a", "b", "d"])


async def test_every_node_tells_each_visibility_what_becomes_of_its_part(tmp_path: Path) -> None:
    query = read_live_query("LIVE SELECT * FROM <urn:T>", GateLimits())
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        await write(cluster.shards[1], f"INSERT DATA {{ :x a :T {PROTECTED} }}")
        heard: list[tuple[Visibility, Heard]] = []
        for node in cluster.shards.values():
            await node.reach(Consistency.LINEARIZABLE, 10)
            for visibility in (SOME, ONE):
                heard.append((visibility, Heard()))
                await node.live(visibility).subscribe(query, None, heard[-1][1])
        await write(cluster.shards[2], f"INSERT DATA {{ :a a :T . :b a :T {PROTECTED} }}")
        await write(cluster.shards[3], "DELETE DATA { :b a :T }")
        await write(cluster.shards[1], "INSERT DATA { << :a a :T >> acl:allowedSid 'S-2' }")
        for visibility, sink in heard:
            ends = ("DELETE", "urn:a")
            await until(lambda sink=sink, ends=ends: ends in sink.told)  # type: ignore[misc]
            about_a = [("CREATE", "urn:a"), ends]
            about_b = [("CREATE", "urn:b"), ("DELETE", "urn:b")] if visibility is ONE else []
            assert sorted(sink.told) == sorted(about_a + about_b)
