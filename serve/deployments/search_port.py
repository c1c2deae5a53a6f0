"""`SearchPort`: the Serve deployment behind port 9200."""

import asyncio
import functools
import gc
import importlib
import threading

from starlette.types import ASGIApp

from actors.log.client import LogClient
from actors.raft.raft_log_client import RaftLogClient
from graphdb.config import Settings
from graphdb.errors import UnavailableError
from serve.deployments.listening import search_listen
from serve.deployments.port_replica import PortReplica, access_backend, graph_socket, start_patiently
from serve.deployments.search_note import SearchNote

__all__ = ["SearchPort"]

_COLLECT_AFTER = 50_000  # new objects: a bulk request makes tens of thousands, and no circles


class _Node:
    """One node's search as a port hosts it: the indexes over the log, and the application over them."""

    speaks_websocket = False

    def __init__(self, settings: Settings, namespace: str, directory: str) -> None:
        from actors import cluster
        from actors.search.search_node import SearchNode
        from actors.search.warm_up import warm_up
        from serve.search.frame.peer_requests import PeerRequests
        from serve.search.graph.local_graph import LocalGraph
        from serve.search_app import build_search_app

        log_endpoint = functools.partial(cluster.update_log_endpoint, namespace)
        log: LogClient = LogClient(log_endpoint)
        if settings.cluster.enabled:
            log = RaftLogClient(log_endpoint)
        self.graph = LocalGraph(graph_socket(settings), settings.server.query_timeout_seconds)
        self.search = SearchNode(settings, log, self.graph)
        self.app: ASGIApp = build_search_app(self.search, settings, access_backend(settings))
        self.search.serve_others(PeerRequests(self.app).perform)
        self._warm_up = warm_up
        self._note = SearchNote(directory, lambda: self.search.is_opening, self._is_well)

    def _is_well(self) -> bool:
        return self.search.status().status == "healthy"

    async def start(self) -> None:
        await self._note.begin()
        await start_patiently(self.search.start)
        self._note.tell()
        threading.Thread(target=self._settle, daemon=True).start()

    def _settle(self) -> None:
        """Freeze the present objects, mostly modules, so that the garbage collector skips them."""
        self._warm_up()
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)

    async def close(self) -> None:
        await self._note.close()
        await self.search.close()
        await self.graph.close()


class SearchPort(PortReplica):
    """Owns the node's search indexes."""

    def __init__(self, settings: Settings, namespace: str, directory: str) -> None:
        """directory: of the running service."""
        self._node: _Node | None = None
        host = functools.partial(self._host, settings, namespace, directory)
        super().__init__(search_listen(settings), host, directory)

    async def _host(self, settings: Settings, namespace: str, directory: str) -> _Node:
        # not at the top: NumPy and Numba are half a second of the start of each process that loads them
        for module in ("actors.search.search_node", "actors.search.warm_up", "serve.search_app"):
            await asyncio.to_thread(importlib.import_module, module)
        self._node = _Node(settings, namespace, directory)
        return self._node

    def check_health(self) -> None:
        """See `PortReplica.check_health`."""
        super().check_health()
        if self._node is not None and self._node.search.must_restart:
            raise RuntimeError("memory ran out while a change was applied")

    async def flush(self) -> None:
        """Put on disk all that was applied, for a backup. Raises UnavailableError."""
        if self._node is None:
            raise UnavailableError("the service is starting")
        await self._on_port(self._node.search.flush())
