"""`IndexShard`: the documents of one shard of an index.

Writes go into a buffer; a refresh makes it a segment, and what was deleted disappears from search; a flush
puts everything on disk. The same operations in the same order give the same results and the same documents,
whatever is refreshed, flushed and merged in between.

**Threads.** One thread at a time writes: all methods but those named here. Any thread reads at any time,
without a lock: `leaves`, `get`, `ids`, `mapping`, `stats`. A reader sees the state before or after a
refresh, never between, for leaves and buffer are swapped as one; leaves that it holds stay as they are. What
takes long may be done on any thread, while writes go on:

    seal        build_sealed                     adopt_built     a refresh
    plan_merge  plan.merged()                    adopt_merge     a merge
    plan_save   plan.write(files)                note_saved      a commit
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from graphdb.search.index_order import IndexOrder
from graphdb.search.leaf_reader import Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.buffer import Tombstones
from graphdb.search.segments.document_updates import Applier, DocumentMapping
from graphdb.search.segments.index_files import (
    CommitPoint,
    IndexFiles,
    SavedCommit,
    SavedLeaves,
    SavePlan,
    over_files,
)
from graphdb.search.segments.merge_policy import Candidate, TieredMergePolicy
from graphdb.search.segments.merging import merge
from graphdb.search.segments.operations import Operation, OperationResult
from graphdb.search.segments.shard_view import ShardView, array_segment, locate, numbered, replaced, stored

__all__ = ["Document", "DocumentMapping", "IndexShard", "MergePlan", "OpenAt", "ShardStats", "stats_of"]


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
    """For an owner that keeps account of commits and openings: which commit, and a number for the segments
    to come, greater than at each opening before.
    """

    generation: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Neighbours to merge, the name that the merged segment is to have, the shard that they are of, and the
    order of its documents.
    """

    leaves: tuple[Leaf, ...]
    name: str
    shard: int = 0
    order: IndexOrder = ()

    def merged(self) -> ArraySegment:
        """Pure: any thread may do it. Raises CorruptionError."""
        return merge(self.leaves, self.name, self.order)


@dataclass(frozen=True, slots=True)
class ShardStats:
    """As `_cat/indices` and `_stats` count: documents that a search can find, without nested ones."""

    documents: int
    deleted: int  # still in a segment
    segments: int
    size_bytes: int
    buffered: int  # written or deleted since the last refresh

    @classmethod
    def total(cls, all_stats: "Iterable[ShardStats]") -> "ShardStats":
        """Of several shards together."""
        rows = [(one.documents, one.deleted, one.segments, one.size_bytes, one.buffered) for one in all_stats]
        return cls(*map(sum, zip(*rows, strict=True)))


