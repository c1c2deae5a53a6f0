"""`_snapshot/{repository}/{snapshot}`: snapshots of indexes made, shown, cloned and deleted.

A snapshot has the documents that a search found of each index at one moment, and what the index is made of.
An index that follows the graph is kept without documents: they are made of the graph again.

Source: Elasticsearch 8's documentation of the snapshot APIs.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.errors import CorruptionError, GraphDBError
from graphdb.search.catalog.catalog_commands import EndSnapshotWork
from graphdb.search.catalog.filling import is_filled
from graphdb.search.catalog.index_names import Resolved, ResolveOptions
from graphdb.search.catalog.index_settings import VERSION_CREATED_TEXT
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.snapshots.document_frames import FRAME_BYTES, SnapshotDocument
from graphdb.search.snapshots.repository import Manifest, check_snapshot_name, invalid_name
from serve.search.administration.repositories import (
    OpenRepository,
    begin_work,
    check_visibility,
    finish_work,
    named_repositories,
    open_repository,
)
from serve.search.backend import SearchBackend
from serve.search.documents.rewriting import Found, found_documents
from serve.search.frame.answer import Answer, error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity
from serve.search.frame.tasks import Task

__all__ = [
    "Pace",
    "chosen_rows",
    "chosen_snapshots",
    "flag_of",
    "listed_snapshots",
    "names_of",
    "read_snapshot",
    "routes",
    "snapshot_json",
]

_VERSION_ID = 8_536_000  # of indexes made by 8.19, as `version.created` has it
_CREATE = {"expand_wildcards", "feature_states", "ignore_unavailable", "include_global_state", "indices"}
_CREATE |= {"metadata", "partial"}
_METADATA_BYTES_MAX = 1024
_GET = "ignore_unavailable include_repository index_details index_names master_timeout offset order size sort"
_FRAME_DOCUMENTS = 1_000
_ABORT_S = 60.0
_CHECK_S = 0.2
_NAME_MAX = 200
_GLOBAL = ("templates", "components", "legacy_templates", "scripts", "pipelines", "lifecycles")


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one = "/_snapshot/{repository}/{snapshot}"
    status = ["/_snapshot/_status", "/_snapshot/{repository}/_status", f"{one}/_status"]
    return [
        *endpoint("PUT POST", one, _create, "master_timeout wait_for_completion", Body.JSON),
        *endpoint("GET", one, _get, f"verbose {_GET}"),
        *endpoint("DELETE", one, _delete, "master_timeout wait_for_completion"),
        *endpoint("GET", status, _status, "ignore_unavailable master_timeout"),
        *endpoint("PUT", f"{one}/_clone/{{target}}", _clone, "master_timeout timeout", Body.JSON),
    ]


class Pace:
    """Keeps bytes a second below a rate."""

    def __init__(self, rate: float) -> None:
        self._rate, self._began, self._bytes = rate, time.monotonic(), 0

    async def keep(self, done: int, check: Callable[[], None]) -> None:
        """So many bytes more are done. check raises where the work is to end, however low the rate is."""
        self._bytes += done
        while (ahead := self._bytes / self._rate - (time.monotonic() - self._began)) > 0:
            await asyncio.sleep(min(ahead, _CHECK_S))
            check()


# What a request asks for.


def flag_of(body: Mapping[str, Any], name: str, default: bool) -> bool:
    value = body.get(name, default)
    if value in (True, False, "true", "false"):
        return value in (True, "true")
    raise illegal_argument(f"Failed to parse value [{str(value)[:100]}] of [{name}] as a boolean")


def names_of(value: Any) -> list[str]:
    if value is None or isinstance(value, str):
        return [part.strip() for part in (value or "").split(",") if part.strip()]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise illegal_argument("malformed indices section, should be an array of strings")


def _chosen_indexes(exchange: Exchange, body: Mapping[str, Any]) -> list[Index]:
    states = body.get("expand_wildcards", "all")
    options = ResolveOptions.of(
        ",".join(states) if isinstance(states, list) else str(states),
        flag_of(body, "ignore_unavailable", False),
        closed=True,
    )
    found = exchange.node.catalog.resolve(names_of(body.get("indices")), options, exchange.node.now_ms())
    return [one.index for one in found]


def _global_state(state: CatalogState) -> dict[str, Any]:
    kept = {name: getattr(state, name) for name in _GLOBAL}
    return {**kept, "settings": state.cluster_settings.get("persistent", {})}


# Making one.


async def _create(exchange: Exchange) -> Any:
    repository, name = open_repository(exchange, exchange["repository"]), exchange["snapshot"]
    body = await exchange.json() or {}
    check_snapshot_name(repository.name, name)
    repository.check_writable("create snapshot")
    for key in sorted(body.keys() - _CREATE):
        raise illegal_argument(f"Unknown parameter {key[:100]}")
    if body.get("feature_states") not in (None, [], ["none"]):
        raise illegal_argument("[feature_states] can only be [none]: there are no features with a state")
    metadata = body.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise illegal_argument("malformed metadata, should be an object")
    if len(orjson.dumps(metadata)) > _METADATA_BYTES_MAX:
        raise illegal_argument(f"metadata must be smaller than {_METADATA_BYTES_MAX} bytes")
    chosen = _chosen_indexes(exchange, body)
    has_state, is_partial = flag_of(body, "include_global_state", True), flag_of(body, "partial", False)
    unfilled = [index.name for index in chosen if not is_filled(index)]
    if unfilled and not is_partial:
        reason = f"Indices don't have all their documents yet [{', '.join(unfilled[:20])}]"
        raise SearchError("snapshot_exception", f"[{repository.name}:{name}] {reason}", 500)
    waits = exchange.parameters.boolean("wait_for_completion", False)
    await _check_new(repository, name)
    indexes = [index for index in chosen if is_filled(index)]
    described = f"snapshot [{repository.name}:{name}]"
    task = exchange.begin_task("cluster:admin/snapshot/create", described)

    async def made() -> dict[str, Any]:
        async def work(uuid: str) -> Manifest:
            manifest = {
                "snapshot": name,
                "uuid": uuid,
                "data": f"data-{exchange.settings.cluster.node_id}-{uuid}",
                "version": VERSION_CREATED_TEXT,
                "state": "PARTIAL" if unfilled else "SUCCESS",
                "metadata": metadata,
                "global_state": _global_state(exchange.node.catalog.state) if has_state else None,
                "failures": [{"index": one, "reason": "it was being filled"} for one in unfilled],
            }
            return await _written(exchange, repository, task, manifest, indexes)

        return snapshot_json(repository.name, await finish_work(exchange.node, uuid, work))

    members = {"indices": [index.name for index in chosen], "include_global_state": has_state}
    uuid = await begin_work(exchange, repository, "snapshot", name, **members)
    if waits:
        with exchange.tasks.shown(task):
            return {"snapshot": await made()}

    async def in_background() -> tuple[str, bytes]:
        try:
            return "response", orjson.dumps({"snapshot": await made()})
        except Exception as error:  # noqa: BLE001 - the client reads it as the task's result
            return "error", orjson.dumps(error_json(search_error(error)))

    try:
        exchange.tasks.start(task, Identity(exchange.node, exchange.settings).node_id, in_background)
    except SearchError:
        exchange.node.filling.discard(uuid)
        await exchange.node.perform(EndSnapshotWork(uuid))
        raise
    return {"accepted": True}


async def _check_new(repository: OpenRepository, name: str) -> None:
    if name in await repository.run(repository.files.names):
        raise invalid_name(repository.name, name, "snapshot with the same name already exists")


async def _written(
    exchange: Exchange,
    repository: OpenRepository,
    task: Task,
    manifest: dict[str, Any],
    indexes: Sequence[Index],
) -> Manifest:
    """The snapshot's manifest once it is there. What it has written is removed where it fails."""
    files, data, node = repository.files, manifest["data"], exchange.node
    name = manifest["snapshot"]

    def check() -> None:
        if task.cancelled is not None or _is_aborted(node.catalog.state, manifest["uuid"]):
            reason = f"[{repository.name}:{name}] Snapshot was aborted by deletion"
            raise SearchError("snapshot_exception", reason, 500)

    with_documents = [index for index in indexes if not index.follows_graph]
    await _check_new(repository, name)
    await node.refresh([index for index in with_documents if not index.is_closed])
    manifest["started_ms"] = node.now_ms()
    found = await found_documents(exchange, [Resolved(index) for index in with_documents], {})
    rows = [_index_row(index, node.catalog.state) for index in indexes]
    progress = {"total": len(found), "done": 0}
    task.status = lambda: dict(progress)
    pace = Pace(repository.rate("max_snapshot_bytes_per_sec"))
    parts = {part[0]: part for part in found.parts}
    published = False
    try:
        await repository.run(lambda: files.begin(data))
        for number, row in enumerate(rows):
            if row["name"] not in parts:
                continue
            writer = await repository.run(partial(files.writer, data, number, repository.compress))
            try:
                frames = _frames(Found((parts[row["name"]],)))

                def next_frame(frames: Any = frames, writer: Any = writer) -> tuple[int, int]:
                    files.check_room()
                    documents: list[SnapshotDocument] = next(frames, [])
                    return len(documents), writer.write(documents) if documents else 0

                while (done := await repository.run(next_frame))[0]:
                    check()
                    progress["done"] += done[0]
                    await pace.keep(done[1], check)
                row |= await repository.run(writer.finish)
                row["file"] = f"{number}.docs"
            finally:
                writer.close()
        check()
        manifest |= {"indices": rows, "ended_ms": node.now_ms()}
        await repository.run(lambda: files.publish(manifest))
        published = True
    finally:
        if not published:
            with suppress(GraphDBError):  # what stays is removed by `_cleanup`
                await repository.run(lambda: files.remove_data(data))
    return manifest


