"""The loops behind terms, any or all of which have to match, where their documents are rows of bits.

The documents that have the same of the terms are gone through together, those first that may score most: of
three terms first all that have all three. What they may score is known for each norm, from how often each
term is at most in documents of this norm; once it is too little for the best, the rest is passed over. In
most searches that is all but the documents with all terms. Which have them is found 64 at a time, or from
the postings of the rarest term where these are few.
"""

from typing import Final

import numpy as np

from graphdb.search.bit_words import lowest_bit, set_bits
from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Longs
from graphdb.search.query.document_rows import (
    DOCUMENTS_MIN,
    Words,
    bits_of,
    fill_row,
    freqs_of,
    ranks_of,
    row_words,
    words_in,
)
from graphdb.search.query.posting_steps import SLACK, score_of
from graphdb.search.segments.postings import ESCAPE, Bytes, high_freq

__all__ = ["takes_rows", "top_of_rows"]

_ANY_MAX: Final = 4  # terms any of which has to match: of more there are too many sets
_ANY_MIN: Final = 1_000  # postings of these; fewer are merged as fast
_CHUNK: Final = 128  # words whose documents are looked for at once
_NORMS: Final = 256
_NORM_MAX: Final = 200  # of a text of 16 million words
_BOUNDED_MIN: Final = 512  # documents of the rarest of all terms, for which bounds are worth working out


@compiled(nogil=True)
def takes_rows(
    begins: Longs, ends: Longs, weights: Floats, inverse: Floats, rows: Longs, size: int, needs_all: bool
) -> bool:
    """Whether `top_of_rows` is the faster way, and knows each document that has a term as one that scores."""
    terms, words = len(begins), words_in(size)
    if terms == 1 or size < DOCUMENTS_MIN:
        return False
    for term in range(terms):
        if score_of(weights[term], 1, inverse[_NORM_MAX]) <= 0:
            return False
    if not needs_all:
        return terms <= _ANY_MAX and (ends - begins).sum() >= max(words, _ANY_MIN)
    rarest = int(np.argmin(ends - begins))
    if 8 * (ends[rarest] - begins[rarest]) >= words:
        return True
    lacking = 0
    for term in range(terms):
        lacking += rows[term] == 0 and term != rarest
    return lacking == 0


@compiled(nogil=True)
def top_of_rows(
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
    rows: Longs,
    needs_all: bool,
    hides: bool,
    k: int,
    floor: float,
    counted: int,
) -> tuple[Longs, Floats, int]:
    """The k best documents with a score above floor, ties by number; and how many have one at all, or some
    number of them beyond `counted`; below 0 none is counted that need not be.

    Term t has docs[begins[t]:ends[t]], and a row at the address rows[t] if that is not 0. weights descend; a
    score is summed up in the order of the query, where order[i] is the place of the i-th of its terms among
    these. hides: not all documents are allowed.
    """
    terms, words, lacking = len(weights), words_in(len(allowed)), 0
    for term in range(terms):
        lacking += rows[term] == 0
    made, own_rows = np.zeros((lacking, row_words(len(allowed))), np.uint64), rows.copy()
    for term in range(terms):
        if rows[term] == 0:
            lacking -= 1
            own, begin, end = made[lacking], begins[term], ends[term]
            fill_row(own, docs[begin:end], freqs[begin:end], norms)
            own_rows[term] = own.ctypes.data
    tops = np.full((terms, _NORMS), np.inf)
    if k > 0 and (not needs_all or (ends - begins).min() >= _BOUNDED_MIN):
        for term in range(terms):
            _fill_tops(freqs_of(own_rows[term]), weights[term], inverse, tops[term])
    kept, best = np.full(k, -1, np.int64), np.full(k, floor, np.float32)
    count, sets = 0, np.zeros(0, np.int64)
    if needs_all:
        sets = np.array([(1 << terms) - 1])
    else:
        if counted >= 0:
            count = _count_any(own_rows, words, allowed, hides, counted)
        if k > 0:
            sets = _sets(tops)
    for chosen in sets:
        own_count, goes_on = _best_of_set(
            int(chosen),
            docs,
            freqs,
            high,
            begins,
            ends,
            weights,
            order,
            norms,
            inverse,
            allowed,
            own_rows,
            tops,
            hides,
            kept,
            best,
            counted if needs_all else -1,
            made,
        )
        count += own_count if needs_all else 0
        if not goes_on:
            break
    some = int(np.sum(kept >= 0))
    return kept[:some], best[:some], count


@compiled(nogil=True)
def _fill_tops(freqs: Bytes, weight: np.float32, inverse: Floats, tops: Doubles) -> None:
    """The most that a term adds to a document, by its norm; freqs: the highest, by norm."""
    for norm in range(_NORMS):
        tops[norm] = weight if freqs[norm] == ESCAPE else score_of(weight, freqs[norm], inverse[norm])


@compiled(nogil=True)
def _sets(tops: Doubles) -> Longs:
    """Which terms a document may have, as bits of numbers, those first that may score most."""
    sums = np.zeros((1 << len(tops), _NORMS))
    most = np.zeros(len(sums))
    for term in range(len(tops)):
        for rest in range(1 << term):
            one = rest | 1 << term
            for norm in range(_NORMS):
                sums[one, norm] = sums[rest, norm] + tops[term, norm]
            most[one] = sums[one].max()
    return 1 + np.argsort(-most[1:])


