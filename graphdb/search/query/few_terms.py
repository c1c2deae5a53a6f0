"""The loops behind a few terms any of which has to match: the best, without walking all postings.

Source: Turtle and Flood's MaxScore, with the postings of the terms merged. Once one or two terms are left
that can lift a document among the best without the others, their postings are gone through in runs, of which
a processor can guess how they go on.

The look-ups of the other terms stand in each of the loops: as a function, also one that the compiler inlines,
they cost a quarter to a half of the whole more (2 and 3 terms, measured).
"""

import numpy as np

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Longs
from graphdb.search.query.field_table import BLOCK
from graphdb.search.query.posting_steps import Ceilings, bounds_of, floor_of_one, keep, score_of, sought
from graphdb.search.segments.postings import ESCAPE, Bytes, high_freq

__all__ = ["NEVER", "top_of_few"]

NEVER = 1 << 62
"""More than anybody counts."""


@compiled(nogil=True)
def top_of_few(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    begins: Longs,
    ends: Longs,
    weights: Floats,
    norms: Bytes,
    inverse: Floats,
    allowed: Bools,
    ceilings: Ceilings,
    k: int,
    floor: float,
    counted: int,
) -> tuple[Longs, Floats, int]:
    """The k best documents with a score above floor, ties by number; and how many have one at all.

    Term t has docs[begins[t]:ends[t]]; weights descend; inverse does not rise with the norm. ceilings has a
    place for each block of the postings, 0 until it is known. Once more than `counted` are found, only those
    are still counted that may be among the best: the last terms, which together cannot lift a document above
    the worst of these, are then looked up for the documents of the others alone.
    """
    bounds = bounds_of(docs, freqs, high, begins, ends, weights, norms, inverse, ceilings)
    if k > 0 and counted < NEVER:
        floor = max(floor, floor_of_one(docs, freqs, high, begins, ends, weights, norms, inverse, allowed, k))
    kept, best = np.full(k, -1, np.int64), np.full(k, floor, np.float32)
    at, heads, beyond = begins.copy(), np.empty(len(weights), np.int64), len(allowed)
    for term in range(len(weights)):
        heads[term] = docs[at[term]] if at[term] < ends[term] else beyond
    count, first = 0, len(weights)  # terms from `first` on are looked up
    while True:
        chooses = k > 0 and count > counted
        if chooses:
            while first > 0 and np.float32(bounds[first - 1]) <= best[k - 1]:
                first -= 1
            if first == 2:
                some, first = _best_of_two(
                    docs, freqs, high, at, ends, weights, norms, inverse, allowed, bounds, kept, best
                )
                count += some
            if first == 1:
                count += _best_of_one(
                    docs,
                    freqs,
                    high,
                    at,
                    ends,
                    weights,
                    norms,
                    inverse,
                    allowed,
                    ceilings,
                    bounds,
                    kept,
                    best,
                )
            if first <= 2:
                break
        doc = beyond
        for term in range(first):
            doc = min(doc, heads[term])
        if doc == beyond:
            break
        total = np.float64(0)
        for term in range(first):
            if heads[term] == doc:
                i = at[term]
                freq = np.int64(freqs[i])
                if freq == ESCAPE:
                    freq = high_freq(high, i)
                total += score_of(weights[term], freq, inverse[norms[doc]])
                at[term] = i + 1
                heads[term] = docs[i + 1] if i + 1 < ends[term] else beyond
        if chooses and np.float32(total + bounds[first]) <= best[k - 1]:
            continue
        if total == 0 or not allowed[doc]:
            continue
        count += 1
        if k == 0:
            continue
        for term in range(first, len(weights)):
            if np.float32(total + bounds[term]) <= best[k - 1]:
                break
            i = at[term] = sought(docs, at[term], ends[term], doc)
            if i < ends[term] and docs[i] == doc:
                freq = np.int64(freqs[i])
                if freq == ESCAPE:
                    freq = high_freq(high, i)
                total += score_of(weights[term], freq, inverse[norms[doc]])
        keep(kept, best, doc, np.float32(total))
    some = int(np.sum(kept >= 0))
    return kept[:some], best[:some], count


