"""The nodes of the cluster: `_nodes`, `_nodes/stats`, `_nodes/http`, which clients ask to find them all."""

import asyncio
import os
import platform
from collections.abc import Sequence
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.index_settings import nested
from graphdb.search.catalog.state import Index
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.pool_use import PoolUse
from serve.search.administration.index_stats import (
    INDEX_METRICS,
    Placement,
    by_shard,
    chosen_sections,
    metrics_asked,
    stats_json,
    with_file_sizes,
)
from serve.search.administration.machine import disk_use, host_load, process_load
from serve.search.administration.thread_pools import pool_infos, pool_stats
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import (
    COMPATIBLE_VERSION,
    INDEX_VERSION,
    TRANSPORT_VERSION,
    VERSION,
    Identity,
    NodeName,
)

__all__ = ["pressure_json", "routes"]

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
        "modules",
        "ingest",
        "indices",
    }
)
_STATS_METRICS = _METRICS - {"settings", "plugins", "modules"} | {
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
# What Elasticsearch has in modules, and is here: clients look for a feature by the module's name.
_MODULES = [
    {
        "name": name,
        "version": COMPATIBLE_VERSION,
        "elasticsearch_version": COMPATIBLE_VERSION,
        "java_version": "",  # there is none, and clients want all members
        "description": description,
        "classname": "",
        "extended_plugins": [],
        "has_native_controller": False,
        "licensed": False,
        "type": "isolated",
    }
    for name, description in (
        ("aggregations", "Further aggregations"),
        ("aggs-matrix-stats", "Statistics of several fields together"),
        ("analysis-common", "Analyzers, tokenizers and filters"),
        ("ingest-common", "Processors of ingest pipelines"),
        ("lang-expression", "Expressions as scripts"),
        ("lang-mustache", "Templates of searches"),
        ("lang-painless", "Scripts"),
        ("mapper-extras", "Further types of fields"),
        ("parent-join", "Joins between documents of an index"),
        ("percolator", "Queries stored as documents"),
        ("rank-eval", "Measures of how good a ranking is"),
        ("reindex", "Documents rewritten or copied by query"),
    )
]
_NO_BUFFERS = {"count": 0, "used_in_bytes": 0, "total_capacity_in_bytes": 0}
_STATS = """completion_fields fielddata_fields fields groups level types timeout include_segment_file_sizes
    include_unloaded_segments include_remotes"""


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    nodes = _Nodes(node, settings)
    reload = ["/_nodes/reload_secure_settings", "/_nodes/{node_id}/reload_secure_settings"]
    return [
        *endpoint("POST", reload, nodes.reload, "timeout", Body.JSON),
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


def _of_this_machine() -> dict[str, Any]:
    load = host_load()
    system = {"name": platform.system(), "version": platform.release(), "arch": platform.machine()}
    return {
        "os": {
            "refresh_interval_in_millis": 1000,
            **system,
            "pretty_name": f"{system['name']} {system['version']}",
            "available_processors": os.cpu_count() or 1,
            "allocated_processors": os.cpu_count() or 1,
        },
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

    async def reload(self, exchange: Exchange) -> dict[str, Any]:
        """There is no keystore: nothing is to be read again, and no password is the right one."""
        body = await exchange.json() or {}
        password = body.get("secure_settings_password") or ""
        reason = "Provided keystore password was incorrect"
        refused = {"reload_exception": {"type": "security_exception", "reason": reason}} if password else {}
        members = self._identity.members(exchange.node.status())
        names = exchange.get("node_id")
        meant = [node for node in members if node.reachable and self._is_meant(node, names)]
        return self._answer({node.id: {"name": node.name, **refused} for node in meant})

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
        known = {"_all", node.id, node.name, node.host, *node.roles}
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
        settings: dict[str, Any] = {
            "cluster.name": self._identity.cluster_name,
            "cluster.election.strategy": "raft",
            "node.name": node.name,
            "node.attr": {},
            "client.type": "node",
            "http.type": "h11",
            "transport.type": "grpc",
        }
        if not exchange.parameters.boolean("flat_settings", False):
            settings = nested(settings)
        between = {"bound_address": [node.transport_address], "publish_address": node.transport_address}
        sections: dict[str, Any] = {
            "settings": settings,
            "transport": {**between, "profiles": {}},
            "plugins": [],
            "modules": _MODULES,
            "ingest": {"processors": _processors()},
        }
        address = self._http_address(exchange, node)
        if address is not None:
            sections["http"] = {
                "bound_address": [address],
                "publish_address": address,
                "max_content_length_in_bytes": 104_857_600,
            }
        if node.id == self._identity.node_id:
            sections |= _of_this_machine()
            sections["thread_pool"] = pool_infos(exchange.pools())
        chosen = None if metrics in (None, "_all") else metrics.split(",")
        return {
            **self._about(node),
            "version": COMPATIBLE_VERSION,
            "transport_version": TRANSPORT_VERSION,
            "index_version": INDEX_VERSION,
            "component_versions": {},
            "build_flavor": VERSION["build_flavor"],
            "build_type": VERSION["build_type"],
            "build_hash": VERSION["build_hash"],
            "roles": node.roles,
            "attributes": {},
            **{name: value for name, value in sections.items() if chosen is None or name in chosen},
        }

    def _stats(self, exchange: Exchange, here: NodeName) -> dict[str, Any]:
        load, process, disk = host_load(), process_load(), disk_use(self._data_dir)
        now_ms = exchange.node.now_ms()
        used = {"total_in_bytes": disk.total, "free_in_bytes": disk.free, "available_in_bytes": disk.free}
        averages = dict(zip(("1m", "5m", "15m"), load.load, strict=True))
        memory = {
            "total_in_bytes": load.memory_bytes,
            "free_in_bytes": load.memory_bytes - load.memory_used,
            "used_in_bytes": load.memory_used,
            "free_percent": 100 - load.memory_percent,
            "used_percent": load.memory_percent,
        }
        sections: dict[str, Any] = {
            "indices": _of_indexes(exchange, here),
            "thread_pool": pool_stats(exchange.pools()),
            "indexing_pressure": pressure_json(exchange.node.writing()),
            "os": {
                "timestamp": now_ms,
                "cpu": {"percent": load.cpu_percent, "load_average": averages},
                "mem": memory,
            },
            "process": {
                "timestamp": now_ms,
                "open_file_descriptors": process.open_files,
                "max_file_descriptors": process.files_max,
                "cpu": {"total_in_millis": process.cpu_ms},
                "mem": {
                    "resident_in_bytes": load.process_bytes,
                    "total_virtual_in_bytes": process.virtual_bytes,
                },
            },
            # There is no Java here: its heap is the memory of this process, and it has no buffers beside it.
            "jvm": {
                "timestamp": now_ms,
                "uptime_in_millis": int(exchange.node.status().uptime_seconds * 1000),
                "mem": {
                    "heap_used_in_bytes": load.process_bytes,
                    "heap_used_percent": load.process_percent,
                    "heap_max_in_bytes": load.memory_bytes,
                },
                "threads": {"count": process.threads},
                "buffer_pools": {"direct": _NO_BUFFERS, "mapped": _NO_BUFFERS},
            },
            "fs": {
                "timestamp": now_ms,
                "total": used,
                # Where the directory is, readers need not know.
                "data": [{"path": self._data_dir.name, "type": disk.kind, **used}],
            },
            # Changes are entries of the log: none waits or is published anywhere else.
            "discovery": {
                "cluster_state_queue": {"total": 0, "pending": 0, "committed": 0},
                "published_cluster_states": {
                    "full_states": 0,
                    "incompatible_diffs": 0,
                    "compatible_diffs": 0,
                },
            },
        }
        return {
            "timestamp": now_ms,
            **self._about(here),
            "roles": here.roles,
            "attributes": {},
            **chosen_sections(sections, metrics_asked(exchange, _STATS_METRICS)),
        }


def pressure_json(writing: PoolUse) -> dict[str, Any]:
    """What of writes stands in memory: here they wait where they came in, for a log that others follow."""

    def by_stage(size_bytes: int) -> dict[str, int]:
        return {
            "combined_coordinating_and_primary_in_bytes": size_bytes,
            "coordinating_in_bytes": size_bytes,
            "primary_in_bytes": 0,
            "replica_in_bytes": 0,
            "all_in_bytes": size_bytes,
        }

    rejections = {"coordinating": writing.rejected, "primary": 0, "replica": 0}
    total = by_stage(writing.taken_bytes) | {f"{name}_rejections": n for name, n in rejections.items()}
    current = by_stage(writing.waiting_bytes)
    return {"memory": {"current": current, "total": total, "limit_in_bytes": writing.bytes_max}}


def _processors() -> list[dict[str, str]]:
    """The types of processors."""
    from graphdb.search.ingest.processors import PROCESSORS  # most nodes have no pipelines

    return [{"type": name} for name in sorted(PROCESSORS)]


def _of_indexes(exchange: Exchange, here: NodeName) -> dict[str, Any]:
    """Of all together, and with `level` of each, or of each of its shards."""
    indexes = exchange.node.catalog.indexes()
    metrics = metrics_asked(exchange, INDEX_METRICS, "index_metric")

    def shown_of(several: Sequence[Index]) -> dict[str, Any]:
        stats = chosen_sections(stats_json(several, exchange.node.contexts), metrics)
        return with_file_sizes(stats, several, exchange.parameters)

    shown, level = shown_of(indexes), exchange.parameters.text("level")
    if level == "indices":
        return shown | {"indices": {one.name: shown_of([one]) for one in indexes}}
    if level == "shards":
        placement = Placement.of(exchange.node)
        shards = {one.name: by_shard(one, [here], placement, metrics) for one in indexes}
        return shown | {
            "shards": {
                name: [{number: copies[0]} for number, copies in each.items()]
                for name, each in shards.items()
            }
        }
    return shown