class IndexShard(Generic[M]):
    """The documents of one shard. The maker of a new one on disk flushes it first of all.

    name is that of the index, number that of the shard in it: segments of all shards have different names.
    """

    def __init__(
        self,
        name: str,
        mapping: M,
        settings: Mapping[str, Any],
        policy: TieredMergePolicy | None = None,
        number: int = 0,
    ) -> None:
        self.name, self.number = name, number
        self.settings = settings
        self.log_index = 0  # of the last commit
        self.order: IndexOrder = ()  # of the documents in segments that are built or merged from now on
        self._policy = policy or TieredMergePolicy()
        self._view = ShardView()
        self._applier = Applier(name, number, mapping)
        self._incarnation, self._next_segment, self._generation = 1, 1, 0
        self._saved = SavedLeaves()
        self._committed: CommitPoint | None = None
        self._saved_as: tuple[object, object, int] | None = None  # leaves, mapping, next_seq_no; see is_saved

    @classmethod
    def open(
        cls,
        name: str,
        files: IndexFiles,
        mapping_of: Callable[[Mapping[str, Any], Mapping[str, Any]], M],
        policy: TieredMergePolicy | None = None,
        at: OpenAt | None = None,
        number: int = 0,
    ) -> "IndexShard[M] | None":
        """As of a commit, the last one unless `at` says which; None where there is none. mapping_of makes the
        mapping of its JSON and the settings. The log is to be applied from `log_index` on. Raises
        CorruptionError, UnavailableError.
        """
        point = files.committed(None if at is None else at.generation)
        files.remove_all_but(point)
        if point is None:
            return None
        shard = cls(name, mapping_of(point.mapping, point.settings), point.settings, policy, number)
        shard._saved, leaves = SavedLeaves.load(files, point.segments)
        shard._view = ShardView(leaves)
        shard._applier.tombstones = Tombstones(point.tombstones)
        shard._applier.next_seq_no, shard.log_index = point.next_seq_no, point.log_index
        shard._generation, shard._next_segment = point.generation, point.next_segment
        shard._committed = point
        shard._saved_as = (leaves, shard.mapping, point.next_seq_no)
        # names that were given out and not committed are not given out again
        if at is not None:
            shard._incarnation = max(point.incarnation + 1, at.incarnation)
            return shard
        shard._incarnation = point.incarnation + 1
        shard.flush(files, point.log_index)
        return shard

    @property
    def mapping(self) -> M:
        """For documents from now on."""
        return self._applier.mapping

    def leaves(self) -> tuple[Leaf, ...]:
        """What a search may see now."""
        return self._view.leaves

    def get(self, doc_id: str, realtime: bool = True) -> Document | None:
        """A document as it was written last; not realtime: as a search would see it."""
        view = self._view
        current = view.find(doc_id) if realtime else None
        if current is None:
            place = locate(view.leaves, [doc_id]).get(doc_id)
            current = None if place is None else stored(view.leaves, place)
        if current is None or not current.found:
            return None
        return Document(doc_id, current.version, current.seq_no, current.source, current.routing)

    def ids(self) -> list[str]:
        """Of all documents, as they were written last."""
        view = self._view
        known = view.written()
        ids = [doc_id for doc_id, current in known.items() if current.found]
        for leaf in view.leaves:
            segment = array_segment(leaf)
            stored = (segment.doc_id(int(doc)) for doc in np.flatnonzero(leaf.roots))
            ids += [doc_id for doc_id in stored if doc_id not in known]
        return ids

    def stats(self) -> ShardStats:
        return stats_of(self._view.leaves, self._view.buffered)

    def apply(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """One after the other; each sees what the ones before it did. One that fails leaves no trace."""
        return self._applier.apply(self._view, operations)

    def applying(self, operations: Sequence[Operation]) -> Iterator[OperationResult]:
        """`apply`, one operation each time that a result is asked for; to be asked for all of them before
        anything else is done to the shard, but for `put_mapping`.
        """
        return self._applier.applying(self._view, operations)

    def put_mapping(self, mapping: M) -> None:
        """For documents from now on."""
        self._applier.mapping = mapping

    def refresh(self) -> bool:
        """Make what was written findable; whether anything was."""
        self.seal()
        was_written = bool(self._view.sealed)
        while self._view.sealed:
            self._view = self._view.adopted()
        return was_written

    def forget_deletions(self) -> None:
        """Keep no versions of documents that were deleted."""
        self._applier.tombstones, self._saved_as = Tombstones(), None

    def seal(self) -> None:
        """What was written until now is to be findable together."""
        if len(self._view.buffer):
            self._view = self._view.with_sealed(self._new_name(), self.order)

    def build_sealed(self) -> None:
        """Build the segments of what was sealed."""
        for sealed in self._view.sealed:
            sealed.leaf()

    def adopt_built(self) -> None:
        """Make findable what was sealed, as far as it is built."""
        while self._view.sealed and self._view.sealed[0].is_built:
            self._view = self._view.adopted()

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
        return (
            leaves is self._view.leaves
            and mapping is self.mapping
            and next_seq_no == self._applier.next_seq_no
        )

    def save(self, files: IndexFiles, log_index: int) -> None:
        """As `flush`, but the commit before stays on disk, until `clean`."""
        self.refresh()
        self.note_saved(self.plan_save(log_index).write(files))

    def plan_save(self, log_index: int) -> SavePlan:
        """A commit of what there is now; one at a time."""
        self.seal()
        # counted also where it fails: a commit with an unknown outcome may stand on the files of its number
        self._generation += 1
        return SavePlan(
            self._view,
            self.mapping,
            self.settings,
            self._applier.tombstones.rows(),
            self._applier.next_seq_no,
            self._next_segment,
            self._incarnation,
            self._generation,
            log_index,
            self._saved,
        )

    def note_saved(self, commit: SavedCommit) -> None:
        """The commit is on disk: stand on its files."""
        self.adopt_built()
        leaves = over_files(self._view.leaves, commit.leaves)
        is_all = list(map(_identity, leaves)) == list(map(_identity, commit.leaves))
        self._view = self._view.with_leaves(commit.leaves if is_all else leaves)
        self._saved, self._committed, self.log_index = commit.saved, commit.point, commit.point.log_index
        self._saved_as = (commit.leaves, commit.plan.mapping, commit.plan.next_seq_no)

    def clean(self, files: IndexFiles) -> None:
        """Remove what the last commit does not stand on."""
        files.remove_all_but(self._committed)

    def plan_merge(self, segments_max: int | None = None) -> MergePlan | None:
        """What is worth merging now, or what has to be for not more segments than that; one at a time."""
        if segments_max is None:
            return self._plan(self._policy.choose)
        return self._plan(lambda candidates: self._policy.choose_for(candidates, segments_max))

    def plan_expunging(self) -> MergePlan | None:
        """What has so many deleted documents that it may be written again where a client asks for it."""
        return self._plan(self._policy.choose_deleted)

    def plan_merge_at_rest(self) -> MergePlan | None:
        """What is worth merging when nothing is written. Not where there are vectors, whose graphs take much
        longer to make than what a search gains.
        """
        if any(array_segment(leaf).has_vectors for leaf in self._view.leaves):
            return None
        return self._plan(self._policy.choose_at_rest)

    def _plan(self, choose: Callable[[Sequence[Candidate]], slice | None]) -> MergePlan | None:
        leaves = self._view.leaves
        chosen = choose([_candidate(leaf) for leaf in leaves])
        if chosen is None:
            return None
        return MergePlan(leaves[chosen], self._new_name(), self.number, self.order)

    def adopt_merge(self, plan: MergePlan, merged: ArraySegment) -> bool:
        """Search the merged segment from now on; False where its inputs are gone."""
        pairs = replaced(self._view.leaves, plan.leaves, merged)
        if pairs is not None:
            self._view = self._view.with_leaves(numbered(pairs))
        return pairs is not None

    def maybe_merge(self) -> bool:
        """Do one merge here and now; whether there was one to do."""
        plan = self.plan_merge()
        return plan is not None and self.adopt_merge(plan, plan.merged())

    def _new_name(self) -> str:
        of_shard = f"_{self.number}" if self.number else ""
        name = f"{of_shard}_{self._incarnation}_{self._next_segment}"
        self._next_segment += 1
        return name


def stats_of(leaves: Sequence[Leaf], buffered: int = 0) -> ShardStats:
    """Of the documents that are in leaves."""
    segments = [array_segment(leaf) for leaf in leaves]
    documents = sum(int(np.count_nonzero(leaf.roots)) for leaf in leaves)
    deleted = sum(segment.root_count for segment in segments) - documents
    size_bytes = sum(segment.size_bytes for segment in segments)
    return ShardStats(documents, deleted, len(segments), size_bytes, buffered)


def _identity(leaf: Leaf) -> tuple[int, int]:
    """Two leaves that are the same have the same segment and the same mask."""
    return id(leaf.segment), id(leaf.live)


def _candidate(leaf: Leaf) -> Candidate:
    deleted = 1 - np.count_nonzero(leaf.live) / leaf.segment.size
    return Candidate(array_segment(leaf).size_bytes, deleted)
