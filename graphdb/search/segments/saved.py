"""`SavedLeaves`: which leaves of a shard are on disk, and in which files."""

from collections.abc import Iterable, Sequence

import numpy as np

from graphdb.search.segment import Bools, Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.commit_point import CommittedSegment
from graphdb.search.segments.index_files import IndexFiles
from graphdb.search.segments.live_view import array_segment, numbered

__all__ = ["SavedLeaves"]


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
