"""`HostedSearch`: what the process of the search port hosts. No other imports this, for it takes long."""

import asyncio
import functools
import gc
import logging
import os
import threading

from actors import cluster
from actors.freed_memory import keep_freed
from actors.log.client import LogClient
from actors.raft.raft_log_client import RaftLogClient
from actors.search.kept_documents import keep_documents_by_memory
from actors.search.search_node import SearchNode
from actors.search.warm_up import warm_up
from graphdb.config import Settings
from serve.deployments.port_access import access_backend
from serve.deployments.port_actor import end_process, graph_socket, start_patiently
from serve.deployments.search_note import SearchNote
from serve.port.application import PortApplication
from serve.search.administration.policy_runs import PolicyRuns
from serve.search.frame.peer_requests import PeerRequests
from serve.search.graph.local_graph import LocalGraph
from serve.search_app import build_search_app

__all__ = ["HostedSearch"]

logger = logging.getLogger(__name__)
_PROCESSES_MAX = 8  # where the settings leave it to the node
_CALL_S = 10.0  # beyond the time limit of a search
_ANSWERED_S = 0.5  # until those are answered whose change was not applied
_COLLECT_AFTER = 50_000  # new objects: a bulk request makes tens of thousands, and no circles


class HostedSearch:
    """One node's search as a port hosts it: the indexes over the log, and the application over them."""

    speaks_websocket = False

    def __init__(self, settings: Settings, namespace: str, directory: str) -> None:
        log_endpoint = functools.partial(cluster.update_log_endpoint, namespace)
        log: LogClient = LogClient(log_endpoint)
        if settings.cluster.enabled:
            log = RaftLogClient(log_endpoint)
        self.graph = LocalGraph(graph_socket(settings), settings.server.query_timeout_seconds)
        self.search = SearchNode(settings, log, self.graph)
        self._settings, self._namespace = settings, namespace
        self.app: PortApplication = build_search_app(
            self.search, settings, access_backend(settings), self.search.reach
        )
        self.search.serve_others(PeerRequests(self.app).perform)
        self.search.run_snapshots(PolicyRuns(self.app).run)
        self._warming: asyncio.Task[None] | None = None
        self._restarting = asyncio.create_task(self._restart_where_memory_ran_out())
        self._note = SearchNote(directory, lambda: self.search.is_opening, self._is_well)

    def _is_well(self) -> bool:
        return self.search.status().status == "healthy"

    async def start(self) -> None:
        await self._note.begin()
        await start_patiently(self.search.start)
        if self._settings.search.shards_on == "cluster":
            await asyncio.to_thread(self._search_on_cluster)
        elif processes := _processes(self._settings.search.processes):
            self.search.search_beside(processes, "serve.deployments.search_process")
        self._note.tell()
        self._warming = asyncio.create_task(self._warm_up())
        threading.Thread(target=_settle, daemon=True).start()

    def _search_on_cluster(self) -> None:
        from actors.index_shard_actors import RayHosts  # not at the top: most have none

        limit_s = self._settings.server.query_timeout_seconds + _CALL_S
        self.search.search_on(RayHosts(limit_s, self._namespace))

    async def _warm_up(self) -> None:
        """Once there is something to search: what is compiled takes 57 MB, and time at the start."""
        await self.search.until_indexed()
        await asyncio.to_thread(warm_up)

    async def _restart_where_memory_ran_out(self) -> None:
        await self.search.failed.wait()
        if self.search.must_restart:
            logger.error("memory ran out while a change was applied: the process is made again")
            await asyncio.sleep(_ANSWERED_S)
            end_process()

    async def close(self) -> None:
        self._restarting.cancel()
        if self._warming is not None:
            self._warming.cancel()
        await self._note.close()
        await self.search.close()
        await self.graph.close()


def _processes(wanted: int | str) -> int:
    """How many may search beside this one."""
    if isinstance(wanted, int):
        return wanted
    return min(_PROCESSES_MAX, len(os.sched_getaffinity(0)) - 1)


def _settle() -> None:
    """Freeze the present objects, mostly modules, so that the garbage collector skips them; and keep what
    arrays free from now on, as many a search makes one of all documents.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    keep_freed()
    keep_documents_by_memory()
