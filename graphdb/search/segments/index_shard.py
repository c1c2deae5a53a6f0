"""`IndexShard`: the state of one index.

Writes go into a buffer; a refresh makes it a segment, and what was deleted disappears from search; a flush
puts everything on disk. The same operations in the same order give the same results and the same documents,
whatever is refreshed, flushed and merged in between.

**Threads.** One thread at a time writes: `apply`, `put_mapping`, `refresh`, `save`, `clean`, `flush`,
`plan_merge`, `adopt_merge`, `maybe_merge`. Any thread reads at any time, without a lock: `leaves`, `get`,
`mapping`, `stats`. A reader sees the state before or after a refresh, never between, for leaves and buffer
are swapped as one; leaves that it holds stay as they are. A merge (`merge(plan.leaves, plan.name)`) may be
computed on any thread between `plan_merge` and `adopt_merge`, while writes go on.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from graphdb.errors import CorruptionError, UnavailableError
from graphdb.search.errors import SearchError, unexpected
from graphdb.search.fields import ParsedDocument
from graphdb.search.segment import Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.buffer import Buffer, Tombstones
from graphdb.search.segments.commit_point import CommitPoint
from graphdb.search.segments.index_files import IndexFiles
from graphdb.search.segments.live_view import array_segment, locate, numbered, replaced, without
from graphdb.search.segments.merge_policy import Candidate, TieredMergePolicy
from graphdb.search.segments.merging import merge
from graphdb.search.segments.operations import Action, Operation, OperationResult, Outcome, validate
from graphdb.search.segments.saved import SavedLeaves
from graphdb.search.segments.updates import read_object, updated_source
from graphdb.search.segments.versioning import Current, next_version

__all__ = ["Document", "DocumentMapping", "IndexShard", "MergePlan", "OpenAt", "ShardStats"]

logger = logging.getLogger(__name__)


class DocumentMapping(Protocol):
    """What the shard needs of `graphdb.search.mapping.Mapping`."""

    def parse(self, source: dict[str, Any], doc_id: str, /) -> "tuple[ParsedDocument, Any]":
        """Raises SearchError for a document that does not fit."""

    def as_json(self) -> dict[str, Any]: ...


M = TypeVar("M", bound=DocumentMapping)


@dataclass(frozen=True, slots=True)
class Document:
    """What `get` finds."""

    doc_id: str
    version: int
    seq_no: int
    source: bytes
    routing: str | None


@dataclass(frozen=True, slots=True)
class OpenAt:
    """For whoever keeps account of commits and openings: which commit, and a number for the segments to come,
    greater than at each opening before.
    """

    generation: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Neighbours to merge, and the name that the merged segment is to have."""

    leaves: tuple[Leaf, ...]
    name: str


@dataclass(frozen=True, slots=True)
class ShardStats:
    """As `_cat/indices` and `_stats` count: documents that a search can find, without nested ones."""

    documents: int
    deleted: int  # still in a segment
    segments: int
    size_bytes: int
    buffered: int  # written or deleted since the last refresh


@dataclass(frozen=True, slots=True)
class _View:
    leaves: tuple[Leaf, ...]
    buffer: Buffer


