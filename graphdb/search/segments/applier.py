"""`Applier`: what becomes of operations: versions, sequence numbers, and documents read by the mapping."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from graphdb.errors import CorruptionError, UnavailableError
from graphdb.search.errors import SearchError, unexpected
from graphdb.search.fields import ParsedDocument
from graphdb.search.protection import allowed_sids, has_protection
from graphdb.search.segments.buffer import Tombstones
from graphdb.search.segments.live_view import locate, stored
from graphdb.search.segments.operations import Action, Operation, OperationResult, Outcome, validate
from graphdb.search.segments.sections import hash_ids
from graphdb.search.segments.shard_view import ShardView
from graphdb.search.segments.strings import encode
from graphdb.search.segments.updates import read_object, updated_source
from graphdb.search.segments.versioning import Current, next_version
from graphdb.search.segments.writer_sight import sees_current

__all__ = ["Applier", "DocumentMapping"]

logger = logging.getLogger(__name__)


class DocumentMapping(Protocol):
    """What the shard needs of `graphdb.search.mapping.Mapping`."""

    def parse(self, source: dict[str, Any], doc_id: str, /) -> "tuple[ParsedDocument, Any]":
        """Raises SearchError for a document that does not fit."""

    def as_json(self) -> dict[str, Any]: ...


M = TypeVar("M", bound=DocumentMapping)


class Applier(Generic[M]):
    """For the one thread that writes; mapping may be read on any. name is that of the index, for errors."""

    def __init__(self, name: str, mapping: M) -> None:
        self.name, self.mapping = name, mapping
        self.tombstones = Tombstones()
        self.next_seq_no = 0

    def apply(self, view: ShardView, operations: Sequence[Operation]) -> list[OperationResult]:
        """Put them into the buffer of the view, see `IndexShard.apply`."""
        doc_ids = [operation.doc_id for operation in operations]
        hashes = hash_ids(list(map(encode, doc_ids)))
        batch = _Batch(self, view, locate(view.leaves, doc_ids, hashes))
        return [
            batch.apply(operation, id_hash)
            for operation, id_hash in zip(operations, hashes.tolist(), strict=True)
        ]


class _Batch:
    """Operations that are applied together. places: of those documents that the leaves have."""

    def __init__(self, to: Applier[Any], view: ShardView, places: Mapping[str, tuple[int, int]]) -> None:
        self._to, self._view, self._places = to, view, places

    def apply(self, operation: Operation, id_hash: int) -> OperationResult:
        """id_hash: `hash_id` of its id."""
        try:
            validate(operation)
            found = self._current(operation)
            current, is_hidden = found, not sees_current(operation, found)
            if is_hidden:
                current = self._to.tombstones.find(operation.doc_id, sees_all=False)
            if operation.action is Action.DELETE:
                return self._delete(operation, current, is_hidden)
            if operation.action is Action.UPDATE:
                return self._update(operation, current, id_hash)
            value = read_object(operation.body) if operation.value is None else operation.value
            return self._index(operation, current, operation.body, value, id_hash)
        except SearchError as error:
            return _failed(operation, error)
        except (CorruptionError, UnavailableError, MemoryError):
            raise
        except Exception as error:
            logger.exception("[%s] document [%s] could not be applied", self._to.name, operation.doc_id)
            return _failed(operation, unexpected(error))

    def _current(self, operation: Operation) -> Current:
        doc_id = operation.doc_id
        current = self._view.find(doc_id)
        if current is None and doc_id in self._places:
            return stored(self._view.leaves, self._places[doc_id])
        # of what is deleted only the tombstones tell: the buffer forgets with a refresh, not with the log
        if current is not None and current.found:
            return current
        return self._to.tombstones.find(doc_id, sees_all=operation.sids is None)

    def _index(
        self, operation: Operation, current: Current, source: bytes, value: dict[str, Any], id_hash: int
    ) -> OperationResult:
        to, doc_id = self._to, operation.doc_id
        version = next_version(to.name, operation, current)
        parsed, mapping = to.mapping.parse(value, doc_id)
        routing = operation.routing
        if operation.action is Action.UPDATE and routing is None:
            routing = current.routing
        new = Current(True, version, to.next_seq_no, source, routing)
        self._view.buffer.put(doc_id, new, parsed, current.found, id_hash)
        to.tombstones.remove(doc_id, is_protected=has_protection(value))
        to.next_seq_no += 1
        to.mapping = mapping
        outcome = Outcome.UPDATED if current.found else Outcome.CREATED
        shown = source if operation.action is Action.UPDATE else None
        return OperationResult(operation.action, doc_id, outcome, version, new.seq_no, shown)

    def _update(self, operation: Operation, current: Current, id_hash: int) -> OperationResult:
        if current.found:
            next_version(self._to.name, operation, current)  # a conflict comes before anything else
        source = updated_source(self._to.name, operation, current)
        if source is not None:
            return self._index(operation, current, source, read_object(source), id_hash)
        return OperationResult(
            operation.action, operation.doc_id, Outcome.NOOP, current.version, current.seq_no, current.source
        )

    def _delete(self, operation: Operation, current: Current, is_hidden: bool) -> OperationResult:
        to, doc_id = self._to, operation.doc_id
        version, seq_no = next_version(to.name, operation, current), to.next_seq_no
        if not is_hidden:
            self._view.buffer.delete(doc_id, Current(False, version, seq_no), current.found)
        is_protected = current.found and allowed_sids(current.source) is not None
        to.tombstones.add(doc_id, version, seq_no, operation.sids is None, is_protected)
        to.next_seq_no += 1
        outcome = Outcome.DELETED if current.found else Outcome.NOT_FOUND
        return OperationResult(operation.action, doc_id, outcome, version, seq_no)


def _failed(operation: Operation, error: SearchError) -> OperationResult:
    return OperationResult(operation.action, operation.doc_id).failed(error)