def _is_aborted(state: CatalogState, uuid: str) -> bool:
    """Whether the work is to end, or is not known any more."""
    work = state.snapshot_work.get(uuid)
    return work is None or "aborted" in work


def _index_row(index: Index, state: CatalogState) -> dict[str, Any]:
    return {
        "name": index.name,
        "settings": dict(index.settings),
        "mappings": index.mapping.as_json(),
        "aliases": dict(index.aliases),
        "shards": len(index.shards),
        "documents": 0,
        "bytes": 0,
        "closed": index.is_closed,
        "stream": state.stream_of(index.uuid),
        "follows_graph": index.follows_graph,
    }


def _frames(found: Found) -> Iterator[list[SnapshotDocument]]:
    """The documents in frames of about a megabyte."""
    frame: list[SnapshotDocument] = []
    size = 0
    for one in found.documents(None):
        frame.append(SnapshotDocument(one.doc_id, one.version, one.routing, one.source))
        size += len(one.source)
        if size >= FRAME_BYTES or len(frame) >= _FRAME_DOCUMENTS:
            yield frame
            frame, size = [], 0
    if frame:
        yield frame


# Showing them.


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


def _running(state: CatalogState, repository: str | None = None) -> list[tuple[str, Mapping[str, Any]]]:
    """The snapshots that are being made, with their uuids."""
    return [
        (uuid, work)
        for uuid, work in state.snapshot_work.items()
        if work["kind"] == "snapshot" and repository in (None, work["repository"])
    ]


