"""`HostedGraph`: what the process of the graph port hosts. No other imports this, for it takes long."""

import functools
import gc
from pathlib import Path

from starlette.types import ASGIApp

from actors import cluster
from actors.clustering.clustered_node import clustered_node
from actors.columns.client import ColumnClient
from actors.log.client import LogClient
from actors.node.graph_node import standalone_node
from actors.raft.raft_log_client import RaftLogClient
from actors.readers.client import ReaderClient
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.history.moments import read_moment
from graphdb.model import Author, Confirmation, Interface
from graphdb.node import NodeStatus
from graphdb.planning.gate import read_update
from graphdb.sparql.dataset import Dataset
from serve.backend import GraphReads
from serve.deployments.port_access import access_backend
from serve.deployments.port_actor import search_socket, start_patiently
from serve.deployments.search_note import search_word
from serve.graph.administration import node_health
from serve.graph.local_search import LocalSearch
from serve.graph.notebook_answers import answer, report
from serve.graph_app import build_app

__all__ = ["HostedGraph"]

_COLLECT_AFTER = 10_000  # new objects: a batch of writes makes thousands, and no circles


class HostedGraph:
    """One node's graph as a port hosts it: the store over the log, and the application over the store."""

    speaks_websocket = True

    def __init__(self, settings: Settings, namespace: str, directory: str) -> None:
        log_endpoint = functools.partial(cluster.update_log_endpoint, namespace)
        readers = ReaderClient(functools.partial(cluster.readers_endpoint, namespace))
        columns = None
        if settings.columns.enabled:
            columns = ColumnClient(functools.partial(cluster.columns_endpoint, namespace))
        indexes = None
        if settings.search.enabled:
            timeout_s = settings.server.query_timeout_seconds
            indexes = LocalSearch(search_socket(settings), timeout_s, settings.text.max_hits)
        self.graph = (
            clustered_node(settings, RaftLogClient(log_endpoint), readers, columns=columns, indexes=indexes)
            if settings.cluster.enabled
            else standalone_node(
                settings,
                LogClient(log_endpoint, omits_search=True),
                readers,
                columns=columns,
                indexes=indexes,
            )
        )
        self._namespace = namespace
        self._limits = settings.security
        self._query_timeout_s = settings.server.query_timeout_seconds
        self._search_word = functools.partial(search_word, directory) if settings.search.enabled else None
        access = access_backend(settings)
        self.app: ASGIApp = build_app(self.graph, settings, access, self._search_word, indexes)

    async def start(self) -> None:
        await start_patiently(self.graph.start)
        # nothing is frozen: the collector lets go of a store that another one replaces
        gc.set_threshold(_COLLECT_AFTER)

    def status(self) -> NodeStatus:
        """Of all of this node's ports."""
        return node_health(self.graph.admin.status(), self._search_word)

    async def prepare_close(self) -> None:
        """See `actors.node.graph_node.GraphNode.prepare_close`."""
        await self.graph.prepare_close()

    async def close(self) -> None:
        await self.graph.close()

    async def answer(self, text: str, form: str, as_of: str | None = None) -> tuple[bytes, int | None]:
        """See `serve.graph.notebook_answers.answer`. as_of: see `graphdb.history.moments.read_moment`. And
        the log index of the newest purge, if it came after the state: that lacks what was purged.
        """
        reads = await self._reads(as_of)
        found = await answer(reads, text, form, self._limits, self._query_timeout_s)
        return found, self._purged_since(reads, as_of)

    async def report(
        self, shapes: str | None, shapes_graph: str | None, data_graph: str, as_of: str | None = None
    ) -> tuple[bytes, int | None]:
        """See `serve.graph.notebook_answers.report`, and answer() for the rest."""
        reads = await self._reads(as_of)
        found = await report(reads, shapes, shapes_graph, data_graph, self._query_timeout_s)
        return found, self._purged_since(reads, as_of)

    def _purged_since(self, reads: GraphReads, as_of: str | None) -> int | None:
        if as_of is None:
            return None
        last_index = self.graph.purges.last_index()
        return last_index if reads.snapshot_index() < last_index else None

    async def _reads(self, as_of: str | None) -> GraphReads:
        moment = None if as_of is None else read_moment(as_of)
        return await self.graph.queries.reads(FULL_VISIBILITY, moment, self._query_timeout_s)

    async def update(self, text: str) -> Confirmation:
        """Evaluate an update, as POST /update does."""
        writes = self.graph.writing.writes(FULL_VISIBILITY, Author(interface=Interface.NOTEBOOK))
        return await writes.update(read_update(text, None, self._limits), Dataset())

    async def backup(self, directory: Path) -> int:
        """See `actors.node.admin`; the search's state is put on disk before."""
        if self._search_word is not None:
            await cluster.flush_search(self._namespace)
        return await self.graph.admin.backup(directory)
