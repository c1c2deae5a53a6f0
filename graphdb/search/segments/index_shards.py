"""`IndexShards`: all shards of an index: each document in the shard that its routing says, searches over all.

A search reads the segments of all shards, numbered through: shard 0 first, within a shard in the order in
which the documents were written, or in each segment in that of the index (`index.sort.*`). So statistics are
of the whole index, scores and aggregations are those of one shard, and equal hits are ordered by shard, then
by document.

Threads are those of `IndexShard`. What a search sees of all shards is replaced as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from graphdb.search.index_order import IndexOrder
from graphdb.search.leaf_reader import Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.document_updates import DocumentMapping
from graphdb.search.segments.index_counters import IndexCounters
from graphdb.search.segments.index_files import SavedCommit, SavePlan
from graphdb.search.segments.index_shard import Document, IndexShard, MergePlan, ShardStats
from graphdb.search.segments.operations import Operation, OperationResult
from graphdb.search.segments.shard_routing import ShardRouting

__all__ = ["IndexShards", "ShardLeaves"]

M = TypeVar("M", bound=DocumentMapping)


@dataclass(frozen=True, eq=False, slots=True)
class ShardLeaves:
    """What a search may see of each shard, and of all, as of one moment."""

    parts: tuple[tuple[Leaf, ...], ...]  # by shard, numbered within it
    leaves: tuple[Leaf, ...]  # of all shards, numbered through

    @classmethod
    def of(cls, parts: tuple[tuple[Leaf, ...], ...]) -> "ShardLeaves":
        return cls(parts, _numbered_through(parts))

    def of_shards(self, numbers: Iterable[int]) -> tuple[Leaf, ...]:
        """Those of some shards, numbered through."""
        return _numbered_through([self.parts[number] for number in sorted(numbers)])


def _numbered_through(parts: Sequence[tuple[Leaf, ...]]) -> tuple[Leaf, ...]:
    if len(parts) == 1:
        return parts[0]
    leaves: list[Leaf] = []
    base = 0
    for leaf in (leaf for part in parts for leaf in part):
        leaves.append(replace(leaf, base=base))
        base += leaf.segment.size
    return tuple(leaves)


class IndexShards(Generic[M]):
    """Owned by an index. All shards have one mapping: that of the document that was written last; and one
    order of the documents in their segments.
    """

    def __init__(
        self, shards: Sequence[IndexShard[M]], routing: ShardRouting, order: IndexOrder = ()
    ) -> None:
        assert len(shards) == routing.shards, "one for each number"
        for shard in shards:
            shard.order = order
        self.routing = routing
        self.counters = IndexCounters()
        self._shards = tuple(shards)
        self._view = ShardLeaves.of(tuple(shard.leaves() for shard in shards))

    def __len__(self) -> int:
        return len(self._shards)

    def __iter__(self) -> Iterator[IndexShard[M]]:
        """By number."""
        return iter(self._shards)

    # for any thread

    @property
    def mapping(self) -> M:
        """For documents from now on."""
        return self._shards[0].mapping

    def view(self) -> ShardLeaves:
        """What a search may see now; the same one until that changes."""
        return self._view

    def leaves(self) -> tuple[Leaf, ...]:
        """Of all shards, as of now."""
        return self.view().leaves

    def get(self, doc_id: str, routing: str | None = None, realtime: bool = True) -> Document | None:
        """See `IndexShard.get`: in the shard that the routing says, or else the id."""
        return self._shards[self.routing.shard_of(doc_id, routing)].get(doc_id, realtime)

    def ids(self) -> list[str]:
        """Of all documents, as they were written last."""
        return [doc_id for shard in self._shards for doc_id in shard.ids()]

    def stats(self) -> ShardStats:
        """Of all shards together."""
        return ShardStats.total(shard.stats() for shard in self._shards)

    # for the one thread that writes

    def apply(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """See `IndexShard.apply`: in the order given, over all shards. So a field gets the same type as in an
        index of one shard.
        """
        results = self._applied(operations)
        self.counters.note_results(results)
        return results

    def _applied(self, operations: Sequence[Operation]) -> list[OperationResult]:
        if len(self._shards) == 1:
            return self._shards[0].apply(operations)
        numbers = [self.routing.shard_of(operation.doc_id, operation.routing) for operation in operations]
        by_shard: dict[int, list[Operation]] = {}
        for number, operation in zip(numbers, operations, strict=True):
            by_shard.setdefault(number, []).append(operation)
        applying = {number: self._shards[number].applying(those) for number, those in by_shard.items()}
        mapping, results = self.mapping, []
        try:
            for number in numbers:
                shard = self._shards[number]
                shard.put_mapping(mapping)
                results.append(next(applying[number]))
                mapping = shard.mapping
        finally:
            self.put_mapping(mapping)
        return results

    def put_mapping(self, mapping: M) -> None:
        """For documents from now on."""
        for shard in self._shards:
            shard.put_mapping(mapping)

    def refresh(self) -> None:
        """Make what was written findable."""
        self.counters.refreshes += 1
        for shard in self._shards:
            shard.refresh()
        self._publish()

    def forget_deletions(self) -> None:
        """See `IndexShard.forget_deletions`."""
        for shard in self._shards:
            shard.forget_deletions()

    def seal(self) -> None:
        """See `IndexShard.seal`."""
        for shard in self._shards:
            shard.seal()

    def adopt_built(self) -> None:
        """See `IndexShard.adopt_built`."""
        for shard in self._shards:
            shard.adopt_built()
        self._publish()

    def plan_merge(self, segments_max: int | None = None) -> MergePlan | None:
        """See `IndexShard.plan_merge`; segments_max: of each shard."""
        plans = (shard.plan_merge(segments_max) for shard in self._shards)
        return next((plan for plan in plans if plan is not None), None)

    def plan_expunging(self) -> MergePlan | None:
        """See `IndexShard.plan_expunging`."""
        plans = (shard.plan_expunging() for shard in self._shards)
        return next((plan for plan in plans if plan is not None), None)

    def plan_merge_at_rest(self) -> MergePlan | None:
        """See `IndexShard.plan_merge_at_rest`."""
        plans = (shard.plan_merge_at_rest() for shard in self._shards)
        return next((plan for plan in plans if plan is not None), None)

    def adopt_merge(self, plan: MergePlan, merged: ArraySegment) -> bool:
        """See `IndexShard.adopt_merge`."""
        adopted = self._shards[plan.shard].adopt_merge(plan, merged)
        self.counters.merges += adopted
        self._publish()
        return adopted

    def maybe_merge(self) -> bool:
        """See `IndexShard.maybe_merge`: in one of the shards."""
        merged = any(shard.maybe_merge() for shard in self._shards)
        self._publish()
        return merged

    def plan_save(self, log_index: int) -> list[tuple[int, SavePlan]]:
        """A commit of each shard that has something to save, by number."""
        return [(shard.number, shard.plan_save(log_index)) for shard in self._shards if not shard.is_saved]

    def note_saved(self, number: int, commit: SavedCommit, is_asked: bool = False) -> None:
        """See `IndexShard.note_saved`; is_asked: by a request."""
        self._shards[number].note_saved(commit)
        self.counters.note_commit(is_asked)
        self._publish()

    def _publish(self) -> None:
        parts = tuple(shard.leaves() for shard in self._shards)
        if any(one is not other for one, other in zip(parts, self._view.parts, strict=True)):
            self._view = ShardLeaves.of(parts)

    # for a thread beside

    def build_sealed(self) -> None:
        """See `IndexShard.build_sealed`."""
        for shard in self._shards:
            shard.build_sealed()
