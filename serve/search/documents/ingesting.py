"""Documents on their way through pipelines, before they are written."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from graphdb.errors import QueryTimeout
from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteResult
from graphdb.search.catalog.index_names import write_target
from graphdb.search.catalog.index_templates import settings_of_new
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.protection import ALLOW_SIDS
from graphdb.search.segments.document_updates import read_object
from graphdb.search.segments.operations import Action, Operation, OperationResult, Outcome
from serve.search.backend import SearchBackend
from serve.search.documents.scripted import write_with_scripts
from serve.search.documents.write_options import Conditions, generated_id
from serve.search.frame.answer import error_json, search_error
from serve.search.frame.exchange import SearchWork

if TYPE_CHECKING:  # most documents go through no pipeline
    from graphdb.search.ingest.document import IngestDocument
    from graphdb.search.ingest.pipeline import Definitions

__all__ = ["IngestReport", "Trial", "definitions_of", "timestamp", "write_documents"]

_AT_ONCE = 500  # documents, on one thread, within the time of a search
_MADE_BYTES = (
    16 * 1024 * 1024
)  # of documents as pipelines leave them, which may be far more than came: then they are written
_DROPPED_VERSION, _DROPPED_SEQ_NO = -3, -2  # what Elasticsearch says of a document that is not written
_NO_PIPELINE = "_none"
_MADE_MIN, _MADE_FACTOR = 1_000_000, 50  # characters that processors make of a document; more for longer ones


@dataclass(slots=True)
class IngestReport:
    """Of the writes of one request. took_s: of the pipelines, None where there were none. executed: the
    names of those that each went through, by its place.
    """

    took_s: float | None = None
    executed: dict[int, list[str]] = field(default_factory=dict)


async def write_documents(
    node: SearchBackend,
    work: SearchWork,
    writes: Sequence[DocumentWrite],
    pipelines: Sequence[str | None],
    refresh: str,
    retries: int | None = None,
    report: IngestReport | None = None,
) -> list[WriteResult]:
    """As `write_with_scripts`. pipelines: the one that a request names for each, None: the index's. report is
    told what they did.

    What a pipeline refuses or drops is not written. Of updates the document goes through that is written
    where there is none yet; deletions go through no pipeline.
    """
    ingesting = _Ingesting(node, report or IngestReport())
    if not any(map(ingesting.takes, writes, pipelines)):
        return await write_with_scripts(node, work, writes, refresh, retries)
    results: list[WriteResult] = []
    made: list[DocumentWrite | WriteResult] = []
    while len(results) + len(made) < len(writes):
        made += await work.run(partial(ingesting.part, writes, pipelines, len(results) + len(made)))
        if ingesting.made_bytes >= _MADE_BYTES or len(results) + len(made) == len(writes):
            left = [one for one in made if isinstance(one, DocumentWrite)]
            done = iter(await write_with_scripts(node, work, left, refresh, retries) if left else ())
            results += [one if isinstance(one, WriteResult) else next(done) for one in made]
            made, ingesting.made_bytes = [], 0
    return results


def definitions_of(node: SearchBackend) -> "Definitions":
    """The pipelines that there are now."""
    from graphdb.search.ingest.pipeline import Definitions

    return Definitions(node.catalog.pipelines, node.catalog.scripts)


def timestamp(now_ms: int) -> str:
    """`_ingest.timestamp`."""
    return (
        datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


class _Passing:
    """Documents through the pipelines of a state."""

    def __init__(self, state: CatalogState) -> None:
        self._state = state
        self._definitions: Definitions | None = None  # until one is wanted
        self._of_index: dict[str, tuple[str | None, str | None]] = {}

    def names(self, index: str, name: str | None) -> tuple[str | None, str | None]:
        """The pipeline of the request, or the index's own; and the final one."""
        if index not in self._of_index:
            settings = _settings_of(self._state, index)
            own, final = settings.get("default_pipeline"), settings.get("final_pipeline")
            self._of_index[index] = _named(own), _named(final)
        own, final = self._of_index[index]
        return (own if name is None else _named(name)), final

    def run(self, document: "IngestDocument", index: str, name: str | None) -> str:
        """Through all pipelines, those of other indexes too to which some reroute it; the index that it is
        for. Raises Dropped, SearchError.
        """
        if self._definitions is None:
            from graphdb.search.ingest.pipeline import Definitions

            self._definitions = Definitions(self._state.pipelines, self._state.scripts)
        first, _ = self.names(index, name)
        passed = [index]
        while first is not None:
            document.is_rerouted = False
            self._definitions.pipeline(first).run(document)
            if not document.is_rerouted:
                break
            at = str(document.meta["_index"])
            if at in passed:
                listed = ", ".join([*passed, at])
                raise illegal_argument(
                    f"index cycle detected while processing pipeline [{first}] for document "
                    f"[{document.meta.get('_id')}]: [{listed}]"
                )
            passed.append(at)
            first, _ = self.names(at, None)
        index = str(document.meta.get("_index", index))
        _, final = self.names(index, name)
        if final is not None:
            self._definitions.pipeline(final).run(document)
            if document.meta.get("_index") != index:
                raise illegal_argument(f"final pipeline [{final}] can't change the target index")
        return index


