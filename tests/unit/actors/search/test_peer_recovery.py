"""Nodes of a cluster whose logs no longer have what their indexes lack: search was off, or they broke."""

import asyncio
import logging
import shutil
from pathlib import Path

import pytest

from graphdb.errors import LogUnavailable
from graphdb.raft.journal import Journal
from tests.support.search_cluster import SearchCluster, search_cluster
from tests.support.search_nodes import indexed
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs keep nothing that no view needs."""
    monkeypatch.setattr(Journal, "compactable_index", lambda journal, index, keep_bytes=None: index)


async def write(cluster: SearchCluster, node_id: int, *numbers: int) -> None:
    node = await cluster.opened(node_id)
    for number in numbers:
        (result,) = await node.write([indexed(number)])
        assert result.result.error is None


async def restart(cluster: SearchCluster, *node_ids: int, search: bool) -> None:
    """One after the other, as an operator does."""
    for node_id in node_ids:
        await cluster.stop(node_id)
        await cluster.start(node_id, search=search)


async def have(cluster: SearchCluster, *numbers: int) -> None:
    """All nodes have these documents, and no others."""
    for node_id in cluster.searches:
        await cluster.opened(node_id)
        async with asyncio.timeout(HANG_S):
            while cluster.documents(node_id) != list(numbers):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_search_that_is_turned_on_late_begins_everywhere_alike(tmp_path: Path) -> None:
    async with search_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3, search=False)
        await cluster.insert(1)
        await restart(cluster, 1, search=True)
        await write(cluster, 1, 0)
        await cluster.insert(2)
        await restart(cluster, 2, search=False)  # its log forgets the document
        await restart(cluster, 2, 3, search=True)
        await write(cluster, 3, 1)
        await have(cluster, 0, 1)


async def test_search_that_was_off_at_one_node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with search_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        await write(cluster, 1, 0)
        await restart(cluster, 3, search=False)
        await write(cluster, 2, 1, 2)
        await restart(cluster, 3, search=False)
        with caplog.at_level(logging.INFO):
            await restart(cluster, 3, search=True)
            await have(cluster, 0, 1, 2)
        assert "receiving search indexes as of" in caplog.text
        assert "MAY LACK" not in caplog.text


async def test_search_that_was_off_everywhere(tmp_path: Path) -> None:
    async with search_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        await write(cluster, 1, 0)
        await restart(cluster, 3, search=False)
        await write(cluster, 1, 1)
        await restart(cluster, 1, 2, search=False)
        await cluster.insert(1)
        await restart(cluster, 1, 2, 3, search=False)
        await restart(cluster, 3, search=True)  # which has the oldest indexes
        await have(cluster, 0, 1)
        await restart(cluster, 1, 2, search=True)
        await write(cluster, 2, 2)
        await have(cluster, 0, 1, 2)


async def test_a_node_waits_for_one_that_may_have_what_it_lacks(tmp_path: Path) -> None:
    async with search_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        await restart(cluster, 3, search=False)
        await write(cluster, 1, 0)
        await have(cluster, 0)
        await cluster.stop(2)
        await cluster.stop(1)
        shutil.rmtree(tmp_path / "1" / "search")
        await cluster.start(1, search=False)
        await cluster.insert(1)
        await restart(cluster, 1, 3, search=False)
        await restart(cluster, 1, search=True)
        async with asyncio.timeout(HANG_S):
            while "node 2 does not say" not in why_not(cluster, 1):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await cluster.start(2)
        await have(cluster, 0)


def why_not(cluster: SearchCluster, node_id: int) -> str:
    try:
        _ = cluster.searches[node_id].catalog
    except LogUnavailable as error:
        return str(error)
    raise AssertionError("it is open")


async def test_damaged_indexes_are_replaced_by_those_of_another_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with search_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        await write(cluster, 1, 0, 1)
        await cluster.insert(1)
        await restart(cluster, 1, 2, 3, search=True)
        await have(cluster, 0, 1)
        await cluster.stop(2)
        (tmp_path / "2" / "search" / "catalog").write_bytes(b"???")
        await cluster.start(2)
        await have(cluster, 0, 1)
        assert "taking the search indexes of another node" in caplog.text
        assert (tmp_path / "2" / "search.damaged" / "catalog").read_bytes() == b"???"