class IndexShard(Generic[M]):
    """The documents of one index. Whoever makes a new one that is to be on disk flushes it first of all."""

    def __init__(
        self, name: str, mapping: M, settings: Mapping[str, Any], policy: TieredMergePolicy | None = None
    ) -> None:
        self.name = name
        self.mapping = mapping
        self.settings = settings
        self.log_index = 0  # of the last commit
        self._policy = policy or TieredMergePolicy()
        self._view = _View((), Buffer())
        self._tombstones = Tombstones()
        self._next_seq_no = 0
        self._incarnation, self._next_segment, self._generation = 1, 1, 0
        self._saved = SavedLeaves()
        self._committed: CommitPoint | None = None
        self._saved_as: tuple[object, object, int] | None = None  # leaves, mapping, next_seq_no

    @classmethod
    def open(
        cls,
        name: str,
        files: IndexFiles,
        mapping_of: Callable[[Mapping[str, Any], Mapping[str, Any]], M],
        policy: TieredMergePolicy | None = None,
        at: OpenAt | None = None,
    ) -> "IndexShard[M] | None":
        """As of a commit, the last one unless `at` says which; None where there is none. mapping_of makes the
        mapping of its JSON and the settings. The log is to be applied from `log_index` on. Raises
        CorruptionError, UnavailableError.
        """
        point = files.committed(None if at is None else at.generation)
        files.remove_all_but(point)
        if point is None:
            return None
        shard = cls(name, mapping_of(point.mapping, point.settings), point.settings, policy)
        shard._saved, leaves = SavedLeaves.load(files, point.segments)
        shard._view = _View(leaves, Buffer())
        shard._tombstones = Tombstones(point.tombstones)
        shard._next_seq_no, shard.log_index = point.next_seq_no, point.log_index
        shard._generation, shard._next_segment = point.generation, point.next_segment
        shard._note_committed(point)
        # names that were given out and not committed are not given out again
        if at is not None:
            shard._incarnation = max(point.incarnation + 1, at.incarnation)
            return shard
        shard._incarnation = point.incarnation + 1
        shard.flush(files, point.log_index)
        return shard

    def leaves(self) -> tuple[Leaf, ...]:
        """What a search may see now."""
        return self._view.leaves

    def get(self, doc_id: str, realtime: bool = True) -> Document | None:
        """A document as it was written last; not realtime: as a search would see it."""
        view = self._view
        current = view.buffer.find(doc_id) if realtime else None
        if current is None:
            place = locate(view.leaves, [doc_id]).get(doc_id)
            current = None if place is None else _stored(view.leaves, place)
        if current is None or not current.found:
            return None
        return Document(doc_id, current.version, current.seq_no, current.source, current.routing)

    def ids(self) -> list[str]:
        """Of all documents, as they were written last."""
        view = self._view
        written = view.buffer.ids()
        known = {doc_id: view.buffer.find(doc_id) for doc_id in written}
        ids = [doc_id for doc_id, current in known.items() if current is not None and current.found]
        for leaf in view.leaves:
            segment = array_segment(leaf)
            stored = (segment.doc_id(int(doc)) for doc in np.flatnonzero(leaf.roots))
            ids += [doc_id for doc_id in stored if doc_id not in known]
        return ids

    def stats(self) -> ShardStats:
        view = self._view
        segments = [array_segment(leaf) for leaf in view.leaves]
        documents = sum(int(np.count_nonzero(leaf.roots)) for leaf in view.leaves)
        deleted = sum(segment.root_count for segment in segments) - documents
        size_bytes = sum(segment.size_bytes for segment in segments)
        return ShardStats(documents, deleted, len(segments), size_bytes, len(view.buffer))

    def apply(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """One after the other; each sees what the ones before it did. One that fails leaves no trace."""
        unknown = {one.doc_id for one in operations if self._view.buffer.find(one.doc_id) is None}
        places = locate(self._view.leaves, sorted(unknown))
        return [self._apply(operation, places) for operation in operations]

    def put_mapping(self, mapping: M) -> None:
        """For documents from now on."""
        self.mapping = mapping

    def refresh(self) -> bool:
        """Make what was written findable; whether anything was."""
        view = self._view
        if not len(view.buffer):
            return False
        pairs = without(view.leaves, view.buffer.ids())
        if view.buffer.builder.size:
            segment = view.buffer.builder.build(self._new_name())
            live = np.ones(segment.size, np.bool_)
            for doc in view.buffer.dead:
                live[segment.block(doc)] = False
            pairs.append((segment, live))
        self._view = _View(numbered(pairs), Buffer())
        return True

    def flush(self, files: IndexFiles, log_index: int) -> None:
        """Put everything on disk; log_index is the last entry that was applied.

        Raises UnavailableError: the commit before, or this one, is then on disk, and the shard goes on.
        """
        self.save(files, log_index)
        self.clean(files)

    @property
    def generation(self) -> int:
        """Of the last commit that succeeded; 0 where there is none."""
        return 0 if self._committed is None else self._committed.generation

    @property
    def is_saved(self) -> bool:
        """Whether the last commit has all that there is."""
        if self._saved_as is None:
            return False
        leaves, mapping, next_seq_no = self._saved_as
        return leaves is self._view.leaves and mapping is self.mapping and next_seq_no == self._next_seq_no

    def save(self, files: IndexFiles, log_index: int) -> None:
        """As `flush`, but the commit before stays on disk, until `clean`."""
        self.refresh()
        self._commit(files, log_index)

    def clean(self, files: IndexFiles) -> None:
        """Remove what the last commit does not stand on."""
        files.remove_all_but(self._committed)

    def plan_merge(self, segments_max: int | None = None) -> MergePlan | None:
        """What is worth merging now, or what has to be for not more segments than that; one at a time."""
        leaves = self._view.leaves
        candidates = [_candidate(leaf) for leaf in leaves]
        if segments_max is None:
            chosen = self._policy.choose(candidates)
        else:
            chosen = self._policy.choose_for(candidates, segments_max)
        return None if chosen is None else MergePlan(leaves[chosen], self._new_name())

    def adopt_merge(self, plan: MergePlan, merged: ArraySegment) -> bool:
        """Search the merged segment from now on; False where its inputs are gone."""
        pairs = replaced(self._view.leaves, plan.leaves, merged)
        if pairs is not None:
            self._view = _View(numbered(pairs), self._view.buffer)
        return pairs is not None

    def maybe_merge(self) -> bool:
        """Do one merge here and now; whether there was one to do."""
        plan = self.plan_merge()
        return plan is not None and self.adopt_merge(plan, merge(plan.leaves, plan.name))

    def _apply(self, operation: Operation, places: Mapping[str, tuple[int, int]]) -> OperationResult:
        try:
            validate(operation)
            current = self._current(operation.doc_id, places)
            if operation.action is Action.DELETE:
                return self._delete(operation, current)
            if operation.action is Action.UPDATE:
                return self._update(operation, current)
            return self._index(operation, current, operation.body)
        except SearchError as error:
            return _failed(operation, error)
        except (CorruptionError, UnavailableError, MemoryError):
            raise
        except Exception as error:
            logger.exception("[%s] document [%s] could not be applied", self.name, operation.doc_id)
            return _failed(operation, unexpected(error))

    def _current(self, doc_id: str, places: Mapping[str, tuple[int, int]]) -> Current:
        """places: of those that the buffer did not have when the batch began."""
        current = self._view.buffer.find(doc_id)
        if current is None and doc_id in places:
            return _stored(self._view.leaves, places[doc_id])
        # of what is deleted only the tombstones tell: the buffer forgets with a refresh, not with the log
        return current if current is not None and current.found else self._tombstones.find(doc_id)

    def _index(self, operation: Operation, current: Current, source: bytes) -> OperationResult:
        version = next_version(self.name, operation, current)
        parsed, mapping = self.mapping.parse(read_object(source), operation.doc_id)
        routing = operation.routing
        if operation.action is Action.UPDATE and routing is None:
            routing = current.routing
        new = Current(True, version, self._next_seq_no, source, routing)
        self._view.buffer.put(operation.doc_id, new, parsed)
        self._tombstones.remove(operation.doc_id)
        self._next_seq_no += 1
        self.mapping = mapping
        outcome = Outcome.UPDATED if current.found else Outcome.CREATED
        shown = source if operation.action is Action.UPDATE else None
        return OperationResult(operation.action, operation.doc_id, outcome, version, new.seq_no, shown)

    def _update(self, operation: Operation, current: Current) -> OperationResult:
        if current.found:
            next_version(self.name, operation, current)  # a conflict comes before anything else
        source = updated_source(self.name, operation, current)
        if source is not None:
            return self._index(operation, current, source)
        return OperationResult(
            operation.action, operation.doc_id, Outcome.NOOP, current.version, current.seq_no, current.source
        )

    def _delete(self, operation: Operation, current: Current) -> OperationResult:
        version = next_version(self.name, operation, current)
        seq_no = self._next_seq_no
        self._view.buffer.delete(operation.doc_id, Current(False, version, seq_no))
        self._tombstones.add(operation.doc_id, version, seq_no)
        self._next_seq_no += 1
        outcome = Outcome.DELETED if current.found else Outcome.NOT_FOUND
        return OperationResult(operation.action, operation.doc_id, outcome, version, seq_no)

    def _commit(self, files: IndexFiles, log_index: int) -> None:
        # counted also where it fails: a commit with an unknown outcome may stand on the files of its number
        self._generation += 1
        saved, leaves = self._saved.save(files, self._view.leaves, self._generation)
        point = CommitPoint(
            generation=self._generation,
            incarnation=self._incarnation,
            log_index=log_index,
            next_seq_no=self._next_seq_no,
            next_segment=self._next_segment,
            mapping=self.mapping.as_json(),
            settings=self.settings,
            segments=saved.segments(),
            tombstones=tuple(self._tombstones.rows()),
        )
        files.commit(point)
        self._saved, self.log_index = saved, log_index
        self._view = _View(leaves, self._view.buffer)
        self._note_committed(point)

    def _note_committed(self, point: CommitPoint) -> None:
        self._committed = point
        self._saved_as = (self._view.leaves, self.mapping, self._next_seq_no)

    def _new_name(self) -> str:
        name = f"_{self._incarnation}_{self._next_segment}"
        self._next_segment += 1
        return name


def _failed(operation: Operation, error: SearchError) -> OperationResult:
    return OperationResult(operation.action, operation.doc_id).failed(error)


def _stored(leaves: Sequence[Leaf], place: tuple[int, int]) -> Current:
    """The document at a place in the leaves."""
    segment, doc = array_segment(leaves[place[0]]), place[1]
    version, seq_no = int(segment.versions[doc]), int(segment.seq_nos[doc])
    return Current(True, version, seq_no, segment.source(doc), segment.routing(doc))


def _candidate(leaf: Leaf) -> Candidate:
    deleted = 1 - np.count_nonzero(leaf.live) / leaf.segment.size
    return Candidate(array_segment(leaf).size_bytes, deleted)
