"""Terms near to each other, counted by a compiled loop: what `span_near` and `intervals` of plain words ask.

The sources of `spans.py` and `intervals.py` say the same for one document at a time, in Python. Those that
are made of other things than terms are read so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from graphdb.search.compiled import compiled
from graphdb.search.deadline import checkpoint
from graphdb.search.leaf_reader import Doubles, Ints, Longs

__all__ = ["TermsNear"]

_NO_LIMIT = 2**31 - 1
_BATCH = 16_384  # documents between two looks at the clock


class Lists(Protocol):
    """The positions of terms in some documents."""

    docs: Ints

    def ranges(self, path: str, term: str, /) -> tuple[Longs, Longs, Ints] | None:
        """(starts, stops, positions): docs[row] has positions[starts[row]:stops[row]]; None: none has any."""


@dataclass(frozen=True, slots=True)
class TermsNear:
    """Terms, in order or not, with at most so many positions between them, or (adjacent) exactly none.

    minimal: without spans that contain another. by_length: the slack of a span is its length, else what is
    between.
    """

    terms: tuple[tuple[str, str], ...]  # (path, term)
    in_order: bool
    adjacent: bool = False
    between_max: int = _NO_LIMIT
    minimal: bool = False
    by_length: bool = False

    def at_most(self, between: int) -> "TermsNear | None":
        """With a limit, where there is none yet."""
        return replace(self, between_max=between) if self.between_max == _NO_LIMIT else None

    def frequencies(self, lists: Lists, base: int) -> Doubles:
        """By row the sum over its spans of 1 / (1 + slack - base)."""
        found = [lists.ranges(path, term) for path, term in self.terms]
        counts = np.zeros(len(lists.docs))
        ranges = [one for one in found if one is not None]
        if len(ranges) < len(found):
            return counts
        firsts = np.cumsum([0, *(len(positions) for _, _, positions in ranges)])
        every = np.concatenate([positions for _, _, positions in ranges])
        shifted = zip(ranges, firsts.tolist(), strict=False)
        begins, ends = zip(*((begin + first, end + first) for (begin, end, _), first in shifted), strict=True)
        rules = self.in_order, self.adjacent, self.between_max, self.minimal, self.by_length, base
        for start in range(0, len(counts), _BATCH):
            checkpoint()
            part = slice(start, start + _BATCH)
            _count(every, _stacked(begins, part), _stacked(ends, part), counts[part], *rules)
        return counts


def _stacked(columns: Sequence[Longs], part: slice) -> Longs:
    """(documents, terms)"""
    return np.ascontiguousarray(np.stack([column[part] for column in columns], axis=1))


@compiled(nogil=True)
def _count(
    positions: Ints,
    begins: Longs,
    ends: Longs,
    counts: Doubles,
    in_order: bool,
    adjacent: bool,
    between_max: int,
    minimal: bool,
    by_length: bool,
    base: int,
) -> None:
    """Term t stands in document d at positions[begins[d, t]:ends[d, t]].

    The starts and the ends of the spans that are met one after another ascend. So a span contains another
    only if it has the start, or the end, of the one before or after.
    """
    terms = begins.shape[1]
    at = np.empty(terms, np.int64)
    for doc in range(len(counts)):
        total = 0.0
        at[:] = begins[doc]
        is_left = True
        for t in range(terms):
            is_left = is_left and at[t] < ends[doc, t]
        start, end, between = -1, -1, 0  # the span that is not counted yet
        while is_left:
            is_met, low, high, gaps = True, 0, 0, 0
            if in_order:
                low = positions[at[0]]
                high = low + 1
                for t in range(1, terms):
                    while at[t] < ends[doc, t] and positions[at[t]] < high:
                        at[t] += 1
                    if at[t] == ends[doc, t]:
                        is_met, is_left = False, False
                        break
                    place = positions[at[t]]
                    gaps += place - high
                    is_met = is_met and not (adjacent and place != high)
                    high = place + 1
                at[0] += 1
                is_left = is_left and at[0] < ends[doc, 0]
            else:
                first = 0
                low, high = positions[at[0]], positions[at[0]] + 1
                for t in range(1, terms):
                    place = positions[at[t]]
                    if place < low:
                        first, low = t, place
                    high = max(high, place + 1)
                gaps = high - low - terms
                at[first] += 1
                is_left = at[first] < ends[doc, first]
            if not is_met or (minimal and low == start):
                continue
            if start >= 0 and not (minimal and high == end) and between <= between_max:
                slack = end - start if by_length else between
                total += 1.0 / (1 + max(slack - base, 0))
            start, end, between = low, high, gaps
        if start >= 0 and between <= between_max:
            slack = end - start if by_length else between
            total += 1.0 / (1 + max(slack - base, 0))
        counts[doc] = total
