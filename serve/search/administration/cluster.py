"""The cluster: its health and waiting for it, its state, statistics and settings."""

import asyncio
import os
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from starlette.requests import ClientDisconnect

from graphdb.config import Settings
from graphdb.node import NodeStatus
from graphdb.search.catalog.catalog_commands import PutClusterSettings
from graphdb.search.catalog.cluster_settings import DEFAULTS, IDLE_DEFAULTS
from graphdb.search.catalog.index_blocks import blocks_json
from graphdb.search.catalog.index_settings import nested
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.segments.operations import PRIMARY_TERM
from serve.answers import client_gone
from serve.search.administration.allocation import REROUTE_PARAMETERS, notice_losses, reroute, routing_table
from serve.search.administration.index_stats import (
    STATUSES,
    Placement,
    ShardCounts,
    check_metrics,
    count_all,
    count_each,
    metrics_asked,
    stats_json,
)
from serve.search.administration.indices import chosen_indexes
from serve.search.administration.machine import disk_use, host_load, process_load
from serve.search.administration.nodes import pressure_json
from serve.search.administration.not_counted import OF_A_CLUSTER
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import COMPATIBLE_VERSION, VERSION, Identity
from serve.search.frame.parameters import Parameters

__all__ = ["cluster_status", "health_json", "routes"]

# Any will do, but it must never change: the ids of states are made with it.
_STATES = UUID("9b0c6c1e-2f57-4a0b-8e63-6d1d3f0a7b25")
_POLL_S, _POLL_SHARE = 0.1, 0.05  # how often to look: after so long, or such a share of the wait so far
_WAIT_MS, _WAIT_MS_MAX = 30_000, 300_000
_LEVELS = ("cluster", "indices", "shards")
_PARAMETERS = """expand_wildcards level local master_timeout timeout wait_for_active_shards wait_for_events
    wait_for_no_relocating_shards wait_for_no_initializing_shards wait_for_nodes wait_for_status"""
_NODES_WANTED = re.compile(r"(>=|<=|>|<|)(\d{1,6})|(ge|le|gt|lt)\((\d{1,6})\)")
_WORDS = {"ge": ">=", "le": "<=", "gt": ">", "lt": "<"}

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


def _health_routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity = Identity(node, settings)

    async def answer(exchange: Exchange) -> Answer:
        return await _health(exchange, identity)

    return endpoint("GET", ["/_cluster/health", "/_cluster/health/{index}"], answer, _PARAMETERS)


def cluster_status(status: NodeStatus, shards: ShardCounts) -> str:
    """green, yellow or red: red while this node does not answer for its data."""
    if status.status in ("starting", "error") or not status.index_loaded:
        return "red"
    return shards.status


def health_json(
    identity: Identity, status: NodeStatus, placement: Placement, indexes: Sequence[Index]
) -> dict[str, Any]:
    """As `GET /_cluster/health` shows it."""
    shards = count_all(indexes, placement)
    return {
        "cluster_name": identity.cluster_name,
        "status": cluster_status(status, shards),
        "timed_out": False,
        "number_of_nodes": placement.nodes,
        "number_of_data_nodes": placement.data_nodes,
        **_counts_json(shards),
        "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0,
        "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0 * shards.active / shards.wanted if shards.wanted else 100.0,
    }


def _counts_json(shards: ShardCounts) -> dict[str, int]:
    return {
        "active_primary_shards": shards.primaries,
        "active_shards": shards.active,
        "relocating_shards": 0,
        "initializing_shards": shards.initializing,
        "unassigned_shards": shards.unassigned,
        "unassigned_primary_shards": min(shards.lost, shards.unassigned),
    }


async def _health(exchange: Exchange, identity: Identity) -> Answer:
    parameters = exchange.parameters
    level = parameters.text("level") or "cluster"
    if level not in _LEVELS:
        raise illegal_argument(f"unknown level [{level}]")
    wait_s = min(parameters.time_ms("timeout", _WAIT_MS), _WAIT_MS_MAX) / 1000
    _check_waits(parameters)
    await notice_losses(exchange.node)
    gone = asyncio.create_task(client_gone(exchange.request.receive))
    began = asyncio.get_running_loop().time()
    try:
        while True:
            health, indexes = _look(exchange, identity)
            is_met = indexes is not None and _is_met(health, parameters)
            waited_s = asyncio.get_running_loop().time() - began
            if is_met or waited_s >= wait_s:
                break
            pause_s = min(wait_s - waited_s, max(_POLL_S, _POLL_SHARE * waited_s))
            if (await asyncio.wait([gone], timeout=pause_s))[0]:
                raise ClientDisconnect
    finally:
        gone.cancel()
    shown = {**health, "timed_out": not is_met, **_by_index(level, indexes, Placement.of(exchange.node))}
    return Answer(shown, 200 if is_met else 408)


