"""`_snapshot/{repository}/{snapshot}`: snapshots of indexes made, cloned and deleted.

A snapshot has the documents that a search found of each index at one moment, and what the index is made of.
An index that follows the graph is kept without documents: they are made of the graph again.

Source: Elasticsearch 8's documentation of the snapshot APIs.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import orjson

from graphdb.config import Settings
from graphdb.errors import CorruptionError, GraphDBError
from graphdb.search.catalog.catalog_commands import EndSnapshotWork
from graphdb.search.catalog.filling import is_filled
from graphdb.search.catalog.index_names import Resolved, ResolveOptions
from graphdb.search.catalog.index_settings import VERSION_CREATED_TEXT
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.snapshots.document_frames import FRAME_BYTES, SnapshotDocument
from graphdb.search.snapshots.repository import Manifest, check_snapshot_name, invalid_name
from serve.search.administration.repositories import (
    OpenRepository,
    RepositoryWork,
    begin_work,
    finish_work,
    open_repository,
)
from serve.search.administration.shown_snapshots import (
    chosen_rows,
    chosen_snapshots,
    is_meant,
    read_snapshot,
    running_snapshots,
    snapshot_json,
)
from serve.search.backend import SearchBackend
from serve.search.documents.rewriting import Found, found_documents
from serve.search.frame.answer import error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity
from serve.search.frame.tasks import Task

__all__ = ["Pace", "SnapshotEnd", "delete_snapshots", "flag_of", "make_snapshot", "names_of", "routes"]

_CREATE = {"expand_wildcards", "feature_states", "ignore_unavailable", "include_global_state", "indices"}
_CREATE |= {"metadata", "partial"}
_METADATA_BYTES_MAX = 1024
_FRAME_DOCUMENTS = 1_000
_ABORT_S = 60.0
_CHECK_S = 0.2
_GLOBAL = ("templates", "components", "legacy_templates", "scripts", "synonyms", "pipelines", "lifecycles")


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one = "/_snapshot/{repository}/{snapshot}"
    return [
        *endpoint("PUT POST", one, _create, "master_timeout wait_for_completion", Body.JSON),
        *endpoint("DELETE", one, _delete, "master_timeout wait_for_completion"),
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


SnapshotEnd: TypeAlias = Callable[[Manifest | GraphDBError], Awaitable[None]]
"""Is told what a snapshot came to."""


async def _create(exchange: Exchange) -> Any:
    repository, name = open_repository(exchange, exchange["repository"]), exchange["snapshot"]
    waits = exchange.parameters.boolean("wait_for_completion", False)
    return await make_snapshot(exchange, repository, name, await exchange.json() or {}, waits)


async def make_snapshot(
    exchange: Exchange,
    repository: OpenRepository,
    name: str,
    body: Mapping[str, Any],
    waits: bool,
    on_end: SnapshotEnd | None = None,
    **members: Any,
) -> dict[str, Any]:
    """What is answered: at once, or when the snapshot is made. body: as of `PUT _snapshot/{}/{}`.

    members: what else the work says of itself. Errors: SearchError; on_end is not told of those that come
    before the work begins.
    """
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
    await _check_new(repository, name)
    indexes = [index for index in chosen if is_filled(index)]
    described = f"snapshot [{repository.name}:{name}]"
    task = exchange.begin_task("cluster:admin/snapshot/create", described)

    async def made() -> dict[str, Any]:
        async def work(begun: RepositoryWork) -> Manifest:
            uuid = begun.uuid
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
            return await _written(exchange, repository, task, begun, manifest, indexes)

        try:
            manifest = await finish_work(begun, work)
        except GraphDBError as error:
            if on_end is not None:
                await on_end(error)
            raise
        if on_end is not None:
            await on_end(manifest)
        return snapshot_json(repository.name, manifest)

    members |= {"indices": [index.name for index in chosen], "include_global_state": has_state}
    begun = await begin_work(exchange, repository, "snapshot", name, **members)
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
        await begun.end()
        raise
    return {"accepted": True}


async def _check_new(repository: OpenRepository, name: str) -> None:
    if name in await repository.run(repository.files.names):
        raise invalid_name(repository.name, name, "snapshot with the same name already exists")


async def _written(
    exchange: Exchange,
    repository: OpenRepository,
    task: Task,
    begun: RepositoryWork,
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
        await begun.claim()
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


# Deleting and cloning.


async def _delete(exchange: Exchange) -> dict[str, Any]:
    """Ends one that is being made, on whichever node."""
    repository, names = open_repository(exchange, exchange["repository"]), exchange["snapshot"]
    repository.check_writable("delete snapshot")
    stopped = await _abort(exchange, repository, names)
    rest = ",".join(part for part in names.split(",") if part not in stopped)
    found = await chosen_snapshots(repository, rest, ignore_missing=False)
    found += [name for name in stopped if name in await repository.run(repository.files.names)]
    await delete_snapshots(exchange, repository, found)
    return {"acknowledged": True}


async def delete_snapshots(exchange: Exchange, repository: OpenRepository, found: Sequence[str]) -> None:
    """By name; those that are gone are gone. Errors: SearchError."""

    async def work(begun: RepositoryWork) -> None:
        await begun.claim()
        for name in found:
            with suppress(FileNotFoundError):
                await repository.run(partial(repository.files.delete, name))

    if found:
        begun = await begin_work(exchange, repository, "delete", ",".join(found), snapshots=list(found))
        await finish_work(begun, work)


async def _abort(exchange: Exchange, repository: OpenRepository, names: str) -> list[str]:
    """The names of those that were being made and are not any more."""
    node, stopped = exchange.node, list[str]()
    for uuid, work in running_snapshots(node.catalog.state, repository.name):
        if not is_meant(names, work["snapshot"]):
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

    async def work(begun: RepositoryWork) -> None:
        uuid = begun.uuid
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

        await begun.claim()
        await repository.run(linked)

    await finish_work(await begin_work(exchange, repository, "clone", target), work)
    return {"acknowledged": True}
