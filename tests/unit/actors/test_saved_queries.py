"""Saved queries of real nodes: the log has them, whatever becomes of the node, and every node the same."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Quad

from actors.offline import back_up_offline, enter_cluster, load_in_bulk, restore
from graphdb.access.permissions import Permission
from graphdb.access.principal import Principal
from graphdb.errors import Forbidden, KeyReused, LimitExceeded, NotFound
from graphdb.log import request_ids
from graphdb.node import Consistency
from graphdb.saved_queries import OWNER_CHARACTERS_MAX, QUERIES_MAX, QueryDraft, SavedQuery
from tests.support.clustered_shards import nodes
from tests.support.shards import Shard, stand_alone

pytestmark = pytest.mark.anyio

ADA = Principal("ada", "basic", permission=Permission.WRITE)
OTHER_ADA = replace(ADA, provider="ldap")
BOB = Principal("bob", "basic", permission=Permission.READ)
ADMIN = Principal("root", "basic", permission=Permission.ADMIN)


def draft(name: str = "a", *, shared: bool = False, query: str = "ASK {}") -> QueryDraft:
    return QueryDraft(name, "", query, None, shared)


def of(node: Shard, principal: Principal = ADA) -> list[SavedQuery]:
    return node.node.saved_queries.list(principal)


async def keep(
    node: Shard, one: QueryDraft, principal: Principal = ADA, key: bytes | None = None
) -> SavedQuery:
    return await node.node.saved_queries.create(one, principal, key)


async def found_in(data_dir: Path) -> list[SavedQuery]:
    """What a node on this directory has."""
    async with stand_alone(data_dir) as node:
        return of(node)


Filled = tuple[Path, list[SavedQuery]]


@pytest.fixture
async def filled(tmp_path: Path) -> Filled:
    """A data directory whose node was stopped, and Ada's queries."""
    async with stand_alone(tmp_path / "1") as node:
        await keep(node, draft("one", shared=True))
        gone = await keep(node, draft("gone"))
        changed = await keep(node, draft("two"))
        await node.node.saved_queries.replace(changed.id, draft("changed"), ADA, None)
        await node.node.saved_queries.delete(gone.id, ADA, None)
        expected = of(node)
    assert [one.name for one in expected] == ["changed", "one"]
    return tmp_path / "1", expected


async def test_a_restart_with_and_without_a_checkpoint(filled: Filled) -> None:
    data_dir, expected = filled
    assert await found_in(data_dir) == expected
    (data_dir / "applied").unlink()
    shutil.rmtree(data_dir / "store")
    assert await found_in(data_dir) == expected, "the file is ahead of the store"
    (data_dir / "applied").unlink()
    (data_dir / "saved-queries").unlink()
    shutil.rmtree(data_dir / "store")
    assert await found_in(data_dir) == expected, "from the log alone"


async def test_where_the_store_goes_they_go(filled: Filled, tmp_path: Path) -> None:
    data_dir, expected = filled
    async with stand_alone(data_dir) as node:
        await node.backup(tmp_path / "live backup")
    back_up_offline(data_dir, tmp_path / "backup")
    load_in_bulk(data_dir, [Quad(NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:c"))])
    restore(tmp_path / "backup", tmp_path / "restored", replace=False)
    async with stand_alone(tmp_path / "other") as node:
        await keep(node, draft("of the other"))
    restore(tmp_path / "backup", tmp_path / "other", replace=True)
    for place in ("live backup", "restored", "other", "1"):
        assert await found_in(tmp_path / place) == expected, place


async def test_whose_they_are(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as node:
        saved = node.node.saved_queries
        own = await keep(node, draft("own"))
        for stranger in (OTHER_ADA, BOB, ADMIN):
            assert of(node, stranger) == []
            with pytest.raises(NotFound):
                await saved.replace(own.id, draft(), stranger, None)
            with pytest.raises(NotFound):
                await saved.delete(own.id, stranger, None)
        shared = await saved.replace(own.id, draft("shared", shared=True), ADA, None)
        assert of(node, BOB) == of(node, OTHER_ADA) == [shared]
        for stranger in (OTHER_ADA, BOB):
            with pytest.raises(Forbidden):
                await saved.delete(own.id, stranger, None)
        changed = await saved.replace(own.id, draft("by root", shared=True), ADMIN, None)
        assert (changed.owner, changed.provider) == ("ada", "basic")
        await saved.delete(own.id, ADMIN, None)
        assert of(node) == []


async def test_the_same_request_again_keeps_one(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as node:
        key = request_ids.keyed("key", "POST", b"/saved-queries", [b"one"])
        made = [await keep(node, draft("one"), key=key) for _ in range(3)]
        assert made == [of(node)[0]] * 3
        with pytest.raises(KeyReused):
            await keep(node, draft("two"), key=request_ids.keyed("key", "POST", b"/saved-queries", [b"two"]))
        change = request_ids.keyed("other", "PUT", b"/saved-queries/x", [b"three"])
        for _ in range(2):
            again = await node.node.saved_queries.replace(made[0].id, draft("three"), ADA, change)
            assert [again] == of(node)


async def test_they_are_bounded(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as node:
        await asyncio.gather(*(keep(node, draft(str(number))) for number in range(QUERIES_MAX)))
        with pytest.raises(LimitExceeded):
            await keep(node, draft())
        await node.node.saved_queries.replace(of(node)[0].id, draft("may change"), ADA, None)
        largest = OWNER_CHARACTERS_MAX - 1
        with pytest.raises(LimitExceeded):
            await node.node.saved_queries.replace(of(node)[1].id, draft(query="x" * largest), ADA, None)
        await keep(node, draft("b", query="x" * largest), BOB)
        with pytest.raises(LimitExceeded):
            await keep(node, draft("b"), BOB)
        await node.node.saved_queries.delete(of(node, BOB)[0].id, BOB, None)


async def test_every_node_of_a_cluster_has_them(filled: Filled, tmp_path: Path) -> None:
    """The others get them with a snapshot; then any node takes changes, and all have the same."""
    data_dir, expected = filled
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        assert cluster.logs.data_dir(1) == data_dir
        enter_cluster(data_dir, 1)
        await cluster.start(1, 2, 3)
        for node_id, shard in cluster.shards.items():
            assert of(shard) == expected, node_id
        for node_id, shard in cluster.shards.items():
            made = await keep(shard, draft(f"of {node_id}"))
            changed = await shard.node.saved_queries.replace(made.id, draft(f"from {node_id}"), ADA, None)
            assert (changed.id, changed.name) == (made.id, f"from {node_id}")
            with pytest.raises(NotFound):
                await shard.node.saved_queries.delete("f" * 32, ADA, None)
        names = ["changed", "from 1", "from 2", "from 3", "one"]
        for shard in cluster.shards.values():
            await shard.reach(Consistency.LINEARIZABLE, 10)
            assert [one.name for one in of(shard)] == names
