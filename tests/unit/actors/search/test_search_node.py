"""One node's indexes over a real log: what is written, found, kept over restarts, and refused."""

import asyncio
import threading
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from actors.search import document_writer, search_node, upkeep
from actors.search.open_search import SearchConfig
from actors.search.search_node import SearchNode
from actors.search.upkeep import UpkeepConfig
from graphdb.config import Settings
from graphdb.errors import LogUnavailable, StorageFull
from graphdb.search.catalog.catalog_commands import (
    BeginSnapshotWork,
    CloseIndices,
    CreateIndex,
    DeleteIndices,
    DocumentWrite,
    EndSnapshotWork,
    PutIndexTemplate,
    PutLifecycle,
    PutRepository,
    PutSettings,
    RefreshIndices,
)
from graphdb.search.catalog.data_streams import backing_indexes
from graphdb.search.catalog.files import CatalogFiles
from graphdb.search.catalog.filling import AwayNodes
from graphdb.search.errors import SearchError
from graphdb.search.segments.index_files import IndexFiles
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.operations import Action, Operation, Outcome
from graphdb.search.segments.shard_view import array_segment
from graphdb.search.vectors.upkeep import ROWS_MIN
from tests.support.memory_log import MemoryLog
from tests.support.search_nodes import found, index_of, indexed, open_node, source_of, started
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

NEVER_FLUSHES = SearchConfig(upkeep=UpkeepConfig(flush_bytes=1 << 40, flush_s=1e9))


