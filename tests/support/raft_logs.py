"""`RaftLogs`: nodes' logs in one process, as their ports see them: real journals, gRPC and Unix sockets."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from actors.raft.raft_log import RaftLog
from actors.raft.raft_log_client import RaftLogClient
from benchmarks.service import free_port
from graphdb.config import Settings
from graphdb.raft.replica import RaftConfig
from tests.support.raft_cluster import network_loop
from tests.support.readers import answering
from tests.support.timing import HANG_S

__all__ = ["RaftLogs", "raft_logs"]


class RaftLogs:
    """Logs and clients of them by node id; each log can be stopped and started again, on its own directory.

    A client belongs to whoever asks for it.
    """

    def __init__(self, directory: Path, node_ids: Iterable[int], *, search: bool = False) -> None:
        """search: whether they have search indexes, which whoever uses them has to see to."""
        self.directory = directory
        self.with_search = set(node_ids) if search else set[int]()
        self.addresses = {node_id: f"127.0.0.1:{free_port()}" for node_id in node_ids}
        self.logs: dict[int, RaftLog] = {}
        self._clients: list[RaftLogClient] = []

    def data_dir(self, node_id: int) -> Path:
        return self.directory / str(node_id)

    def settings(self, node_id: int) -> Settings:
        """Of a node whose peers are all those that have an address."""
        peers = [f"{other}@{address}" for other, address in self.addresses.items() if other != node_id]
        cluster: dict[str, Any] = {"enabled": True, "node_id": node_id, "peers": peers}
        cluster["address"] = self.addresses[node_id]
        data_dir = self.data_dir(node_id)
        data_dir.mkdir(exist_ok=True)
        return Settings.model_validate(
            {
                "server": {"data_dir": data_dir},
                "cluster": cluster,
                "search": {"enabled": node_id in self.with_search},
                "columns": {"wait_seconds": 20},  # however busy the machine is
            }
        )

    async def start(self, node_id: int, config: RaftConfig | None = None) -> None:
        """Have a node's log take part."""
        settings = self.settings(node_id)
        self.logs[node_id] = await asyncio.to_thread(
            lambda: RaftLog(
                settings,
                config=config,
                socket_directory=str(settings.server.data_dir),
                loop_thread=network_loop(),
            )
        )

    async def stop(self, node_id: int) -> None:
        await asyncio.to_thread(self.logs.pop(node_id).close)

    def client(self, node_id: int) -> RaftLogClient:
        """A new port of a node; closed at the end."""
        client = RaftLogClient(answering(str(self.data_dir(node_id) / "log.sock")))
        self._clients.append(client)
        return client

    async def leader(self, among: Iterable[int] = ()) -> int:
        """The node that all of them (without any: all that run) say leads; waits until they agree on one."""
        clients = [self.client(node_id) for node_id in among or self.logs]
        async with asyncio.timeout(HANG_S):
            while True:
                views = [await client.watch(0, 0) for client in clients]
                leaders = {view.leader_id for view in views}
                if len(leaders) == 1 and (leader_id := leaders.pop()) is not None:
                    return leader_id
                await asyncio.sleep(0.02)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        for node_id in [*self.logs]:
            await self.stop(node_id)


@asynccontextmanager
async def raft_logs(directory: Path, *node_ids: int, search: bool = False) -> AsyncIterator[RaftLogs]:
    """Logs of these nodes, started, and an end of all that run then."""
    logs = RaftLogs(directory, node_ids, search=search)
    try:
        for node_id in node_ids:
            await logs.start(node_id)
        yield logs
    finally:
        await logs.close()
