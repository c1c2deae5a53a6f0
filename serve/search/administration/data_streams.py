"""`_data_stream`: data streams made, shown, deleted, and their statistics."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import CreateDataStream, DeleteDataStreams
from graphdb.search.catalog.data_streams import TIMESTAMP, backing_indexes
from graphdb.search.catalog.index_names import ResolveOptions
from graphdb.search.catalog.index_templates import settings_of_new
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.catalog.stream_lifecycles import is_kept_by_stream
from graphdb.search.errors import index_not_found
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.index_stats import STATUSES, Placement, count_all, count_shards
from serve.search.administration.indices import new_uuid
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, Exchange, endpoint

__all__ = ["lifecycle_json", "routes", "streams_named"]

_GET = "expand_wildcards include_defaults local master_timeout verbose"


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one, all_of_them = "/_data_stream/{name}", ["/_data_stream", "/_data_stream/{name}"]
    stats = ["/_data_stream/_stats", "/_data_stream/{name}/_stats"]
    return [
        *endpoint("GET", all_of_them, _get, _GET),
        *endpoint("PUT", one, _create, "master_timeout timeout"),
        *endpoint("DELETE", one, _delete, "expand_wildcards master_timeout"),
        *endpoint("GET", stats, _stats, "expand_wildcards forbid_closed_indices"),
    ]


async def _create(exchange: Exchange) -> dict[str, Any]:
    await exchange.node.perform(CreateDataStream(exchange["name"], new_uuid()))
    return {"acknowledged": True}


async def _delete(exchange: Exchange) -> dict[str, Any]:
    names = tuple(streams_named(exchange))
    if names:
        await exchange.node.perform(DeleteDataStreams(names))
    return {"acknowledged": True}


async def _get(exchange: Exchange) -> dict[str, Any]:
    return {"data_streams": [_shown(exchange, name) for name in streams_named(exchange)]}


def streams_named(exchange: Exchange, *, passes_indexes: bool = False) -> list[str]:
    """By names and patterns. passes_indexes: those of indexes that are no streams are passed over. Errors:
    index_not_found_exception for a name that is not there.
    """
    options = ResolveOptions.of(exchange.parameters.text("expand_wildcards") or "open")
    streams, found = exchange.node.catalog.data_streams, dict[str, None]()
    for part in (exchange.get("name") or "*").split(","):
        pattern = "*" if part == "_all" else part
        if "*" not in pattern and pattern not in streams:
            if passes_indexes and exchange.node.catalog.find(pattern) is not None:
                continue
            raise index_not_found(pattern)
        for name, stream in streams.items():
            is_shown = not stream["hidden"] or options.expand_hidden or pattern == name
            if is_shown and wildcard_match(pattern, name):
                found[name] = None
    return sorted(found)


def _shown(exchange: Exchange, name: str) -> dict[str, Any]:
    catalog = exchange.node.catalog
    stream, indexes = catalog.data_streams[name], backing_indexes(catalog.state, name)
    template = catalog.templates.get(stream["template"], {})
    meta = {"_meta": template["_meta"]} if template.get("_meta") else {}
    lifecycle = stream.get("lifecycle")
    kept = {} if lifecycle is None else {"lifecycle": lifecycle_json(lifecycle)}
    next_one = settings_of_new(catalog.state, name) if stream["template"] in catalog.templates else {}
    policy = next_one.get("lifecycle.name")
    named = {} if policy is None else {"ilm_policy": policy}
    is_kept = lifecycle is not None and lifecycle["enabled"]
    return {
        "name": name,
        "timestamp_field": {"name": TIMESTAMP},
        "indices": [_backing(catalog.state, one) for one in indexes],
        "generation": stream["generation"],
        **meta,
        "status": _status(indexes, Placement.of(exchange.node)),
        "template": stream["template"],
        **kept,
        **named,
        "next_generation_managed_by": _manager(next_one, is_kept),
        "prefer_ilm": _prefers_policy(next_one),
        "hidden": stream["hidden"],
        "system": False,
        "allow_custom_routing": bool(template.get("data_stream", {}).get("allow_custom_routing", False)),
        "replicated": False,
        "rollover_on_write": False,
        "settings": {},
        "mappings": {},
    }


def lifecycle_json(lifecycle: Mapping[str, Any]) -> dict[str, Any]:
    """Of a data stream. Nothing shortens or lengthens the retention that it says."""
    retention = lifecycle.get("data_retention")
    if retention is None:
        return dict(lifecycle)
    effective = {"effective_retention": retention, "retention_determined_by": "data_stream_configuration"}
    return {**lifecycle, **effective}


def _backing(state: CatalogState, index: Index) -> dict[str, Any]:
    policy = index.settings.get("lifecycle.name")
    return {
        "index_name": index.name,
        "index_uuid": index.uuid,
        "prefer_ilm": _prefers_policy(index.settings),
        **({} if policy is None else {"ilm_policy": policy}),
        "managed_by": _manager(index.settings, is_kept_by_stream(state, index)),
    }


def _prefers_policy(settings: Mapping[str, Any]) -> bool:
    return str(settings.get("lifecycle.prefer_ilm", "true")) != "false"


def _manager(settings: Mapping[str, Any], is_kept: bool) -> str:
    """is_kept: the data stream has a lifecycle of its own."""
    if settings.get("lifecycle.name") is not None and (_prefers_policy(settings) or not is_kept):
        return "Index Lifecycle Management"
    return "Data stream lifecycle" if is_kept else "Unmanaged"


def _status(indexes: Sequence[Index], placement: Placement) -> str:
    healths = [count_shards(index, placement).status for index in indexes]
    return max(healths, key=STATUSES.index, default="green").upper()


async def _stats(exchange: Exchange) -> dict[str, Any]:
    return await asyncio.to_thread(_all_stats, exchange)


def _all_stats(exchange: Exchange) -> dict[str, Any]:
    state = exchange.node.catalog.state
    members = {name: backing_indexes(state, name) for name in streams_named(exchange)}
    shown = [
        {
            "data_stream": name,
            "backing_indices": len(indexes),
            "store_size_bytes": _size(indexes),
            "maximum_timestamp": max((_latest(index) for index in indexes), default=0),
        }
        for name, indexes in members.items()
    ]
    every = [index for indexes in members.values() for index in indexes]
    counts = count_all(every, Placement.of(exchange.node))
    return {
        "_shards": {"total": counts.wanted, "successful": counts.active, "failed": 0},
        "data_stream_count": len(members),
        "backing_indices": len(every),
        "total_store_size_bytes": _size(every),
        "data_streams": shown,
    }


def _size(indexes: Sequence[Index]) -> int:
    return sum(index.shards.stats().size_bytes for index in indexes)


def _latest(index: Index) -> int:
    """The greatest timestamp of the documents that a search finds, 0 for none."""
    latest = 0
    for leaf in index.shards.leaves():
        column = leaf.segment.ints(TIMESTAMP)
        if column is not None:
            live = leaf.live if column.starts is None else np.repeat(leaf.live, np.diff(column.starts))
            latest = max(latest, int(np.max(column.values[live], initial=0)))
    return latest
