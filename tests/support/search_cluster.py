"""`SearchCluster`: nodes of a cluster in one process, with quads and search indexes, without Ray."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from actors.search.search_node import SearchNode
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import LogUnavailable, NotLeader
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.clustered_shards import Nodes
from tests.support.search_nodes import source_of
from tests.support.timing import HANG_S

__all__ = ["SearchCluster", "search_cluster"]


class SearchCluster:
    """Each node is started with or without search. start() waits for the quads, not for the indexes."""

    def __init__(self, directory: Path, *node_ids: int) -> None:
        self.quads = Nodes(directory, *node_ids)
        self.searches: dict[int, SearchNode] = {}
        self._starting: dict[int, asyncio.Task[None]] = {}

    async def start(self, *node_ids: int, search: bool = True) -> None:
        change = (
            self.quads.logs.with_search.update if search else self.quads.logs.with_search.difference_update
        )
        change(node_ids)
        await self.quads.start(*node_ids)
        for node_id in node_ids if search else ():
            node = SearchNode(self.quads.logs.settings(node_id), self.quads.logs.client(node_id))
            self.searches[node_id] = node
            self._starting[node_id] = asyncio.create_task(node.start())

    async def stop(self, *node_ids: int) -> None:
        """In order: indexes and quads are on disk, and what no view needs is gone from the log. Each has got
        before what the others have: who is stopped right after its start may not have heard of it.
        """
        for node_id in node_ids:
            await self._caught_up(node_id)
            if node_id in self.searches:
                self._starting.pop(node_id).cancel()
                await self.searches.pop(node_id).close()
            await self.quads.stop(node_id)

    async def _caught_up(self, node_id: int) -> None:
        newest = max(log.applied_index for log in self.quads.logs.logs.values())
        async with asyncio.timeout(HANG_S):
            while self._snapshot_index(node_id) < newest:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def _snapshot_index(self, node_id: int) -> int:
        """What a node's quads have reached; 0 while they are opened anew from a snapshot of a peer."""
        try:
            return self.quads.shards[node_id].snapshot_index()
        except LogUnavailable:
            return 0

    async def opened(self, node_id: int) -> SearchNode:
        """The node's search, once its indexes are open."""
        async with asyncio.timeout(HANG_S):
            await asyncio.shield(self._starting[node_id])
        return self.searches[node_id]

    async def insert(self, number: int) -> None:
        """A quad, by any node. A client tries again while there is no leader, as the error says."""
        update = parse_update(f"INSERT DATA {{ <urn:s> <urn:p> {number} }}")
        async with asyncio.timeout(HANG_S):
            while True:
                try:
                    node = next(iter(self.quads.shards.values()))
                    await node.writes(FULL_VISIBILITY).update(update, Dataset())
                except NotLeader:
                    await asyncio.sleep(0.1)
                else:
                    return

    def documents(self, node_id: int) -> list[int]:
        """Which of the documents 0 to 19 a node has; none while its indexes are not open."""
        node = self.searches[node_id]
        if not node.status().index_loaded or node.catalog.find("books") is None:
            return []
        return [number for number in range(20) if source_of(node, number) is not None]

    async def close(self) -> None:
        for node_id in list(self.quads.shards):
            if node_id in self.searches:
                self._starting.pop(node_id).cancel()
                await self.searches.pop(node_id).close()
        await self.quads.close()


@asynccontextmanager
async def search_cluster(directory: Path, *node_ids: int) -> AsyncIterator[SearchCluster]:
    """These nodes, not started, and an end of all that run then."""
    cluster = SearchCluster(directory, *node_ids)
    try:
        yield cluster
    finally:
        await cluster.close()
