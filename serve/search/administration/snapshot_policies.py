"""`_slm`: policies that make snapshots by a schedule, and delete old ones. The node that leads acts on them.

Source: Elasticsearch 8's documentation of the snapshot lifecycle management APIs.
"""

import secrets
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from graphdb.config import Settings
from graphdb.errors import CorruptionError, GraphDBError
from graphdb.search.catalog.catalog_commands import (
    DeleteSnapshotPolicy,
    NoteSnapshotPolicy,
    NoteSnapshotRetention,
    PutSnapshotPolicy,
    SetOperationMode,
)
from graphdb.search.catalog.snapshot_policies import (
    MadeSnapshot,
    checked_snapshot_policy,
    expired,
    next_run_ms,
    policies_run,
    snapshot_name,
)
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.snapshots.repository import Manifest
from graphdb.timestamps import iso_timestamp
from serve.search.administration.lifecycles import age_text
from serve.search.administration.repositories import OpenRepository, check_visibility, open_repository
from serve.search.administration.snapshots import delete_snapshots, make_snapshot
from serve.search.backend import SearchBackend
from serve.search.frame.answer import search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["routes"]

_TIMES = "master_timeout timeout"
_BUSY = "concurrent_snapshot_execution_exception"
_DETAILS_MAX = 1_000


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one = "/_slm/policy/{name}"
    return [
        *endpoint("GET", ["/_slm/policy", one], _get, _TIMES),
        *endpoint("PUT", one, _put, _TIMES, Body.JSON),
        *endpoint("DELETE", one, _delete, _TIMES),
        *endpoint("PUT POST", f"{one}/_execute", _execute, _TIMES),
        *endpoint("POST", "/_slm/_execute_retention", _execute_retention, _TIMES),
        *endpoint("GET", "/_slm/stats", _stats, _TIMES),
        *endpoint("GET", "/_slm/status", _status, _TIMES),
        *endpoint("POST", "/_slm/start", partial(_set_mode, mode="RUNNING"), _TIMES),
        *endpoint("POST", "/_slm/stop", partial(_set_mode, mode="STOPPED"), _TIMES),
    ]


# The policies.


async def _put(exchange: Exchange) -> dict[str, Any]:
    check_visibility(exchange)
    name, body = exchange["name"], await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    policy = checked_snapshot_policy(name, body, exchange.node.catalog.state)
    await exchange.node.perform(PutSnapshotPolicy(name, policy))
    return {"acknowledged": True}


async def _delete(exchange: Exchange) -> dict[str, Any]:
    check_visibility(exchange)
    await exchange.node.perform(DeleteSnapshotPolicy(exchange["name"]))
    return {"acknowledged": True}


async def _get(exchange: Exchange) -> dict[str, Any]:
    check_visibility(exchange)
    policies, wanted = exchange.node.catalog.state.snapshot_policies, exchange.get("name")
    patterns = (wanted or "*").split(",")
    found = [name for name in sorted(policies) if any(wildcard_match(one, name) for one in patterns)]
    if wanted is not None and not found and "*" not in wanted:
        reason = f"snapshot lifecycle policy or policies [{wanted[:200]}] not found"
        if not policies:
            reason += ", no policies are configured"
        raise SearchError("resource_not_found_exception", reason, 404)
    human = exchange.parameters.boolean("human", False)
    return {name: _shown(exchange, name, policies[name], human) for name in found}


def _shown(exchange: Exchange, name: str, stored: Mapping[str, Any], human: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"version": stored["version"]}
    shown |= _moment("modified_date", stored["modified_ms"], human)
    shown["policy"] = stored["policy"]
    for outcome in ("last_success", "last_failure"):
        if outcome in stored:
            shown[outcome] = _outcome(stored[outcome], human)
    run_ms = next_run_ms(stored)
    if run_ms is not None:
        shown |= _moment("next_execution", run_ms, human)
    for uuid, work in exchange.node.catalog.state.snapshot_work.items():
        if work["kind"] == "snapshot" and work.get("policy") == name:
            shown["in_progress"] = {
                "name": work["snapshot"],
                "uuid": uuid,
                "state": "STARTED",
                **_moment("start_time", work["started_ms"], human),
            }
    return {**shown, "stats": {"policy": name, **_counts(stored)}}


def _outcome(noted: Mapping[str, Any], human: bool) -> dict[str, Any]:
    shown = {"snapshot_name": noted["snapshot_name"]}
    shown |= {
        name: iso_timestamp(noted[member]) if human else noted[member]
        for name, member in (("start_time", "start_ms"), ("time", "end_ms"))
    }
    return {**shown, **({"details": noted["details"]} if "details" in noted else {})}


def _moment(name: str, ms: int, human: bool) -> dict[str, Any]:
    return ({name: iso_timestamp(ms)} if human else {}) | {f"{name}_millis": ms}


