"""Policies that make snapshots by a schedule, and delete old ones: what they may say, and what is due.

A policy is kept with its version, when it was put, and what came of it: `last_success`, `last_failure`,
counts. Its snapshots name it in their metadata. Who leads acts on what is due; a time that was missed is made
up once.

Source: Elasticsearch 8's documentation of snapshot lifecycle management.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.catalog.catalog_commands import (
    DeleteSnapshotPolicy,
    NoteSnapshotPolicy,
    NoteSnapshotRetention,
    PutSnapshotPolicy,
)
from graphdb.search.catalog.cron import Schedule
from graphdb.search.catalog.index_names import with_dates
from graphdb.search.catalog.index_settings import duration_ms
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.snapshots.repository import check_snapshot_name

__all__ = [
    "MadeSnapshot",
    "checked_snapshot_policy",
    "due_policies",
    "expired",
    "is_retention_due",
    "next_run_ms",
    "policies_run",
    "snapshot_name",
    "with_noted_policy",
    "with_noted_retention",
    "with_snapshot_policy",
    "without_snapshot_policy",
]

_MEMBERS = ("name", "schedule", "repository", "config", "retention")
_CONFIG = ("indices", "ignore_unavailable", "include_global_state", "feature_states", "metadata", "partial")
_POLICIES_MAX, _NAME_MAX = 1_000, 255
_SHORTEST_MS = 15 * 60_000  # slm.minimum_interval
_RETENTION = "0 30 1 * * ?"  # slm.retention_schedule


def checked_snapshot_policy(name: str, body: Mapping[str, Any], state: CatalogState) -> dict[str, Any]:
    """The body of `PUT _slm/policy/{name}`. Errors: SearchError."""
    for member in body:
        if member not in _MEMBERS:
            reason = f"[snapshot_lifecycle] unknown field [{member[:100]}]"
            raise SearchError("x_content_parse_exception", reason)
    missing = [
        member for member in ("name", "schedule", "repository") if not isinstance(body.get(member), str)
    ]
    if missing:
        raise illegal_argument(f"Required [{', '.join(missing)}]")
    problems = [*_problems(name, body)]
    if problems:
        listed = "".join(f"{number}: {one};" for number, one in enumerate(problems, 1))
        raise SearchError("action_request_validation_exception", f"Validation Failed: {listed}")
    if body["repository"] not in state.repositories:
        raise illegal_argument(f"no such repository [{body['repository'][:100]}]")
    if Schedule.of(body["schedule"]).shortest_ms() < _SHORTEST_MS:
        raise illegal_argument(
            f"invalid schedule [{body['schedule']}]: schedule would be too frequent, executing more than "
            "every [15m]"
        )
    return {member: body[member] for member in _MEMBERS if body.get(member) is not None}


def _problems(name: str, body: Mapping[str, Any]) -> Iterator[str]:
    if (
        not name
        or len(name) > _NAME_MAX
        or name.startswith("_")
        or any(one in name for one in ' ,*"\\/<|>?#')
    ):
        yield f"invalid policy id [{name[:100]}]: it must be a name without blanks, commas and wildcards"
    try:
        check_snapshot_name("", f"{with_dates(body['name'], 0)}-x")
    except SearchError as error:
        problem = error.reason.partition("], ")[2] or error.reason
        yield f"invalid snapshot name [{body['name'][:100]}]: {problem}"
    try:
        Schedule.of(body["schedule"])
    except SearchError as error:
        yield error.reason
    if not body["repository"]:
        yield "invalid repository name []: cannot be empty"
    yield from _config_problems(body.get("config"))
    yield from _retention_problems(body.get("retention"))


def _config_problems(config: Any) -> Iterator[str]:
    if config is None:
        return
    if not isinstance(config, Mapping):
        yield "invalid configuration: it must be an object"
        return
    for member in config:
        if member not in (*_CONFIG, "expand_wildcards"):
            yield f"invalid configuration: unknown parameter [{member[:100]}]"
    metadata = config.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        yield "invalid configuration.metadata: it must be an object"
    elif metadata is not None and "policy" in metadata:
        yield (
            "invalid configuration.metadata: field name [policy] is reserved and will be added automatically"
        )


def _retention_problems(retention: Any) -> Iterator[str]:
    if retention is None:
        return
    if not isinstance(retention, Mapping) or not retention.keys() <= {
        "expire_after",
        "min_count",
        "max_count",
    }:
        yield "invalid retention: it may have [expire_after], [min_count] and [max_count]"
        return
    if retention.get("expire_after") is not None:
        try:
            if duration_ms(str(retention["expire_after"]), "expire_after") <= 0:
                yield "expiration must be longer than zero"
        except SearchError as error:
            yield error.reason
    counts = {one: retention[one] for one in ("min_count", "max_count") if retention.get(one) is not None}
    for one, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            least = one.partition("_")[0]
            yield f"{least}imum snapshot count must be at least 1, but was: {str(count)[:100]}"
            return
    if counts.get("min_count", 0) > counts.get("max_count", 2**62):
        yield (
            f"minimum snapshot count {counts['min_count']} cannot be larger than maximum snapshot count "
            f"{counts['max_count']}"
        )


def snapshot_name(pattern: str, now_ms: int, token: str) -> str:
    """Of the next snapshot of a policy. token: what no other has."""
    return f"{with_dates(pattern, now_ms).lower()}-{token}"


# Changes of what is kept.


def with_snapshot_policy(state: CatalogState, command: PutSnapshotPolicy, timestamp_ms: int) -> CatalogState:
    """Errors: illegal_argument_exception."""
    there = state.snapshot_policies
    if command.name not in there and len(there) >= _POLICIES_MAX:
        raise illegal_argument(f"there cannot be more than [{_POLICIES_MAX}] snapshot policies")
    before = there.get(command.name, {})
    stored = {
        **before,
        "version": before.get("version", 0) + 1,
        "modified_ms": timestamp_ms,
        "policy": command.policy,
    }
    return replace(state, snapshot_policies={**there, command.name: stored})


def without_snapshot_policy(state: CatalogState, command: DeleteSnapshotPolicy) -> CatalogState:
    """Errors: resource_not_found_exception."""
    if command.name not in state.snapshot_policies:
        reason = f"snapshot lifecycle policy not found: {command.name[:100]}"
        raise SearchError("resource_not_found_exception", reason, 404)
    kept = {name: one for name, one in state.snapshot_policies.items() if name != command.name}
    return replace(state, snapshot_policies=kept)


def with_noted_policy(state: CatalogState, command: NoteSnapshotPolicy) -> CatalogState:
    """What came of a policy; nothing changes where it is gone."""
    stored = state.snapshot_policies.get(command.name)
    if stored is None:
        return state
    noted = dict(stored)
    if command.kind == "begun":
        noted["begun_ms"] = command.body["start_ms"]
    else:
        count = command.body.get("count", 1)
        noted["stats"] = {**stored.get("stats", {})}
        noted["stats"][command.kind] = noted["stats"].get(command.kind, 0) + count
    if command.kind in ("taken", "failed"):
        noted["last_success" if command.kind == "taken" else "last_failure"] = command.body
    return replace(state, snapshot_policies={**state.snapshot_policies, command.name: noted})


def with_noted_retention(state: CatalogState, command: NoteSnapshotRetention) -> CatalogState:
    """That old snapshots have been looked for."""
    there = state.snapshot_retention
    counted = {name: there.get(name, 0) + number for name, number in command.counts.items()}
    return replace(state, snapshot_retention={**there, **counted, "last_ms": command.last_ms})


# What is due.


def policies_run(state: CatalogState) -> bool:
    """Whether policies act by themselves."""
    return state.operation_modes.get("slm", "RUNNING") == "RUNNING"


def next_run_ms(stored: Mapping[str, Any]) -> int | None:
    """Of a policy as it is kept; a time that was missed counts still."""
    since = max(stored["modified_ms"], stored.get("begun_ms", 0))
    return Schedule.of(stored["policy"]["schedule"]).next_ms(since)


def due_policies(state: CatalogState, now_ms: int) -> list[str]:
    """Those that are to make a snapshot now."""
    if not policies_run(state):
        return []
    runs = ((name, next_run_ms(stored)) for name, stored in sorted(state.snapshot_policies.items()))
    return [name for name, run_ms in runs if run_ms is not None and run_ms <= now_ms]


def is_retention_due(state: CatalogState, now_ms: int) -> bool:
    """Whether old snapshots are to be looked for: each night at 1:30."""
    retaining = [one for one in state.snapshot_policies.values() if one["policy"].get("retention")]
    if not retaining or not policies_run(state):
        return False
    since = state.snapshot_retention.get("last_ms") or min(one["modified_ms"] for one in retaining)
    run_ms = Schedule.of(_RETENTION).next_ms(since)
    return run_ms is not None and run_ms <= now_ms


@dataclass(frozen=True, slots=True)
class MadeSnapshot:
    """One of a policy, as far as its retention asks."""

    name: str
    started_ms: int


def expired(retention: Mapping[str, Any], made: Sequence[MadeSnapshot], now_ms: int) -> list[str]:
    """The names of those that are to go, the oldest first. made: all that a policy has."""
    newest_first = sorted(made, key=lambda one: (one.started_ms, one.name), reverse=True)
    most, least = retention.get("max_count"), retention.get("min_count") or 0
    age_ms = None
    if retention.get("expire_after") is not None:
        age_ms = duration_ms(str(retention["expire_after"]), "expire_after")
    gone = [
        one.name
        for place, one in enumerate(newest_first)
        if (most is not None and place >= most)
        or (age_ms is not None and place >= least and now_ms - one.started_ms > age_ms)
    ]
    return gone[::-1]
