"""Endpoints of nodes, and the load of the host."""

import asyncio
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from graphdb.config import Settings
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.index_stats import (
    INDEX_METRICS,
    chosen_sections,
    metrics_asked,
    stats_json,
)
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, Exchange, endpoint
from serve.search.frame.identity import COMPATIBLE_VERSION, VERSION, Identity, NodeName

__all__ = ["DiskUse", "HostLoad", "disk_use", "host_load", "routes"]

# How busy this node's machine and process are. The clock and the machine are read at each call.


@dataclass(frozen=True, slots=True)
class HostLoad:
    """What Elasticsearch calls heap is the memory of this process here."""

    process_id: int
    process_bytes: int
    memory_bytes: int
    memory_used: int
    memory_percent: int
    cpu_percent: int
    load: tuple[float, float, float]  # over 1, 5 and 15 minutes

    @property
    def process_percent(self) -> int:
        """Of the machine's memory."""
        return round(100 * self.process_bytes / self.memory_bytes)


@dataclass(frozen=True, slots=True)
class DiskUse:
    total: int
    used: int
    free: int


def host_load() -> HostLoad:
    memory, process = psutil.virtual_memory(), psutil.Process()
    return HostLoad(
        process_id=process.pid,
        process_bytes=process.memory_info().rss,
        memory_bytes=memory.total,
        memory_used=memory.used,
        memory_percent=round(memory.percent),
        cpu_percent=round(psutil.cpu_percent()),
        load=os.getloadavg(),
    )


def disk_use(directory: Path) -> DiskUse:
    """Of the disk that holds a directory, or will hold it."""
    while not directory.exists():
        directory = directory.parent
    total, used, free = shutil.disk_usage(directory)
    return DiskUse(total, used, free)


# The nodes of the cluster: `_nodes`, `_nodes/stats`, `_nodes/http`, which clients ask to find them all.

_METRICS = frozenset(
    {
        "settings",
        "os",
        "process",
        "jvm",
        "thread_pool",
        "transport",
        "http",
        "plugins",
        "ingest",
        "indices",
    }
)
_STATS_METRICS = _METRICS - {"settings", "plugins"} | {
    "adaptive_selection",
    "allocations",
    "breaker",
    "discovery",
    "fs",
    "indexing_pressure",
    "repositories",
    "script",
    "script_cache",
}
_ROLES = ["data", "ingest", "master"]
_STATS = """completion_fields fielddata_fields fields groups level types timeout include_segment_file_sizes
    include_unloaded_segments include_remotes"""


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    nodes = _Nodes(node, settings)
    return [
        *endpoint("GET", "/_nodes", nodes.info, "flat_settings timeout"),
        *endpoint("GET", "/_nodes/{node_id}", nodes.info_of_some, "flat_settings timeout"),
        *endpoint("GET", "/_nodes/{node_id}/{metric}", nodes.info, "flat_settings timeout"),
        *endpoint(
            "GET",
            ["/_nodes/stats", "/_nodes/stats/{metric}", "/_nodes/stats/{metric}/{index_metric}"],
            nodes.stats,
            _STATS,
        ),
        *endpoint(
            "GET",
            [
                "/_nodes/{node_id}/stats",
                "/_nodes/{node_id}/stats/{metric}",
                "/_nodes/{node_id}/stats/{metric}/{index_metric}",
            ],
            nodes.stats,
            _STATS,
        ),
    ]


def _roles(node: NodeName) -> list[str]:
    """Clients that look for nodes pass over those that are nothing but `master`."""
    return _ROLES if node.http_address is not None else ["master"]


def _of_this_machine() -> dict[str, Any]:
    load = host_load()
    memory = {"total_in_bytes": load.memory_bytes}
    return {
        "os": {"refresh_interval_in_millis": 1000, "name": "Linux", "mem": memory},
        "process": {"refresh_interval_in_millis": 1000, "id": load.process_id, "mlockall": False},
    }


