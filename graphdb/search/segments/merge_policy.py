"""Which segments to merge: Lucene's TieredMergePolicy, for neighbours only.

Segments of about one size form a tier; a tier may have a few of them. Where there are more segments than all
tiers may have, the merge is chosen that brings most for least: of segments of like size, small ones first,
with many deleted documents. Only neighbours are merged, unlike Lucene's default: so documents stay in the
order in which they were written, and hits with equal scores in theirs, whatever was merged when.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

__all__ = ["Candidate", "TieredMergePolicy"]


_REST_SEGMENTS_MAX = 32  # of one merge, when nothing is written


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the policy has to know of a segment."""

    size_bytes: int
    deleted: float  # the share of documents that are deleted, 0 to 1

    @property
    def live_bytes(self) -> float:
        return self.size_bytes * (1 - self.deleted)


@dataclass(frozen=True, slots=True)
class TieredMergePolicy:
    """The defaults are Elasticsearch's (`index.merge.policy.*`)."""

    segments_per_tier: int = 10
    segments_per_merge: int = 10
    merged_bytes_max: int = 5 << 30
    floor_bytes: int = 2 << 20  # smaller segments count as large as this
    rest_bytes_max: int = 512 << 20  # what is merged when nothing is written is not larger
    deleted_max: float = 0.33  # a segment with a larger share of deleted documents is written again
    expunged_over: float = 0.1  # the same where a client asks for it (`only_expunge_deletes`)

    def choose(self, candidates: Sequence[Candidate]) -> slice | None:
        """Which of the segments, in their order, to merge into one; None where all is well."""
        small = [one.live_bytes for one in candidates if self._may_grow(one)]
        if len(small) > self._allowed(small):
            scored = [
                (self._score(candidates[start:stop]), start, stop) for start, stop in self._runs(candidates)
            ]
            if scored:
                return slice(*min(scored)[1:])
        return _most_deleted(candidates, self.deleted_max)

    def choose_at_rest(self, candidates: Sequence[Candidate]) -> slice | None:
        """Which to merge into one because nothing is written and each search pays for each segment: as many
        as possible. None of them is larger than the others together, so a document is merged again only into
        a segment of twice the size.
        """
        found = [
            (start - stop, sum(sizes), start, stop)
            for start in range(len(candidates))
            for stop in range(start + 2, min(len(candidates), start + _REST_SEGMENTS_MAX) + 1)
            for sizes in [[one.live_bytes for one in candidates[start:stop]]]
            if 2 * max(sizes) <= sum(sizes) <= self.rest_bytes_max
        ]
        return slice(*min(found)[2:]) if found else None

    def choose_for(self, candidates: Sequence[Candidate], segments_max: int) -> slice | None:
        """Which to merge into one so that not more than segments_max are left; None where all is well.

        A single one is written again if it has deleted documents.
        """
        count = len(candidates) - max(segments_max, 1) + 1
        if count > 1:
            sizes = [one.live_bytes for one in candidates]
            start = min(range(len(sizes) - count + 1), key=lambda place: sum(sizes[place : place + count]))
            return slice(start, start + count)
        is_dirty = segments_max <= 1 and any(one.deleted for one in candidates)
        return slice(0, 1) if is_dirty else None

    def choose_deleted(self, candidates: Sequence[Candidate]) -> slice | None:
        """One to write again for the documents that are deleted in it; None where all is well."""
        return _most_deleted(candidates, self.expunged_over)

    def _may_grow(self, one: Candidate) -> bool:
        return one.live_bytes < self.merged_bytes_max / 2

    def _allowed(self, small: Sequence[float]) -> int:
        """How many segments the tiers have room for, given the smallest one and the sum of all."""
        left = sum(small)
        level: float = max(min(small, default=0), self.floor_bytes)
        allowed = 0
        while left / level >= self.segments_per_tier and level < self.merged_bytes_max:
            allowed += self.segments_per_tier
            left -= self.segments_per_tier * level
            level = min(level * self.segments_per_merge, self.merged_bytes_max)
        return max(allowed + ceil(left / level), self.segments_per_tier)

    def _runs(self, candidates: Sequence[Candidate]) -> Iterator[tuple[int, int]]:
        """[start, stop) of neighbours: from each on, as many as fit into one merge."""
        for start in range(len(candidates)):
            total, stop = 0.0, start
            for one in candidates[start : start + self.segments_per_merge]:
                total += one.live_bytes
                if total > self.merged_bytes_max or not self._may_grow(one):
                    break
                stop += 1
            if stop - start > 1:
                yield start, stop

    def _score(self, run: Sequence[Candidate]) -> float:
        """Lower is better: skew, a little of the size, and the share that is still live, squared."""
        floored = [max(one.live_bytes, self.floor_bytes) for one in run]
        live = sum(one.live_bytes for one in run)
        whole = max(sum(one.size_bytes for one in run), 1)
        skew = max(floored) / sum(floored)
        return float(skew * max(live, 1) ** 0.05 * (live / whole) ** 2)


def _most_deleted(candidates: Sequence[Candidate], over: float) -> slice | None:
    """The one with the largest share of deleted documents, if that is larger than this."""
    worst = max(range(len(candidates)), key=lambda place: candidates[place].deleted, default=-1)
    return slice(worst, worst + 1) if worst >= 0 and candidates[worst].deleted > over else None
