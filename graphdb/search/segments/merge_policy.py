"""Which segments to merge: Lucene's TieredMergePolicy in short.

Segments of about one size form a tier; a tier may have a few of them. Where there are more segments than all tiers
may have, the merge is chosen that brings most for least: of segments of like size, small ones first, with
many deleted documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

__all__ = ["Candidate", "TieredMergePolicy"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the policy has to know of a segment."""

    number: int  # the caller's
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
    deleted_max: float = 0.33  # a segment with a larger share of deleted documents is written anew

    def choose(self, candidates: Sequence[Candidate]) -> list[int] | None:
        """The numbers of those to merge, ascending; None where all is well."""
        small = [one for one in candidates if one.live_bytes < self.merged_bytes_max / 2]
        small.sort(key=lambda one: (-one.live_bytes, one.number))
        chosen = self._best(small) if len(small) > self._allowed(small) else None
        if chosen is None:
            worst = max(candidates, key=lambda one: one.deleted, default=None)
            chosen = [worst] if worst is not None and worst.deleted > self.deleted_max else None
        return None if chosen is None else sorted(one.number for one in chosen)

    def _allowed(self, small: Sequence[Candidate]) -> int:
        """How many segments the tiers have room for, given the smallest one and the sum of all."""
        left = sum(one.live_bytes for one in small)
        level = max(min((one.live_bytes for one in small), default=0), self.floor_bytes)
        allowed = 0
        while left / level >= self.segments_per_tier and level < self.merged_bytes_max:
            allowed += self.segments_per_tier
            left -= self.segments_per_tier * level
            level = min(level * self.segments_per_merge, self.merged_bytes_max)
        return max(allowed + ceil(left / level), self.segments_per_tier)

    def _best(self, small: Sequence[Candidate]) -> list[Candidate] | None:
        """Of the runs of segments, largest first, that fit into one: that with the lowest score."""
        runs = (self._run(small, start) for start in range(len(small)))
        return min((run for run in runs if len(run) > 1), key=self._score, default=None)

    def _run(self, small: Sequence[Candidate], start: int) -> list[Candidate]:
        """From start on, leaving out what would make it too large."""
        run: list[Candidate] = []
        total = 0.0
        for one in small[start:]:
            if len(run) < self.segments_per_merge and total + one.live_bytes <= self.merged_bytes_max:
                run.append(one)
                total += one.live_bytes
        return run

    def _score(self, run: Sequence[Candidate]) -> float:
        """Lower is better: skew, a little of the size, and the share that is still live, squared."""
        floored = [max(one.live_bytes, self.floor_bytes) for one in run]
        live = sum(one.live_bytes for one in run)
        whole = max(sum(one.size_bytes for one in run), 1)
        skew = max(floored) / sum(floored)
        return float(skew * max(live, 1) ** 0.05 * (live / whole) ** 2)
