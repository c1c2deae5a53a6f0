"""`GET /`, which clients call first, and small answers about features of Elasticsearch that are missing."""

from typing import Any

from graphdb.config import Settings
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, Exchange, endpoint
from serve.search.frame.identity import VERSION, Identity

__all__ = ["routes"]

_LICENCE_ID = "graphdb"
_MISSING = (
    "aggregate_metric", "analytics", "archive", "ccr", "data_tiers", "enrich", "enterprise_search", "eql",
    "esql", "frozen_indices", "graph", "logsdb", "logstash", "ml", "monitoring", "rollup",
    "searchable_snapshots", "security", "slm", "spatial", "sql", "transform", "universal_profiling",
    "voting_only", "watcher",
)  # fmt: skip
_NEVER = 2**63 - 1  # milliseconds, as Elasticsearch shows licences that do not expire


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity = Identity(node, settings)

    async def info(_exchange: Exchange) -> dict[str, Any]:
        return {
            "name": identity.name,
            "cluster_name": identity.cluster_name,
            "cluster_uuid": identity.cluster_uuid,
            "version": VERSION,
            "tagline": "You Know, for Search",
        }

    return [
        *endpoint("GET HEAD", "/", info),
        *endpoint("GET", "/_license", _license, "local accept_enterprise"),
        *endpoint("GET", "/_xpack", _xpack, "accept_enterprise categories"),
        *endpoint("GET", "/_remote/info", _nothing),
    ]


async def _nothing(_exchange: Exchange) -> dict[str, Any]:
    return {}


async def _license(_exchange: Exchange) -> dict[str, Any]:
    """Nothing here is licensed; clients that look whether a feature is want this answer."""
    licence = {
        "status": "active",
        "uid": _LICENCE_ID,
        "type": "basic",
        "issue_date": "1970-01-01T00:00:00.000Z",
        "issue_date_in_millis": 0,
        "max_nodes": 1000,
        "max_resource_units": None,
        "issued_to": "graphdb",
        "issuer": "graphdb",
        "start_date_in_millis": -1,
    }
    return {"license": licence}


async def _xpack(_exchange: Exchange) -> dict[str, Any]:
    """None of the features that Elasticsearch calls so."""
    return {
        "build": {"hash": VERSION["build_hash"], "date": VERSION["build_date"]},
        "license": {
            "uid": _LICENCE_ID,
            "type": "basic",
            "mode": "basic",
            "status": "active",
            "expiry_date_in_millis": _NEVER,
        },
        "features": {
            "ilm": {"available": True, "enabled": True},
            "data_streams": {"available": True, "enabled": True},
            **{name: {"available": False, "enabled": False} for name in _MISSING},
        },
        "tagline": "You know, for X",
    }
