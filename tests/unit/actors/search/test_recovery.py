"""What a node opens: its own directory, a peer's snapshot, a damaged one, and logs that begin late."""

import asyncio
import logging
import os
import shutil
from pathlib import Path

import pytest

from actors.search import recovery
from actors.search.recovery import SearchDirectory
from actors.shard.search_state import receive_search, saved_search_index
from graphdb.errors import UnavailableError
from graphdb.log.file_system import RealFileSystem
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import Command, Outcome
from graphdb.search.catalog.files import read_log_index
from graphdb.search.errors import SearchError
from tests.support.memory_log import MemoryLog
from tests.support.search_nodes import found, indexed, source_of, started
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


async def written(directory: Path, log: MemoryLog, *numbers: int) -> None:
    """Have these documents written by a node on a directory, which closes in order."""
    os.makedirs(directory, exist_ok=True)
    async with started(directory, log) as node:
        for number in numbers:
            await node.write([indexed(number)])


def damage(directory: Path) -> None:
    catalog = directory / "search" / "catalog"
    catalog.write_bytes(catalog.read_bytes()[:-3] + b"???")


async def test_a_damaged_directory_is_made_anew_while_the_log_has_everything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = MemoryLog()
    await written(tmp_path, log, 1, 2)
    damage(tmp_path)
    async with started(tmp_path, log) as node:
        assert source_of(node, 2) == indexed(2).operation.body
    assert (tmp_path / "search.damaged").exists()
    assert "making the search indexes anew from the log" in caplog.text


async def test_a_damaged_directory_that_cannot_be_made_anew_is_left_alone(tmp_path: Path) -> None:
    log = MemoryLog()
    await written(tmp_path, log, 1, 2)
    damage(tmp_path)
    before = (tmp_path / "search" / "catalog").read_bytes()
    log.forget_before(3)
    async with started(tmp_path, log) as node:
        assert node.status().status == "error"
        with pytest.raises(SearchError, match="the log begins at 3, too late") as refused:
            _ = node.catalog
        assert (refused.value.kind, refused.value.status) == ("no_shard_available_action_exception", 503)
        with pytest.raises(SearchError):
            await node.write([indexed(3)])
    assert (tmp_path / "search" / "catalog").read_bytes() == before
    assert not (tmp_path / "search.damaged").exists()


async def test_a_snapshot_that_is_ahead_takes_the_place_of_what_is_there(tmp_path: Path) -> None:
    log = MemoryLog()
    await written(tmp_path / "behind", log, 1)
    await written(tmp_path / "ahead", log, 2, 3)
    shutil.copytree(tmp_path / "ahead" / "search", tmp_path / "behind" / "search.incoming")
    log.forget_before(log.last_index + 1)
    async with started(tmp_path / "behind", log) as node:
        assert source_of(node, 3) == indexed(3).operation.body
        (result,) = await node.write([indexed(3)])
        assert result.result.version == 2
    assert not (tmp_path / "behind" / "search.incoming").exists()


async def test_a_snapshot_that_is_not_ahead_is_dropped(tmp_path: Path) -> None:
    log = MemoryLog()
    await written(tmp_path, log, 1)
    shutil.copytree(tmp_path / "search", tmp_path / "search.incoming")
    await written(tmp_path, log, 2)
    async with started(tmp_path, log) as node:
        assert source_of(node, 2) is not None
    assert not (tmp_path / "search.incoming").exists()


async def test_what_is_applied_again_after_a_crash_is_found_at_once(tmp_path: Path) -> None:
    log = MemoryLog()
    await written(tmp_path / "node", log, 1)
    shutil.copytree(tmp_path / "node", tmp_path / "crashed")
    await written(tmp_path / "node", log, 2, 3)
    async with started(tmp_path / "crashed", log) as node:
        assert found(node) == 3


@pytest.mark.parametrize("moves", range(4))
async def test_taking_over_that_was_cut_short_is_finished(tmp_path: Path, moves: int) -> None:
    log = MemoryLog()
    await written(tmp_path / "node", log, 1)
    await written(tmp_path / "ahead", log, 2)
    place = tmp_path / "node"
    shutil.copytree(tmp_path / "ahead" / "search", place / "search.incoming")
    for source, target in (
        ("search.incoming", "search.taken"),
        ("search", "search.replaced"),
        ("search.taken", "search"),
    )[:moves]:
        (place / source).rename(place / target)
    log.forget_before(log.last_index + 1)
    async with started(tmp_path / "node", log) as node:
        assert source_of(node, 2) == indexed(2).operation.body