async def test_what_was_written_is_there_at_once_and_found_after_a_refresh(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.perform(CreateIndex("books", "u1", {"settings": {"index": {"refresh_interval": "-1"}}}))
        (result,) = await node.write([indexed(1)])
        assert (result.index, result.result.outcome, result.result.version) == ("books", Outcome.CREATED, 1)
        assert source_of(node, 1) == indexed(1).operation.body
        assert found(node) == 0
        await node.refresh([index_of(node)])
        assert found(node) == 1


async def test_it_reports_how_well_it_follows_the_log(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        await node.write([indexed(1)], "true")
        status = node.view_status()
        assert (status.name, status.state, status.index) == ("search", "following", log.last_index)
        assert [view.name for view in await log.reported_views()] == ["search"]
    assert node.view_status().state == "starting"


async def test_short_writes_take_effect_without_a_thread(tmp_path: Path) -> None:
    threads: list[int] = []

    async def applied_on_loop(work: Awaitable[Any]) -> bool:
        threads.clear()
        await work
        return threading.get_ident() in threads

    async with open_node(tmp_path, NEVER_FLUSHES) as node:
        await node.perform(CreateIndex("books", "u1", {"settings": {"index": {"refresh_interval": "-1"}}}))
        opened = node._opened()
        opened.tell_changes(lambda: threads.append(threading.get_ident()))
        assert await applied_on_loop(node.write([indexed(1)]))
        assert await applied_on_loop(node.write([indexed(number) for number in range(20)]))
        assert source_of(node, 19) == indexed(19).operation.body
        assert not await applied_on_loop(node.write([indexed(number) for number in range(100)]))
        assert not await applied_on_loop(node.write([indexed(1)], "true"))
        assert not await applied_on_loop(node.perform(CreateIndex("third", "u3", {})))
        busy, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            busy.set()
            assert go_on.wait(HANG_S)

        holding = asyncio.create_task(opened._thread.write(hold))
        await asyncio.to_thread(busy.wait, HANG_S)
        writing = asyncio.create_task(node.write([indexed(200)]))
        await asyncio.sleep(0.05)
        assert source_of(node, 200) is None  # nothing changes the catalogue beside its thread
        go_on.set()
        await asyncio.gather(holding, writing)
        assert source_of(node, 200) is not None
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        assert node.begin_write(indexed(201), told)
        assert (await told).result.version == 1
        assert source_of(node, 201) is not None
        assert not await applied_on_loop(node.write([indexed(1, "other")]))  # its index is made


async def test_an_index_that_is_not_there_is_made(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        (result,) = await node.write([indexed(1, "new")], "true")
        assert result.result.error is None
        assert found(node, "new") == 1


@pytest.mark.parametrize("refresh", ["true", "wait_for"])
@pytest.mark.parametrize("count", [1, 2500])
async def test_a_write_that_is_to_be_found_is_found_when_it_is_answered(
    tmp_path: Path, refresh: str, count: int
) -> None:
    async with open_node(tmp_path) as node:
        results = await node.write([indexed(number) for number in range(count)], refresh)
        assert len(results) == count
        assert found(node) == count


async def test_writes_are_found_by_themselves_after_the_refresh_interval(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.perform(CreateIndex("books", "u1", {"settings": {"index": {"refresh_interval": "200ms"}}}))
        await node.write([indexed(1)])
        assert found(node) == 0
        async with asyncio.timeout(HANG_S):
            while found(node) == 0:  # noqa: ASYNC110 nobody tells of a refresh
                await asyncio.sleep(0.01)


async def test_many_parts_keep_the_order_of_writes_to_one_document(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        writes = [
            replace(indexed(number), operation=indexed(number).operation._replace(doc_id="same"))
            for number in range(3000)
        ]
        results = await node.write(writes)
        assert [one.result.version for one in results] == list(range(1, 3001))
        document = index_of(node).shards.get("same")
        assert document is not None
        assert document.source == writes[-1].operation.body


def _update(doc_id: str, number: int, wants_source: bool = False) -> DocumentWrite:
    body = orjson.dumps({"doc": {"number": number}})
    return DocumentWrite("books", Operation(Action.UPDATE, doc_id, body, wants_source=wants_source))


async def test_updates_of_long_documents_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred bytes of each make 30 kB: entries end after four, and wait for a flush after every eighth."""
    monkeypatch.setattr(document_writer, "_MADE_BYTES", 120_000)
    log = MemoryLog()
    config = SearchConfig(upkeep=UpkeepConfig(flush_bytes=120_000, flush_s=1e9))
    async with started(tmp_path, log, config) as node:
        await node.perform(CreateIndex("books", "u1", {"mappings": {"dynamic": False}}))
        long = orjson.dumps({"number": -1, "text": "x" * 30_000})
        await node.write([DocumentWrite("books", Operation(Action.INDEX, "long", long)), indexed(7)])
        generations = []
        for first in (0, 40):
            before = log.last_index
            results = await node.write([_update("long", first + number) for number in range(40)])
            assert log.last_index - before >= 10
            assert [one.result.version for one in results] == list(range(first + 2, first + 42))
            assert {one.result.source for one in results} == {None}
            generations.append(next(iter(index_of(node).shards)).generation)
        assert generations[1] - generations[0] >= 4
        document = index_of(node).shards.get("long")
        assert document is not None
        assert document.source == long.replace(b"-1", b"79", 1)

        shown = await node.write([_update("long", 100 + number, True) for number in range(10)])
        assert shown[0].result.source == long.replace(b"-1", b"100", 1)
        assert sum(len(one.result.source or b"") for one in shown) < 120_000

        before = log.last_index
        results = await node.write([_update("7", number, True) for number in range(400)], "true")
        assert log.last_index - before <= 8  # 1, 4, 16, 64, 256, the others; and it is found
        assert orjson.loads(results[-1].result.source or b"")["number"] == 399


async def test_an_update_that_fails_is_one_of_many(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        results = await node.write([_update("1", 1), indexed(1), _update("1", 2), _update("none", 3)])
        assert [one.result.status for one in results] == [404, 201, 200, 404]


@pytest.mark.parametrize("config", [None, NEVER_FLUSHES])
async def test_everything_is_there_after_a_restart(tmp_path: Path, config: SearchConfig | None) -> None:
    async with open_node(tmp_path, config) as node:
        await node.write([indexed(number) for number in range(100)])
        await node.flush()
        await node.write([indexed(100)])
        before = node.status().snapshot_index
    async with open_node(tmp_path) as node:
        assert node.status().snapshot_index == before
        assert [source_of(node, number) for number in range(101)] == [
            indexed(number).operation.body for number in range(101)
        ]
        (result,) = await node.write([indexed(100)])
        assert result.result.version == 2


async def test_a_flush_lets_the_log_forget(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        assert log.released == {"search": 1}
        await node.write([indexed(1)])
        await node.flush()
        assert log.released == {"search": log.last_index + 1}


class Held:
    """A method that waits, on its thread, until it may go on; then it does what it did."""

    def __init__(self, owner: type, name: str, patches: pytest.MonkeyPatch) -> None:
        self.begun, self.may_go_on = threading.Event(), threading.Event()
        method = getattr(owner, name)

        def held(*arguments: Any) -> Any:
            self.begun.set()
            assert self.may_go_on.wait(HANG_S)
            return method(*arguments)

        patches.setattr(owner, name, held)

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, HANG_S)


@pytest.mark.parametrize("held", [(CatalogFiles, "write"), (IndexShard, "build_sealed")])
async def test_writes_do_not_wait_for_a_flush_or_a_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: tuple[type, str]
) -> None:
    async with open_node(tmp_path, NEVER_FLUSHES) as node:
        await node.perform(CreateIndex("books", "u1", {"settings": {"index": {"refresh_interval": "-1"}}}))
        await node.write([indexed(number) for number in range(10)])
        with monkeypatch.context() as patches:
            long = Held(*held, patches)
            work = asyncio.create_task(
                node.flush() if held[0] is CatalogFiles else node.refresh([index_of(node)])
            )
            await long.has_begun()
            await node.write([indexed(3, "books"), indexed(10)])
            assert source_of(node, 4) == indexed(4).operation.body
            (result,) = await node.write([indexed(4)])
            assert result.result.version == 2
            assert found(node) == 0
            long.may_go_on.set()
            await work
        assert found(node) == 10
        await node.refresh([index_of(node)])
        assert found(node) == 11
    async with open_node(tmp_path) as node:
        assert found(node) == 11
        (result,) = await node.write([indexed(4)])
        assert result.result.version == 3


async def test_a_flush_that_fails_leaves_what_was_written_findable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_node(tmp_path, NEVER_FLUSHES) as node:
        await node.perform(CreateIndex("books", "u1", {"settings": {"index": {"refresh_interval": "-1"}}}))
        await node.write([indexed(1)])
        with monkeypatch.context() as patches:
            patches.setattr(IndexFiles, "commit", failing)
            with pytest.raises(StorageFull):
                await node.flush()
        assert found(node) == 1
        await node.write([indexed(2)])
        await node.flush()
    async with open_node(tmp_path) as node:
        assert found(node) == 2


def failing(*arguments: Any) -> None:
    raise StorageFull("no room")


async def test_memory_goes_back_when_nothing_has_changed_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back = asyncio.Event()
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(upkeep, "give_back", lambda: loop.call_soon_threadsafe(given_back.set))
    config = SearchConfig(upkeep=UpkeepConfig(look_s=0.01, rest_s=0.1))
    async with open_node(tmp_path, config) as node:
        for command in (CreateIndex("books", "u1", {}), DeleteIndices(("u1",))):
            await node.perform(command)
            async with asyncio.timeout(HANG_S):
                await given_back.wait()
            given_back.clear()
        await asyncio.sleep(0.3)
        assert not given_back.is_set()


async def test_segments_are_merged_when_nothing_is_written(tmp_path: Path) -> None:
    config = SearchConfig(upkeep=UpkeepConfig(look_s=0.01, merge_rest_s=0.1))
    async with open_node(tmp_path, config) as node:
        for number in range(4):
            await node.write([indexed(number)], "true")
        leaves = index_of(node).shards.leaves
        async with asyncio.timeout(HANG_S):
            # merged, and on disk: a process beside the port has files to map
            while len(leaves()) > 1 or array_segment(leaves()[0]).file is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert found(node) == 4
        assert [source_of(node, number) for number in range(4)] == [
            indexed(number).operation.body for number in range(4)
        ]


async def test_what_others_have_logged_is_followed(tmp_path: Path) -> None:
    log = MemoryLog()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with started(tmp_path / "a", log) as writer, started(tmp_path / "b", log) as follower:
        await writer.write([indexed(1)], "true")
        async with asyncio.timeout(HANG_S):
            while follower.status().snapshot_index < log.last_index:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert found(follower) == 1


async def test_an_index_that_was_deleted_is_gone(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.perform(CreateIndex("books", "u1", {}))
        await node.perform(DeleteIndices(("u1",)))
        assert node.catalog.find("books") is None


async def test_the_refresh_interval_can_be_changed(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.perform(CreateIndex("books", "u1", {"settings": {"index": {"refresh_interval": "-1"}}}))
        await node.perform(PutSettings(("u1",), {"refresh_interval": "1ms"}))
        await node.write([indexed(1)], "wait_for")
        assert found(node) == 1


async def test_force_merge_leaves_as_many_segments_as_are_wanted(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        for number in range(5):
            await node.write([indexed(number)], "true")
        index = index_of(node)
        assert index.shards.stats().segments == 5
        await node.force_merge([index], 2)
        assert index.shards.stats().segments == 2
        await node.force_merge([index], 1)
        assert (index.shards.stats().segments, found(node)) == (1, 5)


async def test_force_merge_may_only_write_again_what_has_deleted_documents(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        for start in (0, 3):
            await node.write([indexed(number) for number in range(start, start + 3)], "true")
        await node.write([indexed(0)], "true")
        index = index_of(node)
        before = [leaf.segment for leaf in index.shards.leaves()]
        await node.force_merge([index], None, only_deletions=True)
        after = [leaf.segment for leaf in index.shards.leaves()]
        assert [left is right for left, right in zip(before, after, strict=True)] == [False, True, True]
        assert (index.shards.stats().deleted, found(node)) == (0, 6)


async def test_force_merge_without_a_number_merges_what_is_worth_it(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        for number in range(3):
            await node.write([indexed(number)], "true")
        index = index_of(node)
        await node.force_merge([index], None)
        assert index.shards.stats().segments == 3


async def test_merged_segments_are_put_on_disk_although_nothing_is_written(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        for number in range(3):
            await node.write([indexed(number)], "true")
        index = index_of(node)
        await node.flush()
        await node.force_merge([index], 1)
        async with asyncio.timeout(HANG_S):
            while any(array_segment(leaf).file is None for leaf in index.shards.leaves()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert len(index.shards.leaves()) == 1
    async with open_node(tmp_path) as node:
        assert len(index_of(node).shards.leaves()) == 1
        assert found(node) == 3


async def with_vectors(node: SearchNode) -> None:
    """Write as many as have a graph, and refresh."""
    vector = {"type": "dense_vector", "dims": 4, "similarity": "l2_norm"}
    writes = [indexed(number) for number in range(ROWS_MIN)]
    for number, one in enumerate(writes):
        body = b'{"v":[%d,%d,%d,1]}' % (number % 7, number % 11, number % 13)
        writes[number] = replace(one, operation=one.operation._replace(body=body))
    await node.perform(CreateIndex("books", "u1", {"mappings": {"properties": {"v": vector}}}))
    await node.write(writes, "true")


async def test_vectors_have_graphs_although_their_index_is_written_to_without_end(tmp_path: Path) -> None:
    config = UpkeepConfig(graph_rest_s=1e9, graph_wait_s=0.3)
    async with open_node(tmp_path, replace(NEVER_FLUSHES, upkeep=config)) as node:
        await with_vectors(node)
        async with asyncio.timeout(HANG_S):
            while not graph_files(tmp_path):
                await node.write([indexed(0)], "true")
                await asyncio.sleep(0.05)  # the graph is made on a thread of low priority


async def test_vectors_have_graphs_which_are_read_again_after_a_restart(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await with_vectors(node)
        await node.force_merge([index_of(node)], 1)
        await graphs_of(node)
        await node.flush()
    made = graph_files(tmp_path)
    assert len(made) == 1
    async with open_node(tmp_path) as node:
        await graphs_of(node)
    assert graph_files(tmp_path) == made


def graph_files(directory: Path) -> dict[str, int]:
    """When each was written."""
    return {path.name: path.stat().st_mtime_ns for path in directory.rglob("*.hnsw")}


async def graphs_of(node: SearchNode) -> None:
    """Return when every segment has one."""
    async with asyncio.timeout(HANG_S):
        while not all(leaf.segment.derived for leaf in index_of(node).shards.leaves()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_full_disk_refuses_writes_before_they_are_logged(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log, SearchConfig(room_bytes=1 << 60)) as node:
        with pytest.raises(SearchError, match="flood-stage watermark") as refused:
            await node.write([indexed(1)])
        assert (refused.value.kind, refused.value.status) == ("cluster_block_exception", 429)
        assert (log.entries, node.status().status) == ([], "degraded")


def deletion(number: int) -> DocumentWrite:
    return DocumentWrite("books", Operation(Action.DELETE, str(number)))


async def test_a_full_disk_takes_deletions_and_refreshes(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        await node.write([indexed(number) for number in range(3)], refresh="true")
        node._config = replace(node._config, room_bytes=1 << 60)
        with pytest.raises(SearchError, match="flood-stage watermark"):
            await node.perform(CreateIndex("more", "u2", {}))
        deleted, added = await node.write([deletion(0), indexed(9)], refresh="true")
        assert (deleted.result.error, deleted.result.status) == (None, 200)
        assert added.result.error is not None
        assert (added.result.error.kind, added.result.error.status) == ("cluster_block_exception", 429)
        (again,) = await node.write([deletion(1)])
        assert again.result.error is None
        await node.perform(RefreshIndices((index_of(node).uuid,)))
        assert found(node) == 1
        await node.perform(DeleteIndices((index_of(node).uuid,)))
        assert node.catalog.find("books") is None


async def test_before_its_start_a_node_says_that_it_is_starting(tmp_path: Path) -> None:
    node = SearchNode(Settings.model_validate({"server": {"data_dir": tmp_path}}), MemoryLog())
    assert node.writing().size == 0  # so that `/_nodes` answers before the indexes are open
    assert (node.status().status, node.status().index_loaded) == ("starting", False)
    with pytest.raises(LogUnavailable):
        _ = node.catalog
    with pytest.raises(LogUnavailable):
        await node.write([indexed(1)])


async def test_lifecycles_are_obeyed_and_data_streams_survive_a_restart(tmp_path: Path) -> None:
    phases = {"hot": {"actions": {"rollover": {"max_docs": 1}}}, "delete": {"actions": {"delete": {}}}}
    template = {"settings": {"index.lifecycle.name": "p"}}
    document = indexed(1, "logs").operation._replace(action=Action.CREATE, body=b'{"@timestamp":1}')
    async with open_node(tmp_path, SearchConfig(lifecycles_s=0.05)) as node:
        await node.perform(PutLifecycle("p", {"phases": phases}))
        body = {"index_patterns": ["logs"], "data_stream": {}, "template": template}
        await node.perform(PutIndexTemplate("t", body))
        (result,) = await node.write([DocumentWrite("logs", document)], "true")
        assert result.result.error is None
        async with asyncio.timeout(HANG_S):
            while node.catalog.find(result.index) is not None:  # noqa: ASYNC110 nobody tells of a deletion
                await asyncio.sleep(0.01)
        (left,) = backing_indexes(node.catalog.state, "logs")
    async with open_node(tmp_path) as node:
        assert [one.uuid for one in backing_indexes(node.catalog.state, "logs")] == [left.uuid]
        assert node.catalog.data_streams["logs"]["generation"] == 2
        assert node.catalog.lifecycles["p"]["policy"] == {"phases": phases}


async def test_an_index_that_was_not_filled_to_its_end_is_deleted(tmp_path: Path) -> None:
    own, other = 1, 2
    async with open_node(tmp_path) as node:
        for name, filled_by in (("half", own), ("whole", own), ("others", other)):
            node.filling.add(name)
            await node.perform(CreateIndex(name, name, filled_by=filled_by))
            await node.write([indexed(1, name)])
        await node.perform(PutSettings(("whole",), {}, filled=True))
        assert len(node.catalog.indexes()) == 3
    async with open_node(tmp_path) as node, asyncio.timeout(HANG_S):
        while node.catalog.find("half") is not None:  # noqa: ASYNC110 nobody tells of a deletion
            await asyncio.sleep(0.01)
        assert {index.name for index in node.catalog.indexes()} == {"whole", "others"}


async def test_an_index_that_is_being_filled_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_node, "_SWEEP_S", 0.01)
    async with open_node(tmp_path) as node:
        node.filling.add("half")
        await node.perform(CreateIndex("half", "half", filled_by=1))
        await node.perform(CreateIndex("left", "left", filled_by=1))  # as if its outcome had been unknown
        async with asyncio.timeout(HANG_S):
            while node.catalog.find("left") is not None:  # noqa: ASYNC110 nobody tells of a deletion
                await asyncio.sleep(0.01)
        assert node.catalog.find("half") is not None


async def test_work_on_a_snapshot_ends_with_the_start_after_it(tmp_path: Path) -> None:
    work = {"node": 1, "kind": "snapshot", "repository": "r", "snapshot": "s", "indices": [], "started_ms": 0}
    async with open_node(tmp_path) as node:
        await node.perform(PutRepository("r", {"type": "fs", "uuid": "u", "settings": {"location": "r"}}))
        node.filling.add("mine")
        await node.perform(BeginSnapshotWork("mine", work))
        with pytest.raises(SearchError, match="already running"):
            await node.perform(BeginSnapshotWork("other", work))
    async with open_node(tmp_path) as node, asyncio.timeout(HANG_S):
        assert list(node.catalog.state.repositories) == ["r"]
        while node.catalog.state.snapshot_work:  # noqa: ASYNC110 nobody tells of its end
            await asyncio.sleep(0.01)
        await node.perform(EndSnapshotWork("mine"))  # once more changes nothing


async def test_what_a_node_had_begun_that_does_not_come_back_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_node, "_SWEEP_S", 0.01)
    work = {"node": 2, "kind": "restore", "repository": "r", "snapshot": "s", "indices": [], "started_ms": 0}
    async with open_node(tmp_path, SearchConfig(away_s=0.05)) as node:
        await node.perform(PutRepository("r", {"type": "fs", "uuid": "u", "settings": {"location": "r"}}))
        node.filling.add("own")
        await node.perform(CreateIndex("own", "own", filled_by=1))
        await node.perform(CreateIndex("old", "old"))
        await node.perform(CloseIndices(("old",)))
        await node.perform(CreateIndex("old", "new", filled_by=2, replaces="old"))
        await node.perform(BeginSnapshotWork("theirs", work))
        async with asyncio.timeout(HANG_S):
            while node.catalog.state.snapshot_work or len(node.catalog.indexes()) > 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert {index.uuid for index in node.catalog.indexes()} == {"old", "own"}
        assert node.catalog.find("old") is node.catalog.state.index("old")


def test_a_node_is_away_from_the_first_look_that_misses_it() -> None:
    away = AwayNodes(10)
    assert away.look([1, 2], {1, 2}, 0) == []
    assert away.look([1, 2], {1}, 100) == []
    assert away.look([1, 2], {1}, 109) == []
    assert away.look([1, 2], {1}, 110) == [2]
    assert away.look([1, 2], {1, 2}, 111) == []
    assert away.look([1, 2], set(), 125) == []
    assert away.look([1], set(), 135) == [1]
