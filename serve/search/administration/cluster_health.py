"""The health of the cluster, and waiting for it: `GET /_cluster/health`."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from starlette.requests import ClientDisconnect

from graphdb.config import Settings
from graphdb.node import NodeStatus
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument
from serve.answers import client_gone
from serve.search.administration.index_stats import (
    STATUSES,
    ShardCounts,
    count_all,
    count_shards,
    nodes_reached,
)
from serve.search.administration.indices import chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.endpoint import Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import Parameters

__all__ = ["health_json", "routes"]

_POLL_S, _POLL_SHARE = 0.1, 0.05  # how often to look: after so long, or such a share of the wait so far
_WAIT_MS, _WAIT_MS_MAX = 30_000, 300_000
_LEVELS = ("cluster", "indices", "shards")
_PARAMETERS = """expand_wildcards level local master_timeout timeout wait_for_active_shards wait_for_events
    wait_for_no_relocating_shards wait_for_no_initializing_shards wait_for_nodes wait_for_status"""
_NODES_WANTED = re.compile(r"(>=|<=|>|<|)(\d{1,6})|(ge|le|gt|lt)\((\d{1,6})\)")
_WORDS = {"ge": ">=", "le": "<=", "gt": ">", "lt": "<"}


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity = Identity(node, settings)

    async def answer(exchange: Exchange) -> Answer:
        return await _health(exchange, identity)

    return endpoint("GET", ["/_cluster/health", "/_cluster/health/{index}"], answer, _PARAMETERS)


def cluster_status(status: NodeStatus, shards: ShardCounts) -> str:
    """green, yellow or red: red while this node does not answer for its data."""
    if status.status in ("starting", "error") or not status.index_loaded:
        return "red"
    return shards.status


def health_json(identity: Identity, status: NodeStatus, indexes: Sequence[Index]) -> dict[str, Any]:
    """As `GET /_cluster/health` shows it."""
    nodes = nodes_reached(status)
    shards = count_all(indexes, nodes)
    wanted = shards.active + shards.unassigned
    return {
        "cluster_name": identity.cluster_name,
        "status": cluster_status(status, shards),
        "timed_out": False,
        "number_of_nodes": nodes,
        "number_of_data_nodes": nodes,
        **_counts_json(shards),
        "unassigned_primary_shards": 0,
        "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0,
        "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0 * shards.active / wanted if wanted else 100.0,
    }


def _counts_json(shards: ShardCounts) -> dict[str, int]:
    return {
        "active_primary_shards": shards.primaries,
        "active_shards": shards.active,
        "relocating_shards": 0,
        "initializing_shards": 0,
        "unassigned_shards": shards.unassigned,
    }


async def _health(exchange: Exchange, identity: Identity) -> Answer:
    parameters = exchange.parameters
    level = parameters.text("level") or "cluster"
    if level not in _LEVELS:
        raise illegal_argument(f"unknown level [{level}]")
    wait_s = min(parameters.time_ms("timeout", _WAIT_MS), _WAIT_MS_MAX) / 1000
    _check_waits(parameters)
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
    shown = {**health, "timed_out": not is_met, **_by_index(level, indexes, health)}
    return Answer(shown, 200 if is_met else 408)


def _look(exchange: Exchange, identity: Identity) -> tuple[dict[str, Any], list[Index] | None]:
    """How it is now; no indexes, and red, where one that was named is not there: it may still come."""
    status = exchange.node.status()
    if status.status == "error" or not status.index_loaded:
        return health_json(identity, status, []), []
    try:
        indexes = chosen_indexes(exchange, states="all")
    except SearchError as error:
        if error.kind != "index_not_found_exception":
            raise
        return {**health_json(identity, exchange.node.status(), []), "status": "red"}, None
    return health_json(identity, exchange.node.status(), indexes), indexes


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
    """Nothing moves from node to node or is being made here, so waiting for that to end is no waiting."""
    status = parameters.text("wait_for_status")
    if status is not None and STATUSES.index(health["status"]) > STATUSES.index(status.lower()):
        return False
    shards = parameters.text("wait_for_active_shards") or "0"
    if health["active_shards"] < int(shards) if shards != "all" else health["unassigned_shards"]:
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


def _by_index(level: str, indexes: Sequence[Index] | None, health: dict[str, Any]) -> dict[str, Any]:
    if level == "cluster":
        return {}
    nodes = int(health["number_of_nodes"])
    return {"indices": {index.name: _index_json(index, nodes, level) for index in indexes or ()}}


def _index_json(index: Index, nodes: int, level: str) -> dict[str, Any]:
    shards = count_shards(index, nodes)
    shown: dict[str, Any] = {
        "status": shards.status,
        "number_of_shards": shards.primaries,
        "number_of_replicas": (shards.replicas + shards.unassigned) // shards.primaries,
        **_counts_json(shards),
        "unassigned_primary_shards": 0,
    }
    if level == "shards":
        one = ShardCounts(1, shards.replicas // shards.primaries, shards.unassigned // shards.primaries)
        each = {
            "status": one.status,
            "primary_active": True,
            **_counts_json(one),
            "unassigned_primary_shards": 0,
        }
        each.pop("active_primary_shards")
        shown["shards"] = {str(number): each for number in range(shards.primaries)}
    return shown
