"""`_health_report`: the health of the cluster by cause, with what follows from it and what helps.

Source: Elasticsearch 8's documentation of the API, for its shape and the names of indicators.
"""

from typing import Any

from graphdb.config import Settings
from graphdb.search.errors import SearchError
from serve.search.administration.allocation import notice_losses
from serve.search.administration.cluster import cluster_status
from serve.search.administration.index_stats import STATUSES, Placement, ShardCounts, count_shards
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity

__all__ = ["routes"]

_SIZE = 1_000  # of the names of indexes that an indicator lists


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity = Identity(node, settings)

    async def report(exchange: Exchange) -> dict[str, Any]:
        await notice_losses(exchange.node)
        return _report(exchange, identity)

    paths = ["/_health_report", "/_health_report/{feature}"]
    return endpoint("GET", paths, report, "timeout verbose size")


def _report(exchange: Exchange, identity: Identity) -> dict[str, Any]:
    parameters = exchange.parameters
    size = parameters.integer("size", _SIZE)
    indicators = {
        "master_is_stable": _leader(exchange, identity),
        "shards_availability": _shards(exchange, max(0, size)),
    }
    wanted = exchange.get("feature")
    if wanted is not None:
        if wanted not in indicators:
            raise SearchError("resource_not_found_exception", f"Did not find indicator [{wanted[:100]}]", 404)
        indicators = {wanted: indicators[wanted]}
    worst = max((one["status"] for one in indicators.values()), key=STATUSES.index)
    if not parameters.boolean("verbose", True):
        indicators = {
            name: {key: one[key] for key in ("status", "symptom")} for name, one in indicators.items()
        }
    answer = {"cluster_name": identity.cluster_name, "indicators": indicators}
    return answer if wanted is not None else {"status": worst, **answer}


def _leader(exchange: Exchange, identity: Identity) -> dict[str, Any]:
    members = identity.members(exchange.node.status())
    leader = next((node for node in members if node.leads), None)
    if leader is not None:
        named = {"node_id": leader.id, "name": leader.name}
        symptom = "The cluster has a stable master node"
        details = {"current_master": named, "recent_masters": [named]}
        return {"status": "green", "symptom": symptom, "details": details}
    return {
        "status": "red",
        "symptom": "No master node is known: less than half of the nodes may reach one another",
        "details": {"current_master": None, "recent_masters": []},
        "impacts": [_impact("master_is_stable", 1, "Documents cannot be written.", "ingest")],
        "diagnosis": [
            {
                "cause": "This node knows of no node that leads the cluster.",
                "action": "Start the nodes that are down, and see that they reach one another.",
                "affected_resources": {
                    "nodes": [{"node_id": one.id, "name": one.name} for one in members if not one.reachable]
                },
            }
        ],
    }


def _shards(exchange: Exchange, size: int) -> dict[str, Any]:
    indexes, placement = exchange.node.catalog.indexes(), Placement.of(exchange.node)
    by_name = {index.name: count_shards(index, placement) for index in indexes}
    counts = sum(by_name.values(), ShardCounts())
    replicas = counts.unassigned + counts.initializing - counts.lost
    shown: dict[str, Any] = {
        "status": cluster_status(exchange.node.status(), counts),
        "symptom": f"{counts.lost} primary and {replicas} replica shards are not available.",
        "details": {
            "started_primaries": counts.primaries,
            "unassigned_primaries": counts.lost,
            "started_replicas": counts.replicas,
            "unassigned_replicas": replicas - counts.initializing,
            "initializing_replicas": counts.initializing,
            # A shard that is being made is here initializing, and none is restarted on its own.
            **dict.fromkeys(
                (
                    "creating_primaries",
                    "creating_replicas",
                    "initializing_primaries",
                    "restarting_primaries",
                    "restarting_replicas",
                ),
                0,
            ),
        },
    }
    if shown["status"] == "green":
        return {**shown, "symptom": "This cluster has all shards available."}
    if counts.status == "green":
        return {
            **shown,
            "symptom": "This node does not answer for its data: its /health on port 7001 says why.",
        }
    affected = [name for name, one in by_name.items() if one.status != "green"]
    impact = (
        _impact("shards_availability", 1, "Some documents cannot be searched.", "search")
        if counts.lost
        else _impact("shards_availability", 2, "There are fewer copies than are asked for.", "search")
    )
    return {
        **shown,
        "impacts": [impact],
        "diagnosis": [
            {
                "cause": "There are fewer nodes than copies of a shard are asked for, or some do not answer.",
                "action": "Add nodes or start them, or set [index.number_of_replicas] to less.",
                "affected_resources": {"indices": affected[:size]},
            }
        ],
    }


def _impact(indicator: str, severity: int, description: str, area: str) -> dict[str, Any]:
    """severity: 1 is the worst."""
    return {
        "id": f"{indicator}:{area}",
        "severity": severity,
        "description": description,
        "impact_areas": [area],
    }
