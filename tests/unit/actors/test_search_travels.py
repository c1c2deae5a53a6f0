"""Documents go where quads go: backups, restores, bulk loads, clusters, snapshots for peers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Quad

from actors.clustering import maintenance
from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.offline import back_up_offline, enter_cluster, load_in_bulk, restore
from actors.search.catalog_view import CatalogView
from actors.search.recovery import SearchDirectory
from actors.shard.search_state import copy_search, saved_search_index
from actors.shard.store_directory import StoreDirectory
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.errors import LogUnavailable
from graphdb.log.file_log import FileLog
from graphdb.log.file_system import RealFileSystem
from graphdb.log.views import QUADS, SEARCH
from graphdb.model import EntryKind, LogEntry
from graphdb.search.catalog.catalog_commands import Command, CreateIndex, DocumentWrite, WriteDocuments
from graphdb.search.catalog.command_codec import encode_command
from graphdb.search.segments.operations import Action, Operation
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.clustered_shards import alone
from tests.support.readers import answering
from tests.support.shards import Shard, no_readers

pytestmark = pytest.mark.anyio
QUAD = Quad(NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
MADE = CreateIndex("works", "u-1", {})


def document(doc_id: str) -> Command:
    return WriteDocuments((DocumentWrite("works", Operation(Action.INDEX, doc_id, b'{"title": "a b"}')),))


def entry(command: Command) -> LogEntry:
    return LogEntry(0, 0, EntryKind.SEARCH, bytes(16), 0, encode_command(command))


@asynccontextmanager
async def standing_alone(data_dir: Path) -> AsyncIterator[tuple[Shard, LogClient]]:
    log = UpdateLog(str(data_dir / "log"), views=(QUADS, SEARCH))
    client = LogClient(answering(log.endpoint()))
    settings = Settings(server={"data_dir": data_dir})
    shard = Shard.standalone(settings, LogClient(answering(log.endpoint())), no_readers())
    try:
        await shard.start()
        yield shard, client
    finally:
        await client.close()
        await shard.close()
        log.close()


async def insert(shard: Shard, value: int) -> int:
    text = f"INSERT DATA {{ <urn:s> <urn:p> {value} }}"
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())).snapshot_index


async def follow(data_dir: Path, log: LogClient, *, flush: bool) -> CatalogView:
    """As the node's search does."""
    view = SearchDirectory(data_dir).open()
    while entries := await log.read(view.applied_index + 1):
        view.apply(entries)
    if flush:
        view.flush()
    return view


def found(view: CatalogView) -> list[str]:
    """Which of the documents a to f are in the index, with their versions."""
    index = view.catalog.find("works")
    if index is None:
        return []
    documents = {doc_id: index.shards.get(doc_id) for doc_id in "abcdef"}
    return [f"{doc_id}{known.version}" for doc_id, known in documents.items() if known is not None]


def on_disk(data_dir: Path) -> list[str]:
    return found(SearchDirectory(data_dir).open())


async def write_alone(data_dir: Path, doc_ids: Sequence[str] = "ab", *, flush: bool = True) -> None:
    """Quads and documents by turns; what is flushed of the documents is all but the last."""
    async with standing_alone(data_dir) as (shard, log):
        await log.append_unconditionally([entry(MADE)])
        for value, doc_id in enumerate(doc_ids):
            if flush:
                await follow(data_dir, log, flush=True)
            await insert(shard, value)
            await log.append_unconditionally([entry(document(doc_id))])


@pytest.mark.parametrize("flush", [True, False])
async def test_a_backup_of_a_stopped_service_and_what_is_restored_from_it(
    tmp_path: Path, flush: bool
) -> None:
    data_dir, backup, elsewhere = tmp_path / "node", tmp_path / "backup", tmp_path / "elsewhere"
    await write_alone(data_dir, flush=flush)
    index = back_up_offline(data_dir, backup)
    await write_alone(elsewhere, "def")
    assert restore(backup, elsewhere, replace=True) == index == saved_search_index(backup)
    for place in (backup, elsewhere):
        async with standing_alone(place) as (shard, log):
            assert (await log.status()).first_index == index + 1
            assert found(await follow(place, log, flush=False)) == ["a1", "b1"]
            await log.append_unconditionally([entry(document("c")), entry(document("a"))])
            await insert(shard, 7)
            assert found(await follow(place, log, flush=True)) == ["a2", "b1", "c1"]
            assert len([*shard.graph_quads(None)]) == 3


