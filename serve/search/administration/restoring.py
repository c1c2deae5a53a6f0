"""`_snapshot/{repository}/{snapshot}/_restore`: indexes made of a snapshot.

The checksums of all files are compared before anything changes. Then the documents go through the log, with
their versions, into new indexes, which say which node fills them until all are there
(`graphdb.search.catalog.filling`). Where it does not come to that, the node deletes them: at once, or when it
is there again. A closed index of the name stays what it is until the new ones, all of them, take their places
by one log entry. Meanwhile the restore is work of the repository, so that its snapshot is not deleted.

Source: Elasticsearch 8's documentation of the API, `RestoreService` for its checks.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.search.analysis.parameters import JavaPattern, java_replacement
from graphdb.search.catalog.catalog_commands import (
    Command,
    CreateIndex,
    DeleteIndices,
    FinishFilling,
    PutClusterSettings,
    PutComponentTemplate,
    PutIndexTemplate,
    PutLegacyTemplate,
    PutLifecycle,
    PutPipeline,
    PutScript,
    PutSynonyms,
)
from graphdb.search.catalog.index_names import check_index_name
from graphdb.search.catalog.index_settings import PRIVATE, read_settings
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.snapshots.document_frames import SnapshotDocument, read_frames
from graphdb.search.snapshots.repository import Manifest
from serve.search.administration.indices import new_uuid
from serve.search.administration.repositories import (
    OpenRepository,
    RepositoryWork,
    begin_work,
    finish_work,
    open_repository,
)
from serve.search.administration.shown_snapshots import chosen_rows, read_snapshot
from serve.search.administration.snapshots import Pace, flag_of, names_of
from serve.search.backend import SearchBackend
from serve.search.documents.ingesting import write_documents
from serve.search.documents.rewriting import copied
from serve.search.frame.answer import error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity
from serve.search.frame.tasks import Task

__all__ = ["routes"]

_MEMBERS = {
    "expand_wildcards",
    "feature_states",
    "ignore_index_settings",
    "ignore_unavailable",
    "include_aliases",
    "include_global_state",
    "index_settings",
    "indices",
    "partial",
    "quiet",
    "rename_pattern",
    "rename_replacement",
}
_FIXED = ("number_of_shards", "number_of_routing_shards", "routing_partition_size", *PRIVATE)
_LATE = ("default_pipeline", "final_pipeline")


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    path = "/_snapshot/{repository}/{snapshot}/_restore"
    return [*endpoint("POST", path, _restore, "master_timeout wait_for_completion", Body.JSON)]


@dataclass(frozen=True, slots=True)
class _Target:
    """A new index. settings, late: in normal form; the late ones hold once its documents are there.
    replaced: the uuid of a closed index of the name.
    """

    row: Mapping[str, Any]
    name: str
    uuid: str
    settings: Mapping[str, Any]
    late: Mapping[str, Any]
    aliases: Mapping[str, Any]
    replaced: str | None

    @property
    def handle(self) -> str:
        """The alias that documents are written by: an index deleted meanwhile is not made again."""
        return f".restore-{self.uuid.lower()}"


async def _restore(exchange: Exchange) -> dict[str, Any]:
    repository, name = open_repository(exchange, exchange["repository"]), exchange["snapshot"]
    body = await exchange.json() or {}
    for key in sorted(body.keys() - _MEMBERS):
        raise illegal_argument(f"Unknown parameter {key[:100]}")
    if body.get("feature_states") not in (None, [], ["none"]):
        raise illegal_argument("[feature_states] can only be [none]: there are no features with a state")
    manifest = await read_snapshot(repository, name)
    ignored = flag_of(body, "ignore_unavailable", False)
    rows = chosen_rows(repository.name, manifest, names_of(body.get("indices")), ignored)
    targets = await asyncio.to_thread(_targets, exchange, repository, manifest, rows, body)
    state = manifest["global_state"]
    if flag_of(body, "include_global_state", False) and state is None:
        raise _error(repository, manifest, "cannot restore global state: the snapshot does not have it")
    task = exchange.begin_task("cluster:admin/snapshot/restore", f"restore [{repository.name}:{name}]")
    progress = {"total": sum(row["documents"] for row in rows), "done": 0}
    task.status = lambda: dict(progress)
    created = asyncio.Event()

    async def work(_begun: RepositoryWork) -> dict[str, Any]:
        if flag_of(body, "include_global_state", False):
            for command in _state_commands(state):
                await exchange.node.perform(command)
        await _restored(exchange, repository, manifest, task, targets, progress, created)
        shards = sum(target.row["shards"] for target in targets)
        counted = {"total": shards, "failed": 0, "successful": shards}
        return {"snapshot": {"snapshot": name, "indices": [one.name for one in targets], "shards": counted}}

    begun = await begin_work(exchange, repository, "restore", name)
    try:
        await _check_there(repository, manifest, rows)
    except BaseException:
        await begun.end()
        raise
    if exchange.parameters.boolean("wait_for_completion", False):
        with exchange.tasks.shown(task):
            return await finish_work(begun, work)

    async def in_background() -> tuple[str, bytes]:
        try:
            return "response", orjson.dumps(await finish_work(begun, work))
        except Exception as error:  # noqa: BLE001 - the client reads it as the task's result
            return "error", orjson.dumps(error_json(search_error(error)))
        finally:
            created.set()

    try:
        exchange.tasks.start(task, Identity(exchange.node, exchange.settings).node_id, in_background)
    except SearchError:
        await begun.end()
        raise
    # clients ask at once how far the indexes are, and do not expect that they are missing
    await created.wait()
    return {"accepted": True}


async def _check_there(repository: OpenRepository, manifest: Manifest, rows: list[Mapping[str, Any]]) -> None:
    """That the snapshot has not been deleted meanwhile, and that its files are whole. Raises SearchError."""
    if (await read_snapshot(repository, manifest["snapshot"]))["uuid"] != manifest["uuid"]:
        raise _error(repository, manifest, "the snapshot has just been replaced by another: try again")
    await repository.run(lambda: repository.files.check(manifest, [row["name"] for row in rows]))


def _error(repository: OpenRepository, manifest: Manifest, reason: str) -> SearchError:
    there = f"[{repository.name}:{manifest['snapshot']}]"
    return SearchError("snapshot_restore_exception", f"{there} {reason}", 500)


# Which indexes there will be.


def _targets(
    exchange: Exchange,
    repository: OpenRepository,
    manifest: Manifest,
    rows: list[Mapping[str, Any]],
    body: Mapping[str, Any],
) -> list[_Target]:
    """Raises SearchError for what cannot be. Nothing is done yet."""
    given = read_settings(body.get("index_settings") or {})
    ignored = names_of(body.get("ignore_index_settings"))
    ignored = [one.removeprefix("index.") for one in ignored]
    for name in _FIXED:
        if name in given:
            raise _error(repository, manifest, f"cannot modify setting [index.{name}] on restore")
        if name in ignored:
            raise _error(repository, manifest, f"cannot remove setting [index.{name}] on restore")
    has_aliases = flag_of(body, "include_aliases", True)
    targets: list[_Target] = []
    taken: dict[str, str] = {}
    for row in rows:
        name = _renamed(row["name"], body)
        check_index_name(name)
        if name in taken:
            both = f"indices [{taken[name]}] and [{row['name']}] are renamed into the same index [{name}]"
            raise _error(repository, manifest, both)
        taken[name] = row["name"]
        there = exchange.node.catalog.find(name)
        if there is not None:
            _check_replaced(exchange, repository, manifest, there)
        stored = {
            key: value
            for key, value in row["settings"].items()
            if key not in PRIVATE and not any(wildcard_match(pattern, key) for pattern in ignored)
        }
        merged = {key: value for key, value in {**stored, **given}.items() if value is not None}
        if "number_of_shards" not in merged:
            merged["number_of_shards"] = str(row["shards"])
        late = {key: value for key, value in merged.items() if key.startswith("blocks.") or key in _LATE}
        settings = {key: value for key, value in merged.items() if key not in late}
        aliases = row["aliases"] if has_aliases else {}
        replaced = None if there is None else there.uuid
        targets.append(_Target(row, name, new_uuid(), settings, late, aliases, replaced))
    return targets


def _renamed(name: str, body: Mapping[str, Any]) -> str:
    """By a regular expression, as Java writes its replacement: `$1`. Errors: illegal_argument_exception."""
    pattern, replacement = body.get("rename_pattern"), body.get("rename_replacement")
    if pattern is None and replacement is None:
        return name
    if not isinstance(pattern, str) or not isinstance(replacement, str):
        raise illegal_argument("[rename_pattern] and [rename_replacement] are given together, as texts")
    found = JavaPattern(pattern)
    return found.replace(name, java_replacement(replacement, found), all_matches=True)


def _check_replaced(exchange: Exchange, repository: OpenRepository, manifest: Manifest, there: Index) -> None:
    if not there.is_closed:
        raise _error(
            repository,
            manifest,
            f"cannot restore index [{there.name}] because an open index with same name already exists in "
            "the cluster. Either close or delete the existing index or restore the index under a different "
            "name by providing a rename pattern and replacement name",
        )
    if exchange.node.catalog.state.stream_of(there.uuid) is not None:
        raise _error(repository, manifest, f"cannot replace [{there.name}]: it is of a data stream")


def _state_commands(state: Mapping[str, Any]) -> Iterator[Command]:
    """What puts back the global state, in an order in which each finds what it names."""
    if state["settings"]:
        yield PutClusterSettings(persistent=state["settings"])
    for name, one in state["scripts"].items():
        yield PutScript(name, one)
    for name, rules in state.get("synonyms", {}).items():  # older snapshots have none
        yield PutSynonyms(name, rules)
    for name, one in state["pipelines"].items():
        yield PutPipeline(name, one)
    for name, one in state["lifecycles"].items():
        yield PutLifecycle(name, one["policy"])
    for name, one in state["components"].items():
        yield PutComponentTemplate(name, one)
    for name, one in state["templates"].items():
        yield PutIndexTemplate(name, one)
    for name, one in state["legacy_templates"].items():
        yield PutLegacyTemplate(name, one)


# Making them.


async def _restored(
    exchange: Exchange,
    repository: OpenRepository,
    manifest: Manifest,
    task: Task,
    targets: list[_Target],
    progress: dict[str, int],
    created: asyncio.Event,
) -> None:
    """All, or none; then the indexes are as before.

    created: set once all indexes are there, still without documents.
    """
    node, pace = exchange.node, Pace(repository.rate("max_restore_bytes_per_sec"))
    try:
        for target in targets:
            node.filling.add(target.uuid)
            await node.perform(_creation(target, exchange.settings.cluster.node_id))
        created.set()
        for target in targets:
            if "file" in target.row:
                await _filled(exchange, repository, manifest, task, target, pace, progress)
        await node.refresh([node.catalog.state.index(target.uuid) for target in targets])
        await node.perform(FinishFilling({target.uuid: _finish(target) for target in targets}))
    except BaseException:
        # Only unfilled ones: their end may have been logged although nobody could say so.
        uuids = tuple(target.uuid for target in targets)
        with suppress(Exception):  # what stays is deleted by the node's own sweep
            await node.perform(DeleteIndices(uuids, unfilled=True))
        raise
    finally:
        for target in targets:
            node.filling.discard(target.uuid)


def _creation(target: _Target, node_id: int) -> CreateIndex:
    """Without templates, and without what would keep the documents out or change them."""
    aliases = {**_aliases_at_once(target), target.handle: {"is_hidden": True}}
    body = {"settings": target.settings, "mappings": target.row["mappings"], "aliases": aliases}
    return CreateIndex(
        target.name, target.uuid, body, from_templates=False, filled_by=node_id, replaces=target.replaced
    )


def _aliases_at_once(target: _Target) -> Mapping[str, Any]:
    """None beside an index that has them still: only one of the two may be written by them."""
    return target.aliases if target.replaced is None else {}


def _finish(target: _Target) -> Mapping[str, Any]:
    """What makes it whole: it has its aliases and blocks, and is without what only its filling needs."""
    aliases = {} if target.replaced is None else target.aliases
    return {"settings": target.late, "aliases": aliases, "handle": target.handle}


async def _filled(
    exchange: Exchange,
    repository: OpenRepository,
    manifest: Manifest,
    task: Task,
    target: _Target,
    pace: Pace,
    progress: dict[str, int],
) -> None:
    path = await repository.run(lambda: repository.files.documents_path(manifest, target.row))
    frames = read_frames(path)
    written = 0

    def check() -> None:
        if task.cancelled is not None:
            raise _error(repository, manifest, f"was cancelled: {task.cancelled}")

    try:
        while documents := await repository.run(lambda: next(frames, [])):
            check()
            await _write(exchange, repository, manifest, target, documents)
            written += len(documents)
            progress["done"] += len(documents)
            await pace.keep(sum(len(one.source) for one in documents), check)
    finally:
        await asyncio.to_thread(frames.close)
    if written != target.row["documents"]:
        reason = f"index [{target.name}] has [{written}] documents of [{target.row['documents']}]"
        raise _error(repository, manifest, reason)


async def _write(
    exchange: Exchange,
    repository: OpenRepository,
    manifest: Manifest,
    target: _Target,
    documents: list[SnapshotDocument],
) -> None:
    writes = [copied(one, target.handle) for one in documents]
    results = await write_documents(exchange.node, exchange.work, writes, [None] * len(writes), "false")
    for result in results:
        error = result.result.error
        if error is not None:
            shown = result.result.doc_id[:100]
            raise _error(repository, manifest, f"document [{shown}] was refused: {error.reason[:1000]}")
