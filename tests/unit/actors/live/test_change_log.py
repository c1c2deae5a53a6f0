"""The changes of a real log, as a node applies them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from actors.live.change_log import ChangeStream
from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.node.store_lifecycle import StoreConfig
from actors.shard.shard_writer import WriterConfig
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.errors import ChangesForgotten, IndexNotReached
from graphdb.live.changes import LoggedChange
from graphdb.log.file_log import FileLogConfig
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.readers import answering
from tests.support.shards import Shard, no_readers

pytestmark = pytest.mark.anyio

SMALL_PARTS = StoreConfig(writer=WriterConfig(part_bytes_max=2_000))


@asynccontextmanager
async def shard_over(directory: Path) -> AsyncIterator[Shard]:
    log = UpdateLog(str(directory / "log"), FileLogConfig(segment_bytes=20_000, reserve_bytes=20_000))
    client = LogClient(answering(log.endpoint()))
    shard = Shard.standalone(Settings(server={"data_dir": directory}), client, no_readers(), SMALL_PARTS)
    try:
        await shard.start()
        yield shard
    finally:
        await shard.close()
        log.close()


async def write(shard: Shard, text: str) -> int:
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())).snapshot_index


async def read(stream: ChangeStream, through: int) -> list[LoggedChange]:
    found: list[LoggedChange] = []
    while stream.through < through:
        changes = await stream.read(5)
        assert changes is not None
        found += changes
    return found


def added(changes: list[LoggedChange]) -> list[tuple[int, int, bool]]:
    return [(one.index, len(one.change.added), one.is_last) for one in changes]


def many(number: int, count: int = 300) -> str:
    quads = " ".join(f"<http://x/{number}> <http://x/p> 'value {i} of {number}' ." for i in range(count))
    return f"INSERT DATA {{ {quads} }}"


async def test_what_is_written_is_handed_to_all_who_follow(tmp_path: Path) -> None:
    async with shard_over(tmp_path) as shard:
        streams = [await shard.follow_changes(None, 1) for _ in range(3)]
        last = [await write(shard, f"INSERT DATA {{ <http://x/s> <http://x/p> {i} }}") for i in range(5)][-1]
        seen = [await read(stream, last) for stream in streams]
        assert added(seen[0]) == [(index, 1, True) for index in range(last - 4, last + 1)]
        assert seen[1] == seen[0] == seen[2]
        assert await streams[0].read(0.01) == []


async def test_a_late_reader_gets_all_from_the_log_then_goes_on(tmp_path: Path) -> None:
    async with shard_over(tmp_path) as shard:
        first = await write(shard, "INSERT DATA { <http://x/s> <http://x/p> 1 }")
        await write(shard, "DELETE DATA { <http://x/s> <http://x/p> 1 }")
        stream = await shard.follow_changes(first - 1, 1)
        last = await write(shard, "INSERT DATA { <http://x/s> <http://x/p> 2 }")
        found = await read(stream, last)
        assert [(len(one.change.removed), len(one.change.added)) for one in found] == [(0, 1), (1, 0), (0, 1)]


async def test_a_large_change_comes_in_pieces_that_are_whole_together(tmp_path: Path) -> None:
    async with shard_over(tmp_path) as shard:
        live = await shard.follow_changes(None, 1)
        start = live.through
        index = await write(shard, many(1))
        after = await write(shard, "INSERT DATA { <http://x/s> <http://x/p> 2 }")
        found = await read(live, after)
        pieces = [one for one in found if one.index == index]
        assert len(pieces) > 2
        assert [one.is_last for one in pieces] == [False] * (len(pieces) - 1) + [True]
        assert sum(len(one.change.added) for one in pieces) == 300
        assert added(found)[-1] == (after, 1, True)
        # also for one whose place is between its parts
        for since in range(start, index):
            assert await read(await shard.follow_changes(since, 1), after) == found


async def test_what_the_log_has_dropped_is_said_to_be_gone(tmp_path: Path) -> None:
    async with shard_over(tmp_path) as shard:
        slow = await shard.follow_changes(None, 1)
        for number in range(40):
            last = await write(shard, many(number, 20))
        assert shard.open is not None
        await shard.open.checkpointer.checkpoint()
        with pytest.raises(ChangesForgotten) as caught:
            await shard.follow_changes(0, 1)
        assert 1 < caught.value.first_index <= last
        kept = await read(await shard.follow_changes(caught.value.first_index, 1), last)
        assert kept[-1].index == last
        assert slow.through < caught.value.first_index
        # what is kept in memory goes on; only one that needs the log is told
        assert added(await read(slow, last))[-1][0] == last


async def test_an_index_of_the_future_is_waited_for_in_vain(tmp_path: Path) -> None:
    async with shard_over(tmp_path) as shard:
        with pytest.raises(IndexNotReached):
            await shard.follow_changes(1_000, 0.05)


async def test_a_node_that_stops_ends_the_streams(tmp_path: Path) -> None:
    async with shard_over(tmp_path) as shard:
        stream = await shard.follow_changes(None, 1)
    assert await stream.read(5) is None


async def test_nothing_is_kept_while_nobody_follows(tmp_path: Path) -> None:
    async with shard_over(tmp_path) as shard:
        stream = await shard.follow_changes(None, 1)
        assert shard.parts.change_log._following is not None
        stream.close()
        stream.close()
        assert shard.parts.change_log._following is None
        await write(shard, "INSERT DATA { <http://x/s> <http://x/p> 1 }")
        assert not shard.parts.change_log._recent._changes
