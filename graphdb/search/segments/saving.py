"""A commit in the making: planned where the shard is written to, written beside it, noted there again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from graphdb.search.segment import Leaf
from graphdb.search.segments.buffer import TombstoneRow
from graphdb.search.segments.commit_point import CommitPoint
from graphdb.search.segments.index_files import IndexFiles
from graphdb.search.segments.live_view import array_segment, numbered
from graphdb.search.segments.saved import SavedLeaves
from graphdb.search.segments.shard_view import ShardView

__all__ = ["SavePlan", "SavedCommit", "over_files"]


class _Mapping(Protocol):
    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class SavedCommit:
    """A commit that is on disk; leaves are those of its plan, over mapped files."""

    plan: "SavePlan"
    point: CommitPoint
    saved: SavedLeaves
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class SavePlan:
    """What a shard had when its buffer was sealed; the buffer of the view is that of what came later."""

    view: ShardView
    mapping: _Mapping
    settings: Mapping[str, Any]
    tombstones: Sequence[TombstoneRow]
    next_seq_no: int
    next_segment: int
    incarnation: int
    generation: int
    log_index: int
    saved: SavedLeaves  # by the commit before

    def write(self, files: IndexFiles) -> SavedCommit:
        """Put it on disk, on any thread; one commit of an index at a time. Raises UnavailableError: the
        commit before, or this one, is then on disk.
        """
        view = self.view
        while view.sealed:
            view = view.adopted()
        saved, leaves = self.saved.save(files, view.leaves, self.generation)
        point = CommitPoint(
            generation=self.generation,
            incarnation=self.incarnation,
            log_index=self.log_index,
            next_seq_no=self.next_seq_no,
            next_segment=self.next_segment,
            mapping=self.mapping.as_json(),
            settings=self.settings,
            segments=saved.segments(),
            tombstones=tuple(self.tombstones),
        )
        files.commit(point)
        return SavedCommit(self, point, saved, leaves)


def over_files(leaves: Sequence[Leaf], saved: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """The leaves of now, those over mapped files that were saved; what was deleted since stays deleted."""
    by_name = {leaf.segment.name: leaf for leaf in saved}
    pairs = []
    for leaf in leaves:
        same = by_name.get(leaf.segment.name, leaf)
        live = same.live if np.array_equal(leaf.live, same.live) else leaf.live
        pairs.append((array_segment(same), live))
    return numbered(pairs)