async def test_a_backup_of_a_service_at_work(tmp_path: Path) -> None:
    """Its documents are on disk before, by whoever calls; what comes after the call may be in it or not."""
    data_dir, backup = tmp_path / "node", tmp_path / "backup"
    await write_alone(data_dir)
    async with standing_alone(data_dir) as (shard, log):
        await insert(shard, 7)
        await follow(data_dir, log, flush=True)
        index = await shard.backup(backup)
        await log.append_unconditionally([entry(document("c"))])
        await follow(data_dir, log, flush=True)
    assert saved_search_index(backup) == index
    assert (on_disk(backup), on_disk(data_dir)) == (["a1", "b1"], ["a1", "b1", "c1"])
    async with standing_alone(backup) as (shard, log):
        await log.append_unconditionally([entry(document("b"))])
        assert found(await follow(backup, log, flush=True)) == ["a1", "b2"]
    assert on_disk(data_dir) == ["a1", "b1", "c1"], "a backup stands for itself"


async def test_restoring_a_backup_without_documents_leaves_none(tmp_path: Path) -> None:
    data_dir, backup = tmp_path / "node", tmp_path / "backup"
    async with standing_alone(tmp_path / "other") as (shard, _):
        await insert(shard, 1)
    back_up_offline(tmp_path / "other", backup)
    assert not (backup / "search").exists()
    await write_alone(data_dir)
    restore(backup, data_dir, replace=True)
    assert on_disk(data_dir) == []


@pytest.mark.parametrize("flush", [True, False])
async def test_a_bulk_load_keeps_documents(tmp_path: Path, flush: bool) -> None:
    await write_alone(tmp_path, flush=flush)
    assert load_in_bulk(tmp_path, [QUAD]) == 1
    async with standing_alone(tmp_path) as (shard, log):
        begins = (await log.status()).first_index
        assert saved_search_index(tmp_path) == begins - 1
        await log.append_unconditionally([entry(document("c"))])
        assert found(await follow(tmp_path, log, flush=True)) == ["a1", "b1", "c1"]
        assert len([*shard.graph_quads(None)]) == 3


async def test_a_bulk_load_that_fails_keeps_documents(tmp_path: Path) -> None:
    await write_alone(tmp_path, flush=False)

    def failing() -> list[Quad]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_in_bulk(tmp_path, (quad for _ in (1,) for quad in failing()))
    async with standing_alone(tmp_path) as (_, log):
        assert found(await follow(tmp_path, log, flush=False)) == ["a1", "b1"]


@pytest.mark.parametrize("flush", [True, False])
async def test_a_node_that_enters_a_cluster_brings_its_documents(tmp_path: Path, flush: bool) -> None:
    data_dir = tmp_path / "1"
    await write_alone(data_dir, flush=flush)
    enter_cluster(data_dir, 1)
    enter_cluster(data_dir, 1)
    log = FileLog(RealFileSystem(), str(data_dir / "log"))
    assert saved_search_index(data_dir) == log.last_index == log.first_index - 1
    log.close()
    assert on_disk(data_dir) == ["a1", "b1"]


async def test_a_snapshot_has_the_documents_that_are_on_disk_as_of_its_index_or_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir, peer = tmp_path / "1", StoreDirectory(tmp_path / "peer")
    async with alone(tmp_path) as node:
        log = node.parts.log
        await log.append_unconditionally([entry(MADE), entry(document("a"))])
        index = await insert(node, 1)
        tree = node.opened().directory.scratch / "snapshot"
        assert await node.opened().make_snapshot(tree) == index
        monkeypatch.setattr(maintenance, "_SEARCH_S", 0.1)
        with pytest.raises(LogUnavailable, match="not on disk"):
            await maintenance._add_search(data_dir, tree, index)
        monkeypatch.setattr(maintenance, "_SEARCH_S", 10)
        adding = asyncio.create_task(maintenance._add_search(data_dir, tree, index))
        await log.append_unconditionally([entry(document("b"))])
        reached = (await follow(data_dir, log, flush=True)).applied_index
        await adding
        for _ in range(2):  # a second time after a crash
            await asyncio.to_thread(peer.adopt_snapshot, tree, index)
        received = SearchDirectory(peer.path)
        assert on_disk(peer.path) == [], "it is its owner who takes it over"
        assert received.adopt_incoming(0)
        assert (saved_search_index(peer.path), peer.read_applied()) == (reached, index)
        assert on_disk(peer.path) == ["a1", "b1"]
        await asyncio.to_thread(peer.adopt_snapshot, tree, index)
        assert not received.adopt_incoming(reached)
        assert on_disk(peer.path) == on_disk(data_dir)


def test_where_there_are_no_documents_there_is_nothing_to_copy(tmp_path: Path) -> None:
    assert saved_search_index(tmp_path) is None
    assert copy_search(tmp_path, tmp_path / "target") is None
    assert list(tmp_path.iterdir()) == []
