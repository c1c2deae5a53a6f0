"""Updates with scripts: what each makes of its document, if that is still the one that the script has read.

A script runs before anything is logged. Where the document has changed meanwhile, it runs again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson

from graphdb.errors import QueryTimeout
from graphdb.search.catalog.aliases import document_routing
from graphdb.search.catalog.catalog_commands import DocumentWrite, ShownSources, WriteResult
from graphdb.search.catalog.index_names import write_target
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.errors import SearchError, routing_missing, version_conflict
from graphdb.search.scripts.stored import with_stored
from graphdb.search.scripts.updates import Changed, ScriptedUpdate
from graphdb.search.segments.index_shard import Document
from graphdb.search.segments.operations import PRIMARY_TERM, Action, Operation, OperationResult, Outcome
from serve.search.backend import SearchBackend
from serve.search.frame.answer import search_error
from serve.search.frame.exchange import SearchWork

__all__ = ["write_with_scripts"]

_TRIES = 5  # of one update, unless the client wants more
_TRIES_MAX = 100
_BATCH = 100  # scripts that run one after the other on a thread
_MADE_BYTES = 16 * 1024 * 1024  # of documents that they make until these are written, and of those shown


@dataclass(slots=True)
class _Update:
    """One update that may have a script, and what came of the last run of it.

    request: None until the body is parsed, and where it has no script; such an update is written as it is.
    """

    write: DocumentWrite
    tries: int
    request: ScriptedUpdate | None = None
    source: bytes = b""
    outcome: DocumentWrite | WriteResult | None = None

    @property
    def is_conditional(self) -> bool:
        """Whether the client says which document it is about."""
        return self.write.operation.if_seq_no is not None


async def write_with_scripts(
    node: SearchBackend,
    work: SearchWork,
    writes: Sequence[DocumentWrite],
    refresh: str,
    retries: int | None = None,
) -> list[WriteResult]:
    """As `SearchBackend.write`. retries: how often an update is tried again, None: as often as is usual."""
    if not any(_may_have_script(write) for write in writes):
        return await node.write(writes, refresh)
    results: list[WriteResult | None] = [None] * len(writes)
    run = _Run(node, work, refresh, results)
    for place, write in enumerate(writes):
        await run.take(place, write, retries)
    await run.flush()
    return [result for result in results if result is not None]


def _may_have_script(write: DocumentWrite) -> bool:
    return write.operation.action is Action.UPDATE and b'"script"' in write.operation.body


class _Run:
    """The writes of one request, in order; results are put where their writes stand."""

    def __init__(
        self, node: SearchBackend, work: SearchWork, refresh: str, results: list[WriteResult | None]
    ) -> None:
        self._node, self._work, self._refresh, self._results = node, work, refresh, results
        self._waiting: list[tuple[int, DocumentWrite | _Update]] = []
        self._touched: set[tuple[str, str]] = set()
        self._scripts, self._shown = 0, ShownSources(_MADE_BYTES)

    async def take(self, place: int, write: DocumentWrite, retries: int | None) -> None:
        tries = _TRIES if retries is None else max(_TRIES, min(retries + 1, _TRIES_MAX))
        update = _Update(write, tries) if _may_have_script(write) else None
        target = (self._named(write.index), write.operation.doc_id)
        if update is not None and (target in self._touched or self._scripts >= _BATCH):
            await self.flush()
        self._scripts += update is not None
        self._touched.add(target)
        self._waiting.append((place, write if update is None else update))

    def _named(self, name: str) -> str:
        """One name for an index, whichever way it is called."""
        try:
            return write_target(self._node.catalog.state, name)[0].name
        except SearchError:
            return name

    async def flush(self) -> None:
        """Write what waits. Raises UnavailableError."""
        waiting, self._waiting, self._touched, self._scripts = self._waiting, [], set(), 0
        while waiting:
            count = len(waiting)
            if any(isinstance(one, _Update) for _, one in waiting):
                count = await self._work.run(partial(self._run_scripts, waiting))
            waiting = [*await self._written(waiting[:count]), *waiting[count:]]

    def _run_scripts(self, waiting: Sequence[tuple[int, DocumentWrite | _Update]]) -> int:
        """How many are to be written now: what has become of their scripts is much enough."""
        state, now_ms, made_bytes = self._node.catalog.state, self._node.now_ms(), 0
        for count, (_, update) in enumerate(waiting):
            if not isinstance(update, _Update):
                continue
            if made_bytes >= _MADE_BYTES:
                return count
            try:
                update.outcome = _outcome(state, update, now_ms)
            except SearchError as error:
                update.outcome = _failed(update.write, error)
            except QueryTimeout as error:
                update.outcome = _failed(update.write, search_error(error))
            made_bytes += len(update.source)
        return len(waiting)

    async def _written(
        self, waiting: Sequence[tuple[int, DocumentWrite | _Update]]
    ) -> list[tuple[int, DocumentWrite | _Update]]:
        """Those that are to be tried again."""
        sent: list[tuple[int, DocumentWrite, _Update | None]] = []
        for place, one in waiting:
            outcome = one.outcome if isinstance(one, _Update) else one
            if isinstance(outcome, WriteResult):
                self._results[place] = self._shown.bounded(outcome)
            elif outcome is not None:
                sent.append((place, outcome, one if isinstance(one, _Update) else None))
        results = await self._node.write([write for _, write, _ in sent], self._refresh) if sent else []
        again: list[tuple[int, DocumentWrite | _Update]] = []
        for (place, _, update), result in zip(sent, results, strict=True):
            if update is None or update.request is None:
                self._results[place] = result
                continue
            update.tries -= 1
            if _is_conflict(result) and not update.is_conditional and update.tries > 0:
                again.append((place, update))
            else:
                self._results[place] = self._shown.bounded(_of_update(update, result))
        return again


def _outcome(state: CatalogState, update: _Update, now_ms: int) -> DocumentWrite | WriteResult:
    """What is to be written, or the result where nothing is. Raises SearchError."""
    if update.request is None:
        update.request = _request(state, update.write)
    if update.request is None:
        return update.write
    write, operation = update.write, update.write.operation
    index, routing, found = _found(state, write)
    if found is not None and update.is_conditional and operation.if_seq_no != found.seq_no:
        raise _conflict(index, operation, found, routing)
    meta: dict[str, Any] = {
        "_index": write.index if index is None else index.name,
        "_id": operation.doc_id,
        "_now": now_ms,
        "_type": "_doc",
    }
    if found is None:
        shard = 0 if index is None else index.shards.routing.shard_of(operation.doc_id, routing)
        changed = update.request.on_missing(shard, meta)
        bare = Operation(Action.CREATE, operation.doc_id, changed.source, operation.routing)
    else:
        meta |= {"_version": found.version, "_routing": found.routing}
        changed = update.request.on_found(found.source, meta)
        bare = _replacing(operation, found, changed)
    update.source = changed.source
    if changed.op == "noop":
        return _noop(str(meta["_index"]), operation, found, changed)
    return replace(write, operation=bare)


def _request(state: CatalogState, write: DocumentWrite) -> ScriptedUpdate | None:
    body = orjson.loads(write.operation.body)
    if not isinstance(body, dict) or body.get("script") is None:
        return None
    given: dict[str, Any] = {"script": body["script"]}
    return ScriptedUpdate.of({**body, **with_stored(given, state.scripts)[0]})


def _found(state: CatalogState, write: DocumentWrite) -> tuple[Index | None, str | None, Document | None]:
    """(index, routing, document): None where there is none. Raises SearchError."""
    try:
        index, options = write_target(state, write.index)
    except SearchError as error:
        if error.status == 404:
            return None, write.operation.routing, None
        raise
    routing = document_routing(write.index, options, write.operation.routing)
    if routing is None and index.mapping.routing_required:
        raise routing_missing(index.name, write.operation.doc_id)
    return index, routing, index.shards.get(write.operation.doc_id, routing)


def _replacing(operation: Operation, found: Document, changed: Changed) -> Operation:
    is_delete = changed.op == "delete"
    routing = found.routing if operation.routing is None else operation.routing
    return Operation(
        Action.DELETE if is_delete else Action.INDEX,
        operation.doc_id,
        b"" if is_delete else changed.source,
        routing,
        found.seq_no,
        PRIMARY_TERM,
    )


def _noop(index: str, operation: Operation, found: Document | None, changed: Changed) -> WriteResult:
    version, seq_no = (-1, -2) if found is None else (found.version, found.seq_no)
    source = changed.source if operation.wants_source else None
    result = OperationResult(Action.UPDATE, operation.doc_id, Outcome.NOOP, version, seq_no, source)
    return WriteResult(index, result)


def _conflict(index: Index | None, operation: Operation, found: Document, routing: str | None) -> SearchError:
    assert index is not None
    reason = (
        f"version conflict, required seqNo [{operation.if_seq_no}], primary term "
        f"[{operation.if_primary_term}]. current document has seqNo [{found.seq_no}] and primary term "
        f"[{PRIMARY_TERM}]"
    )
    shard = index.shards.routing.shard_of(operation.doc_id, routing)
    return version_conflict(index.name, shard, operation.doc_id, reason)


def _is_conflict(result: WriteResult) -> bool:
    error = result.result.error
    return error is not None and error.kind == "version_conflict_engine_exception"


def _of_update(update: _Update, result: WriteResult) -> WriteResult:
    """As the answer of an update has it."""
    is_shown = update.write.operation.wants_source and result.result.error is None
    source, update.source = update.source if is_shown else None, b""
    return replace(result, result=result.result._replace(action=Action.UPDATE, source=source))


def _failed(write: DocumentWrite, error: SearchError) -> WriteResult:
    result = OperationResult(Action.UPDATE, write.operation.doc_id)
    return WriteResult(write.index, result.failed(error))
