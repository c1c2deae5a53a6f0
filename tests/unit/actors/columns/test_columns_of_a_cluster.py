"""The column views of a cluster's nodes: each follows its own node's log."""

import asyncio
from pathlib import Path

import pytest

from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.node import Consistency, QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from tests.support.clustered_shards import Nodes, nodes
from tests.support.columns import until_following
from tests.support.shards import Shard
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

SUM = "SELECT ?p (COUNT(?o) AS ?n) (SUM(?o) AS ?sum) { ?s ?p ?o } GROUP BY ?p"


async def insert(shard: Shard, value: int) -> int:
    text = f"INSERT DATA {{ <urn:s> <urn:p> {value} }}"
    writing = shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())
    return (await asyncio.wait_for(writing, HANG_S)).snapshot_index


async def summed(shard: Shard) -> bytes:
    """The answer, which only the columns can give: these nodes have no readers."""
    stream = await shard.start_query(QueryRequest(parse_query(SUM, None), Dataset(), ResultFormat.CSV, 20))
    try:
        assert stream.where.startswith("columns")
        pieces = []
        while (piece := await stream.read()) is not None:
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        stream.close()


async def following(made: Nodes, *node_ids: int) -> None:
    for node_id in node_ids:
        await until_following(made.columns[node_id])


def answer(*values: int) -> bytes:
    return f"p,n,sum\r\nurn:p,{len(values)},{sum(values)}\r\n".encode()


async def test_the_columns_of_each_node_have_what_any_node_wrote(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3, columns=True) as made:
        await made.start(1, 2, 3)
        await following(made, 1, 2, 3)
        written = []
        for value, writer in enumerate([1, 2, 3, 1, 2, 3], start=1):
            await insert(made.shards[writer], value)
            written.append(value)
            for shard in made.shards.values():
                await shard.reach(Consistency.LINEARIZABLE, 10)
                assert await summed(shard) == answer(*written)


async def test_the_columns_of_a_follower_go_on_where_they_were(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3, columns=True) as made:
        await made.start(1, 2, 3)
        await following(made, 1, 2, 3)
        await insert(made.shards[1], 1)
        leader = await made.logs.leader()
        follower = next(node_id for node_id in made.shards if node_id != leader)
        await made.shards[follower].reach(Consistency.LINEARIZABLE, 10)
        assert await summed(made.shards[follower]) == answer(1)
        database = made.logs.data_dir(follower) / "columns" / "view.duckdb"
        file_before = database.stat().st_ino
        await made.stop(follower)
        await insert(made.shards[leader], 2)
        await made.start(follower)
        await following(made, follower)
        await made.shards[follower].reach(Consistency.LINEARIZABLE, 10)
        assert await summed(made.shards[follower]) == answer(1, 2)
        assert database.stat().st_ino == file_before