class Trial:
    """What documents would become, without being written."""

    def __init__(self, state: CatalogState, now_ms: int, room: int) -> None:
        """room: characters and entries that all of them may make."""
        self._state, self._timestamp, self._room = state, timestamp(now_ms), [room]
        self._passing = _Passing(state)

    def of(self, index: str, doc_id: str, source: dict[str, Any], pipeline: str | None) -> dict[str, Any]:
        """One document as `_ingest/_simulate` shows it, with the error that it would meet."""
        from graphdb.search.ingest.document import Dropped, IngestDocument

        meta: dict[str, Any] = {"_index": index, "_id": doc_id, "_version": _DROPPED_VERSION}
        document = IngestDocument(source, meta, {"timestamp": self._timestamp}, room=self._room)
        failure = None
        try:
            index = self._passing.run(document, index, pipeline)
            self._check(index, document)
        except Dropped:
            pass
        except (QueryTimeout, SearchError) as error:
            failure = search_error(error)
        shown = {name: document.meta.get(name) for name in ("_id", "_index", "_version")}
        shown |= {"_source": document.source, "executed_pipelines": document.executed}
        return shown if failure is None else {**shown, "error": error_json(failure)}

    def _check(self, index: str, document: "IngestDocument") -> None:
        """Raise where the index that is there would refuse it."""
        try:
            target, _ = write_target(self._state, index)
        except SearchError:
            return
        target.mapping.parse(read_object(_json(document.source)), str(document.meta.get("_id")))


