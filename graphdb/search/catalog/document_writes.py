"""Writes to the documents of indexes: prepared before they are logged, and applied."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from graphdb.errors import CorruptionError, UnavailableError
from graphdb.search.analysis.parameters import time_limit
from graphdb.search.catalog.aliases import document_routing
from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteResult
from graphdb.search.catalog.index_blocks import check_writes
from graphdb.search.catalog.index_names import write_target
from graphdb.search.catalog.state import AliasOptions, CatalogState, Index, is_for_stream
from graphdb.search.errors import SearchError, illegal_argument, routing_missing, unexpected
from graphdb.search.mapping import Mapping
from graphdb.search.segments.document_updates import read_object, updated_source, value_of
from graphdb.search.segments.operations import (
    MISSING,
    Action,
    Current,
    Operation,
    OperationResult,
    sees_current,
)

__all__ = [
    "Target",
    "admitted",
    "is_unfinished",
    "makes_index",
    "prepared",
    "write_documents",
]

# Trying documents before they are logged, where how long that takes is not the same on every node.

_MATCH_S = 0.25  # one match of a pattern; texts of thousands of words need thousands of them


def prepared(state: CatalogState, writes: Sequence[DocumentWrite]) -> list[DocumentWrite]:
    """The same, with `tried` or `error` set where an index analyses with patterns of its users."""
    if not any(index.has_patterns for index in state.by_uuid.values()):
        return list(writes)
    trials: dict[str, _Trial] = {}
    return [_prepared(state, write, trials) for write in writes]


class _Trial:
    """The mapping of an index as it will be after the documents so far, if no other request writes."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._mapping: Mapping = index.mapping
        self._version = index.mapping_version

    def try_out(self, operation: Operation) -> tuple[int, int]:
        """What to note as tried. Raises SearchError where the document does not fit."""
        source, seq_no = self._source(operation)
        tried = self._version, seq_no
        if source is not None:
            with time_limit(_MATCH_S):
                _, mapping = self._mapping.parse(
                    read_object(source), operation.doc_id, operation.dynamic_templates
                )
            if mapping is not self._mapping:
                self._mapping, self._version = mapping, self._version + 1
        return tried

    def _source(self, operation: Operation) -> tuple[bytes | None, int]:
        """The document as it would be stored, and the sequence number of the one that it is made of."""
        if operation.action is not Action.UPDATE:
            return operation.body, -1
        there = self._index.shards.get(operation.doc_id, operation.routing)
        if there is None:
            return updated_source(self._index.name, operation, MISSING), -1
        found = Current(True, there.version, there.seq_no, there.source, there.routing)
        seen = found if sees_current(operation, found) else MISSING
        return updated_source(self._index.name, operation, seen), there.seq_no


def _prepared(state: CatalogState, write: DocumentWrite, trials: dict[str, _Trial]) -> DocumentWrite:
    try:
        index, options = write_target(state, write.index)
    except SearchError:
        return write  # applying it says what is wrong, or makes the index
    if not index.has_patterns or write.operation.action is Action.DELETE:
        return write
    trial = trials.setdefault(index.uuid, _Trial(index))
    try:
        routing = document_routing(write.index, options, write.operation.routing)
        tried = trial.try_out(write.operation._replace(routing=routing))
        return replace(write, tried=tried, error=None)
    except SearchError as error:
        return replace(write, tried=None, error=error)


# Documents on their way into indexes: which index each goes to, and what refuses it before the shard.

Target: TypeAlias = Callable[[DocumentWrite], tuple[Index, AliasOptions]]
"""The index that a document goes to. Raises SearchError."""

logger = logging.getLogger(__name__)


_TIMESTAMP = "@timestamp"


def makes_index(write: DocumentWrite) -> bool:
    """Whether an index is made for it where there is none: to delete a document it is not."""
    operation = write.operation
    return operation.action is not Action.DELETE or operation.version_type.startswith("external")


