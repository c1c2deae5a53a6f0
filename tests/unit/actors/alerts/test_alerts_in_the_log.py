"""Alerts of real nodes: the log has them, whatever becomes of the node, and every node the same."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode, Quad

from actors.offline import back_up_offline, enter_cluster, load_in_bulk, restore
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.alerts.commands import Create, Fire
from graphdb.errors import AlreadyExists, KeyReused, NotFound
from graphdb.log import request_ids
from graphdb.model import ChangeSet
from graphdb.node import Consistency
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.alerts import NOON_MS, definition
from tests.support.clustered_shards import nodes
from tests.support.shards import Shard, stand_alone
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

FAR_MS = 1 << 42  # made in the future: these nodes have no readers, so nothing is to be evaluated
KEY = request_ids.keyed("key", "POST", b"/alerts", [b"many"])


async def make(node: Shard, name: str, key: bytes | None = None) -> None:
    await node.change_alerts(Create(f"id of {name}", definition(name), FAR_MS), key)


async def fill(node: Shard) -> list[dict[str, Any]]:
    """Two alerts, one of which has fired twice, to a webhook that is not allowed; what is shown of them."""
    await make(node, "many", KEY)
    await make(node, "few")
    for tick in (1, 2):
        command = Fire("id of many", f"delivery {tick}", NOON_MS + tick, tick, 1, 7, "{}")
        await node.change_alerts(command)
    async with asyncio.timeout(HANG_S):
        while True:
            if all(delivery["status"] == "failed" for delivery in node.alerts.history("many")):
                return shown(node)
            await asyncio.sleep(0.01)


def shown(node: Shard) -> list[dict[str, Any]]:
    return [*node.alerts.show_all(), *node.alerts.history("many")]


async def insert(node: Shard, value: int) -> None:
    await node.writes(FULL_VISIBILITY).update(
        parse_update(f"INSERT DATA {{ <urn:s> <urn:p> {value} }}"), Dataset()
    )


async def found_in(data_dir: Path) -> list[dict[str, Any]]:
    """What a node on this directory has."""
    async with stand_alone(data_dir) as node:
        return shown(node)


@pytest.fixture
async def filled(tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """A data directory whose node was stopped, and its alerts."""
    async with stand_alone(tmp_path / "1") as node:
        await insert(node, 1)
        expected = await fill(node)
        await insert(node, 2)
    assert [alert.get("fire_count") for alert in expected] == [2, 0, None, None]
    return tmp_path / "1", expected


Filled = tuple[Path, list[dict[str, Any]]]


async def test_a_restart_with_and_without_a_checkpoint(filled: Filled) -> None:
    data_dir, expected = filled
    assert await found_in(data_dir) == expected
    (data_dir / "alerts").unlink()
    (data_dir / "applied").unlink()
    shutil.rmtree(data_dir / "store")
    assert await found_in(data_dir) == expected, "from the log alone"


async def test_an_alert_that_the_checkpoint_has_already_is_not_taken_twice(filled: Filled) -> None:
    """As after a crash between the book and `applied`."""
    data_dir, expected = filled
    (data_dir / "applied").unlink()
    shutil.rmtree(data_dir / "store")
    assert await found_in(data_dir) == expected


async def test_where_the_store_goes_they_go(filled: Filled, tmp_path: Path) -> None:
    data_dir, expected = filled
    async with stand_alone(data_dir) as node:
        await node.backup(tmp_path / "live backup")
    back_up_offline(data_dir, tmp_path / "backup")
    load_in_bulk(data_dir, [Quad(NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:c"))])
    restore(tmp_path / "backup", tmp_path / "restored", replace=False)
    async with stand_alone(tmp_path / "other") as node:
        await make(node, "of the other")
    restore(tmp_path / "backup", tmp_path / "other", replace=True)
    for place in ("live backup", "restored", "other"):
        assert await found_in(tmp_path / place) == expected, place
    assert await found_in(data_dir) == expected


async def test_one_command_with_a_name_and_the_same_key_once(filled: Filled) -> None:
    data_dir, _ = filled
    async with stand_alone(data_dir) as node:
        again = await node.change_alerts(Create("x", definition("many"), FAR_MS), KEY)
        assert again.message == "applied before"
        other = request_ids.keyed("key", "POST", b"/alerts", [b"another"])
        with pytest.raises(KeyReused):
            await make(node, "another", other)
        results = await asyncio.gather(*(make(node, "one") for _ in range(8)), return_exceptions=True)
        assert [type(result) for result in results if result is not None] == [AlreadyExists] * 7
        with pytest.raises(NotFound):
            await node.alerts.delete("nobody", None)


async def test_among_changes_of_quads(tmp_path: Path) -> None:
    """Large and small ones: neither is lost, and all stand in the order of the log after a restart."""

    async def large(node: Shard) -> None:
        quads = " ".join(f'<urn:large> <urn:p> "{n:0>2000}" .' for n in range(3_000))
        confirmed = await node.writes(FULL_VISIBILITY).update(
            parse_update(f"INSERT DATA {{ {quads} }}"), Dataset()
        )
        assert confirmed.affected_triples == 3_000

    async with stand_alone(tmp_path) as node:
        await asyncio.gather(
            large(node),
            *(make(node, f"alert {number}") for number in range(30)),
            *(insert(node, number) for number in range(30)),
        )
        names = {alert["name"] for alert in node.alerts.show_all()}
        assert len(names) == 30
        assert sum(1 for _ in node.dataset_quads()) == 3_030
    async with stand_alone(tmp_path) as node:
        assert {alert["name"] for alert in node.alerts.show_all()} == names
        assert sum(1 for _ in node.dataset_quads()) == 3_030


async def test_they_are_no_change_of_quads(filled: Filled) -> None:
    data_dir, _ = filled
    async with stand_alone(data_dir) as node:
        stream = await node.follow_changes(0, 5)
        told: list[ChangeSet] = []
        while len(told) < 2:
            changes = await asyncio.wait_for(stream.read(5), HANG_S)
            assert changes is not None
            told += [one.change for one in changes]
        await make(node, "third")
        await insert(node, 3)
        changes = await asyncio.wait_for(stream.read(5), HANG_S)
        assert changes is not None
        assert len(changes) == 1
        assert stream.through == node.snapshot_index()
        assert sum(1 for _ in node.dataset_quads()) == 3


async def test_a_cluster_has_the_alerts_that_a_node_had_alone(filled: Filled, tmp_path: Path) -> None:
    """The others get them with a snapshot; then any node takes commands, and all have the same."""
    data_dir, expected = filled
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        assert cluster.logs.data_dir(1) == data_dir
        enter_cluster(data_dir, 1)
        await cluster.start(1, 2, 3)
        for node_id, shard in cluster.shards.items():
            assert shown(shard) == expected, node_id
        for node_id, shard in cluster.shards.items():
            await make(shard, f"of {node_id}")
            assert shard.alerts.show(f"of {node_id}")["id"] == f"id of of {node_id}"
            with pytest.raises(AlreadyExists):
                await make(shard, "many")
            assert (await shard.change_alerts(Create("x", definition("many"), 0), KEY)).message == (
                "applied before"
            )
        assert [shard.leads() for shard in cluster.shards.values()].count(True) == 1
        await cluster.shards[2].alerts.delete("many", None)
        await all_have(cluster.shards, ["few", "of 1", "of 2", "of 3"])
        away = await cluster.logs.leader()
        await cluster.stop(away)
        await make(next(iter(cluster.shards.values())), "while it was away")
        await cluster.start(away)
        await all_have(cluster.shards, ["few", "of 1", "of 2", "of 3", "while it was away"])


async def all_have(shards: dict[int, Shard], names: list[str]) -> None:
    for shard in shards.values():
        await shard.reach(Consistency.LINEARIZABLE, 10)
        assert [alert["name"] for alert in shard.alerts.show_all()] == names
