"""Nodes' quads in a cluster: real logs, real stores, in one process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from actors.offline import enter_cluster
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import EditRefused, LogUnavailable, UnknownGraph
from graphdb.graphql.edits import EditKind, Edits, ResourceEdit
from graphdb.log import request_ids
from graphdb.model import Author, Confirmation, EntryKind, Interface
from graphdb.node import Consistency
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import QuadPatch
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.clustered_shards import alone, nodes
from tests.support.shards import Shard, stand_alone
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

G = NamedNode("urn:g")


async def insert(shard: Shard, value: int, request_id: bytes | None = None) -> Confirmation:
    text = f"INSERT DATA {{ <urn:s> <urn:p> {value} }}"
    return await asyncio.wait_for(
        shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset(), request_id), 15
    )


async def put(shard: Shard, count: int) -> Confirmation:
    """Replace the graph G by so many quads."""

    async def body() -> AsyncIterator[bytes]:
        for number in range(count):
            yield b"<urn:s> <urn:p> <urn:o%d> .\n" % number

    return await shard.writes(FULL_VISIBILITY).write_graph(
        body(), RdfSyntax.N_TRIPLES, graph=G, whole_dataset=False, replace=True, base_iri=None
    )


def values(shard: Shard) -> list[int]:
    """What was inserted."""
    objects = [quad.object for quad in shard.graph_quads(None)]
    return sorted(int(each.value) for each in objects if isinstance(each, Literal))


async def test_one_alone_writes_and_reads_at_every_level(tmp_path: Path) -> None:
    async with alone(tmp_path) as node:
        first = await insert(node, 1)
        assert (first.affected_triples, first.message) == (1, "update applied")
        assert await insert(node, 2) == Confirmation(first.snapshot_index + 1, 1)
        for consistency in Consistency:
            await node.reach(consistency, 5)
            assert values(node) == [1, 2]
        assert (await put(node, 3)).affected_triples == 3
        assert len([*node.graph_quads(G)]) == 3
        await node.writes(FULL_VISIBILITY).delete_graph(G)
        with pytest.raises(UnknownGraph):
            await node.writes(FULL_VISIBILITY).delete_graph(G)


async def test_one_alone_says_how_it_is(tmp_path: Path) -> None:
    async with alone(tmp_path) as node:
        index = (await insert(node, 1)).snapshot_index
        status, report = node.status(), node.cluster()
        assert (status.status, status.role, status.snapshot_index) == ("healthy", "leader", index)
        assert report is not None
        assert (report.role, report.leader_id, report.commit_index, report.applied_index) == (
            "leader",
            1,
            index,
            index,
        )
        assert [(member.node_id, member.role, member.reachable) for member in report.members] == [
            (1, "leader", True)
        ]


async def test_a_request_takes_effect_once_after_a_restart_too(tmp_path: Path) -> None:
    key = request_ids.keyed("key", "POST", b"/sparql", [b"1"])
    async with alone(tmp_path) as node:
        first = await insert(node, 1, key)
        assert await insert(node, 1, key) == Confirmation(first.snapshot_index, 1, "applied before")
    async with alone(tmp_path) as node:
        assert values(node) == [1]
        assert await insert(node, 1, key) == Confirmation(first.snapshot_index, 1, "applied before")
        await insert(node, 2)
    async with alone(tmp_path) as node:
        assert values(node) == [1, 2]


async def test_before_it_has_started_nothing_can_be_asked(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.logs.start(1)  # without the others there is no cluster
        starting = cluster.make(1)
        task = asyncio.create_task(starting.start())
        await asyncio.sleep(0.2)
        assert starting.status().status == "starting"
        with pytest.raises(LogUnavailable, match="starting"):
            starting.snapshot_index()
        task.cancel()
        await asyncio.wait([task])


async def test_writes_at_any_node_are_seen_there_at_once_and_everywhere_when_asked(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        for number, (node_id, node) in enumerate(cluster.shards.items()):
            await insert(node, number)
            assert values(node) == list(range(number + 1)), node_id
            for other in cluster.shards.values():
                await other.reach(Consistency.LINEARIZABLE, 5)
                assert values(other) == list(range(number + 1))
        assert (await put(cluster.shards[1], 2_000)).affected_triples == 2_000
        assert (await put(cluster.shards[2], 10)).affected_triples == 1_990
        for node in cluster.shards.values():
            await node.reach(Consistency.LEADER, 5)
            assert len([*node.graph_quads(G)]) == 10
        with pytest.raises(UnknownGraph):
            await asyncio.gather(
                *(
                    node.writes(FULL_VISIBILITY).delete_graph(NamedNode("urn:none"))
                    for node in cluster.shards.values()
                )
            )


async def test_the_log_says_who_has_written_at_whichever_node(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        authors = [Author(f"basic:{node_id}", Interface.GRAPH_STORE) for node_id in cluster.shards]
        for author, node in zip(authors, cluster.shards.values(), strict=True):
            await node.writes(FULL_VISIBILITY, author).update(
                parse_update(f"INSERT DATA {{ <urn:s> <urn:p> '{author.name}' }}"), Dataset()
            )
        await cluster.shards[2].reach(Consistency.LINEARIZABLE, 5)
        entries = await cluster.shards[2].node.parts.log.read(1)
        written = [entry.author for entry in entries if entry.kind is EntryKind.CHANGES]
        assert written == authors


async def test_edits_at_any_node_are_checked_where_the_cluster_is_led(tmp_path: Path) -> None:
    def edits(kind: EditKind, node_id: int, since: int | None = None) -> Edits:
        values = {NamedNode("urn:p"): (Literal(node_id),)}
        subject, cls = NamedNode("urn:s"), NamedNode("urn:C")
        return Edits((ResourceEdit(kind, subject, None, (cls,), values, since),))

    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        made = await cluster.shards[1].writes(FULL_VISIBILITY).edit(edits(EditKind.CREATE, 0))
        assert made.affected_triples == 2
        index = made.snapshot_index
        for node_id, node in cluster.shards.items():
            with pytest.raises(EditRefused) as raised:
                await node.writes(FULL_VISIBILITY).edit(edits(EditKind.CREATE, node_id))
            assert raised.value.refusals[0]["code"] == "CONFLICT"
            confirmed = await node.writes(FULL_VISIBILITY).edit(edits(EditKind.UPDATE, node_id, index))
            assert [quad.object for quad in node.quads_matching(None, NamedNode("urn:p"), None, None)] == [
                Literal(node_id)
            ]
            with pytest.raises(EditRefused) as raised:
                await node.writes(FULL_VISIBILITY).edit(edits(EditKind.UPDATE, 9, index))
            assert raised.value.refusals[0]["details"] == {"ifSnapshot": index}
            index = confirmed.snapshot_index


async def test_patches_at_any_node(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        before: tuple[Quad, ...] = ()
        for node_id, node in cluster.shards.items():
            added = (Quad(BlankNode(f"b{node_id}"), NamedNode("urn:p"), Literal(node_id), G),)
            confirmed = await node.writes(FULL_VISIBILITY).patch(QuadPatch(before, added))
            assert confirmed.affected_triples == len(before) + 1
            assert tuple(node.graph_quads(G)) == added
            before = added
        for node in cluster.shards.values():
            await node.writes(FULL_VISIBILITY).patch(QuadPatch(replaces_all=True))
            assert [*node.dataset_quads()] == []


async def test_many_writes_at_all_nodes_each_take_effect_once(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        writes = [insert(cluster.shards[1 + number % 3], number) for number in range(150)]
        confirmations = await asyncio.gather(*writes)
        assert len({each.snapshot_index for each in confirmations}) == 150
        assert {each.affected_triples for each in confirmations} == {1}
        for node in cluster.shards.values():
            await node.reach(Consistency.LINEARIZABLE, 5)
            assert values(node) == list(range(150))


async def test_writes_go_on_while_the_lead_is_handed_over(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)

        async def write_at(node_id: int) -> None:
            for number in range(30):
                await insert(cluster.shards[node_id], 100 * node_id + number)

        writing = [asyncio.create_task(write_at(node_id)) for node_id in (1, 2, 3)]
        for _ in range(3):
            await asyncio.sleep(0.1)
            await cluster.shards[await cluster.logs.leader()].hand_over_lead()
        await asyncio.gather(*writing)
        for node in cluster.shards.values():
            await node.reach(Consistency.LINEARIZABLE, 5)
            assert values(node) == [100 * node_id + number for node_id in (1, 2, 3) for number in range(30)]


async def test_a_cluster_is_founded_with_what_a_node_had_alone(tmp_path: Path) -> None:
    """The others have nothing of it in their logs: they are given snapshots, which become their stores."""
    key = request_ids.keyed("key", "POST", b"/sparql", [b"7"])
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        data_dir = cluster.logs.data_dir(1)
        async with stand_alone(data_dir) as node:
            for value in (1, 2, 3):
                await node.writes(FULL_VISIBILITY).update(
                    parse_update(f"INSERT DATA {{ <urn:s> <urn:p> {value} }}"), Dataset()
                )
            await node.writes(FULL_VISIBILITY).update(
                parse_update("INSERT DATA { <urn:s> <urn:p> 7 }"), Dataset(), key
            )
        enter_cluster(data_dir, 1)
        await cluster.start(1, 2, 3)
        for node_id, shard in cluster.shards.items():
            assert values(shard) == [1, 2, 3, 7], node_id
            assert await insert(shard, 7, key) == Confirmation(4, 1, "applied before")
        await insert(cluster.shards[2], 4)
        await cluster.shards[3].reach(Consistency.LINEARIZABLE, 5)
        assert values(cluster.shards[3]) == [1, 2, 3, 4, 7]


async def test_a_snapshot_that_is_offered_is_the_state_of_its_index(tmp_path: Path) -> None:
    async with alone(tmp_path) as node:
        index = (await insert(node, 1)).snapshot_index
        tree = node.opened().directory.scratch / "snapshot"
        assert await node.opened().make_snapshot(tree) == index
        await insert(node, 2)
        await node.parts.log.offer(index, str(tree))
        assert not tree.exists()  # it is the log's now
    async with alone(tmp_path) as node:
        assert values(node) == [1, 2]


async def test_a_node_that_is_stopped_comes_back_with_what_the_others_wrote(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        await insert(cluster.shards[1], 1)
        away = await cluster.logs.leader()
        await cluster.stop(away)
        others = [*cluster.shards.values()]
        await insert(others[0], 2)
        await insert(others[1], 3)
        await cluster.start(away)
        await cluster.shards[away].reach(Consistency.LINEARIZABLE, 5)
        assert values(cluster.shards[away]) == [1, 2, 3]


async def test_every_node_tells_the_same_changes_once(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        streams = {number: await node.follow_changes(0, 5) for number, node in cluster.shards.items()}
        confirmed = [await insert(node, number) for number, node in cluster.shards.items() for _ in range(3)]
        expected = sorted({one.snapshot_index for one in confirmed})
        told: dict[int, list[tuple[int, str]]] = {}
        for number, stream in streams.items():
            told[number] = []
            while stream.through < expected[-1]:
                changes = await asyncio.wait_for(stream.read(5), HANG_S)
                assert changes is not None
                told[number] += [(one.index, str(one.change)) for one in changes]
        assert [index for index, _ in told[1]] == expected
        assert told[1] == told[2] == told[3]