def _counts(stored: Mapping[str, Any]) -> dict[str, int]:
    stats = stored.get("stats", {})
    names = {
        "snapshots_taken": "taken",
        "snapshots_failed": "failed",
        "snapshots_deleted": "deleted",
        "snapshot_deletion_failures": "deletion_failed",
    }
    return {name: stats.get(kept, 0) for name, kept in names.items()}


async def _stats(exchange: Exchange) -> dict[str, Any]:
    check_visibility(exchange)
    state = exchange.node.catalog.state
    counts = {name: _counts(stored) for name, stored in sorted(state.snapshot_policies.items())}
    kept = state.snapshot_retention
    shown: dict[str, Any] = {
        "retention_runs": kept.get("runs", 0),
        "retention_failed": kept.get("failed", 0),
        "retention_timed_out": 0,
        "retention_deletion_time": age_text(kept.get("time_ms", 0)),
        "retention_deletion_time_millis": kept.get("time_ms", 0),
    }
    for name in ("snapshots_taken", "snapshots_failed", "snapshots_deleted", "snapshot_deletion_failures"):
        shown[f"total_{name}"] = sum(one[name] for one in counts.values())
    return {**shown, "policy_stats": [{"policy": name, **one} for name, one in counts.items()]}


async def _status(exchange: Exchange) -> dict[str, Any]:
    return {"operation_mode": "RUNNING" if policies_run(exchange.node.catalog.state) else "STOPPED"}


async def _set_mode(exchange: Exchange, mode: str) -> dict[str, Any]:
    await exchange.node.perform(SetOperationMode("slm", mode))
    return {"acknowledged": True}


# What they do, by their schedule or because somebody asks.


async def _execute(exchange: Exchange) -> dict[str, Any]:
    """Begins a snapshot. What keeps it from beginning counts as a failure, but for another that is made."""
    check_visibility(exchange)
    name, node = exchange["name"], exchange.node
    stored = node.catalog.state.snapshot_policies.get(name)
    if stored is None:
        raise illegal_argument(f"no such policy id [{name[:100]}]")
    policy, start_ms = stored["policy"], node.now_ms()
    made = snapshot_name(policy["name"], start_ms, secrets.token_hex(11))
    config = {**(policy.get("config") or {})}
    config["metadata"] = {**(config.get("metadata") or {}), "policy": name}

    async def note(kind: str, **members: Any) -> None:
        body = {"snapshot_name": made, "start_ms": start_ms, "end_ms": node.now_ms(), **members}
        await node.perform(NoteSnapshotPolicy(name, kind, body))

    async def ended(outcome: Manifest | GraphDBError) -> None:
        if isinstance(outcome, GraphDBError):
            await note("failed", details=_details(outcome))
        else:
            await note("taken")

    try:
        repository = open_repository(exchange, policy["repository"])
        await make_snapshot(exchange, repository, made, config, False, ended, policy=name)
    except GraphDBError as error:
        if search_error(error).kind == _BUSY:
            raise
        await node.perform(NoteSnapshotPolicy(name, "begun", {"start_ms": start_ms}))
        await note("failed", details=_details(error))
        raise
    await node.perform(NoteSnapshotPolicy(name, "begun", {"start_ms": start_ms}))
    return {"snapshot_name": made}


def _details(error: GraphDBError) -> str:
    shown = search_error(error)
    return f"{shown.kind}: {shown.reason}"[:_DETAILS_MAX]


async def _execute_retention(exchange: Exchange) -> dict[str, Any]:
    check_visibility(exchange)
    node, began, failures = exchange.node, time.monotonic(), 0
    for name, stored in sorted(node.catalog.state.snapshot_policies.items()):
        if stored["policy"].get("retention"):
            failures += not await _retained(exchange, name, stored["policy"])
    counts = {"runs": 1, "failed": int(failures > 0), "time_ms": int(1000 * (time.monotonic() - began))}
    await node.perform(NoteSnapshotRetention(node.now_ms(), counts))
    return {"acknowledged": True}


async def _retained(exchange: Exchange, name: str, policy: Mapping[str, Any]) -> bool:
    """Delete what a policy keeps no longer. False where that failed, which is noted."""
    node, gone = exchange.node, list[str]()
    try:
        repository = open_repository(exchange, policy["repository"])
        made = await repository.run(partial(_made_by, repository, name))
        gone = expired(policy["retention"], made, node.now_ms())
        await delete_snapshots(exchange, repository, gone)
    except GraphDBError:
        await node.perform(NoteSnapshotPolicy(name, "deletion_failed", {"count": max(len(gone), 1)}))
        return False
    if gone:
        await node.perform(NoteSnapshotPolicy(name, "deleted", {"count": len(gone)}))
    return True


def _made_by(repository: OpenRepository, policy: str) -> list[MadeSnapshot]:
    """The snapshots of a policy. One that cannot be read is left alone, and shown as damaged."""
    made = []
    for name in repository.files.names():
        try:
            manifest = repository.files.read(name)
        except (FileNotFoundError, CorruptionError):
            continue
        if (manifest.get("metadata") or {}).get("policy") == policy:
            made.append(MadeSnapshot(name, manifest["started_ms"]))
    return made
