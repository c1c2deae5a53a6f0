"""Entries that any node appends, over real sockets; and what stands between those of the writer of quads."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from actors.raft import forwarding
from actors.raft.raft_log_client import RaftLogClient
from graphdb.errors import NotLeader
from graphdb.log.views import QUADS, SEARCH
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import JournalConfig
from tests.support.raft_cluster import data_entry
from tests.support.raft_logs import RaftLogs, raft_logs
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio
LARGE_BYTES = 16 << 20


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[RaftLogs]:
    async with raft_logs(tmp_path, 1, 2, 3) as logs:
        await logs.leader()
        yield logs


def document(payload: bytes = b"document") -> LogEntry:
    return LogEntry(0, 0, EntryKind.SEARCH, b"s" * 16, 7, payload)


async def read_at(client: RaftLogClient, index: int) -> LogEntry:
    known = 0
    async with asyncio.timeout(HANG_S):
        while known < index:
            known = await client.watch_index(known)
    return (await client.read(index))[0]


async def test_any_node_appends_and_all_have_it(three: RaftLogs) -> None:
    for node_id in (1, 2, 3):
        payload = b"%d" % node_id
        index = await three.client(node_id).append_unconditionally([document(payload), document()])
        for reader in (1, 2, 3):
            found = await read_at(three.client(reader), index)
            assert (found.kind, found.payload, found.timestamp_ms) == (EntryKind.SEARCH, payload, 7)


async def test_large_ones_and_many_at_once_arrive(three: RaftLogs) -> None:
    leader_id = await three.leader()
    client = three.client(leader_id % 3 + 1)
    sent = [document(bytes(LARGE_BYTES)), *(document(b"%d" % number) for number in range(20))]
    indexes = await asyncio.gather(*(client.append_unconditionally([each]) for each in sent))
    assert len({*indexes}) == len(sent)
    for index, each in zip(indexes, sent, strict=True):
        assert (await read_at(client, index)).payload == each.payload


async def test_another_leader_takes_what_the_former_has_not(three: RaftLogs) -> None:
    leader_id = await three.leader()
    client = three.client(leader_id % 3 + 1)
    await client.append_unconditionally([document(b"a")])
    await three.stop(leader_id)
    async with asyncio.timeout(HANG_S):
        index = 0
        while not index:
            try:
                index = await client.append_unconditionally([document(b"b")])
            except NotLeader:
                continue
    assert (await read_at(client, index)).payload == b"b"


async def test_without_a_majority_nothing_is_stored(three: RaftLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_RETRY_S", 0.3)
    leader_id = await three.leader()
    alone = leader_id % 3 + 1
    for node_id in {1, 2, 3} - {alone}:
        await three.stop(node_id)
    client = three.client(alone)
    async with asyncio.timeout(HANG_S):
        while (await client.watch(0, 0)).leader_id is not None:  # noqa: ASYNC110 no event
            await asyncio.sleep(0.02)
    last_index = (await client.status()).last_index
    with pytest.raises(NotLeader):
        await client.append_unconditionally([document()])
    assert (await client.status()).last_index == last_index


async def test_documents_between_do_not_make_a_plan_old_and_changes_do(tmp_path: Path) -> None:
    async with raft_logs(tmp_path, 1) as logs:
        await logs.leader()
        client = logs.client(1)
        planned = await client.append([data_entry(b"a")]) + 1
        for _ in range(3):
            await client.append_unconditionally([document()])
        assert await client.confirm(planned - 1)
        assert await client.append([data_entry(b"b")], planned) == planned + 3
        assert not await client.confirm(planned + 2)
        assert await client.append([data_entry(b"c")], planned) == 0
        assert await client.append([data_entry(b"c")], planned + 3) == 0
        assert await client.append([data_entry(b"c")], planned + 4) == planned + 4


async def test_the_log_keeps_what_any_of_its_views_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JournalConfig, "__init__", _keeping_nothing)
    async with raft_logs(tmp_path, 1, search=True) as logs:
        await logs.leader()
        client = logs.client(1)
        index = await client.append([data_entry(b"a")])
        await client.append_unconditionally([document()])
        await client.truncate_before(index + 1, QUADS)
        assert (await client.status()).first_index == 1
        await client.truncate_before(index, SEARCH)
        assert (await client.status()).first_index == index
        await client.truncate_before(index + 2, SEARCH)
        assert (await client.status()).first_index == index + 1


_init = JournalConfig.__init__


def _keeping_nothing(self: JournalConfig, *members: Any, **named: Any) -> None:
    _init(self, *members, **{**named, "keep_bytes": 0})
