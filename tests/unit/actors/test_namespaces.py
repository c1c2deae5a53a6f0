"""Namespaces of real nodes: the log has them, whatever becomes of the node, and every node the same."""

import shutil
from pathlib import Path

import pytest

from graphdb.log import request_ids
from tests.support.clustered_shards import nodes
from tests.support.shards import stand_alone

pytestmark = pytest.mark.anyio


async def test_a_restart_with_and_without_a_checkpoint(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as node:
        namespaces = node.node.namespaces
        await namespaces.set("a", "urn:a:", None)
        await namespaces.set("gone", "urn:gone:", None)
        await namespaces.remove("gone", None)
    for lost in (("applied",), ("applied", "namespaces")):
        async with stand_alone(tmp_path) as node:
            assert node.node.namespaces.namespaces() == {"a": "urn:a:"}
        for name in lost:
            (tmp_path / name).unlink()
        shutil.rmtree(tmp_path / "store")
    async with stand_alone(tmp_path) as node:
        assert node.node.namespaces.namespaces() == {"a": "urn:a:"}
        await node.node.namespaces.remove(None, None)
        assert node.node.namespaces.namespaces() == {}


async def test_the_same_request_again_takes_effect_once(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as node:
        namespaces = node.node.namespaces
        key = request_ids.keyed("key", "PUT", b"/namespaces/a", [b"urn:a:"])
        await namespaces.set("a", "urn:a:", key)
        await namespaces.set("a", "urn:b:", None)
        assert (await namespaces.set("a", "urn:a:", key)).is_repeated
        assert namespaces.namespaces() == {"a": "urn:b:"}


async def test_every_node_of_a_cluster_has_them(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2) as cluster:
        await cluster.start(1, 2)
        shards = list(cluster.shards.values())
        for number, shard in enumerate(shards):
            done = await shard.node.namespaces.set(f"p{number}", "urn:a:", None)
        for shard in shards:
            await shard.node.progress.wait_for_index(done.snapshot_index, 30)
            assert shard.node.namespaces.namespaces() == {"p0": "urn:a:", "p1": "urn:a:"}
