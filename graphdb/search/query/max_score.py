"""The loops behind terms, any or all of which have to match: the best, without walking all postings.

Source: Turtle and Flood's MaxScore, with the postings of many terms added up in windows of documents as in
Lucene's MaxScoreBulkScorer; `few_terms` merges those of a few.

Frequencies are read in the loops themselves: a call of `freq_at` costs 3 ns, as any that is given arrays.
"""

import numpy as np

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Longs
from graphdb.search.query.few_terms import top_of_few
from graphdb.search.query.field_table import (
    BASE,
    BLOCK,
    CEILINGS,
    DOCS,
    FREQS,
    HIDDEN,
    HIGH,
    HIGHS,
    NORMS,
    POSTINGS,
    SIZE,
    STARTS,
    bytes_at,
    flags_at,
    ints_at,
    longs_at,
    words_at,
)
from graphdb.search.query.posting_steps import FREQ_MAX, SLACK, Ceilings, bounds_of, keep, score_of, sought
from graphdb.search.query.top_of_rows import takes_rows, top_of_rows
from graphdb.search.segments.postings import ESCAPE, Bytes, high_freq

__all__ = ["FEW", "top_of_all", "top_of_any", "top_of_leaves"]

FEW = 12  # terms whose postings are merged as fast as they are added up in windows
_WINDOW = 4096  # documents; their sums stay in the processor's nearest cache
_BOUNDED_MIN = 2_048  # documents of the rarest of all terms, for which bounds are worth working out


