"""Saving an index: what is written, and what has been saved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from graphdb.search.segment import Bools, Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.buffer import TombstoneRow
from graphdb.search.segments.index_files import CommitPoint, CommittedSegment, IndexFiles
from graphdb.search.segments.shard_view import ShardView, array_segment, numbered

__all__ = ["SavePlan", "SavedCommit", "SavedLeaves", "over_files"]

# `SavedLeaves`: which leaves of a shard are on disk, and in which files.


class SavedLeaves:
    """What the last commit that is known to be on disk stands on. Never changed: a failed flush leaves it."""

    def __init__(self, rows: Iterable[tuple[CommittedSegment, Bools]] = ()) -> None:
        self._rows = {row.name: (row, live) for row, live in rows}

    @classmethod
    def load(
        cls, files: IndexFiles, segments: Sequence[CommittedSegment]
    ) -> "tuple[SavedLeaves, tuple[Leaf, ...]]":
        """Open what a commit names. Raises CorruptionError, UnavailableError."""
        pairs = []
        for row in segments:
            segment = files.load(row.file)
            live = (
                np.ones(segment.size, np.bool_)
                if row.live_file is None
                else files.load_live(row.live_file, segment.size)
            )
            pairs.append((segment, live))
        return cls(zip(segments, (live for _, live in pairs), strict=True)), numbered(pairs)

    def segments(self) -> tuple[CommittedSegment, ...]:
        return tuple(row for row, _ in self._rows.values())

    def save(
        self, files: IndexFiles, leaves: Sequence[Leaf], generation: int
    ) -> "tuple[SavedLeaves, tuple[Leaf, ...]]":
        """Write what is new, under names that no commit has used; and the same leaves, over mapped files.
        Raises UnavailableError.
        """
        rows: list[tuple[CommittedSegment, Bools]] = []
        pairs: list[tuple[ArraySegment, Bools]] = []
        for leaf in leaves:
            segment = array_segment(leaf)
            row, saved_live = self._rows.get(segment.name, (None, None))
            if row is None or leaf.live is not saved_live:
                file = row.file if row is not None else files.save(segment, generation)
                row = CommittedSegment(segment.name, file, _save_live(files, leaf, generation))
            if segment.name not in self._rows:
                derived, segment = segment.derived, files.load(row.file)
                segment.derived = derived
            rows.append((row, leaf.live))
            pairs.append((segment, leaf.live))
        return SavedLeaves(rows), numbered(pairs)


def _save_live(files: IndexFiles, leaf: Leaf, generation: int) -> str | None:
    return None if leaf.live.all() else files.save_live(leaf.segment.name, generation, leaf.live)


# A commit in the making: planned where the shard is written to, written beside it, noted there again.


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
