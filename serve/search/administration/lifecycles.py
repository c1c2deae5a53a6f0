"""`_ilm`: policies of index lifecycles, and where each index is. The node that leads acts on them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import DeleteLifecycles, PutLifecycle, PutSettings
from graphdb.search.catalog.lifecycles import Standing, checked_policy, policy_name, standing_of
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.errors import SearchError
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.indices import chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["age_text", "routes"]

_TIMES = "master_timeout timeout"


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one = "/_ilm/policy/{name}"
    return [
        *endpoint("GET", ["/_ilm/policy", one], _get, _TIMES),
        *endpoint("PUT", one, _put, _TIMES, Body.JSON),
        *endpoint("DELETE", one, _delete, _TIMES),
        *endpoint("GET", "/{index}/_ilm/explain", _explain, f"{_TIMES} only_errors only_managed"),
        *endpoint("POST", "/{index}/_ilm/remove", _remove),
        *endpoint("GET", "/_ilm/status", _status, _TIMES),
    ]


async def _put(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    await exchange.node.perform(PutLifecycle(exchange["name"], checked_policy(body)))
    return {"acknowledged": True}


async def _get(exchange: Exchange) -> dict[str, Any]:
    catalog, shown = exchange.node.catalog, dict[str, Any]()
    for pattern in (exchange.get("name") or "*").split(","):
        fitting = [name for name in catalog.lifecycles if wildcard_match(pattern, name)]
        if not fitting and "*" not in pattern:
            reason = f"Lifecycle policy not found: {pattern[:100]}"
            raise SearchError("resource_not_found_exception", reason, 404)
        shown |= {name: _shown(catalog.state, name) for name in sorted(fitting)}
    return shown


def _shown(state: CatalogState, name: str) -> dict[str, Any]:
    stored = state.lifecycles[name]
    users = sorted(index.name for index in state.by_uuid.values() if policy_name(index) == name)
    streams = {state.stream_of(state.by_name[user].uuid) for user in users} - {None}
    templates = [
        template
        for template, body in sorted(state.templates.items())
        if _names_policy(body, name)
        or any(_names_policy(state.components.get(one, {}), name) for one in body["composed_of"])
    ]
    return {
        "version": stored["version"],
        "modified_date": _instant(stored["modified_ms"]),
        "policy": stored["policy"],
        "in_use_by": {
            "indices": users,
            "data_streams": sorted(map(str, streams)),
            "composable_templates": templates,
        },
    }


def _names_policy(template: Mapping[str, Any], name: str) -> bool:
    settings = (template.get("template") or {}).get("settings", {})
    found = settings.get("index", {}).get("lifecycle", {})
    return isinstance(found, Mapping) and found.get("name") == name


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _delete(exchange: Exchange) -> dict[str, Any]:
    await exchange.node.perform(DeleteLifecycles((exchange["name"],)))
    return {"acknowledged": True}


async def _explain(exchange: Exchange) -> dict[str, Any]:
    only_managed = exchange.parameters.boolean("only_managed", False)
    only_errors = exchange.parameters.boolean("only_errors", False)
    state, now_ms = exchange.node.catalog.state, exchange.node.now_ms()
    shown = {}
    for index in chosen_indexes(exchange):
        name, standing = policy_name(index), standing_of(state, index)
        if (name is None and (only_managed or only_errors)) or (standing is not None and only_errors):
            continue
        shown[index.name] = _explained(index, name, standing, now_ms)
    return {"indices": shown}


def _explained(index: Index, name: str | None, standing: Standing | None, now_ms: int) -> dict[str, Any]:
    if name is None:
        return {"index": index.name, "managed": False}
    shown: dict[str, Any] = {
        "index": index.name,
        "managed": True,
        "policy": name,
        "index_creation_date_millis": index.created_ms,
        "time_since_index_creation": age_text(now_ms - index.created_ms),
    }
    if standing is None:
        reason = f"policy [{name}] does not exist"
        step = {"step": "ERROR", "step_info": {"type": "illegal_argument_exception", "reason": reason}}
        return {**shown, **step}
    shown["lifecycle_date_millis"] = standing.since_ms
    shown["age"] = age_text(now_ms - standing.since_ms)
    shown["phase"] = standing.phase(now_ms)
    if standing.waits:
        return {**shown, "action": "rollover", "step": "check-rollover-ready"}
    return {**shown, "action": "complete", "step": "complete"}


def age_text(ms: int) -> str:
    """As Elasticsearch writes times."""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms >= length:
            return f"{ms / length:.2f}".rstrip("0").rstrip(".") + unit
    return f"{max(ms, 0)}ms"


async def _remove(exchange: Exchange) -> dict[str, Any]:
    indexes = chosen_indexes(exchange, may_be_none=False)
    settings = {"index.lifecycle.name": None, "index.lifecycle.rollover_alias": None}
    await exchange.node.perform(PutSettings(tuple(index.uuid for index in indexes), settings))
    return {"has_failures": False, "failed_indexes": []}


async def _status(_exchange: Exchange) -> dict[str, Any]:
    return {"operation_mode": "RUNNING"}
