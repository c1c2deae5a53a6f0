"""Live queries on a node with a real store and a real log."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config.limits import GateLimits
from graphdb.errors import ChangesForgotten, GraphDBError, LogUnavailable
from graphdb.live.live_queries import read_live_query
from graphdb.live.matcher import LiveQuery
from graphdb.live.notifications import Notification
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.clustered_shards import nodes
from tests.support.shards import Shard, stand_alone
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


class Heard:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.begun: dict[str, int] = {}
        self.told: list[tuple[str, int, str]] = []  # subscription, index, action
        self.errors: list[GraphDBError] = []

    def opened(self, subscription: str, index: int) -> None:
        self.begun[subscription] = index

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        for one in subscriptions:
            assert one in self.begun, "told before it was opened"
            self.told.append((one, notification.index, notification.action))

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        self.errors.append(error)

    async def count(self, count: int) -> list[tuple[int, str]]:
        async with asyncio.timeout(HANG_S):
            while len(self.told) < count:  # noqa: ASYNC110 a sink is called, it does not wait
                await asyncio.sleep(0.005)
        return [(index, action) for _, index, action in self.told]


def query(text: str) -> LiveQuery:
    return read_live_query(text, GateLimits())


PERSONS = query("LIVE SELECT * FROM Person")


async def write(shard: Shard | Shard, number: int) -> int:
    text = (
        f"DELETE WHERE {{ <urn:s> <urn:n> ?n }}; INSERT DATA {{ <urn:s> a <urn:Person> ; <urn:n> {number} }}"
    )
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())).snapshot_index


async def test_subscribers_at_any_time_hear_everything_behind_where_they_begin(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        indexes = [await write(shard, 0)]
        sinks = [Heard() for _ in range(4)]
        await shard.subscribe(PERSONS, None, sinks[0])

        async def keep_writing() -> None:
            for number in range(1, 60):
                indexes.append(await write(shard, number))

        writing = asyncio.create_task(keep_writing())
        since = {}
        for sink in sinks[1:]:
            await asyncio.sleep(0.05)
            since[sink] = indexes[len(indexes) // 2]
            await shard.subscribe(PERSONS, since[sink], sink)
        await writing
        for sink in sinks:
            start = since.get(sink, indexes[0])
            expected = [(index, "UPDATE") for index in indexes if index > start]
            assert await sink.count(len(expected)) == expected
        assert shard.embedded_store().active_listener_count == 4
        assert shard.embedded_store().last_projected_log_index == indexes[-1]


async def test_what_ends_is_not_told_any_more_and_leaves_nothing(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        sink = Heard()
        ids = [await shard.subscribe(PERSONS, None, sink) for _ in range(2)]
        await shard.unsubscribe(ids[0])
        assert not await shard.unsubscribe(ids[0])
        await write(shard, 1)
        await sink.count(1)
        await shard.unsubscribe(ids[1])
        await write(shard, 2)
        assert [one for one, _, _ in sink.told] == [ids[1]]
        assert shard.embedded_store().active_listener_count == 0
        assert len(list((tmp_path / "live").iterdir())) == 1
    assert list((tmp_path / "live").iterdir()) == []


async def test_what_a_crash_has_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "live" / "copy-0").mkdir(parents=True)
    (tmp_path / "live" / "copy-0" / "CURRENT").write_text("rubbish")
    async with stand_alone(tmp_path) as shard:
        sink = Heard()
        await shard.subscribe(PERSONS, None, sink)
        await write(shard, 1)
        assert len(await sink.count(1)) == 1


async def test_a_node_that_stops_says_so(tmp_path: Path) -> None:
    sink = Heard()
    async with stand_alone(tmp_path) as shard:
        await shard.subscribe(PERSONS, None, sink)
    assert [type(error) for error in sink.errors] == [LogUnavailable]
    with pytest.raises(LogUnavailable):
        await shard.subscribe(PERSONS, None, sink)


async def test_a_change_that_is_too_large_to_match_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.live.live_copy.QUADS_MAX", 50)
    async with stand_alone(tmp_path) as shard:
        sink = Heard()
        await shard.subscribe(PERSONS, None, sink)
        before = await write(shard, 1)
        await sink.count(1)
        quads = " ".join(f"<urn:s> <urn:n> {number} ." for number in range(100))
        await shard.writes(FULL_VISIBILITY).update(parse_update(f"INSERT DATA {{ {quads} }}"), Dataset())
        async with asyncio.timeout(HANG_S):
            while not sink.errors:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert isinstance(sink.errors[0], ChangesForgotten)
        with pytest.raises(ChangesForgotten):
            await shard.subscribe(PERSONS, before, Heard())
        again = Heard()
        await shard.subscribe(PERSONS, None, again)
        await shard.writes(FULL_VISIBILITY).update(
            parse_update("INSERT DATA { <urn:t> a <urn:Person> }"), Dataset()
        )
        assert [action for _, action in await again.count(1)] == ["CREATE"]


async def test_all_nodes_of_a_cluster_tell_the_same(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        first = await write(cluster.shards[1], 0)
        sinks = {number: Heard() for number in cluster.shards}
        for number, node in cluster.shards.items():
            await node.subscribe(PERSONS, first, sinks[number])
        expected = [(await write(node, number), "UPDATE") for number, node in cluster.shards.items()]
        for sink in sinks.values():
            assert await sink.count(len(expected)) == expected
        late = Heard()
        await cluster.shards[2].subscribe(PERSONS, first - 1, late)
        assert await late.count(4) == [(first, "CREATE"), *expected]
