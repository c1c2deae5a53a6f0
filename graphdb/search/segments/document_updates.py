"""Operations that are applied to a shard: versions, sequence numbers, `_update`."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any, Generic, Protocol, TypeVar

import orjson

from graphdb.errors import CorruptionError, UnavailableError
from graphdb.search.document_texts import LongNumbers
from graphdb.search.errors import SearchError, document_missing, illegal_argument, unexpected
from graphdb.search.fields import Column, ParsedDocument
from graphdb.search.near_names import did_you_mean
from graphdb.search.protection import allowed_sids, has_protection, may_have_protection
from graphdb.search.segments.buffer import Tombstones
from graphdb.search.segments.operations import (
    Action,
    Current,
    Operation,
    OperationResult,
    Outcome,
    are_plain_additions,
    is_plain,
    next_version,
    sees_current,
    validate,
)
from graphdb.search.segments.sections import encode, hash_ids
from graphdb.search.segments.shard_view import ShardView, locate, stored

__all__ = ["Applier", "DocumentMapping", "read_object", "updated_source", "value_of"]

# `_update`: the document that a partial one makes of the one that is there.

_MEMBERS = {"doc", "upsert", "doc_as_upsert", "detect_noop", "_source"}


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise SearchError("document_parsing_exception", f"failed to parse: {error}") from error
    if not isinstance(value, dict):
        raise SearchError(
            "document_parsing_exception", "failed to parse: malformed content, must start with an object"
        )
    return value


def value_of(operation: Operation) -> dict[str, Any]:
    """The JSON object in its body, which may have been read already."""
    is_whole = operation.value is not None and operation.numbers is None
    return operation.value if is_whole else read_object(operation.body)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class _Request:
    doc: dict[str, Any] | None
    upsert: dict[str, Any] | None
    doc_as_upsert: bool
    detect_noop: bool

    @classmethod
    def of(cls, body: bytes) -> "_Request":
        request = read_object(body)
        if "script" in request or "scripted_upsert" in request:
            # one with a script is made a document before it is logged
            raise illegal_argument("[scripted_upsert] needs a [script], and a script cannot be in the log")
        for name in request.keys() - _MEMBERS:
            hint = did_you_mean(name, _MEMBERS)
            raise SearchError(
                "x_content_parse_exception", f"[UpdateRequest] unknown field [{name[:100]}]{hint}"
            )
        doc, upsert = _object(request, "doc"), _object(request, "upsert")
        as_upsert, noop = _flag(request, "doc_as_upsert", False), _flag(request, "detect_noop", True)
        if doc is None:
            missing = "Validation Failed: 1: script or doc is missing;"
            if as_upsert:
                missing += "2: doc must be specified if doc_as_upsert is enabled;"
            raise SearchError("action_request_validation_exception", missing)
        return cls(doc, upsert, as_upsert, noop)


def updated_source(index: str, operation: Operation, current: Current, shard: int = 0) -> bytes | None:
    """The new document, None where nothing would change. Raises where there is none to update; index, shard:
    where that is.
    """
    request = _Request.of(operation.body)
    if not current.found:
        inserted = request.doc if request.doc_as_upsert else request.upsert
        if inserted is None:
            raise document_missing(index, shard, operation.doc_id)
        return _dump(inserted)
    source = orjson.loads(current.source)
    changed = _merge(source, request.doc or {})
    if request.detect_noop and not changed:
        return None
    return _dump(source)


def _object(request: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = request.get(name)
    if value is not None and not isinstance(value, dict):
        raise SearchError(
            "x_content_parse_exception",
            f"[UpdateRequest] {name} doesn't support values of type: "
            f"{'START_ARRAY' if isinstance(value, list) else 'VALUE'}",
        )
    return value


def _flag(request: Mapping[str, Any], name: str, default: bool) -> bool:
    value = request.get(name, default)
    if value in ("true", "false"):
        return bool(value == "true")
    if not isinstance(value, bool):
        raise SearchError("x_content_parse_exception", f"[UpdateRequest] failed to parse field [{name}]")
    return value


def _merge(target: dict[str, Any], changes: Mapping[str, Any]) -> bool:
    """Put changes into target, objects into objects; whether anything is different now.

    Not recursive, for the depth is the client's.
    """
    changed = False
    pending = [(target, changes)]
    while pending:
        into, new = pending.pop()
        for name, value in new.items():
            old = into.get(name)
            if isinstance(old, dict) and isinstance(value, dict):
                pending.append((old, value))
            else:
                changed = changed or name not in into or not _same(old, value)
                into[name] = value
    return changed


def _same(old: Any, new: Any) -> bool:
    """Equal, also in type: 1 is not 1.0 and not true."""
    return _dump(old, orjson.OPT_SORT_KEYS) == _dump(new, orjson.OPT_SORT_KEYS)


def _dump(value: Any, option: int = 0) -> bytes:
    try:
        return orjson.dumps(value, option=option)
    except orjson.JSONEncodeError as error:  # deeper than orjson writes
        raise SearchError("document_parsing_exception", f"failed to parse: {error}") from error


# `Applier`: what becomes of operations: versions, sequence numbers, and documents read by the mapping.

logger = logging.getLogger(__name__)
_TOGETHER_MIN = 8  # documents, at least two; fewer are as quick one by one


class DocumentMapping(Protocol):
    """What the shard needs of `graphdb.search.mapping.Mapping`."""

    def parse(
        self, source: dict[str, Any], doc_id: str, templates: Mapping[str, str] | None, /
    ) -> "tuple[ParsedDocument, Any]":
        """templates: the names of the dynamic templates that new fields are to get, by their paths. Raises
        SearchError for a document that does not fit.
        """

    def parse_together(
        self, sources: Sequence[dict[str, Any]], numbers: Sequence[LongNumbers | None], /
    ) -> tuple[Sequence[Column], set[int]]:
        """What they have, field by field, of documents that add no field; and the places of those that are
        to be given to `parse`: where there are any, the columns are of no use. numbers: a member that each
        source lacks.
        """

    def as_json(self) -> dict[str, Any]: ...


M = TypeVar("M", bound=DocumentMapping)


class Applier(Generic[M]):
    """For the one thread that writes; mapping may be read on any. name is that of the index and shard the
    number of the shard, for errors.
    """

    def __init__(self, name: str, shard: int, mapping: M) -> None:
        self.name, self.shard, self.mapping = name, shard, mapping
        self.tombstones = Tombstones()
        self.next_seq_no = 0

    def applying(self, view: ShardView, operations: Sequence[Operation]) -> Iterator[OperationResult]:
        """Put them into the buffer of the view, see `IndexShard.applying`."""
        batch = _Batch(self, view, operations)
        return map(batch.apply, operations, batch.hashes.tolist())

    def apply(self, view: ShardView, operations: Sequence[Operation]) -> list[OperationResult]:
        """All that `applying` gives."""
        return _Batch(self, view, operations).apply_all()


class _Batch:
    """Operations that are applied together."""

    def __init__(self, to: Applier[Any], view: ShardView, operations: Sequence[Operation]) -> None:
        self._to, self._view, self._operations = to, view, operations
        self._doc_ids = [operation.doc_id for operation in operations]
        self._ids = list(map(encode, self._doc_ids))
        self.hashes = hash_ids(self._ids)
        self._places = locate(
            view.leaves, self._doc_ids, self._ids, self.hashes
        )  # those that the leaves have

    def apply_all(self) -> list[OperationResult]:
        """In order; plain additions together, as far as their mapping can read them so."""
        count = len(self._operations)
        if count < _TOGETHER_MIN:
            return self._one_by_one(0, count)
        results: list[OperationResult] = []
        for start, stop in _runs(self._alone(), 0, count):
            results += self._applied(start, stop, self._together)
        return results

    def _applied(
        self, start: int, stop: int, together: Callable[[int, int], list[OperationResult]]
    ) -> list[OperationResult]:
        return (together if stop - start >= _TOGETHER_MIN else self._one_by_one)(start, stop)

    def _one_by_one(self, start: int, stop: int) -> list[OperationResult]:
        return list(map(self.apply, self._operations[start:stop], self.hashes[start:stop].tolist()))

    def _together(self, start: int, stop: int) -> list[OperationResult]:
        """Plain additions with ids that nothing else here has."""
        columns, refused = self._columns(start, stop)
        if not refused:
            return self._added_together(start, stop, columns)
        results: list[OperationResult] = []
        for first, last in _runs([start + place for place in sorted(refused)], start, stop):
            results += self._applied(first, last, self._rest_together)
        return results

    def _rest_together(self, start: int, stop: int) -> list[OperationResult]:
        """`_together` of what is left without those that were refused."""
        columns, refused = self._columns(start, stop)
        return self._one_by_one(start, stop) if refused else self._added_together(start, stop, columns)

    def _columns(self, start: int, stop: int) -> tuple[Sequence[Column], set[int]]:
        """See `DocumentMapping.parse_together`. Where that fails, all are to be read one by one."""
        try:
            operations = self._operations[start:stop]
            values = [read_object(one.body) if one.value is None else one.value for one in operations]
            numbers = [None if one.value is None else one.numbers for one in operations]
            columns, refused = self._to.mapping.parse_together(values, numbers)
        except (CorruptionError, UnavailableError, MemoryError):
            raise
        except Exception:  # noqa: BLE001 reading each of them tells of which it is
            return (), set(range(stop - start))
        return columns, refused

    def _added_together(self, start: int, stop: int, columns: Sequence[Column]) -> list[OperationResult]:
        seq_no = self._to.next_seq_no
        operations, doc_ids = self._operations[start:stop], self._doc_ids[start:stop]
        actions, _, sources, *_ = zip(*operations, strict=True)
        self._view.buffer.add_together(
            doc_ids, self._ids[start:stop], self.hashes[start:stop], sources, seq_no, columns
        )
        self._to.next_seq_no = seq_no + stop - start
        rows = zip(actions, doc_ids, repeat(Outcome.CREATED), repeat(1), count(seq_no), strict=False)
        return [OperationResult(*row) for row in rows]

    def _alone(self) -> list[int]:
        """The places of those that are not plain additions, or whose ids come again."""
        ids, total = self._doc_ids, len(self._doc_ids)
        distinct = set(ids)
        if (
            not self._places
            and len(distinct) == total
            and are_plain_additions(self._operations)
            and not self._view.has_any_unfound(distinct)
            and not self._to.tombstones.has_any(distinct)
        ):
            return []
        seen: set[str] = set()
        again = {doc_id for doc_id in ids if doc_id in seen or seen.add(doc_id)}  # type: ignore[func-returns-value]
        return [
            place
            for place, operation in enumerate(self._operations)
            if ids[place] in again or operation.routing is not None or not self._is_plain_addition(operation)
        ]

    def apply(self, operation: Operation, id_hash: int) -> OperationResult:
        """id_hash: `hash_id` of its id."""
        try:
            if self._is_plain_addition(operation):
                return self._added(operation, id_hash)
            validate(operation)
            found = self._current(operation)
            current, is_hidden = found, not sees_current(operation, found)
            if is_hidden:
                current = self._to.tombstones.find(operation.doc_id, sees_all=False)
            if operation.action is Action.DELETE:
                return self._delete(operation, current, is_hidden)
            if operation.action is Action.UPDATE:
                return self._update(operation, current, id_hash)
            return self._index(operation, current, operation.body, value_of(operation), id_hash)
        except SearchError as error:
            return _failed(operation, error)
        except (CorruptionError, UnavailableError, MemoryError):
            raise
        except Exception as error:
            logger.exception("[%s] document [%s] could not be applied", self._to.name, operation.doc_id)
            return _failed(operation, unexpected(error))

    def _is_plain_addition(self, operation: Operation) -> bool:
        """Whether it is what most are: a new document without conditions, of which nothing is known. Then
        the checks of other operations have nothing to refuse.
        """
        doc_id = operation.doc_id
        return (
            (operation.action is Action.INDEX or operation.action is Action.CREATE)
            and is_plain(operation)
            and doc_id not in self._places
            and self._view.find(doc_id) is None
            and self._to.tombstones.is_unknown(doc_id)
        )

    def _added(self, operation: Operation, id_hash: int) -> OperationResult:
        """A plain addition, see `_is_plain_addition`."""
        to, doc_id, source, seq_no = self._to, operation.doc_id, operation.body, self._to.next_seq_no
        parsed, mapping = to.mapping.parse(value_of(operation), doc_id, operation.dynamic_templates)
        self._view.buffer.add(doc_id, source, seq_no, parsed, operation.routing, id_hash)
        to.next_seq_no = seq_no + 1
        to.mapping = mapping
        return OperationResult(operation.action, doc_id, Outcome.CREATED, 1, seq_no)

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
        version = next_version(to.name, to.shard, operation, current)
        parsed, mapping = to.mapping.parse(value, doc_id, operation.dynamic_templates)
        routing = operation.routing
        if operation.action is Action.UPDATE and routing is None:
            routing = current.routing
        new = Current(True, version, to.next_seq_no, source, routing)
        self._view.buffer.put(doc_id, new, parsed, current.found, id_hash)
        to.tombstones.remove(doc_id, is_protected=may_have_protection(source) and has_protection(value))
        to.next_seq_no += 1
        to.mapping = mapping
        outcome = Outcome.UPDATED if current.found else Outcome.CREATED
        if operation.action is not Action.UPDATE:
            return OperationResult(operation.action, doc_id, outcome, version, new.seq_no)
        shown = source if operation.wants_source else None
        return OperationResult(
            operation.action, doc_id, outcome, version, new.seq_no, shown, made_bytes=len(source)
        )

    def _update(self, operation: Operation, current: Current, id_hash: int) -> OperationResult:
        if current.found:
            next_version(
                self._to.name, self._to.shard, operation, current
            )  # a conflict comes before anything else
        source = updated_source(self._to.name, operation, current, self._to.shard)
        if source is not None:
            return self._index(operation, current, source, read_object(source), id_hash)
        shown = current.source if operation.wants_source else None
        return OperationResult(
            operation.action, operation.doc_id, Outcome.NOOP, current.version, current.seq_no, shown
        )

    def _delete(self, operation: Operation, current: Current, is_hidden: bool) -> OperationResult:
        to, doc_id = self._to, operation.doc_id
        version, seq_no = next_version(to.name, to.shard, operation, current), to.next_seq_no
        if not is_hidden:
            self._view.buffer.delete(doc_id, Current(False, version, seq_no), current.found)
        is_protected = current.found and allowed_sids(current.source) is not None
        to.tombstones.add(doc_id, version, seq_no, operation.sids is None, is_protected)
        to.next_seq_no += 1
        outcome = Outcome.DELETED if current.found else Outcome.NOT_FOUND
        return OperationResult(operation.action, doc_id, outcome, version, seq_no)


def _runs(alone: Sequence[int], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """[start, stop) in parts: each of those places is a part, and so is what lies between two of them."""
    for place in alone:
        if start < place:
            yield start, place
        yield place, place + 1
        start = place + 1
    if start < stop:
        yield start, stop


def _failed(operation: Operation, error: SearchError) -> OperationResult:
    return OperationResult(operation.action, operation.doc_id).failed(error)