def write_documents(writes: Sequence[DocumentWrite], target: Target) -> tuple[list[WriteResult], list[Index]]:
    """What becomes of each, in order; and the indexes that were written to."""
    results: dict[int, WriteResult] = {}
    waiting: dict[str, _Waiting] = {}
    last: tuple[str, _Waiting] | None = None  # where a write that asks for nothing has just gone
    for place, write in enumerate(writes):
        if last is not None and last[0] == write.index and _asks_for_nothing(write):
            last[1].add(place, write)
            continue
        last = None
        try:
            index, options = target(write)
            operation = admitted(index, options, write)
        except SearchError as error:
            results[place] = _failed(write, error)
        except (CorruptionError, UnavailableError, MemoryError):
            raise
        except Exception as error:
            logger.exception("a document for [%s] could not be applied", write.index)
            results[place] = _failed(write, unexpected(error))
        else:
            together = waiting.setdefault(index.uuid, _Waiting(index))
            if operation is write.operation:
                together.add(place, write)
                is_stream = is_for_stream(options)
                last = (write.index, together) if _asks_for_nothing(write) and not is_stream else None
            else:
                together.add(place, replace(write, operation=operation))
    for one in waiting.values():
        apply = _applied_one_by_one if one.index.has_patterns else _applied_together
        results.update(zip(one.places, apply(one.index, one.writes), strict=True))
    return [results[place] for place in range(len(writes))], [one.index for one in waiting.values()]


@dataclass(slots=True)
class _Waiting:
    """Writes to one index, and their places among all."""

    index: Index
    places: list[int] = field(default_factory=list)
    writes: list[DocumentWrite] = field(default_factory=list)

    def add(self, place: int, write: DocumentWrite) -> None:
        self.places.append(place)
        self.writes.append(write)


def _asks_for_nothing(write: DocumentWrite) -> bool:
    """Whether it may go wherever another such one may go that names the same index."""
    is_bare = not write.require_alias and not write.require_data_stream
    return is_bare and write.operation.routing is None and write.error is None


def _failed(write: DocumentWrite, error: SearchError) -> WriteResult:
    result = OperationResult(write.operation.action, write.operation.doc_id)
    return WriteResult(write.index, result.failed(error))


def is_unfinished(index: Index, results: Sequence[WriteResult]) -> bool:
    """Whether, of an index that follows the graph, a document is to be tried again, or an older form of one
    that was refused is still there.
    """
    failed = (one for one in results if one.result.error is not None)
    return any(one.again or index.shards.get(one.result.doc_id) is not None for one in failed)


def admitted(index: Index, options: AliasOptions, write: DocumentWrite) -> Operation:
    """The operation as the index gets it, with the alias's routing. Errors: what forbids it."""
    if write.error is not None:
        raise write.error
    check_writes(index)
    operation = write.operation
    if is_for_stream(options):
        _check_addition(operation)
    routing = document_routing(write.index, options, operation.routing)
    if routing != operation.routing:
        operation = operation._replace(routing=routing)
    if operation.routing is None and index.mapping.routing_required:
        raise routing_missing(index.name, operation.doc_id)
    return operation


def _check_addition(operation: Operation) -> None:
    """To a data stream. Errors: illegal_argument_exception; document_parsing_exception without a time."""
    if operation.action is not Action.CREATE:
        raise illegal_argument("only write ops with an op_type of create are allowed in data streams")
    given = value_of(operation).get(_TIMESTAMP)
    if given is None or given == []:
        reason = f"data stream timestamp field [{_TIMESTAMP}] is missing"
    elif isinstance(given, list) and len(given) > 1:
        reason = f"data stream timestamp field [{_TIMESTAMP}] encountered multiple values"
    else:
        return
    cause = SearchError("illegal_argument_exception", reason)
    raise SearchError("document_parsing_exception", f"failed to parse: {reason}", 400, None, cause)


def _applied_together(index: Index, writes: Sequence[DocumentWrite]) -> list[WriteResult]:
    before = index.mapping
    results = index.shards.apply([write.operation for write in writes])
    if index.mapping is not before:
        index.mapping_version += 1
    return [WriteResult(index.name, result) for result in results]


def _applied_one_by_one(index: Index, writes: Sequence[DocumentWrite]) -> list[WriteResult]:
    """Of an index that analyses with patterns of users: only what was tried in this very state."""
    return [
        _applied_together(index, [write])[0] if _was_tried(index, write) else _to_be_tried(index, write)
        for write in writes
    ]


def _was_tried(index: Index, write: DocumentWrite) -> bool:
    operation = write.operation
    if operation.action is Action.DELETE:
        return True
    if write.tried is None or write.tried[0] != index.mapping_version:
        return False
    if operation.action is not Action.UPDATE:
        return True
    current = index.shards.get(operation.doc_id, operation.routing)
    return write.tried[1] == (-1 if current is None else current.seq_no)


def _to_be_tried(index: Index, write: DocumentWrite) -> WriteResult:
    operation = write.operation
    reason = f"index [{index.name}] has changed while the document was on its way, try again"
    error = SearchError("es_rejected_execution_exception", reason, 429)
    failed = OperationResult(operation.action, operation.doc_id).failed(error)
    return WriteResult(index.name, failed, again=True)