def _look(exchange: Exchange, identity: Identity) -> tuple[dict[str, Any], list[Index] | None]:
    """How it is now; no indexes, and red, where one that was named is not there: it may still come."""
    status, placement = exchange.node.status(), Placement.of(exchange.node)
    if status.status == "error" or not status.index_loaded:
        return health_json(identity, status, placement, []), []
    try:
        indexes = chosen_indexes(exchange, states="all")
    except SearchError as error:
        if error.kind != "index_not_found_exception":
            raise
        return {**health_json(identity, status, placement, []), "status": "red"}, None
    return health_json(identity, status, placement, indexes), indexes


def _check_waits(parameters: Parameters) -> None:
    status = parameters.text("wait_for_status")
    if status is not None and status.lower() not in STATUSES:
        raise illegal_argument(f"unknown cluster health status [{status}]")
    nodes = parameters.text("wait_for_nodes")
    if nodes is not None and _NODES_WANTED.fullmatch(nodes) is None:
        raise SearchError("number_format_exception", f'For input string: "{nodes}"')
    shards = parameters.text("wait_for_active_shards")
    if shards is not None and shards != "all" and not shards.isdecimal():
        raise illegal_argument(f"cannot parse ActiveShardCount[{shards}]")


def _is_met(health: dict[str, Any], parameters: Parameters) -> bool:
    """Whether the health satisfies the `wait_for_` parameters. What is moved counts as initialized."""
    status = parameters.text("wait_for_status")
    if status is not None and STATUSES.index(health["status"]) > STATUSES.index(status.lower()):
        return False
    shards = parameters.text("wait_for_active_shards") or "0"
    missing = health["unassigned_shards"] + health["initializing_shards"]
    if health["active_shards"] < int(shards) if shards != "all" else missing:
        return False
    if health["initializing_shards"] and parameters.boolean("wait_for_no_initializing_shards", False):
        return False
    return _has_nodes(health["number_of_nodes"], parameters.text("wait_for_nodes"))


def _has_nodes(nodes: int, wanted: str | None) -> bool:
    found = _NODES_WANTED.fullmatch(wanted or "")
    if found is None:
        return True
    relation = found[1] if found[2] else _WORDS[found[3]]
    count = int(found[2] or found[4])
    if relation in (">", "<"):
        return nodes > count if relation == ">" else nodes < count
    if relation in (">=", "<="):
        return nodes >= count if relation == ">=" else nodes <= count
    return nodes == count


def _by_index(level: str, indexes: Sequence[Index] | None, placement: Placement) -> dict[str, Any]:
    if level == "cluster":
        return {}
    return {"indices": {index.name: _index_json(index, placement, level) for index in indexes or ()}}


def _index_json(index: Index, placement: Placement, level: str) -> dict[str, Any]:
    each = count_each(index, placement)
    shards = sum(each, ShardCounts())
    shown: dict[str, Any] = {
        "status": shards.status,
        "number_of_shards": len(each),
        "number_of_replicas": index.number("number_of_replicas"),
        **_counts_json(shards),
    }
    if level == "shards":
        shown["shards"] = {str(number): _shard_json(one) for number, one in enumerate(each)}
    return shown


def _shard_json(counts: ShardCounts) -> dict[str, Any]:
    shown = {"status": counts.status, "primary_active": counts.primaries > 0, **_counts_json(counts)}
    shown.pop("active_primary_shards")
    return shown


def _cluster_routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    cluster = _Cluster(node, settings)
    paths = ["/_cluster/state", "/_cluster/state/{metric}", "/_cluster/state/{metric}/{index}"]
    stats = ["/_cluster/stats", "/_cluster/stats/nodes/{node_id}"]
    described = "flat_settings include_defaults master_timeout timeout"
    return [
        *endpoint("GET", paths, cluster.state, _STATE),
        *endpoint("POST", "/_cluster/reroute", cluster.reroute, REROUTE_PARAMETERS, Body.JSON),
        *endpoint("GET", stats, cluster.stats, "include_remotes timeout"),
        *endpoint("GET", "/_cluster/settings", cluster.settings, described),
        *endpoint("PUT", "/_cluster/settings", cluster.put_settings, described, Body.JSON),
        *endpoint("GET", "/_cluster/pending_tasks", cluster.pending, "local master_timeout"),
    ]