@compiled(nogil=True)
def top_of_any(
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
    """As `top_of_few`, for many terms."""
    bounds = bounds_of(docs, freqs, high, begins, ends, weights, norms, inverse, ceilings)
    at = begins.copy()
    sums = np.zeros(_WINDOW)
    met = np.zeros(_WINDOW, np.uint8)  # which documents of a window have a sum, eight at a time in `eights`
    eights = met.view(np.uint64)
    kept, best = np.full(k, -1, np.int64), np.full(k, floor, np.float32)
    count, first = 0, len(weights)
    for base in range(0, len(allowed), _WINDOW):
        if k > 0 and count > counted:
            while first > 0 and np.float32(bounds[first - 1]) <= best[k - 1]:
                first -= 1
            if first == 0:
                break
        end = min(base + _WINDOW, len(allowed))
        if not _sum_up(docs, freqs, high, at, ends, weights[:first], norms, inverse, base, end, sums, met):
            continue
        for eight in range(len(eights)):
            if eights[eight] == 0:
                continue
            eights[eight] = 0
            for doc in range(base + 8 * eight, min(base + 8 * eight + 8, end)):
                total = sums[doc - base]
                if total == 0:
                    continue
                sums[doc - base] = 0
                if not allowed[doc]:
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
def _sum_up(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    at: Longs,
    ends: Longs,
    weights: Floats,
    norms: Bytes,
    inverse: Floats,
    base: int,
    end: int,
    sums: Doubles,
    met: Bytes,
) -> bool:
    """Add the scores of these terms in [base, end), mark their documents in met, and move the places in their
    postings past it. Returns whether there were any.
    """
    found = False
    for term in range(len(weights)):
        i, stop, weight = at[term], ends[term], weights[term]
        while i < stop and docs[i] < end:
            if docs[i] >= base:
                freq = np.int64(freqs[i])
                if freq == ESCAPE:
                    freq = high_freq(high, i)
                sums[docs[i] - base] += score_of(weight, freq, inverse[norms[docs[i]]])
                met[docs[i] - base] = 1
            i += 1
        found |= i > at[term]
        at[term] = i
    return found


@compiled(nogil=True)
def top_of_leaves(
    table: Longs,
    live: Longs,
    numbers: Longs,
    dense: Longs,
    weights: Floats,
    inverse: Floats,
    needs_all: bool,
    order: Longs,
    kept: Longs,
    best: Floats,
    begun: int,
    counted: int,
    masked: bool,
) -> tuple[int, int]:
    """The best documents of several leaves: kept and best, of which `begun` are from leaves before, with
    numbers in the whole searcher. Returns how many there are, and how many documents of these leaves match,
    or some number of them beyond `counted`.

    table, live: rows of a `FieldTable`, of these leaves; masked: live hides more than the table says.
    numbers: (terms, leaves). dense: the same, the addresses of `DocumentRows`, 0 where there is none. weights
    descend, and order has the places of the terms in the query; needs_all:
    all of them have to match.
    """
    count, k = 0, len(best)
    if not needs_all and not masked:
        least = _least_matching(table, numbers)
        if least > counted:
            count = least  # and none is counted
    for leaf in range(len(table)):
        terms, places = 0, np.empty(len(weights), np.int64)
        for term in range(len(weights)):
            if numbers[term, leaf] >= 0:
                places[terms] = term
                terms += 1
        if terms == 0 or (needs_all and terms < len(weights)):
            continue
        size, postings = table[leaf, SIZE], table[leaf, POSTINGS]
        docs, freqs = ints_at(table[leaf, DOCS], postings), bytes_at(table[leaf, FREQS], postings)
        high = longs_at(table[leaf, HIGH], table[leaf, HIGHS])
        starts = longs_at(table[leaf, STARTS], numbers[places[:terms], leaf].max() + 2)
        begins, ends = np.empty(terms, np.int64), np.empty(terms, np.int64)
        for place in range(terms):
            number = numbers[places[place], leaf]
            begins[place], ends[place] = starts[number], starts[number + 1]
        norms, allowed = bytes_at(table[leaf, NORMS], size), flags_at(live[leaf], size)
        own, floor = weights[places[:terms]], -np.inf
        if k > 0 and begun == k:
            floor = best[k - 1]
        few, ceilings = min(k, size), words_at(table[leaf, CEILINGS], postings // BLOCK + 1)
        rows, hides = dense[places[:terms], leaf], masked or table[leaf, HIDDEN] > 0
        if takes_rows(begins, ends, own, inverse, rows, size, needs_all):
            found, scores, some = top_of_rows(
                docs,
                freqs,
                high,
                begins,
                ends,
                own,
                order if needs_all else np.arange(terms),
                norms,
                inverse,
                allowed,
                rows,
                needs_all,
                hides,
                few,
                floor,
                counted - count,
            )
        elif needs_all:
            found, scores, some = top_of_all(
                docs,
                freqs,
                high,
                begins,
                ends,
                own,
                order,
                norms,
                inverse,
                allowed,
                ceilings,
                few,
                floor,
                counted - count,
            )
        else:
            some = 0
            if count <= counted and terms == 1 and not hides:
                some = ends[0] - begins[0]
            elif count <= counted:
                some = _count_any(docs, begins, ends, allowed, counted - count)
            if k == 0:
                count += some
                continue
            if terms <= FEW:
                found, scores, _ = top_of_few(
                    docs, freqs, high, begins, ends, own, norms, inverse, allowed, ceilings, few, floor, -1
                )
            else:
                found, scores, _ = top_of_any(
                    docs, freqs, high, begins, ends, own, norms, inverse, allowed, ceilings, few, floor, -1
                )
        count += some
        begun = _put(kept, best, begun, found, scores, table[leaf, BASE])
    return begun, count


@compiled(nogil=True)
def _least_matching(table: Longs, numbers: Longs) -> int:
    """So many documents that are shown have any of the terms at least: those of the most frequent one."""
    least = 0
    for leaf in range(len(table)):
        most = 0
        for term in range(len(numbers)):
            number = numbers[term, leaf]
            if number >= 0:
                starts = longs_at(table[leaf, STARTS], number + 2)
                most = max(most, starts[number + 1] - starts[number])
        least += max(0, most - table[leaf, HIDDEN])
    return least


@compiled(nogil=True)
def _count_any(docs: Ints, begins: Longs, ends: Longs, allowed: Bools, wanted: int) -> int:
    """How many documents of a leaf have any of the terms, or some number of them beyond `wanted`.

    That takes a tenth of what their scores take, and these can be chosen among once the number is known.
    """
    met, count = np.zeros(len(allowed) // 64 + 1, np.uint64), 0
    for term in range(len(begins)):
        for i in range(begins[term], ends[term]):
            doc = docs[i]
            bit = np.uint64(1) << np.uint64(doc & 63)
            is_new = (met[doc >> 6] & bit) == 0
            met[doc >> 6] |= bit
            count += is_new & allowed[doc]
        if count > wanted:
            break
    return count


@compiled(nogil=True)
def _put(kept: Longs, best: Floats, begun: int, docs: Longs, scores: Floats, base: int) -> int:
    """Put the best of a leaf among those of the leaves before, whose documents come first where scores are
    equal. Returns how many there are now.
    """
    some = min(begun + len(docs), len(best))
    old, new = begun - 1, len(docs) - 1
    for _ in range(begun + len(docs) - some):  # those that have no place any more
        if old < 0 or (new >= 0 and scores[new] <= best[old]):
            new -= 1
        else:
            old -= 1
    for place in range(some - 1, -1, -1):
        if old < 0 or (new >= 0 and scores[new] <= best[old]):
            kept[place], best[place] = base + docs[new], scores[new]
            new -= 1
        else:
            kept[place], best[place] = kept[old], best[old]
            old -= 1
    return some


@compiled(nogil=True)
def top_of_all(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    begins: Longs,
    ends: Longs,
    weights: Floats,
    order: Longs,
    norms: Bytes,
    inverse: Floats,
    allowed: Bools,
    ceilings: Ceilings,
    k: int,
    floor: float,
    counted: int,
) -> tuple[Longs, Floats, int]:
    """As `top_of_few`, of the documents that have all terms.

    The documents of the rarest term alone are looked up in the postings of the others. A score is summed up
    in the order of the query, where order[i] is the place of the i-th of its terms among these. Where there
    are many, what the rarest term adds is worked out first: if the others cannot lift a document among the
    best, it is only counted, and once more than `counted` are found not even looked up.
    """
    rarest = int(np.argmin(ends - begins))
    kept, best = np.full(k, -1, np.int64), np.full(k, floor, np.float32)
    at, count = begins.copy(), 0
    is_bounded, others = k > 0 and ends[rarest] - begins[rarest] >= _BOUNDED_MIN, np.float64(0)
    if is_bounded:
        bounds = bounds_of(docs, freqs, high, begins, ends, weights, norms, inverse, ceilings)
        others = bounds[0] - (bounds[rarest] - bounds[rarest + 1])
    i = begins[rarest] - 1
    while i + 1 < ends[rarest]:
        i += 1
        if is_bounded and count > counted and (i % BLOCK == 0 or i == begins[rarest]):
            freq, norm = ceilings[i // BLOCK] >> 8, ceilings[i // BLOCK] & 255
            top = weights[rarest] if freq == FREQ_MAX else score_of(weights[rarest], freq, inverse[norm])
            if np.float32((top + others) * SLACK) <= best[k - 1]:
                i = min((i // BLOCK + 1) * BLOCK, ends[rarest]) - 1
                continue
        doc, all_there = docs[i], True
        if is_bounded and count > counted:
            freq = np.int64(freqs[i])
            if freq == ESCAPE:
                freq = high_freq(high, i)
            own = np.float64(score_of(weights[rarest], freq, inverse[norms[doc]]))
            if np.float32((own + others) * SLACK) <= best[k - 1]:
                continue
        at[rarest] = i
        for term in range(len(weights)):
            if term != rarest:
                at[term] = sought(docs, at[term], ends[term], doc)
                if at[term] == ends[term]:
                    some = int(np.sum(kept >= 0))
                    return kept[:some], best[:some], count
                if docs[at[term]] != doc:
                    all_there = False
                    break
        if not all_there or not allowed[doc]:
            continue
        if is_bounded and count <= counted:
            freq = np.int64(freqs[i])
            if freq == ESCAPE:
                freq = high_freq(high, i)
            own = np.float64(score_of(weights[rarest], freq, inverse[norms[doc]]))
            if np.float32((own + others) * SLACK) <= best[k - 1]:
                count += 1
                continue
        total = np.float64(0)
        for term in order:
            freq = np.int64(freqs[at[term]])
            if freq == ESCAPE:
                freq = high_freq(high, at[term])
            total += score_of(weights[term], freq, inverse[norms[doc]])
        if np.float32(total) == 0:
            continue
        count += 1
        if k > 0:
            keep(kept, best, doc, np.float32(total))
    some = int(np.sum(kept >= 0))
    return kept[:some], best[:some], count
