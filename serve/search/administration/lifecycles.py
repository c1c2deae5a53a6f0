"""`_ilm`: policies of index lifecycles, and where each index is. The node that leads acts on them."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import (
    Command,
    DeleteIndices,
    DeleteLifecycles,
    MoveLifecycle,
    PutLifecycle,
    PutSettings,
    RollOver,
    SetOperationMode,
)
from graphdb.search.catalog.lifecycles import (
    LifecycleStep,
    Standing,
    check_move,
    checked_policy,
    due_command,
    is_running,
    policy_name,
    standing_of,
)
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.timestamps import iso_timestamp
from serve.search.administration.indices import chosen_indexes, new_uuid
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
        *endpoint("POST", "/_ilm/start", _start, _TIMES),
        *endpoint("POST", "/_ilm/stop", _stop, _TIMES),
        *endpoint("POST", "/_ilm/move/{index}", _move, _TIMES, Body.JSON),
        *endpoint("POST", "/{index}/_ilm/retry", _retry, _TIMES),
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
        "modified_date": iso_timestamp(stored["modified_ms"]),
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
        failed = None if name is None else _failed(exchange.node, index)
        if (name is None and only_managed) or (failed is None and only_errors):
            continue
        shown[index.name] = _explained(state, index, name, standing, failed, now_ms)
    return {"indices": shown}


@dataclass(frozen=True, slots=True)
class _Failed:
    """A step that is due and cannot be done now. command: None: it is not known what would be done."""

    action: str
    step: str
    error: SearchError
    command: Command | None = None


_STEPS = {
    RollOver: ("rollover", "attempt-rollover"),
    DeleteIndices: ("delete", "delete"),
    PutSettings: ("readonly", "readonly"),
}


def _failed(node: SearchBackend, index: Index) -> _Failed | None:
    """Of a managed index; None where nothing is in its way."""
    state = node.catalog.state
    standing = standing_of(state, index)
    if standing is None:
        return _Failed("", "", illegal_argument(f"policy [{policy_name(index)}] does not exist"))
    try:
        command = due_command(state, index, node.now_ms(), new_uuid)
    except SearchError as error:
        return _Failed("rollover", "check-rollover-ready", error)
    if command is None:
        return None
    try:
        node.catalog.check(command)
    except SearchError as error:
        return _Failed(*_STEPS[type(command)], error, command)
    return None


def _explained(
    state: CatalogState,
    index: Index,
    name: str | None,
    standing: Standing | None,
    failed: _Failed | None,
    now_ms: int,
) -> dict[str, Any]:
    if name is None:
        return {"index": index.name, "managed": False}
    shown: dict[str, Any] = {
        "index": index.name,
        "managed": True,
        "policy": name,
        "index_creation_date_millis": index.created_ms,
        "time_since_index_creation": age_text(now_ms - index.created_ms),
    }
    failure: dict[str, Any] = {}
    if failed is not None:
        info = {"type": failed.error.kind, "reason": failed.error.reason}
        failure = {"step": "ERROR", "step_info": info}
    if standing is None:
        return {**shown, **failure}
    shown["lifecycle_date_millis"] = standing.since_ms
    shown["age"] = age_text(now_ms - standing.since_ms)
    step, stored = standing.step(now_ms), state.lifecycles[standing.policy]
    shown |= {"phase": step.phase, "action": step.action, "step": step.name}
    if step.phase in standing.phases:
        shown["phase_execution"] = {
            "policy": standing.policy,
            "phase_definition": standing.phases[step.phase],
            "version": stored["version"],
            "modified_date_in_millis": stored["modified_ms"],
        }
    if failed is not None:
        failure |= {"action": failed.action, "failed_step": failed.step, "is_auto_retryable_error": True}
    return {**shown, **failure}


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


async def _status(exchange: Exchange) -> dict[str, Any]:
    return {"operation_mode": "RUNNING" if is_running(exchange.node.catalog.state) else "STOPPED"}


async def _start(exchange: Exchange) -> dict[str, Any]:
    await exchange.node.perform(SetOperationMode("ilm", "RUNNING"))
    return {"acknowledged": True}


async def _stop(exchange: Exchange) -> dict[str, Any]:
    await exchange.node.perform(SetOperationMode("ilm", "STOPPED"))
    return {"acknowledged": True}


async def _move(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json() or {}
    unknown = sorted(body.keys() - {"current_step", "next_step"})
    if unknown:
        raise SearchError(
            "x_content_parse_exception", f"[move_to_step_request] unknown field [{unknown[0][:100]}]"
        )
    current, following = (_step_of(body, name) for name in ("current_step", "next_step"))
    if current.action is None or current.name is None:
        raise illegal_argument("[current_step] needs [phase], [action] and [name]")
    if following.name is not None and following.action is None:
        raise illegal_argument("phase; phase and action; or phase, action, and step must be provided")
    index = _only_index(exchange, exchange["index"])
    check_move(exchange.node.catalog.state, index, current, following, exchange.node.now_ms())
    await exchange.node.perform(MoveLifecycle(index.uuid, following.phase))
    return {"acknowledged": True}


def _step_of(body: Mapping[str, Any], name: str) -> LifecycleStep:
    given = body.get(name)
    if not isinstance(given, Mapping) or not isinstance(given.get("phase"), str):
        raise illegal_argument(f"[{name}] needs [phase]")
    if not given.keys() <= {"phase", "action", "name"} or not all(
        value is None or isinstance(value, str) for value in given.values()
    ):
        raise SearchError(
            "x_content_parse_exception", f"[move_to_step_request] failed to parse field [{name}]"
        )
    return LifecycleStep(given["phase"], given.get("action"), given.get("name"))


def _only_index(exchange: Exchange, name: str) -> Index:
    index = exchange.node.catalog.find(name)
    if index is None:
        raise illegal_argument(f"index [{name[:255]}] does not exist")
    return index


def _refused(node: SearchBackend, index: Index) -> Command | None:
    """Errors: illegal_argument_exception for an index in whose way nothing is."""
    failed = None if policy_name(index) is None else _failed(node, index)
    if failed is None:
        raise illegal_argument(
            f"cannot retry an action for an index [{index.name}] that has not encountered an error when "
            "running a Lifecycle Policy"
        )
    return failed.command


async def _retry(exchange: Exchange) -> dict[str, Any]:
    """At once, and not only when the node that leads would try again by itself."""
    names = exchange["index"].split(",")
    has_pattern = any("*" in name for name in names)
    indexes = chosen_indexes(exchange) if has_pattern else [_only_index(exchange, name) for name in names]
    commands = [_refused(exchange.node, index) for index in indexes]
    for command in commands:
        if command is not None:
            with suppress(SearchError):  # it is explained still
                await exchange.node.perform(command)
    return {"acknowledged": True}
