"""The nodes of the cluster: `_nodes`, `_nodes/stats`, `_nodes/http`, which clients ask to find them all."""

import asyncio
from typing import Any

from graphdb.config import Settings
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.host_load import disk_use, host_load
from serve.search.administration.index_stats import stats_json
from serve.search.backend import SearchBackend
from serve.search.frame.endpoint import Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.frame.identity import COMPATIBLE_VERSION, VERSION, Identity

__all__ = ["routes"]

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
_ROLES = ["data", "ingest", "master"]
_STATS = """completion_fields fielddata_fields fields groups level types timeout include_segment_file_sizes
    include_unloaded_segments include_remotes"""


def routes(_node: SearchBackend, settings: Settings) -> list[Endpoint]:
    nodes = _Nodes(settings)
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
        *endpoint(
            "GET",
            "/_tasks",
            nodes.tasks,
            "actions detailed group_by nodes parent_task_id timeout wait_for_completion",
        ),
    ]


class _Nodes:
    """A node answers for itself: it knows neither load nor search port of the others."""

    def __init__(self, settings: Settings) -> None:
        self._identity = Identity(settings)
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
        if not self._is_meant(exchange, exchange.get("node_id")):
            return self._answer(None)
        return self._answer(await asyncio.to_thread(self._stats, exchange))

    async def tasks(self, exchange: Exchange) -> dict[str, Any]:
        """No request outlives its answer."""
        return {"nodes": {}} if exchange.parameters.text("group_by") in (None, "nodes") else {"tasks": {}}

    def _shown(self, exchange: Exchange, names: str | None, metrics: str | None) -> dict[str, Any]:
        return self._answer(self._info(exchange, metrics) if self._is_meant(exchange, names) else None)

    def _answer(self, node: dict[str, Any] | None) -> dict[str, Any]:
        shown = {} if node is None else {node.pop("id"): node}
        return {
            "_nodes": {"total": len(shown), "successful": len(shown), "failed": 0},
            "cluster_name": self._identity.cluster_name,
            "nodes": shown,
        }

    def _is_meant(self, exchange: Exchange, names: str | None) -> bool:
        here = self._identity.here(exchange.node.status())
        known = {"_all", "_local", here.id, here.name, here.host} | ({"_master"} if here.leads else set())
        wanted = [name.removesuffix(":true") for name in (names or "_all").split(",")]
        return any(wildcard_match(name, one) for name in wanted for one in {*known, *_ROLES})

    def _about(self, exchange: Exchange) -> dict[str, Any]:
        here = self._identity.here(exchange.node.status())
        address = self._address(exchange)
        return {
            "id": here.id,
            "name": here.name,
            "transport_address": address,
            "host": here.host,
            "ip": here.host,
        }

    def _address(self, exchange: Exchange) -> str:
        """Where this request has come in: clients that look for nodes can reach that."""
        server = exchange.request.scope.get("server")
        if not server or server[1] is None:
            return self._identity.publish_address
        host, port = server
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _info(self, exchange: Exchange, metrics: str | None) -> dict[str, Any]:
        identity, load = self._identity, host_load()
        address = self._address(exchange)
        memory = {"total_in_bytes": load.memory_bytes}
        sections: dict[str, Any] = {
            "settings": {"cluster": {"name": identity.cluster_name}, "node": {"name": identity.name}},
            "os": {"refresh_interval_in_millis": 1000, "name": "Linux", "mem": memory},
            "process": {"refresh_interval_in_millis": 1000, "id": load.process_id, "mlockall": False},
            "http": {
                "bound_address": [address],
                "publish_address": address,
                "max_content_length_in_bytes": 104_857_600,
            },
            "plugins": [],
            "ingest": {"processors": []},
        }
        chosen = None if metrics in (None, "_all") else metrics.split(",")
        return {
            **self._about(exchange),
            "version": COMPATIBLE_VERSION,
            "build_flavor": VERSION["build_flavor"],
            "build_type": VERSION["build_type"],
            "build_hash": VERSION["build_hash"],
            "roles": _ROLES,
            "attributes": {},
            **{name: value for name, value in sections.items() if chosen is None or name in chosen},
        }

    def _stats(self, exchange: Exchange) -> dict[str, Any]:
        load, disk = host_load(), disk_use(self._data_dir)
        used = {"total_in_bytes": disk.total, "free_in_bytes": disk.free, "available_in_bytes": disk.free}
        averages = dict(zip(("1m", "5m", "15m"), load.load, strict=True))
        memory = {
            "total_in_bytes": load.memory_bytes,
            "used_in_bytes": load.memory_used,
            "used_percent": load.memory_percent,
        }
        sections: dict[str, Any] = {
            "indices": stats_json(exchange.node.catalog.indexes()),
            "os": {"cpu": {"percent": load.cpu_percent, "load_average": averages}, "mem": memory},
            "process": {"mem": {"resident_in_bytes": load.process_bytes}},
            "fs": {"total": used},
        }
        metrics = exchange.get("metric")
        chosen = None if metrics in (None, "_all") else metrics.split(",")
        return {
            "timestamp": exchange.node.now_ms(),
            **self._about(exchange),
            "roles": _ROLES,
            "attributes": {},
            **{name: value for name, value in sections.items() if chosen is None or name in chosen},
        }