class _Cluster:
    def __init__(self, node: SearchBackend, settings: Settings) -> None:
        self._identity = Identity(node, settings)
        self._data_dir = settings.server.data_dir
        self._is_clustered = settings.cluster.enabled

    async def pending(self, _exchange: Exchange) -> dict[str, Any]:
        """Changes wait in the log, not here."""
        return {"tasks": []}

    async def settings(self, exchange: Exchange) -> dict[str, Any]:
        """The settings; with include_defaults also those that are not set."""
        there = exchange.node.catalog.cluster_settings
        shown = {kind: _shown(exchange, there.get(kind, {})) for kind in ("persistent", "transient")}
        if exchange.parameters.boolean("include_defaults", False):
            defaults = {"cluster.name": self._identity.cluster_name, **DEFAULTS, **IDLE_DEFAULTS}
            given = {name for values in there.values() for name in values}
            unset = {name: value for name, value in defaults.items() if name not in given}
            shown["defaults"] = _shown(exchange, unset)
        return shown

    async def put_settings(self, exchange: Exchange) -> dict[str, Any]:
        """Change settings. The answer has those that were set, not those that were reset."""
        body = await exchange.json()
        if body is None:
            raise SearchError("parse_exception", "request body is required")
        unknown = sorted(body.keys() - {"persistent", "transient"})
        if unknown:
            raise illegal_argument(f"[cluster_update_settings_request] unknown field [{unknown[0]}]")
        given: dict[str, dict[str, Any]] = {}
        for kind in ("persistent", "transient"):
            values = body.get(kind) or {}
            if not isinstance(values, dict):
                raise parsing(f"[{kind}] must be an object")
            given[kind] = _flat(values)
        if not any(given.values()):
            reason = "Validation Failed: 1: no settings to update;"
            raise SearchError("action_request_validation_exception", reason)
        await exchange.node.perform(PutClusterSettings(given["persistent"], given["transient"]))
        after = exchange.node.catalog.cluster_settings
        made = {
            kind: {name: value for name, value in after.get(kind, {}).items() if name in values}
            for kind, values in given.items()
        }
        return {"acknowledged": True, **{kind: _shown(exchange, values) for kind, values in made.items()}}

    async def state(self, exchange: Exchange) -> dict[str, Any]:
        """Who is there, which indexes, and where their shards are."""
        return self._state(exchange, metrics_asked(exchange, _METRICS))

    async def reroute(self, exchange: Exchange) -> dict[str, Any]:
        """With the parts of the state that the request names."""
        metrics = [name for name in exchange.parameters.strings("metric") if name != "none"]
        check_metrics(exchange, metrics, _METRICS)
        answer = await reroute(exchange)
        return {**answer, "state": self._state(exchange, metrics)} if metrics else answer

    def _state(self, exchange: Exchange, metrics: Sequence[str]) -> dict[str, Any]:
        status = exchange.node.status()
        members = self._identity.members(status)
        leader = next((node.id for node in members if node.leads), None)
        indexes = chosen_indexes(exchange, states="all")
        blocks = {index.name: found for index in indexes if (found := blocks_json(index))}
        shown = {*metrics, "state_uuid"} if "version" in metrics else metrics
        sections = {
            "version": status.snapshot_index,
            "state_uuid": self._state_uuid(status.snapshot_index),
            "master_node": leader,
            "blocks": {"indices": blocks} if blocks else {},
            "nodes": {
                node.id: {"name": node.name, "transport_address": node.transport_address}
                for node in members
                if node.reachable
            },
            "metadata": {
                "cluster_uuid": self._identity.cluster_uuid,
                "indices": {
                    index.name: {
                        "state": "close" if index.is_closed else "open",
                        "settings": index.shown_settings()["settings"],
                        "mappings": {"_doc": index.mapping.shown()},
                        "aliases": sorted(index.aliases),
                        "routing_num_shards": index.shards.routing.routing_shards,
                        "primary_terms": {str(shard.number): PRIMARY_TERM for shard in index.shards},
                    }
                    for index in indexes
                },
            },
            **routing_table(indexes, [node for node in members if node.reachable], exchange.node.shards),
        }
        return {
            "cluster_name": self._identity.cluster_name,
            "cluster_uuid": self._identity.cluster_uuid,
            **{name: value for name, value in sections.items() if "_all" in metrics or name in shown},
        }

    def _state_uuid(self, version: int) -> str:
        """The same on every node that has applied the same entries of the log."""
        return str(uuid5(_STATES, f"{self._identity.cluster_uuid}/{version}"))

    async def stats(self, exchange: Exchange) -> dict[str, Any]:
        return await asyncio.to_thread(self._stats, exchange)

    def _stats(self, exchange: Exchange) -> dict[str, Any]:
        """Indexes of the cluster, and the machine of this node."""
        status, indexes = exchange.node.status(), exchange.node.catalog.indexes()
        health = health_json(self._identity, status, Placement.of(exchange.node), indexes)
        load, process, disk = host_load(), process_load(), disk_use(self._data_dir)
        nodes = health["number_of_nodes"]
        shards = {"total": health["active_shards"], "primaries": health["active_primary_shards"]}
        fields = [(spec.type, index.name) for index in indexes for spec in index.mapping.match("*")]
        counts, of_indexes = Counter(kind for kind, _ in fields), Counter(kind for kind, _ in set(fields))
        types = [
            {"name": name, "count": count, "index_count": of_indexes[name]}
            for name, count in sorted(counts.items())
        ]
        return {
            "_nodes": {"total": nodes, "successful": nodes, "failed": 0},
            "cluster_name": self._identity.cluster_name,
            "cluster_uuid": self._identity.cluster_uuid,
            "timestamp": exchange.node.now_ms(),
            "status": health["status"],
            "indices": {
                "count": len(indexes),
                "shards": shards,
                **stats_json(indexes, exchange.node.contexts),
                "mappings": {"field_types": types, "runtime_field_types": [], "source_modes": {}},
                # Searches are not counted by what is in them, features not at all.
                "search": {"total": 0, "queries": {}, "rescorers": {}, "sections": {}, "retrievers": {}},
                "sparse_vector": {"value_count": 0},
            },
            "nodes": {
                "count": {
                    "total": nodes,
                    "data": nodes,
                    "ingest": nodes,
                    "master": nodes,
                    "coordinating_only": 0,
                },
                "versions": [COMPATIBLE_VERSION],
                "os": {
                    "available_processors": os.cpu_count() or 1,
                    "allocated_processors": os.cpu_count() or 1,
                    "names": [{"name": platform.system(), "count": nodes}],
                    "pretty_names": [
                        {"pretty_name": f"{platform.system()} {platform.release()}", "count": nodes}
                    ],
                    "mem": {
                        "total_in_bytes": load.memory_bytes,
                        "free_in_bytes": load.memory_bytes - load.memory_used,
                        "used_in_bytes": load.memory_used,
                        "free_percent": 100 - load.memory_percent,
                        "used_percent": load.memory_percent,
                    },
                },
                "process": {
                    "cpu": {"percent": load.cpu_percent},
                    "open_file_descriptors": dict.fromkeys(("min", "max", "avg"), process.open_files),
                },
                "jvm": {
                    "max_uptime_in_millis": int(status.uptime_seconds * 1000),
                    "versions": [],
                    "mem": {
                        "heap_used_in_bytes": load.process_bytes,
                        "heap_max_in_bytes": load.memory_bytes,
                    },
                    "threads": process.threads,
                },
                "plugins": [],
                "indexing_pressure": pressure_json(exchange.node.writing()),
                "ingest": {
                    "number_of_pipelines": len(exchange.node.catalog.pipelines),
                    "processor_stats": {},
                },
                "network_types": {"transport_types": {"grpc": nodes}, "http_types": {"h11": nodes}},
                "discovery_types": {"multi-node" if self._is_clustered else "single-node": nodes},
                "packaging_types": [
                    {"flavor": VERSION["build_flavor"], "type": VERSION["build_type"], "count": nodes}
                ],
                "fs": {"total_in_bytes": disk.total, "free_in_bytes": disk.free},
            },
            **OF_A_CLUSTER,
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


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    return [*_health_routes(node, settings), *_cluster_routes(node, settings)]