class _Ingesting:
    """Of one request, in the state that it found."""

    def __init__(self, node: SearchBackend, report: "IngestReport") -> None:
        self._report, self._node, self._timestamp = report, node, ""
        self._passing = _Passing(node.catalog.state)
        self.made_bytes = 0  # since it was last set

    def takes(self, write: DocumentWrite, name: str | None) -> bool:
        """Whether a pipeline is for this write. name: that of the request."""
        return _has_document(write.operation) and any(self._passing.names(write.index, name))

    def part(
        self, writes: Sequence[DocumentWrite], pipelines: Sequence[str | None], first: int
    ) -> list[DocumentWrite | WriteResult]:
        """What becomes of the writes from the first on, until enough has been made of them; one at least."""
        began, executed = time.monotonic(), self._report.executed
        parts: list[DocumentWrite | WriteResult] = []
        for at in range(first, min(first + _AT_ONCE, len(writes))):
            one: DocumentWrite | WriteResult = writes[at]
            if self.takes(writes[at], pipelines[at]):
                executed[at] = []
                one = self.ingested(writes[at], pipelines[at], executed[at])
                if isinstance(one, DocumentWrite):
                    self.made_bytes += len(one.operation.body)
            parts.append(one)
            if self.made_bytes >= _MADE_BYTES:
                break
        self._report.took_s = (self._report.took_s or 0) + time.monotonic() - began
        return parts

    def ingested(
        self, write: DocumentWrite, name: str | None, executed: list[str]
    ) -> DocumentWrite | WriteResult:
        """As the pipelines leave it, or what became of it without it. executed gets their names."""
        from graphdb.search.ingest.document import Dropped

        operation = write.operation
        try:
            return self._run(write, name, executed)
        except Dropped:
            dropped = OperationResult(
                operation.action, operation.doc_id, Outcome.NOOP, _DROPPED_VERSION, _DROPPED_SEQ_NO
            )
            return WriteResult(write.index, dropped)
        except QueryTimeout as error:
            failure = search_error(error)
        except SearchError as error:
            failure = error
        return WriteResult(write.index, OperationResult(operation.action, operation.doc_id, error=failure))

    def _run(self, write: DocumentWrite, name: str | None, executed: list[str]) -> DocumentWrite:
        from graphdb.search.ingest.document import IngestDocument

        self._timestamp = self._timestamp or timestamp(self._node.now_ms())
        operation = write.operation
        source: Any = read_object(operation.body)
        request, part = source, ""
        if operation.action is Action.UPDATE:
            part = "doc" if request.get("doc_as_upsert") in (True, "true") else "upsert"
            source = request.get(part)
            if not isinstance(source, dict):
                return write
        meta: dict[str, Any] = {"_index": write.index, "_id": operation.doc_id}
        if operation.routing is not None:
            meta["_routing"] = operation.routing
        if operation.if_seq_no is not None:
            meta |= {"_if_seq_no": operation.if_seq_no, "_if_primary_term": operation.if_primary_term}
        if operation.version is not None:
            meta |= {"_version": operation.version, "_version_type": operation.version_type}
        # processors do not see who sees the document: that stays, unless they say another
        kept = {ALLOW_SIDS: source.pop(ALLOW_SIDS)} if ALLOW_SIDS in source else {}
        room = [_MADE_MIN + _MADE_FACTOR * len(operation.body)]
        document = IngestDocument(source, meta, {"timestamp": self._timestamp}, room=room, executed=executed)
        index = self._passing.run(document, write.index, name)
        if part:
            request[part] = {**kept, **document.source}
            return replace(write, operation=operation._replace(body=_json(request), value=None))
        return _written(write, index, document, kept)


def _has_document(operation: Operation) -> bool:
    """Whether it may write one as it is given."""
    if operation.action is Action.UPDATE:
        return b'upsert"' in operation.body
    return operation.action is not Action.DELETE


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise SearchError("document_parsing_exception", f"failed to parse: {error}") from None


def _written(
    write: DocumentWrite, index: str, document: "IngestDocument", kept: dict[str, Any]
) -> DocumentWrite:
    body = _json({**kept, **document.source})
    doc_id, routing = document.meta.get("_id"), document.meta.get("_routing")
    operation = write.operation._replace(
        body=body,
        doc_id=generated_id() if doc_id is None else str(doc_id),
        routing=None if routing is None else str(routing),
        value=None,
        **_conditions(document.meta),
    )
    return replace(write, index=index, operation=operation)


def _conditions(meta: dict[str, Any]) -> dict[str, Any]:
    """What processors, or the request, say of the existing document. Errors: illegal_argument_exception."""
    numbers = {name: _whole(name, meta.get(name)) for name in ("_version", "_if_seq_no", "_if_primary_term")}
    given = Conditions.checked(
        None,
        numbers["_if_seq_no"],
        numbers["_if_primary_term"],
        numbers["_version"],
        meta.get("_version_type"),
    )
    conditions: dict[str, Any] = {}
    if given.version is not None and given.version_type != "internal":
        conditions |= {"version": given.version, "version_type": given.version_type}
    if given.if_seq_no is not None:
        conditions |= {"if_seq_no": given.if_seq_no, "if_primary_term": given.if_primary_term}
    return conditions


def _whole(name: str, value: Any) -> int | None:
    try:
        return None if value is None else int(str(value)[:20])
    except ValueError:
        raise illegal_argument(f"field [{name}] must be a whole number, not [{str(value)[:100]}]") from None


def _named(name: str | None) -> str | None:
    return None if name in (None, "", _NO_PIPELINE) else name


def _settings_of(state: CatalogState, index: str) -> Any:
    """Of an index, or of the one that a document would make."""
    try:
        return write_target(state, index)[0].settings
    except SearchError:
        return {} if index in state.by_alias else settings_of_new(state, index)