@compiled(nogil=True)
def _best_of_one(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    at: Longs,
    ends: Longs,
    weights: Floats,
    norms: Bytes,
    inverse: Floats,
    allowed: Bools,
    ceilings: Ceilings,
    bounds: Doubles,
    kept: Longs,
    best: Floats,
) -> int:
    """Go through the rest of the first term's documents; the others alone cannot lift one among the best.
    Returns how many were counted.

    A posting is passed over without a look at its document where the least norm of its block would not do.
    """
    worst, rest, weight, count = len(best) - 1, bounds[1], weights[0], 0
    i = at[0]
    while i < ends[0]:
        block = i // BLOCK
        stop = min((block + 1) * BLOCK, ends[0])
        top, norm = ceilings[block] >> 8, inverse[ceilings[block] & 255]
        least = 1  # the frequency that may do
        while least <= top and least < 4 and np.float32(score_of(weight, least, norm) + rest) <= best[worst]:
            least += 1
        if least > top:
            i = stop
            continue
        for place in range(i, stop):
            if freqs[place] < least:
                continue
            doc = docs[place]
            freq = np.int64(freqs[place])
            if freq == ESCAPE:
                freq = high_freq(high, place)
            total = np.float64(score_of(weight, freq, inverse[norms[doc]]))
            if total == 0 or np.float32(total + rest) <= best[worst] or not allowed[doc]:
                continue
            count += 1
            for term in range(1, len(weights)):
                if np.float32(total + bounds[term]) <= best[worst]:
                    break
                found = at[term] = sought(docs, at[term], ends[term], doc)
                if found < ends[term] and docs[found] == doc:
                    freq = np.int64(freqs[found])
                    if freq == ESCAPE:
                        freq = high_freq(high, found)
                    total += score_of(weights[term], freq, inverse[norms[doc]])
            keep(kept, best, doc, np.float32(total))
        i = stop
    return count


@compiled(nogil=True)
def _best_of_two(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    at: Longs,
    ends: Longs,
    weights: Floats,
    norms: Bytes,
    inverse: Floats,
    allowed: Bools,
    bounds: Doubles,
    kept: Longs,
    best: Floats,
) -> tuple[int, int]:
    """The same for the first two terms, until the second, with the others, cannot do it alone any more.
    Returns how many were counted, and how many of the two are left then: 0 where they are through.

    The second mostly has more documents: those between two of the first are gone through in a run.
    """
    worst, count, beyond = len(best) - 1, 0, len(allowed)
    first, second = at[0], at[1]
    while True:
        next_doc = docs[first] if first < ends[0] else beyond
        while second < ends[1] and docs[second] < next_doc:
            doc = docs[second]
            freq = np.int64(freqs[second])
            if freq == ESCAPE:
                freq = high_freq(high, second)
            total = np.float64(score_of(weights[1], freq, inverse[norms[doc]]))
            second += 1
            if total == 0 or np.float32(total + bounds[2]) <= best[worst] or not allowed[doc]:
                continue
            count += 1
            for term in range(2, len(weights)):
                if np.float32(total + bounds[term]) <= best[worst]:
                    break
                found = at[term] = sought(docs, at[term], ends[term], doc)
                if found < ends[term] and docs[found] == doc:
                    freq = np.int64(freqs[found])
                    if freq == ESCAPE:
                        freq = high_freq(high, found)
                    total += score_of(weights[term], freq, inverse[norms[doc]])
            keep(kept, best, doc, np.float32(total))
        if next_doc == beyond:
            return count, 0
        if np.float32(bounds[1]) <= best[worst]:
            at[0], at[1] = first, second
            return count, 1
        freq = np.int64(freqs[first])
        if freq == ESCAPE:
            freq = high_freq(high, first)
        total = np.float64(score_of(weights[0], freq, inverse[norms[next_doc]]))
        first += 1
        if second < ends[1] and docs[second] == next_doc:
            freq = np.int64(freqs[second])
            if freq == ESCAPE:
                freq = high_freq(high, second)
            total += score_of(weights[1], freq, inverse[norms[next_doc]])
            second += 1
        if total == 0 or np.float32(total + bounds[2]) <= best[worst] or not allowed[next_doc]:
            continue
        count += 1
        for term in range(2, len(weights)):
            if np.float32(total + bounds[term]) <= best[worst]:
                break
            found = at[term] = sought(docs, at[term], ends[term], next_doc)
            if found < ends[term] and docs[found] == next_doc:
                freq = np.int64(freqs[found])
                if freq == ESCAPE:
                    freq = high_freq(high, found)
                total += score_of(weights[term], freq, inverse[norms[next_doc]])
        keep(kept, best, next_doc, np.float32(total))