class _Nodes:
    """The nodes that this node reaches. Measurements are of this node only."""

    def __init__(self, node: SearchBackend, settings: Settings) -> None:
        self._identity = Identity(node, settings)
        self._data_dir = settings.server.data_dir

    async def info_of_some(self, exchange: Exchange) -> dict[str, Any]:
        """One word in the path is what to show, or which nodes."""
        word = exchange["node_id"]
        if all(name in _METRICS or name in ("_all", "_none") for name in word.split(",")):
            return self._shown(exchange, None, word)
        return self._shown(exchange, word, None)

    async def info(self, exchange: Exchange) -> dict[str, Any]:
        return self._shown(exchange, exchange.get("node_id"), exchange.get("metric"))

    async def stats(self, exchange: Exchange) -> dict[str, Any]:
        here = self._identity.here(exchange.node.status())
        if not self._is_meant(here, exchange.get("node_id")):
            return self._answer({})
        return self._answer({here.id: await asyncio.to_thread(self._stats, exchange, here)})

    def _shown(self, exchange: Exchange, names: str | None, metrics: str | None) -> dict[str, Any]:
        members = self._identity.members(exchange.node.status())
        meant = [node for node in members if node.reachable and self._is_meant(node, names)]
        return self._answer({node.id: self._info(exchange, node, metrics) for node in meant})

    def _answer(self, nodes: dict[str, dict[str, Any]]) -> dict[str, Any]:
        return {
            "_nodes": {"total": len(nodes), "successful": len(nodes), "failed": 0},
            "cluster_name": self._identity.cluster_name,
            "nodes": nodes,
        }

    def _is_meant(self, node: NodeName, names: str | None) -> bool:
        known = {"_all", node.id, node.name, node.host, *_roles(node)}
        known |= {"_master"} if node.leads else set()
        known |= {"_local"} if node.id == self._identity.node_id else set()
        wanted = [name.removesuffix(":true") for name in (names or "_all").split(",")]
        return any(wildcard_match(name, one) for name in wanted for one in known)

    def _about(self, node: NodeName) -> dict[str, Any]:
        return {
            "name": node.name,
            "transport_address": node.transport_address,
            "host": node.host,
            "ip": node.host,
        }

    def _http_address(self, exchange: Exchange, node: NodeName) -> str | None:
        """For a standalone node: the address of the request, which its client can reach."""
        server = exchange.request.scope.get("server")
        if self._identity.is_told_address or not server or server[1] is None:
            return node.http_address
        host, port = server
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _info(self, exchange: Exchange, node: NodeName, metrics: str | None) -> dict[str, Any]:
        settings = {"cluster": {"name": self._identity.cluster_name}, "node": {"name": node.name}}
        sections: dict[str, Any] = {"settings": settings, "plugins": [], "ingest": {"processors": []}}
        address = self._http_address(exchange, node)
        if address is not None:
            sections["http"] = {
                "bound_address": [address],
                "publish_address": address,
                "max_content_length_in_bytes": 104_857_600,
            }
        if node.id == self._identity.node_id:
            sections |= _of_this_machine()
        chosen = None if metrics in (None, "_all") else metrics.split(",")
        return {
            **self._about(node),
            "version": COMPATIBLE_VERSION,
            "build_flavor": VERSION["build_flavor"],
            "build_type": VERSION["build_type"],
            "build_hash": VERSION["build_hash"],
            "roles": _roles(node),
            "attributes": {},
            **{name: value for name, value in sections.items() if chosen is None or name in chosen},
        }

    def _stats(self, exchange: Exchange, here: NodeName) -> dict[str, Any]:
        load, disk = host_load(), disk_use(self._data_dir)
        used = {"total_in_bytes": disk.total, "free_in_bytes": disk.free, "available_in_bytes": disk.free}
        averages = dict(zip(("1m", "5m", "15m"), load.load, strict=True))
        memory = {
            "total_in_bytes": load.memory_bytes,
            "used_in_bytes": load.memory_used,
            "used_percent": load.memory_percent,
        }
        sections: dict[str, Any] = {
            "indices": _of_indexes(exchange),
            "os": {"cpu": {"percent": load.cpu_percent, "load_average": averages}, "mem": memory},
            "process": {"mem": {"resident_in_bytes": load.process_bytes}},
            "fs": {"total": used},
        }
        return {
            "timestamp": exchange.node.now_ms(),
            **self._about(here),
            "roles": _roles(here),
            "attributes": {},
            **chosen_sections(sections, metrics_asked(exchange, _STATS_METRICS)),
        }


def _of_indexes(exchange: Exchange) -> dict[str, Any]:
    """Of all together, and with `level` of each."""
    indexes = exchange.node.catalog.indexes()
    metrics = metrics_asked(exchange, INDEX_METRICS, "index_metric")
    shown = chosen_sections(stats_json(indexes), metrics)
    if exchange.parameters.text("level") not in ("indices", "shards"):
        return shown
    return shown | {"indices": {one.name: chosen_sections(stats_json([one]), metrics) for one in indexes}}