async def test_what_arrives_while_something_older_is_looked_at_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    node, peer, other = tmp_path / "node", tmp_path / "peer", tmp_path / "other"
    await written(peer, log, 1)
    await written(node, log, 2)
    await written(other, log, 3)
    files = RealFileSystem()
    receive_search(peer, node, files, shutil.copyfile)

    def looked_at(directory: str) -> int | None:
        """The store's process has received another snapshot meanwhile."""
        monkeypatch.undo()
        index = read_log_index(directory)
        receive_search(other, node, files, shutil.copyfile)
        return index

    monkeypatch.setattr(recovery, "read_log_index", looked_at)
    applied = saved_search_index(node) or 0
    assert SearchDirectory(node).adopt_incoming(applied)
    assert saved_search_index(node) == saved_search_index(other) != applied


async def test_a_log_that_begins_late_is_followed_from_there_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = MemoryLog()
    await written(tmp_path / "off", log, 1)
    await written(tmp_path / "on", log, 2, 3)
    log.forget_before(log.last_index)
    async with started(tmp_path / "off", log) as node:
        assert "SEARCH MAY LACK DOCUMENTS" in caplog.text
        assert source_of(node, 1) is not None
        assert source_of(node, 2) is None
        assert source_of(node, 3) is not None


async def test_a_new_directory_behind_a_log_that_begins_late_is_no_reason_to_worry(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = MemoryLog()
    log.forget_before(100)
    with caplog.at_level(logging.WARNING):
        await written(tmp_path, log, 1)
    assert caplog.text == ""


async def test_a_node_whose_log_is_compacted_under_it_takes_over_a_snapshot(tmp_path: Path) -> None:
    log = MemoryLog()
    await written(tmp_path / "ahead", log, 1)
    (tmp_path / "behind").mkdir()
    async with started(tmp_path / "behind", log) as node:
        ahead = MemoryLog()
        ahead.store(log.entries)
        await written(tmp_path / "ahead", ahead, 2, 3)
        shutil.copytree(tmp_path / "ahead" / "search", tmp_path / "behind" / "search.incoming")
        log.become(ahead.entries[-1:])
        async with asyncio.timeout(HANG_S):
            while node.status().snapshot_index < log.last_index:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert [source_of(node, number) is not None for number in (1, 2, 3)] == [True, True, True]
        assert not SearchDirectory(tmp_path / "behind").adopt_incoming(0)


async def test_a_damaged_snapshot_ends_the_search_and_it_is_said(tmp_path: Path) -> None:
    log = MemoryLog()
    await written(tmp_path / "ahead", log, 1)
    (tmp_path / "behind").mkdir()
    async with started(tmp_path / "behind", log) as node:
        ahead = MemoryLog()
        ahead.store(log.entries)
        await written(tmp_path / "ahead", ahead, 2, 3)
        damage(tmp_path / "ahead")
        shutil.copytree(tmp_path / "ahead" / "search", tmp_path / "behind" / "search.incoming")
        log.become(ahead.entries[-1:])
        async with asyncio.timeout(HANG_S):
            while node.status().status != "error":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        with pytest.raises(SearchError, match="cannot be used"):
            await node.write([indexed(4)])


async def test_where_memory_runs_out_in_a_change_the_log_makes_the_state_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other nodes have applied it, so it may be neither passed over here, nor half of it kept."""
    log = MemoryLog()
    async with started(tmp_path, log) as node:
        await node.write([indexed(1)])
        await node.flush()

        def torn(self: Catalog, command: Command, log_index: int, timestamp_ms: int) -> Outcome:
            monkeypatch.undo()
            self.apply(command, log_index, timestamp_ms)
            raise MemoryError

        monkeypatch.setattr(Catalog, "apply", torn)
        with pytest.raises(UnavailableError):
            await node.write([indexed(1), indexed(2)])
        async with asyncio.timeout(HANG_S):
            await node.failed.wait()
        assert node.must_restart
        assert node.status().status == "error"
        with pytest.raises(SearchError, match="MemoryError"):
            await node.flush()
    async with started(tmp_path, log) as node:
        assert not node.must_restart
        assert [source_of(node, number) for number in (1, 2)] == [
            indexed(number).operation.body for number in (1, 2)
        ]
        (result,) = await node.write([indexed(1)])
        assert result.result.version == 3
