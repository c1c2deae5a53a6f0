"""`_lifecycle`: how long data streams keep their documents; indexes put into data streams and taken out."""

from collections.abc import Mapping
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import (
    MigrateToDataStream,
    ModifyDataStreams,
    PutStreamLifecycle,
)
from graphdb.search.catalog.data_streams import backing_indexes
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.catalog.stream_lifecycles import is_kept_by_stream, rolled_over_ms, rollover_conditions
from graphdb.search.catalog.stream_retention import checked_stream_lifecycle
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.administration.data_streams import lifecycle_json, streams_named
from serve.search.administration.indices import chosen_indexes
from serve.search.administration.lifecycles import age_text
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["routes"]

_TIMES = "expand_wildcards master_timeout timeout"
_ACTIONS = {"add_backing_index": "add", "remove_backing_index": "remove"}
_ACTIONS_MAX = 1_000


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one = "/_data_stream/{name}/_lifecycle"
    return [
        *endpoint("GET", one, _get, f"{_TIMES} include_defaults"),
        *endpoint("PUT", one, _put, _TIMES, Body.JSON),
        *endpoint("DELETE", one, _delete, _TIMES),
        *endpoint("GET", "/{index}/_lifecycle/explain", _explain, "include_defaults master_timeout"),
        *endpoint("GET", "/_lifecycle/stats", _stats),
        *endpoint("POST", "/_data_stream/_modify", _modify, "master_timeout timeout", Body.JSON),
        *endpoint("POST", "/_data_stream/_migrate/{name}", _migrate, "master_timeout timeout"),
    ]


async def _get(exchange: Exchange) -> dict[str, Any]:
    with_defaults = exchange.parameters.boolean("include_defaults", False)
    streams, shown = exchange.node.catalog.data_streams, []
    for name in streams_named(exchange, passes_indexes=True):
        lifecycle = streams[name].get("lifecycle")
        kept = {} if lifecycle is None else {"lifecycle": lifecycle_json(lifecycle)}
        if lifecycle is not None and with_defaults:
            kept["lifecycle"]["rollover"] = rollover_conditions(lifecycle)
        shown.append({"name": name, **kept})
    return {"data_streams": shown, "global_retention": {}}


async def _put(exchange: Exchange) -> dict[str, Any]:
    lifecycle = checked_stream_lifecycle(await exchange.json() or {})
    return await _kept(exchange, lifecycle)


async def _delete(exchange: Exchange) -> dict[str, Any]:
    return await _kept(exchange, None)


async def _kept(exchange: Exchange, lifecycle: Mapping[str, Any] | None) -> dict[str, Any]:
    names = tuple(streams_named(exchange, passes_indexes=True))
    if names:
        await exchange.node.perform(PutStreamLifecycle(names, lifecycle))
    return {"acknowledged": True}


async def _explain(exchange: Exchange) -> dict[str, Any]:
    state, now_ms = exchange.node.catalog.state, exchange.node.now_ms()
    return {"indices": {one.name: _explained(state, one, now_ms) for one in chosen_indexes(exchange)}}


def _explained(state: CatalogState, index: Index, now_ms: int) -> dict[str, Any]:
    if not is_kept_by_stream(state, index):
        return {"index": index.name, "managed_by_lifecycle": False}
    shown: dict[str, Any] = {
        "index": index.name,
        "managed_by_lifecycle": True,
        "index_creation_date_millis": index.created_ms,
        "time_since_index_creation": age_text(now_ms - index.created_ms),
    }
    since_ms = rolled_over_ms(state, index)
    if since_ms is not None:
        age = age_text(now_ms - since_ms)
        shown |= {"rollover_date_millis": since_ms, "time_since_rollover": age, "generation_time": age}
    stream = state.data_streams[state.stream_of(index.uuid) or ""]
    return {**shown, "lifecycle": lifecycle_json(stream["lifecycle"])}


async def _stats(exchange: Exchange) -> dict[str, Any]:
    catalog = exchange.node.catalog
    shown = [
        {
            "name": name,
            "backing_indices_in_total": len(backing_indexes(catalog.state, name)),
            "backing_indices_in_error": 0,
        }
        for name, stream in catalog.data_streams.items()
        if stream.get("lifecycle", {}).get("enabled", False)
    ]
    return {"data_stream_count": len(shown), "data_streams": shown}


async def _modify(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    given = None if body is None else body.get("actions")
    if not isinstance(given, list) or not given or len(given) > _ACTIONS_MAX:
        reason = "Validation Failed: 1: must specify at least one data stream modification action;"
        raise SearchError("action_request_validation_exception", reason)
    actions = tuple(_action(exchange, one) for one in given)
    await exchange.node.perform(ModifyDataStreams(actions, hides=True))
    return {"acknowledged": True}


def _action(exchange: Exchange, given: Any) -> tuple[str, str, str]:
    if not isinstance(given, Mapping) or len(given) != 1:
        raise SearchError("x_content_parse_exception", "[actions] must be objects with one member each")
    ((kind, entry),) = given.items()
    if kind not in _ACTIONS or not isinstance(entry, Mapping):
        raise SearchError("x_content_parse_exception", f"[data_stream_action] unknown field [{kind[:100]}]")
    unknown = sorted(entry.keys() - {"data_stream", "index"})
    if unknown:
        raise SearchError("x_content_parse_exception", f"[{kind}] unknown field [{unknown[0][:100]}]")
    stream, name = entry.get("data_stream"), entry.get("index")
    if not isinstance(stream, str) or not isinstance(name, str):
        raise illegal_argument(f"[{kind}] needs [data_stream] and [index]")
    index = exchange.node.catalog.find(name)
    if index is None:
        raise illegal_argument(f"index [{name[:255]}] not found")
    return _ACTIONS[kind], stream, index.uuid


async def _migrate(exchange: Exchange) -> dict[str, Any]:
    await exchange.node.perform(MigrateToDataStream(exchange["name"], hides=True))
    return {"acknowledged": True}