@compiled(nogil=True)
def _count_any(rows: Longs, words: int, allowed: Bools, hides: bool, wanted: int) -> int:
    """How many documents have any of the terms, or some number of them beyond `wanted`."""
    count, common = 0, np.empty(_CHUNK, np.uint64)
    for base in range(0, words, _CHUNK):
        size = min(_CHUNK, words - base)
        common[:] = 0
        for term in range(len(rows)):
            row = bits_of(rows[term], words)[base : base + size]
            for i in range(size):
                common[i] |= row[i]
        for i in range(size):
            word = common[i]
            if not hides:
                count += set_bits(word)
                continue
            while word != 0:
                count += allowed[64 * (base + i) + lowest_bit(word)]
                word &= word - np.uint64(1)
        if count > wanted:
            break
    return count


@compiled(nogil=True)
def _best_of_set(
    chosen: int,
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
    rows: Longs,
    tops: Doubles,
    hides: bool,
    kept: Longs,
    best: Floats,
    counted: int,
    made: Words,
) -> tuple[int, bool]:
    """Those that have the terms of a set, and no others, among the best. Returns how many there are, or some
    number of them beyond `counted`, and whether those of a set that may score less have to be looked at too.

    made: what some of `rows` are addresses in.
    """
    words, k = words_in(len(allowed)), len(best)
    own, rarest = np.empty(len(weights), np.int64), -1
    terms = 0
    for term in range(len(weights)):
        if chosen >> term & 1:
            own[terms] = term
            terms += 1
            if rarest < 0 or ends[term] - begins[term] < ends[rarest] - begins[rarest]:
                rarest = term
    own = own[:terms]
    # what the terms from each on may add together, by norm
    rests = np.zeros((terms + 1, _NORMS))
    for place in range(terms - 1, -1, -1):
        for norm in range(_NORMS):
            rests[place, norm] = rests[place + 1, norm] + tops[own[place], norm]
    most = (rests[0] * SLACK).astype(np.float32)
    limit = most.max()
    if k > 0 and limit < best[k - 1] and counted < 0:
        return 0, False
    scores = np.zeros(len(weights), np.float32)
    found, common = np.empty(64 * _CHUNK, np.int32), np.empty(_CHUNK, np.uint64)
    walks = 2 * (ends[rarest] - begins[rarest]) < words
    start, stop = (begins[rarest], ends[rarest]) if walks else (0, words)
    step = len(found) if walks else _CHUNK
    count = 0
    for base in range(start, stop, step):
        worst = best[k - 1] if k > 0 else np.float32(np.inf)
        if count > counted and limit < worst:
            break
        counts, size = count <= counted, min(step, stop - base)
        if walks:
            some = _with_same(docs[base : base + size], chosen, rarest, rows, words, found)
            if counts:
                for i in range(some):
                    count += allowed[found[i]]
        else:
            _combine(chosen, rows, words, base, common[:size])
            some = 0
            for i in range(size):
                word = common[i]
                if counts and not hides:
                    count += set_bits(word)
                while word != 0:
                    doc = 64 * (base + i) + lowest_bit(word)
                    word &= word - np.uint64(1)
                    found[some] = doc
                    some += most[norms[doc]] >= worst
                    if counts and hides:
                        count += allowed[doc]
        if k == 0:
            continue
        for doc in found[:some]:
            norm = norms[doc]
            worst = best[k - 1]
            if most[norm] < worst or not allowed[doc]:
                continue
            total, may = 0.0, True
            word, below = doc >> 6, (np.uint64(1) << np.uint64(doc & 63)) - np.uint64(1)
            for place in range(terms):
                term = own[place]
                before = set_bits(bits_of(rows[term], words)[word] & below)
                i = begins[term] + ranks_of(rows[term], words)[word] + before
                freq = np.int64(freqs[i])
                if freq == ESCAPE:
                    freq = high_freq(high, i)
                scores[term] = score_of(weights[term], freq, inverse[norm])
                total += scores[term]
                if np.float32((total + rests[place + 1, norm]) * SLACK) < worst:
                    may = False
                    break
            if may:
                total = 0.0
                for term in order:
                    if chosen >> term & 1:
                        total += scores[term]
                _keep(kept, best, doc, np.float32(total))
    return count, True


@compiled(nogil=True)
def _with_same(docs: Ints, chosen: int, lead: int, rows: Longs, words: int, found: Ints) -> int:
    """Write to found which of these documents, that have the term `lead`, have the chosen terms and no
    others; returns how many.
    """
    some = 0
    for doc in docs:
        is_same = True
        for term in range(len(rows)):
            if term != lead:
                has = (bits_of(rows[term], words)[doc >> 6] >> np.uint64(doc & 63)) & np.uint64(1)
                if has != np.uint64(chosen >> term & 1):
                    is_same = False
                    break
        found[some] = doc
        some += is_same
    return some


@compiled(nogil=True)
def _combine(chosen: int, rows: Longs, words: int, base: int, common: Words) -> None:
    """Which documents have the chosen terms and no others, in so many words from `base` on."""
    common[:] = ~np.uint64(0)
    for term in range(len(rows)):
        row = bits_of(rows[term], words)[base : base + len(common)]
        flip = np.uint64(0) if chosen >> term & 1 else ~np.uint64(0)
        for i in range(len(common)):
            common[i] &= row[i] ^ flip


@compiled(nogil=True)
def _keep(kept: Longs, best: Floats, doc: int, score: np.float32) -> None:
    """Put it in its place among the best, if it has one. Documents come in any order."""
    place = len(best) - 1
    if score < best[place] or (score == best[place] and doc > kept[place]):
        return
    while place > 0 and (best[place - 1] < score or (best[place - 1] == score and kept[place - 1] > doc)):
        best[place], kept[place] = best[place - 1], kept[place - 1]
        place -= 1
    best[place], kept[place] = score, doc
