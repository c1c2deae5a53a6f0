"""Quads and documents in one log: the shard's writes beside another writer, which asks nobody."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.node.store_lifecycle import StoreConfig
from actors.shard.shard_writer import WriterConfig
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.log.file_log import FileLogConfig
from graphdb.log.payloads import encode_changes
from graphdb.log.views import QUADS, SEARCH
from graphdb.model import ChangeSet, EntryKind, LogEntry
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.readers import answering
from tests.support.shards import Shard, no_readers
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio
SMALL = FileLogConfig(segment_bytes=16_384, reserve_bytes=16_384)
DOCUMENT = LogEntry(0, 0, EntryKind.SEARCH, bytes(16), 0, b"document" * 600)  # the store reads its head alone
PARTS = WriterConfig(part_bytes_max=20_000, follow_s=1000)  # follows once, when it starts
PATIENT = StoreConfig(checkpoint_log_bytes=100_000, writer=PARTS)
PROMPT = StoreConfig(checkpoint_log_bytes=100_000, writer=WriterConfig(follow_s=0.01))


@asynccontextmanager
async def two_writers(data_dir: Path, config: StoreConfig) -> AsyncIterator[tuple[Shard, LogClient]]:
    log = UpdateLog(str(data_dir / "log"), SMALL, views=(QUADS, SEARCH), socket_directory=str(data_dir))
    shard = Shard.standalone(
        Settings(server={"data_dir": data_dir}),
        LogClient(answering(log.endpoint()), omits_search=True),
        no_readers(),
        config,
    )
    other = LogClient(answering(log.endpoint()))
    try:
        await shard.start()
        yield shard, other
    finally:
        await other.close()
        await shard.close()
        log.close()


async def insert(shard: Shard, number: int) -> int:
    text = f"INSERT DATA {{ <urn:s> <urn:p> {number} }}"
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())).snapshot_index


async def put(shard: Shard, count: int) -> int:
    async def body() -> AsyncIterator[bytes]:
        for number in range(count):
            yield b"<urn:s%d> <urn:p> <urn:o> .\n" % number

    confirmation = await shard.writes(FULL_VISIBILITY).write_graph(
        body(),
        RdfSyntax.N_TRIPLES,
        graph=NamedNode("urn:g"),
        whole_dataset=False,
        replace=True,
        base_iri=None,
    )
    return confirmation.snapshot_index


async def all_entries(log: LogClient) -> list[LogEntry]:
    found = await log.read(1)
    while more := await log.read(len(found) + 1):
        found += more
    return found


@asynccontextmanager
async def documents_streaming(log: LogClient) -> AsyncIterator[list[int]]:
    """One after the other, as fast as the log takes them."""
    stored: list[int] = []

    async def go() -> None:
        while True:
            stored.append(await log.append_unconditionally([DOCUMENT]))

    task = asyncio.create_task(go())
    try:
        yield stored
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("config", [PATIENT, PROMPT])
async def test_writes_get_their_places_among_documents(tmp_path: Path, config: StoreConfig) -> None:
    async with two_writers(tmp_path, config) as (shard, log):
        async with documents_streaming(log) as stored:
            indexes = [await insert(shard, number) for number in range(50)]
            again = await insert(shard, 0)  # changes nothing, and is confirmed all the same
        assert len(stored) > 20
        assert again >= indexes[-1]
        kinds = {entry.log_index: entry.kind for entry in await all_entries(log)}
        assert [index for index, kind in kinds.items() if kind is EntryKind.CHANGES] == indexes
        assert {kinds[index] for index in stored} == {EntryKind.SEARCH}
    async with two_writers(tmp_path, PATIENT) as (shard, _):
        assert len([*shard.graph_quads(None)]) == 50


async def test_a_large_load_makes_progress_while_documents_stream_in(tmp_path: Path) -> None:
    """Its parts have documents between them; it takes about as long as by itself."""
    async with two_writers(tmp_path, PATIENT) as (shard, log):
        began = time.monotonic()
        await put(shard, 12_000)
        alone_s = time.monotonic() - began
        await put(shard, 0)
        async with documents_streaming(log) as stored:
            began = time.monotonic()
            closed = await asyncio.wait_for(put(shard, 12_000), 10 * alone_s + HANG_S)
        assert stored[-1] > stored[0]
        own = [entry for entry in await all_entries(log) if entry.log_index <= closed]
        parts = [entry.log_index for entry in own if entry.kind is EntryKind.PART]
        assert own[-1].kind is EntryKind.CLOSE
        assert any(first < index < closed for first in parts[-3:] for index in stored)
        assert len([*shard.graph_quads(NamedNode("urn:g"))]) == 12_000
    async with two_writers(tmp_path, PATIENT) as (shard, _):
        assert len([*shard.graph_quads(NamedNode("urn:g"))]) == 12_000


async def test_a_store_that_nobody_writes_to_follows_what_others_write(tmp_path: Path) -> None:
    """And lets the log go, once the other view does."""
    async with two_writers(tmp_path, PROMPT) as (shard, log):
        await insert(shard, 1)
        for _ in range(400):
            last_index = await log.append_unconditionally([DOCUMENT])
        await shard.wait_for_index(last_index, 5)
        assert (await log.status()).first_index == 1
        async with asyncio.timeout(HANG_S):
            while (await log.status()).first_index <= 100:  # the store saves what it has in its own time
                await log.truncate_before(last_index, SEARCH)
                await asyncio.sleep(0.05)


async def test_documents_that_are_passed_over_let_the_log_go_too(tmp_path: Path) -> None:
    """Between writes nothing is followed: what the log holds has to be seen."""
    config = StoreConfig(checkpoint_log_bytes=100_000, writer=WriterConfig(follow_s=0.3))
    async with two_writers(tmp_path, config) as (shard, log):
        for number in range(100):
            for _ in range(5):
                last_index = await log.append_unconditionally([DOCUMENT])
            await insert(shard, number)
        async with asyncio.timeout(HANG_S):
            while (await log.status()).first_index < 100:
                await log.truncate_before(last_index, SEARCH)
                await log.append_unconditionally([DOCUMENT])
                await asyncio.sleep(0.1)


def times_of(directory: Path) -> dict[Path, int]:
    """When each file was last changed."""
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()}


async def test_an_idle_node_writes_nothing(tmp_path: Path) -> None:
    async with two_writers(tmp_path, PROMPT) as (shard, log):
        await insert(shard, 1)
        before: dict[Path, int] = {}
        async with asyncio.timeout(HANG_S):
            while before != (before := times_of(tmp_path)):  # noqa: ASYNC110 what was begun may be under way
                await asyncio.sleep(0.3)
        assert (await log.status()).last_index == 1


async def test_parts_of_a_writer_that_has_died_are_ended_and_do_not_hold_the_log(tmp_path: Path) -> None:
    part = encode_changes(ChangeSet())
    async with two_writers(tmp_path, PATIENT) as (_, log):
        await log.append([LogEntry(0, 0, EntryKind.PART, b"x" * 16, 0, part)])
        await log.append_unconditionally([DOCUMENT])
    async with two_writers(tmp_path, PATIENT) as (shard, log):
        kinds = [entry.kind for entry in await all_entries(log)]
        assert kinds == [EntryKind.PART, EntryKind.SEARCH, EntryKind.NOTHING]
        assert await insert(shard, 1) == 4
    async with two_writers(tmp_path, PATIENT) as (shard, log):
        assert len([*shard.graph_quads(None)]) == 1
        assert len(await all_entries(log)) == 4
