"""`Nodes`: nodes of a cluster in one process, each a log and the shard that follows it, without readers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from actors.clustering.clustered_shard import ClusteredShard
from tests.support.raft_logs import RaftLogs
from tests.support.shards import no_readers

__all__ = ["Nodes", "alone", "nodes"]


class Nodes:
    """Shards by node id, those that run; each can be stopped and started again."""

    def __init__(self, directory: Path, *node_ids: int) -> None:
        self.logs = RaftLogs(directory, node_ids)
        self.shards: dict[int, ClusteredShard] = {}
        self._made: list[ClusteredShard] = []

    def make(self, node_id: int) -> ClusteredShard:
        """A shard that is not started; closed at the end."""
        shard = ClusteredShard(self.logs.settings(node_id), self.logs.client(node_id), no_readers())
        self._made.append(shard)
        return shard

    async def start(self, *node_ids: int) -> None:
        """Logs first, then the shards together: they wait for each other's votes."""
        for node_id in node_ids:
            await self.logs.start(node_id)
        shards = {node_id: self.make(node_id) for node_id in node_ids}
        async with asyncio.timeout(30):
            await asyncio.gather(*(shard.start() for shard in shards.values()))
        self.shards |= shards

    async def stop(self, node_id: int) -> None:
        shard = self.shards.pop(node_id)
        self._made.remove(shard)
        await shard.close()
        await self.logs.stop(node_id)

    async def close(self) -> None:
        for shard in self._made:
            await shard.close()
        await self.logs.close()


@asynccontextmanager
async def nodes(directory: Path, *node_ids: int) -> AsyncIterator[Nodes]:
    """These nodes, not started, and an end of all that run then."""
    made = Nodes(directory, *node_ids)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def alone(directory: Path) -> AsyncIterator[ClusteredShard]:
    """Node 1, started, a cluster by itself."""
    async with nodes(directory, 1) as made:
        await made.start(1)
        yield made.shards[1]
