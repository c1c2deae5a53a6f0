"""The cluster's state, statistics and settings."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import PutClusterSettings
from graphdb.search.catalog.cluster_settings import AUTO_CREATE
from graphdb.search.catalog.index_settings import nested
from graphdb.search.errors import illegal_argument, parsing
from serve.search.administration.cluster_health import health_json
from serve.search.administration.index_stats import stats_json
from serve.search.administration.indices import chosen_indexes
from serve.search.administration.nodes import disk_use, host_load
from serve.search.backend import SearchBackend
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.frame.identity import COMPATIBLE_VERSION, Identity

__all__ = ["routes"]

_STATE = """allow_no_indices expand_wildcards flat_settings ignore_unavailable local master_timeout
    wait_for_metadata_version wait_for_timeout"""
_METRICS = frozenset(
    {
        "blocks",
        "customs",
        "master_node",
        "metadata",
        "nodes",
        "routing_nodes",
        "routing_table",
        "version",
        "_all",
    }
)


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    cluster = _Cluster(node, settings)
    paths = ["/_cluster/state", "/_cluster/state/{metric}", "/_cluster/state/{metric}/{index}"]
    stats = ["/_cluster/stats", "/_cluster/stats/nodes/{node_id}"]
    described = "flat_settings include_defaults master_timeout timeout"
    return [
        *endpoint("GET", paths, cluster.state, _STATE),
        *endpoint("GET", stats, cluster.stats, "include_remotes timeout"),
        *endpoint("GET", "/_cluster/settings", cluster.settings, described),
        *endpoint("PUT", "/_cluster/settings", cluster.put_settings, described, Body.JSON),
        *endpoint("GET", "/_cluster/pending_tasks", cluster.pending, "local master_timeout"),
    ]


class _Cluster:
    def __init__(self, node: SearchBackend, settings: Settings) -> None:
        self._identity = Identity(node, settings)
        self._data_dir = settings.server.data_dir

    async def pending(self, _exchange: Exchange) -> dict[str, Any]:
        """Changes wait in the log, not here."""
        return {"tasks": []}

    async def settings(self, exchange: Exchange) -> dict[str, Any]:
        """What was set; by the defaults what was not."""
        there = exchange.node.catalog.cluster_settings
        shown = {kind: _shown(exchange, there.get(kind, {})) for kind in ("persistent", "transient")}
        if exchange.parameters.boolean("include_defaults", False):
            defaults = {"cluster.name": self._identity.cluster_name, AUTO_CREATE: "true"}
            given = {name for values in there.values() for name in values}
            unset = {name: value for name, value in defaults.items() if name not in given}
            shown["defaults"] = _shown(exchange, unset)
        return shown

    async def put_settings(self, exchange: Exchange) -> dict[str, Any]:
        """The answer has what was set, without what was reset. Resetting what was never set is fine."""
        body = await exchange.json() or {}
        unknown = sorted(body.keys() - {"persistent", "transient"})
        if unknown:
            raise illegal_argument(f"[cluster_update_settings_request] unknown field [{unknown[0]}]")
        given: dict[str, dict[str, Any]] = {}
        for kind in ("persistent", "transient"):
            values = body.get(kind) or {}
            if not isinstance(values, dict):
                raise parsing(f"[{kind}] must be an object")
            given[kind] = _flat(values)
        await exchange.node.perform(PutClusterSettings(given["persistent"], given["transient"]))
        after = exchange.node.catalog.cluster_settings
        made = {
            kind: {name: value for name, value in after.get(kind, {}).items() if name in values}
            for kind, values in given.items()
        }
        return {"acknowledged": True, **{kind: _shown(exchange, values) for kind, values in made.items()}}

    async def state(self, exchange: Exchange) -> dict[str, Any]:
        """Who is there and which indexes; not the tables by which Elasticsearch places shards."""
        metrics = (exchange.get("metric") or "_all").split(",")
        unknown = [name for name in metrics if name not in _METRICS]
        if unknown:
            raise illegal_argument(f"request [{exchange.path}] contains unrecognized metric: [{unknown[0]}]")
        status = exchange.node.status()
        members = self._identity.members(status)
        leader = next((node.id for node in members if node.leads), None)
        sections = {
            "version": status.snapshot_index,
            "master_node": leader,
            "blocks": {},
            "nodes": {
                node.id: {"name": node.name, "transport_address": node.transport_address}
                for node in members
                if node.reachable
            },
            "metadata": {
                "cluster_uuid": self._identity.cluster_uuid,
                "indices": {
                    index.name: {
                        "state": "open",
                        "settings": {"index": {"uuid": index.uuid}},
                        "mappings": {"_doc": index.mapping.as_json()},
                        "aliases": sorted(index.aliases),
                    }
                    for index in chosen_indexes(exchange, states="all")
                },
            },
        }
        return {
            "cluster_name": self._identity.cluster_name,
            "cluster_uuid": self._identity.cluster_uuid,
            **{name: value for name, value in sections.items() if "_all" in metrics or name in metrics},
        }

    async def stats(self, exchange: Exchange) -> dict[str, Any]:
        return await asyncio.to_thread(self._stats, exchange)

    def _stats(self, exchange: Exchange) -> dict[str, Any]:
        """Indexes of the cluster, and the machine of this node."""
        status, indexes = exchange.node.status(), exchange.node.catalog.indexes()
        health = health_json(self._identity, status, indexes)
        load, disk = host_load(), disk_use(self._data_dir)
        nodes = health["number_of_nodes"]
        shards = {"total": health["active_shards"], "primaries": health["active_primary_shards"]}
        fields = Counter(spec.type for index in indexes for spec in index.mapping.match("*"))
        types = [{"name": name, "count": count} for name, count in sorted(fields.items())]
        return {
            "_nodes": {"total": nodes, "successful": nodes, "failed": 0},
            "cluster_name": self._identity.cluster_name,
            "cluster_uuid": self._identity.cluster_uuid,
            "timestamp": exchange.node.now_ms(),
            "status": health["status"],
            "indices": {
                "count": len(indexes),
                "shards": shards,
                **stats_json(indexes),
                "mappings": {"field_types": types},
            },
            "nodes": {
                "count": {"total": nodes, "data": nodes, "ingest": nodes, "master": nodes},
                "versions": [COMPATIBLE_VERSION],
                "os": {
                    "mem": {"total_in_bytes": load.memory_bytes, "used_in_bytes": load.memory_used},
                },
                "process": {"cpu": {"percent": load.cpu_percent}},
                "fs": {"total_in_bytes": disk.total, "free_in_bytes": disk.free},
            },
        }


def _shown(exchange: Exchange, values: Mapping[str, str]) -> dict[str, Any]:
    """In objects, or with `flat_settings` by dotted names."""
    flat = exchange.parameters.boolean("flat_settings", False)
    return dict(values) if flat else nested(values)


def _flat(tree: dict[str, Any]) -> dict[str, Any]:
    """By dotted names."""
    values: dict[str, Any] = {}
    pending = [("", tree)]
    while pending:
        prefix, members = pending.pop()
        for name, value in members.items():
            if isinstance(value, dict):
                pending.append((f"{prefix}{name}.", value))
            else:
                values[prefix + name] = value
    return values
