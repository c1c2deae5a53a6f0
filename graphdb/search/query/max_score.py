"""The loop behind a disjunction of terms: its best documents, without walking all postings.

Source: Turtle and Flood's MaxScore, on windows of documents as in Lucene's MaxScoreBulkScorer.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from graphdb.search.segment import Bools, Doubles, Floats, Ints, Longs

__all__ = ["NEVER", "top_of_any"]

NEVER = 1 << 62  # more than anybody counts

_WINDOW = 4096  # documents; their sums stay in the processor's nearest cache
_SLACK = 1 + 1e-6  # for what the sums of bounds lose in rounding


@numba.njit(cache=True, nogil=True)
def top_of_any(
    docs: Ints,
    freqs: NDArray[Any],
    begins: Longs,
    ends: Longs,
    weights: Floats,
    norms: NDArray[np.uint8],
    inverse: Floats,
    allowed: Bools,
    k: int,
    floor: float,
    counted: int,
) -> tuple[Longs, Floats, int]:
    """The k best documents with a score above floor, ties by number; and how many have one at all.

    Term t has docs[begins[t]:ends[t]]; weights, the most that each may add, descend. Once more than `counted`
    are found, only those are still counted that may be among the best: the last terms, which together cannot
    lift a document above the worst of these, are then looked up for the documents of the others alone.
    """
    at, bounds = begins.copy(), _bounds(weights)
    sums = np.zeros(_WINDOW)
    best_docs, best = np.full(k, -1, np.int64), np.full(k, floor, np.float32)
    count, first = 0, len(weights)  # terms from `first` on are looked up
    for base in range(0, len(allowed), _WINDOW):
        if k > 0 and count > counted:
            while first > 0 and bounds[first - 1] <= best[k - 1]:
                first -= 1
            if first == 0:
                break
        end = min(base + _WINDOW, len(allowed))
        if not _sum_up(docs, freqs, at, ends, weights[:first], norms, inverse, base, end, sums):
            continue
        for doc in range(base, end):
            total = sums[doc - base]
            if total == 0:
                continue
            sums[doc - base] = 0
            if not allowed[doc]:
                continue
            count += 1
            if k == 0 or total + bounds[first] <= best[k - 1]:
                continue
            for term in range(first, len(weights)):
                if total + bounds[term] <= best[k - 1]:
                    break
                i = at[term] = _sought(docs, at[term], ends[term], doc)
                if i < ends[term] and docs[i] == doc:
                    total += _score(weights[term], freqs[i], inverse[norms[doc]])
            _keep(best_docs, best, doc, np.float32(total))
    kept = int(np.sum(best_docs >= 0))
    return best_docs[:kept], best[:kept], count


@numba.njit(cache=True, nogil=True)
def _bounds(weights: Floats) -> Doubles:
    """What the terms from each on may add together."""
    bounds = np.zeros(len(weights) + 1)
    for term in range(len(weights) - 1, -1, -1):
        bounds[term] = bounds[term + 1] + weights[term] * _SLACK
    return bounds


@numba.njit(cache=True, nogil=True)
def _sum_up(
    docs: Ints,
    freqs: NDArray[Any],
    at: Longs,
    ends: Longs,
    weights: Floats,
    norms: NDArray[np.uint8],
    inverse: Floats,
    base: int,
    end: int,
    sums: Doubles,
) -> bool:
    """Add the scores of these terms in [base, end), and move their places in the postings behind it."""
    met = False
    for term in range(len(weights)):
        i, stop, weight = at[term], ends[term], weights[term]
        while i < stop and docs[i] < end:
            if docs[i] >= base:
                sums[docs[i] - base] += _score(weight, freqs[i], inverse[norms[docs[i]]])
            i += 1
        met |= i > at[term]
        at[term] = i
    return met


@numba.njit(cache=True, nogil=True)
def _score(weight: np.float32, freq: int, inverse: np.float32) -> np.float32:
    return np.float32(weight - weight / (np.float32(1) + np.float32(freq) * inverse))


@numba.njit(cache=True, nogil=True)
def _sought(docs: Ints, place: int, stop: int, doc: int) -> int:
    """The first place from there on whose document is not before doc."""
    step = 1
    while place + step < stop and docs[place + step] < doc:
        place += step
        step *= 2
    high = min(place + step, stop)
    while place < high:
        middle = (place + high) // 2
        if docs[middle] < doc:
            place = middle + 1
        else:
            high = middle
    return place


@numba.njit(cache=True, nogil=True)
def _keep(best_docs: Longs, best: Floats, doc: int, score: np.float32) -> None:
    """Put it in its place among the best, if it has one."""
    place = len(best)
    if score <= best[place - 1]:
        return
    place -= 1
    while place > 0 and best[place - 1] < score:
        best[place], best_docs[place] = best[place - 1], best_docs[place - 1]
        place -= 1
    best[place], best_docs[place] = score, doc
