"""`GraphPort`: the Serve deployment behind port 7001."""

import functools
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from actors.clustering.clustered_node import clustered_node
from actors.columns.client import ColumnClient
from actors.log.client import LogClient
from actors.node.graph_node import standalone_node
from actors.raft.raft_log_client import RaftLogClient
from actors.readers.client import ReaderClient
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.errors import UnavailableError
from graphdb.model import Confirmation
from graphdb.node import NodeStatus
from graphdb.planning.gate import read_update
from graphdb.sparql.dataset import Dataset
from serve.deployments.listening import graph_listen
from serve.deployments.port_replica import PortReplica, access_backend, graph_socket, start_patiently
from serve.deployments.search_note import search_word
from serve.graph.administration import node_health
from serve.graph.notebook_answers import answer, report
from serve.graph_app import build_app

__all__ = ["GraphPort"]


class _Node:
    """One node's graph as a port hosts it: the store over the log, and the application over the store."""

    speaks_websocket = True

    def __init__(self, settings: Settings, namespace: str, directory: str) -> None:
        from actors import cluster

        log_endpoint = functools.partial(cluster.update_log_endpoint, namespace)
        readers = ReaderClient(functools.partial(cluster.store_reader_endpoint, namespace))
        columns = None
        if settings.columns.enabled:
            columns = ColumnClient(functools.partial(cluster.column_view_endpoint, namespace))
        self.graph = (
            clustered_node(settings, RaftLogClient(log_endpoint), readers, columns=columns)
            if settings.cluster.enabled
            else standalone_node(settings, LogClient(log_endpoint), readers, columns=columns)
        )
        self._search_word = functools.partial(search_word, directory) if settings.search.enabled else None
        self.app: ASGIApp = build_app(self.graph, settings, access_backend(settings), self._search_word)

    async def start(self) -> None:
        await start_patiently(self.graph.start)

    def status(self) -> NodeStatus:
        """Of all of this node's ports."""
        return node_health(self.graph.admin.status(), self._search_word)

    async def prepare_close(self) -> None:
        """See `actors.node.graph_node.GraphNode.prepare_close`."""
        await self.graph.prepare_close()

    async def close(self) -> None:
        await self.graph.close()


class GraphPort(PortReplica):
    """Owns the node's store, and answers notebooks through its methods."""

    def __init__(self, settings: Settings, namespace: str, directory: str, search: Any = None) -> None:
        """directory: what is the running service's own; search: Serve's handle of the node's `SearchPort`,
        where it has one.
        """
        self._node: _Node | None = None
        self._search = search
        self._limits = settings.security
        self._query_timeout_s = settings.server.query_timeout_seconds
        super().__init__(
            graph_listen(settings),
            functools.partial(self._host, settings, namespace, directory),
            directory,
            graph_socket(settings) if settings.search.enabled else None,
        )

    async def _host(self, settings: Settings, namespace: str, directory: str) -> _Node:
        self._node = _Node(settings, namespace, directory)
        return self._node

    def _prepare_stop(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        return self._node.prepare_close if self._node is not None else None

    async def answer(self, text: str, form: str) -> bytes:
        """See `serve.graph.notebook_answers.answer`."""
        reads = await self._ready_node().graph.queries.reads(FULL_VISIBILITY)
        return await self._on_port(answer(reads, text, form, self._limits, self._query_timeout_s))

    async def report(self, shapes: str | None, shapes_graph: str | None, data_graph: str) -> bytes:
        """See `serve.graph.notebook_answers.report`."""
        reads = await self._ready_node().graph.queries.reads(FULL_VISIBILITY)
        return await self._on_port(report(reads, shapes, shapes_graph, data_graph, self._query_timeout_s))

    async def update(self, text: str) -> Confirmation:
        """Evaluate an update, as POST /update does."""
        writes = self._ready_node().graph.writing.writes(FULL_VISIBILITY)
        return await self._on_port(writes.update(read_update(text, None, self._limits), Dataset()))

    def status(self) -> dict[str, Any]:
        """The node's own part of the health record."""
        return asdict(self._ready_node().status())

    async def backup(self, directory: str) -> int:
        """Write the present state to a directory that does not exist yet; the log index that it is of."""
        if self._search is not None:
            await self._search.flush.remote()
        return await self._on_port(self._ready_node().graph.admin.backup(Path(directory)))

    def _ready_node(self) -> _Node:
        if self._node is None:
            raise UnavailableError("the service is starting")
        return self._node
