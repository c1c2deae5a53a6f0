"""`_data_stream`: data streams made, shown, deleted, and their statistics."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import CreateDataStream, DeleteDataStreams
from graphdb.search.catalog.data_streams import TIMESTAMP, backing_indexes
from graphdb.search.catalog.index_names import ResolveOptions
from graphdb.search.catalog.state import Index
from graphdb.search.errors import index_not_found
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.index_stats import STATUSES, Placement, count_all, count_shards
from serve.search.administration.indices import new_uuid
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, Exchange, endpoint

__all__ = ["routes"]

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
    names = tuple(_named(exchange))
    if names:
        await exchange.node.perform(DeleteDataStreams(names))
    return {"acknowledged": True}


async def _get(exchange: Exchange) -> dict[str, Any]:
    return {"data_streams": [_shown(exchange, name) for name in _named(exchange)]}


def _named(exchange: Exchange) -> list[str]:
    """By names and patterns. Errors: index_not_found_exception for a name that is not there."""
    options = ResolveOptions.of(exchange.parameters.text("expand_wildcards") or "open")
    streams, found = exchange.node.catalog.data_streams, dict[str, None]()
    for part in (exchange.get("name") or "*").split(","):
        pattern = "*" if part == "_all" else part
        if "*" not in pattern and pattern not in streams:
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
    unmanaged = {"prefer_ilm": True, "managed_by": "Unmanaged"}
    return {
        "name": name,
        "timestamp_field": {"name": TIMESTAMP},
        "indices": [{"index_name": one.name, "index_uuid": one.uuid, **unmanaged} for one in indexes],
        "generation": stream["generation"],
        **meta,
        "status": _status(indexes, Placement.of(exchange.node)),
        "template": stream["template"],
        "next_generation_managed_by": "Unmanaged",
        "prefer_ilm": True,
        "hidden": stream["hidden"],
        "system": False,
        "allow_custom_routing": bool(template.get("data_stream", {}).get("allow_custom_routing", False)),
        "replicated": False,
        "rollover_on_write": False,
        "settings": {},
        "mappings": {},
    }


def _status(indexes: Sequence[Index], placement: Placement) -> str:
    healths = [count_shards(index, placement).status for index in indexes]
    return max(healths, key=STATUSES.index, default="green").upper()


async def _stats(exchange: Exchange) -> dict[str, Any]:
    return await asyncio.to_thread(_all_stats, exchange)


def _all_stats(exchange: Exchange) -> dict[str, Any]:
    state = exchange.node.catalog.state
    members = {name: backing_indexes(state, name) for name in _named(exchange)}
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