async def chosen_snapshots(repository: OpenRepository, names: str, ignore_missing: bool) -> list[str]:
    """Those in the repository that a list with wildcards means. Errors: snapshot_missing_exception."""
    known = await repository.run(repository.files.names)
    found: dict[str, None] = {}
    for part in [part for part in names.split(",") if part]:
        if part in ("_all", "*"):
            found |= dict.fromkeys(known)
        elif "*" in part:
            found |= dict.fromkeys(name for name in known if wildcard_match(part, name))
        elif part in known:
            found[part] = None
        elif not ignore_missing and part != "_current":
            raise _missing(repository.name, part)
    return list(found)


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
            for uuid, work in _running(exchange.node.catalog.state, name)
            if _is_meant(names, work["snapshot"])
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


def _is_meant(names: str, name: str) -> bool:
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


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
        "start_time": _time(started),
        "start_time_in_millis": started,
        "end_time": _time(ended),
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
        "start_time": _time(started),
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
        return {"snapshots": [_running_status(uuid, work) for uuid, work in _running(state)]}
    repository = open_repository(exchange, name)
    running = [
        (uuid, work)
        for uuid, work in _running(state, name)
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


# Deleting and cloning.


async def _delete(exchange: Exchange) -> dict[str, Any]:
    """Ends one that is being made, on whichever node."""
    repository, names = open_repository(exchange, exchange["repository"]), exchange["snapshot"]
    repository.check_writable("delete snapshot")
    stopped = await _abort(exchange, repository, names)
    rest = ",".join(part for part in names.split(",") if part not in stopped)
    found = await chosen_snapshots(repository, rest, ignore_missing=False)
    found += [name for name in stopped if name in await repository.run(repository.files.names)]

    async def work(_uuid: str) -> None:
        for name in found:
            with suppress(FileNotFoundError):
                await repository.run(partial(repository.files.delete, name))

    if found:
        uuid = await begin_work(exchange, repository, "delete", ",".join(found))
        await finish_work(exchange.node, uuid, work)
    return {"acknowledged": True}


async def _abort(exchange: Exchange, repository: OpenRepository, names: str) -> list[str]:
    """The names of those that were being made and are not any more."""
    node, stopped = exchange.node, list[str]()
    for uuid, work in _running(node.catalog.state, repository.name):
        if not _is_meant(names, work["snapshot"]):
            continue
        await node.perform(EndSnapshotWork(uuid, abort=True))
        members = Identity(node, exchange.settings).members(node.status())
        own = exchange.settings.cluster.node_id
        can_end = {one.number for one in members if one.reachable} | {own}
        until = time.monotonic() + _ABORT_S
        while uuid in node.catalog.state.snapshot_work:
            if work["node"] not in can_end or (work["node"] == own and uuid not in node.filling):
                await node.perform(EndSnapshotWork(uuid))  # nobody does it any more
            elif time.monotonic() > until:
                there = f"[{repository.name}:{work['snapshot']}]"
                reason = f"{there} is still ending on node [{work['node']}]: try again"
                raise SearchError("concurrent_snapshot_execution_exception", reason, 503)
            else:
                await asyncio.sleep(0.05)
        stopped.append(work["snapshot"])
    return stopped


async def _clone(exchange: Exchange) -> dict[str, Any]:
    """Of some indexes of a snapshot; it has the same files, by another name."""
    repository = open_repository(exchange, exchange["repository"])
    source, target, body = exchange["snapshot"], exchange["target"], await exchange.json() or {}
    check_snapshot_name(repository.name, target)
    repository.check_writable("clone snapshot")
    for key in sorted(body.keys() - {"expand_wildcards", "ignore_unavailable", "indices"}):
        raise illegal_argument(f"Unknown parameter {key[:100]}")
    patterns = names_of(body.get("indices"))
    if not patterns:
        reason = "Validation Failed: 1: indices list is empty;"
        raise SearchError("action_request_validation_exception", reason)
    manifest = await read_snapshot(repository, source)
    await _check_new(repository, target)
    kept = chosen_rows(repository.name, manifest, patterns, flag_of(body, "ignore_unavailable", False))

    async def work(uuid: str) -> None:
        data = f"data-{exchange.settings.cluster.node_id}-{uuid}"
        names = {row["name"] for row in kept}
        copy = {**manifest, "snapshot": target, "uuid": uuid, "data": data, "indices": kept}

        def linked() -> None:
            files = repository.files
            files.begin(data)
            try:
                files.link_files(manifest, data, names)
                files.publish(copy)
            except BaseException:
                with suppress(OSError, CorruptionError):
                    files.remove_data(data)
                raise

        await repository.run(linked)

    await finish_work(exchange.node, await begin_work(exchange, repository, "clone", target), work)
    return {"acknowledged": True}


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
