"""Past states of a node: which are kept, what bounds them, and what is said when there is none."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.node.store_lifecycle import StoreConfig
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.config import Settings
from graphdb.errors import (
    HistoryForgotten,
    InvalidParameter,
    LimitExceeded,
    LogUnavailable,
    Overloaded,
    QueryTimeout,
)
from graphdb.history.moments import Moment, read_moment
from graphdb.history.places import HISTORY
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.timestamps import iso_timestamp
from tests.support.readers import answering
from tests.support.shards import SMALL_LOG, Shard, no_readers
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio
EVERYBODY = Visibility(default_graph=True, patterns=frozenset({"*"}))


@asynccontextmanager
async def node(
    directory: Path, *, keep_bytes: int = 1 << 30, has_history: bool = False, **history: Any
) -> AsyncIterator[Shard]:
    """A node without readers, which keeps so much of its log; the rest in its history, if it has one."""
    config = replace(SMALL_LOG, history=str(directory / HISTORY)) if has_history else SMALL_LOG
    log = UpdateLog(str(directory / "log"), config, keep_bytes=keep_bytes)
    shard = Shard.standalone(
        Settings.model_validate({"server": {"data_dir": directory}, "history": history}),
        LogClient(answering(log.endpoint())),
        no_readers(),
        StoreConfig(checkpoint_log_bytes=100_000),
    )
    try:
        await shard.start()
        yield shard
    finally:
        await shard.close()
        log.close()


async def insert(shard: Shard, number: int, text: str = "") -> int:
    update = f'INSERT DATA {{ <urn:s{number}> <urn:p> {number}, "{text}" }}'
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(update), Dataset())).snapshot_index


async def until_log_begins_after(shard: Shard, index: int) -> None:
    for _ in range(int(HANG_S / 0.05)):
        if (await shard.node.parts.log.status()).first_index > index:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"the log has entry {index} still")


async def count(shard: Shard, moment: Moment, visibility: Visibility = FULL_VISIBILITY) -> int:
    """How many resources there were."""
    store = await shard.opened().past.visible_store(moment, visibility, HANG_S)
    return len({quad.subject for quad in store.quads.dataset_quads()})


def at(index: int) -> Moment:
    return Moment(str(index), index)


def directories(path: Path) -> list[str]:
    return sorted(one.name for one in (path / "past").iterdir())


async def test_the_last_are_kept_and_the_others_deleted(tmp_path: Path) -> None:
    async with node(tmp_path, as_of_states=2) as shard:
        indexes = [await insert(shard, number) for number in range(4)]
        for number, index in enumerate(indexes, 1):
            assert await count(shard, at(index)) == number
        made = directories(tmp_path)
        assert await count(shard, at(indexes[-1])) == 4
        for _ in range(int(HANG_S / 0.05)):  # files go with the last who has read them, on a thread
            if len(directories(tmp_path)) == 2:
                break
            await asyncio.sleep(0.05)
        assert len(directories(tmp_path)) == 2, made
    async with node(tmp_path):
        assert directories(tmp_path) == []


async def test_those_who_ask_at_once_share_a_state(tmp_path: Path) -> None:
    async with node(tmp_path) as shard:
        index = await insert(shard, 1)
        await insert(shard, 2)
        assert await asyncio.gather(*(count(shard, at(index)) for _ in range(8))) == [1] * 8
        assert len(directories(tmp_path)) == 1
        # who sees all graphs sees the same, as long as nothing is annotated
        assert await count(shard, at(index), EVERYBODY) == 1
        assert len(directories(tmp_path)) == 1


async def test_no_more_wait_than_are_made_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.history.past_states._MAKING_MAX", 2)
    async with node(tmp_path) as shard:
        indexes = [await insert(shard, number) for number in range(4)]
        asked = [count(shard, at(index)) for index in indexes]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert found[:2] == [1, 2]
        assert all(isinstance(refused, Overloaded) for refused in found[2:]), found


async def test_times(tmp_path: Path) -> None:
    async with node(tmp_path) as shard:
        with pytest.raises(InvalidParameter, match="before the first change"):
            await count(shard, read_moment("1970-01-01T00:00:00Z"))
        moments = []
        for number in range(3):
            await insert(shard, number)
            moments.append(iso_timestamp(time.time_ns() // 1_000_000))
            await asyncio.sleep(0.01)
        for number, moment in enumerate(moments, 1):
            assert await count(shard, read_moment(moment)) == number
        with pytest.raises(InvalidParameter, match="before the first change"):
            await count(shard, read_moment("1970-01-01T00:00:00Z"))
        soon = read_moment(iso_timestamp(time.time_ns() // 1_000_000 + 200))
        assert await count(shard, soon) == 3


async def test_the_future(tmp_path: Path) -> None:
    async with node(tmp_path) as shard:
        index = await insert(shard, 1)
        for moment in (at(index + 1), read_moment("2999-01-01T00:00:00Z")):
            with pytest.raises(InvalidParameter, match="in the future"):
                await shard.opened().past.visible_store(moment, FULL_VISIBILITY, 0.05)
            with pytest.raises(InvalidParameter, match="in the future"):
                await shard.opened().past.index_of(moment, 0.05)
        asked = asyncio.create_task(count(shard, at(index + 1)))
        await asyncio.sleep(0.05)
        assert not asked.done()
        await insert(shard, 2)
        assert await asked == 2


async def test_what_the_log_has_no_longer(tmp_path: Path) -> None:
    async with node(tmp_path, keep_bytes=0) as shard:
        first = await insert(shard, 0)
        for number in range(1, 12):
            last = await insert(shard, number, "x" * 40_000)
        await until_log_begins_after(shard, 2)
        for moment in (at(first), read_moment("1970-01-01T00:00:00Z")):
            with pytest.raises(HistoryForgotten) as told:
                await count(shard, moment)
            oldest = told.value.oldest_index
            with pytest.raises(HistoryForgotten):  # also of who only asks whether there is one
                await shard.opened().past.index_of(moment, HANG_S)
            assert first < oldest <= last
        for _ in range(10):  # the log may forget more meanwhile
            try:
                assert await count(shard, at(oldest)) == oldest - first + 1
                break
            except HistoryForgotten as forgotten:
                oldest = forgotten.oldest_index
        assert await count(shard, at(last)) == 12


async def test_what_compaction_took_from_the_log_is_in_the_history(tmp_path: Path) -> None:
    async with node(tmp_path, keep_bytes=0, has_history=True) as shard:
        indexes = [await insert(shard, number, "x" * 40_000) for number in range(12)]
        await until_log_begins_after(shard, indexes[2])
        for is_compressed in (False, True):
            if is_compressed:
                await asyncio.to_thread(shard.node.parts.history_keeper.tend)
            for number in (1, 4, 11):
                assert await count(shard, at(indexes[number])) == number + 1
        assert {path.suffix for path in (tmp_path / HISTORY).iterdir()} == {".history"}


async def test_limits(tmp_path: Path) -> None:
    async with node(tmp_path, as_of_seconds=0.01) as shard:
        index = await insert(shard, 1)
        await insert(shard, 2)
        with pytest.raises(QueryTimeout, match="as_of_seconds"):
            await count(shard, at(index))
        assert directories(tmp_path) == []
        with pytest.raises(Overloaded, match="ask again"):
            await shard.opened().past.visible_store(at(index), FULL_VISIBILITY, 0.0)


async def test_a_state_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.history.past_states._LOOK_S", 0.001)
    monkeypatch.setattr("actors.history.past_states._own_bytes", lambda path: 3 << 20)
    async with node(tmp_path, as_of_disk_mb=2) as shard:
        index = await insert(shard, 1)
        await insert(shard, 2)
        with pytest.raises(LimitExceeded, match="as_of_disk_mb"):
            await count(shard, at(index))
        assert directories(tmp_path) == []


async def test_a_node_that_stops_makes_none(tmp_path: Path) -> None:
    async with node(tmp_path) as shard:
        index = await insert(shard, 1)
        await insert(shard, 2)
        past = shard.opened().past
        asked = asyncio.create_task(count(shard, at(index)))
        await asyncio.sleep(0.02)
        await past.close()
        with pytest.raises((LogUnavailable, asyncio.CancelledError)):
            await asked
        with pytest.raises(LogUnavailable):
            await past.visible_store(at(index), FULL_VISIBILITY, HANG_S)
