"""`Nodes`: nodes of a cluster in one process, each a log and the shard that follows it, without readers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.forwarded_work import ForwardedWork
from actors.clustering.history_files import HistoryFiles
from actors.clustering.search_copies import SearchCopies
from actors.columns.client import ColumnClient
from actors.columns.column_view import ColumnView
from actors.raft.raft_log_client import RaftLogClient
from graphdb.config import Settings
from graphdb.config.limits import GateLimits
from tests.support.raft_logs import RaftLogs
from tests.support.readers import answering
from tests.support.shards import Shard, no_readers
from tests.support.timing import HANG_S

__all__ = ["Nodes", "alone", "forwarded_work", "nodes"]


class Nodes:
    """Shards by node id, those that run; each can be stopped and started again."""

    def __init__(self, directory: Path, *node_ids: int, columns: bool = False) -> None:
        """columns: whether each has a column view; then `columns` has the clients of those that run."""
        self.logs = RaftLogs(directory, node_ids)
        self.columns: dict[int, ColumnClient] = {}
        self._views: dict[int, ColumnView] = {}
        self._with_columns = columns
        self.shards: dict[int, Shard] = {}
        self._made: list[Shard] = []

    def make(self, node_id: int) -> Shard:
        """A shard that is not started; closed at the end."""
        shard = Shard.clustered(
            self.logs.settings(node_id),
            self.logs.client(node_id),
            no_readers(),
            columns=self.columns.get(node_id),
        )
        self._made.append(shard)
        return shard

    async def start(self, *node_ids: int) -> None:
        """Logs first, then the shards together: they wait for each other's votes."""
        for node_id in node_ids:
            await self.logs.start(node_id)
            if self._with_columns:
                await self._start_view(node_id)
        shards = {node_id: self.make(node_id) for node_id in node_ids}
        async with asyncio.timeout(HANG_S):
            await asyncio.gather(*(shard.start() for shard in shards.values()))
        self.shards |= shards

    async def stop(self, node_id: int) -> None:
        shard = self.shards.pop(node_id)
        self._made.remove(shard)
        await shard.close()
        await self._close_view(node_id)
        await self.logs.stop(node_id)

    async def close(self) -> None:
        for shard in self._made:
            await shard.close()
        for node_id in [*self._views]:
            await self._close_view(node_id)
        await self.logs.close()

    async def _start_view(self, node_id: int) -> None:
        directory = str(self.logs.data_dir(node_id))
        find_log = answering(f"{directory}/log.sock")
        view = await asyncio.to_thread(
            lambda: ColumnView(self.logs.settings(node_id), find_log, socket_directory=directory)
        )
        self._views[node_id], self.columns[node_id] = view, ColumnClient(answering(view.endpoint()))

    async def _close_view(self, node_id: int) -> None:
        if node_id in self._views:
            del self.columns[node_id]
            await asyncio.to_thread(self._views.pop(node_id).close)


@asynccontextmanager
async def nodes(directory: Path, *node_ids: int, columns: bool = False) -> AsyncIterator[Nodes]:
    """These nodes, not started, and an end of all that run then; columns as of `Nodes`."""
    made = Nodes(directory, *node_ids, columns=columns)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def alone(directory: Path) -> AsyncIterator[Shard]:
    """Node 1, started, a cluster by itself."""
    async with nodes(directory, 1) as made:
        await made.start(1)
        yield made.shards[1]


def forwarded_work(log: RaftLogClient, follower: ClusterFollower, shard: Shard) -> ForwardedWork:
    """What other nodes ask, performed by a node that stands alone otherwise."""
    parts = shard.node.parts
    return ForwardedWork(
        log,
        follower,
        parts.own_progress.snapshot_index,
        parts.own_writing,
        parts.own_alerts,
        parts.own_saved_queries,
        parts.own_namespaces,
        parts.own_named_states,
        parts.own_purges,
        GateLimits(),
        SearchCopies(Settings(), log),
        HistoryFiles(Path("nowhere"), parts.own_progress.snapshot_index, lambda: 0),
        parts.transactions.answer_other,
    )
