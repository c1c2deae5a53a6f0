"""What nodes say of themselves in the log, and the id of their cluster."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.search.node_identity import known_node
from actors.search.open_search import SearchConfig
from actors.search.search_node import SearchNode
from graphdb.config import Settings
from graphdb.errors import LogUnavailable
from graphdb.search.catalog.state import CatalogState, KnownNode
from tests.support.memory_log import MemoryLog
from tests.support.search_cluster import search_cluster
from tests.support.search_nodes import started
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio
OFTEN = SearchConfig(publish_identity_s=0.01)


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({"server": {"host": "10.0.0.5"}, "search": {"port": 9201}}, "10.0.0.5:9201"),
        ({"server": {"host": "::1"}}, "[::1]:9200"),
        ({"search": {"publish_address": "search.example:443"}}, "search.example:443"),
        (
            {"server": {"host": "0.0.0.0"}, "cluster": {"enabled": True, "address": "127.0.0.3:7002"}},
            "127.0.0.3:9200",
        ),
    ],
)
def test_where_clients_reach_a_node(settings: dict[str, Any], address: str) -> None:
    open_to_all = {"allow_unauthenticated_network_access": True}
    settings = {**settings, "server": {**open_to_all, **settings.get("server", {})}}
    assert known_node(Settings.model_validate(settings)).address == address
    named = {**settings, "search": {**settings.get("search", {}), "node_name": "a"}}
    assert known_node(Settings.model_validate(named)).name == "a"


def state(node: SearchNode) -> CatalogState:
    return node.catalog.state


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not holds():  # noqa: ASYNC110 what is waited for tells nobody
            await asyncio.sleep(0.01)


async def test_the_id_of_a_cluster_outlives_restarts(tmp_path: Path) -> None:
    log, uuids = MemoryLog(), set()
    for _ in range(2):
        async with started(tmp_path, log, OFTEN) as node:
            await until(lambda: node.own in state(node).nodes.values())
            uuids.add(state(node).cluster_uuid)
            await asyncio.sleep(0.05)
    assert len(log.entries) == 1, "it was said once"
    (tmp_path / "other").mkdir()
    async with started(tmp_path / "other", MemoryLog(), OFTEN) as node:
        await until(lambda: state(node).cluster_uuid is not None)
        uuids.add(state(node).cluster_uuid)
    assert len(uuids) == 2


async def test_a_node_that_has_moved_says_so(tmp_path: Path) -> None:
    log = MemoryLog()
    async with started(tmp_path, log, OFTEN) as node:
        await until(lambda: state(node).nodes.get(1) == node.own)
        uuid = state(node).cluster_uuid
        node.own = KnownNode("elsewhere", "10.0.0.9:9200")
    moved = Settings.model_validate(
        {"server": {"data_dir": tmp_path}, "search": {"port": 9300, "node_name": "b"}}
    )
    node = SearchNode(moved, log, config=OFTEN)
    await node.start()
    await until(lambda: state(node).nodes.get(1) == KnownNode("b", "127.0.0.1:9300"))
    assert state(node).cluster_uuid == uuid
    await node.close()


async def test_what_cannot_be_logged_is_said_again(tmp_path: Path) -> None:
    def away(log: MemoryLog, entries: object) -> None:
        raise LogUnavailable("away")

    log = MemoryLog()
    log.faults = [away] * 3
    async with started(tmp_path, log, OFTEN) as node:
        await until(lambda: state(node).nodes.get(1) == node.own)


async def test_nodes_of_a_cluster_know_each_other_and_agree_on_its_id(tmp_path: Path) -> None:
    async with search_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        nodes = [await cluster.opened(number) for number in (1, 2, 3)]
        await until(lambda: all(state(node).nodes.keys() == {1, 2, 3} for node in nodes))
        assert len({state(node).cluster_uuid for node in nodes}) == 1
        assert state(nodes[0]).nodes == state(nodes[1]).nodes == state(nodes[2]).nodes
        uuid = state(nodes[0]).cluster_uuid
        await cluster.stop(1)
        await cluster.start(1)
        assert state(await cluster.opened(1)).cluster_uuid == uuid
