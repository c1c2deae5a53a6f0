"""Snapshots as requests name and show them: lists, `_current`, `_status`.

Source: Elasticsearch 8's documentation of the snapshot APIs.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.snapshots.repository import Manifest
from graphdb.timestamps import iso_timestamp
from serve.search.administration.repositories import (
    OpenRepository,
    check_visibility,
    named_repositories,
    names_meant,
    open_repository,
)
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Endpoint, Exchange, endpoint

__all__ = [
    "chosen_rows",
    "chosen_snapshots",
    "is_meant",
    "listed_snapshots",
    "read_snapshot",
    "routes",
    "running_snapshots",
    "snapshot_json",
]

_VERSION_ID = 8_536_000  # of indexes made by 8.19, as `version.created` has it
_NAME_MAX = 200
_GET = "ignore_unavailable include_repository index_details index_names master_timeout offset order size sort"


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one = "/_snapshot/{repository}/{snapshot}"
    status = ["/_snapshot/_status", "/_snapshot/{repository}/_status", f"{one}/_status"]
    return [
        *endpoint("GET", one, _get, f"verbose {_GET}"),
        *endpoint("GET", status, _status, "ignore_unavailable master_timeout"),
    ]


async def read_snapshot(repository: OpenRepository, name: str) -> Manifest:
    """Errors: snapshot_missing_exception, repository_exception."""

    def read() -> Manifest | None:
        try:
            return repository.files.read(name)
        except FileNotFoundError:
            return None

    is_possible = "/" not in name and "\0" not in name and len(name) <= _NAME_MAX
    found = await repository.run(read) if is_possible else None
    if found is None:
        raise _missing(repository.name, name)
    return found


def _missing(repository: str, name: str) -> SearchError:
    return SearchError("snapshot_missing_exception", f"[{repository}:{name[:200]}] is missing", 404)


def running_snapshots(
    state: CatalogState, repository: str | None = None
) -> list[tuple[str, Mapping[str, Any]]]:
    """The snapshots that are being made, with their uuids."""
    return [
        (uuid, work)
        for uuid, work in state.snapshot_work.items()
        if work["kind"] == "snapshot" and repository in (None, work["repository"])
    ]


async def chosen_snapshots(repository: OpenRepository, names: str, ignore_missing: bool) -> list[str]:
    """Those in the repository that a list with wildcards means. Errors: snapshot_missing_exception."""
    known = await repository.run(repository.files.names)
    found, missing = names_meant(known, names)
    for name in missing:
        if not ignore_missing and name != "_current":
            raise _missing(repository.name, name)
    return found


async def listed_snapshots(
    exchange: Exchange, repositories: str | None, names: str = "_all", **shown: bool
) -> list[dict[str, Any]]:
    """Those of some repositories, the running ones among them. shown: see `snapshot_json`.

    Errors: repository_missing_exception, snapshot_missing_exception, repository_exception.
    """
    ignored = exchange.parameters.boolean("ignore_unavailable", False)
    listed: list[dict[str, Any]] = []
    for name in named_repositories(exchange, repositories):
        repository = open_repository(exchange, name)
        running = [
            _running_json(uuid, work)
            for uuid, work in running_snapshots(exchange.node.catalog.state, name)
            if is_meant(names, work["snapshot"])
        ]
        busy = {one["snapshot"] for one in running}
        rest = ",".join(part for part in names.split(",") if part not in busy)
        for snapshot in await chosen_snapshots(repository, rest, ignored):
            try:
                manifest = await read_snapshot(repository, snapshot)
            except SearchError:
                if ignored:
                    continue
                raise
            listed.append(snapshot_json(name, manifest, **shown))
        listed += running
    return listed


async def _get(exchange: Exchange) -> Answer:
    parameters = exchange.parameters
    verbose, details = parameters.boolean("verbose", True), parameters.boolean("index_details", False)
    repositories, names = exchange["repository"], exchange["snapshot"]
    shown = await listed_snapshots(exchange, repositories, names, verbose=verbose, details=details)
    if not parameters.boolean("include_repository", True):
        shown = [{key: value for key, value in one.items() if key != "repository"} for one in shown]
    return Answer(_page(exchange, shown))


def is_meant(names: str, name: str) -> bool:
    return any(part in ("_all", "_current") or wildcard_match(part, name) for part in names.split(","))


_SORTS = {
    "start_time": "start_time_in_millis",
    "duration": "duration_in_millis",
    "name": "snapshot",
    "repository": "repository",
}


def _page(exchange: Exchange, shown: list[dict[str, Any]]) -> dict[str, Any]:
    """Sorted, and those that the request wants of them."""
    parameters = exchange.parameters
    sort, order = parameters.text("sort") or "start_time", parameters.text("order") or "asc"
    if sort != "index_count" and sort not in _SORTS:
        raise illegal_argument(f"unknown sort order [{sort[:100]}]")
    if order not in ("asc", "desc"):
        raise illegal_argument(f"unknown order [{order[:100]}]: use [asc] or [desc]")
    size, offset = parameters.integer("size", -1), parameters.integer("offset", 0)
    if size < -1 or size == 0 or offset < 0:
        raise illegal_argument("[size] must be positive or -1, and [offset] not negative")

    def key(one: dict[str, Any]) -> tuple[Any, str]:
        value = len(one["indices"]) if sort == "index_count" else one.get(_SORTS[sort], 0)
        return value, one["snapshot"]

    shown.sort(key=key, reverse=order == "desc")
    page = list(islice(shown, offset, None if size == -1 else offset + size))
    return {"snapshots": page, "total": len(shown), "remaining": max(0, len(shown) - offset - len(page))}


def snapshot_json(
    repository: str, manifest: Manifest, *, verbose: bool = True, details: bool = False
) -> dict[str, Any]:
    """As Elasticsearch shows a snapshot."""
    indexes = manifest["indices"]
    brief = {
        "snapshot": manifest["snapshot"],
        "uuid": manifest["uuid"],
        "repository": repository,
        "indices": [index["name"] for index in indexes],
        "data_streams": sorted({index["stream"] for index in indexes if index["stream"]}),
        "state": manifest["state"],
    }
    if not verbose:
        return brief
    started, ended = manifest["started_ms"], manifest["ended_ms"]
    shards, failed = sum(index["shards"] for index in indexes), len(manifest["failures"])
    shown = {
        **brief,
        "version_id": _VERSION_ID,
        "version": manifest["version"],
        "include_global_state": manifest["global_state"] is not None,
        "start_time": iso_timestamp(started),
        "start_time_in_millis": started,
        "end_time": iso_timestamp(ended),
        "end_time_in_millis": ended,
        "duration_in_millis": ended - started,
        "failures": manifest["failures"],
        "shards": {"total": shards + failed, "failed": failed, "successful": shards},
        "feature_states": [],
    }
    if manifest["metadata"] is not None:
        shown["metadata"] = manifest["metadata"]
    if details:
        shown["index_details"] = {
            index["name"]: {
                "shard_count": index["shards"],
                "size_in_bytes": index["bytes"],
                "max_segments_per_shard": 1,
            }
            for index in indexes
        }
    return shown


def _running_json(uuid: str, work: Mapping[str, Any]) -> dict[str, Any]:
    started = work["started_ms"]
    return {
        "snapshot": work["snapshot"],
        "uuid": uuid,
        "repository": work["repository"],
        "indices": work["indices"],
        "data_streams": [],
        "state": "ABORTED" if "aborted" in work else "IN_PROGRESS",
        "include_global_state": work["include_global_state"],
        "start_time": iso_timestamp(started),
        "start_time_in_millis": started,
        "failures": [],
        "shards": {"total": 0, "failed": 0, "successful": 0},
        "feature_states": [],
    }


# `_status`.


async def _status(exchange: Exchange) -> dict[str, Any]:
    check_visibility(exchange)
    name, names = exchange.get("repository"), exchange.get("snapshot")
    state = exchange.node.catalog.state
    if name is None:
        return {"snapshots": [_running_status(uuid, work) for uuid, work in running_snapshots(state)]}
    repository = open_repository(exchange, name)
    running = [
        (uuid, work)
        for uuid, work in running_snapshots(state, name)
        if names is None or work["snapshot"] in names.split(",")
    ]
    shown = [_running_status(uuid, work) for uuid, work in running]
    busy = {work["snapshot"] for _, work in running}
    ignored = exchange.parameters.boolean("ignore_unavailable", False)
    for one in (names or "").split(","):
        if one and one not in busy:
            try:
                shown.append(_whole_status(name, await read_snapshot(repository, one)))
            except SearchError as error:
                if not ignored or error.status != 404:
                    raise
    return {"snapshots": shown}


def _shards_stats(done: int, started: int = 0) -> dict[str, int]:
    stages = {"initializing": 0, "started": started, "finalizing": 0, "done": done, "failed": 0}
    return {**stages, "total": done + started}


def _stats(files: int, size: int, started: int, took: int) -> dict[str, Any]:
    counted = {"file_count": files, "size_in_bytes": size}
    return {
        "incremental": counted,
        "total": counted,
        "start_time_in_millis": started,
        "time_in_millis": took,
    }


def _running_status(uuid: str, work: Mapping[str, Any]) -> dict[str, Any]:
    started = len(work["indices"])
    return {
        "snapshot": work["snapshot"],
        "repository": work["repository"],
        "uuid": uuid,
        "state": "ABORTED" if "aborted" in work else "STARTED",
        "include_global_state": work["include_global_state"],
        "shards_stats": _shards_stats(0, started),
        "stats": _stats(0, 0, work["started_ms"], 0),
        "indices": {name: {"shards_stats": _shards_stats(0, 1), "shards": {}} for name in work["indices"]},
    }


def _whole_status(repository: str, manifest: Manifest) -> dict[str, Any]:
    """Each snapshot is whole, so that what it has taken and what it has are the same."""
    indexes, started = manifest["indices"], manifest["started_ms"]
    took = manifest["ended_ms"] - started
    files = sum("file" in index for index in indexes) + 1
    each = {
        index["name"]: {
            "shards_stats": _shards_stats(index["shards"]),
            "stats": _stats(int("file" in index), index["bytes"], started, took),
            "shards": {
                str(number): {"stage": "DONE", "stats": _stats(0, 0, started, took)}
                for number in range(index["shards"])
            },
        }
        for index in indexes
    }
    return {
        "snapshot": manifest["snapshot"],
        "repository": repository,
        "uuid": manifest["uuid"],
        "state": manifest["state"],
        "include_global_state": manifest["global_state"] is not None,
        "shards_stats": _shards_stats(sum(index["shards"] for index in indexes)),
        "stats": _stats(files, max(1, sum(index["bytes"] for index in indexes)), started, took),
        "indices": each,
    }


def chosen_rows(
    repository: str, manifest: Manifest, patterns: Sequence[str], ignore_missing: bool
) -> list[Mapping[str, Any]]:
    """The indexes of a snapshot that patterns mean, all without any. Errors: index_not_found_exception."""
    rows = {row["name"]: row for row in manifest["indices"]}
    streams = {row["stream"] for row in rows.values()}
    found: dict[str, None] = {}
    for pattern in patterns or ["*"]:
        if pattern.startswith("-") and found:
            for name in [name for name in found if wildcard_match(pattern[1:], name)]:
                del found[name]
        elif pattern in ("_all", "*") or "*" in pattern:
            wanted = "*" if pattern == "_all" else pattern
            found |= {name: None for name in rows if wildcard_match(wanted, name)}
        elif pattern in rows:
            found[pattern] = None
        elif pattern in streams:
            found |= {name: None for name, row in rows.items() if row["stream"] == pattern}
        elif not ignore_missing:
            there = f"[{repository}:{manifest['snapshot']}]"
            metadata = {"index": pattern[:255], "index_uuid": "_na_"}
            reason = f"no such index [{pattern[:255]}] in snapshot {there}"
            raise SearchError("index_not_found_exception", reason, 404, metadata)
    return [row for name, row in rows.items() if name in found]
