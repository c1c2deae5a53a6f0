"""The loop that finds phrases of single terms in the packed positions of a field, in one pass.

The positions of a posting are not known by place, so those of the postings in between are passed over: as
many varints as their frequencies add up to, of which the ends alone are counted, several at a time.
"""

from typing import Any

import numpy as np

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Ints, Longs
from graphdb.search.query.dense_phrases import SHIFT_MAX, phrases_of_rows, phrases_with_rows
from graphdb.search.query.posting_steps import sought
from graphdb.search.segments.postings import ESCAPE, Bytes, freq_at, varint_at

__all__ = ["phrases_in"]

_AT_ONCE = 16


@compiled(nogil=True)
def _frequencies(freqs: Bytes, high: Longs, start: int, stop: int) -> Any:
    """How many positions the postings in [start, stop) have."""
    total, is_high = np.int64(0), False
    for place in range(start, stop):
        total += freqs[place]
        is_high |= freqs[place] == ESCAPE
    if is_high:
        for place in range(start, stop):
            if freqs[place] == ESCAPE:
                total += freq_at(freqs, high, place) - ESCAPE
    return total


@compiled(nogil=True)
def _passed(packed: Bytes, place: int, count: int) -> int:
    """The place behind so many varints."""
    while count >= _AT_ONCE:
        ended = 0
        for i in range(_AT_ONCE):  # at least as many are there
            ended += packed[place + i] < 128
        place += _AT_ONCE
        count -= ended
    while count > 0:
        count -= packed[place] < 128
        place += 1
    return place


@compiled(nogil=True)
def _step(packed: Bytes, places: Longs, term: int) -> Any:
    """The varint of a term, whose place moves behind it."""
    number, places[term] = varint_at(packed, places[term])
    return number


@compiled(nogil=True)
def phrases_in(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    begins: Longs,
    ends: Longs,
    packed: Bytes,
    starts: Longs,
    offsets: Longs,
    slots: Ints,
    guide: Ints,
    rows: Longs,
) -> Any:
    """(documents, how often the phrase is in each) of those that hold it, ascending.

    Term t has docs[begins[t]:ends[t]], whose positions begin at packed[starts[t]], see `pack_positions`. All
    stand at their offsets from one another. freqs and high: see `narrow_freqs`. slots, guide and rows are of
    `DensePositions`.
    """
    without = np.count_nonzero(rows == 0)
    if without < 2 and len(rows) > 1 and offsets.max() - offsets.min() <= SHIFT_MAX:
        if without == 0:
            return phrases_of_rows(rows, offsets, slots, guide, (ends - begins).min())
        alone = int(np.argmin(rows))
        return phrases_with_rows(
            docs, freqs, high, begins[alone], ends[alone], packed, starts[alone], alone, offsets, slots, rows
        )
    return _phrases_of_packed(docs, freqs, high, begins, ends, packed, starts, offsets)


@compiled(nogil=True)
def _phrases_of_packed(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    begins: Longs,
    ends: Longs,
    packed: Bytes,
    starts: Longs,
    offsets: Longs,
) -> Any:
    """The same from packed positions alone."""
    terms = len(begins)
    rarest = int(np.argmin(ends - begins))
    found = np.empty(ends[rarest] - begins[rarest], np.int32)
    counts = np.empty(len(found), np.float32)
    number = 0
    at, read = begins.copy(), begins.copy()  # the posting of each, and the one that its place is at
    places, here = starts.copy(), np.empty(terms, np.int64)
    current, left = np.empty(terms, np.int64), np.empty(terms, np.int64)
    for i in range(begins[rarest], ends[rarest]):
        doc, is_there = docs[i], True
        at[rarest] = i
        for term in range(terms):
            if term != rarest:
                at[term] = sought(docs, at[term], ends[term], doc)
                if at[term] == ends[term]:
                    return found[:number].copy(), counts[:number].copy()
                if docs[at[term]] != doc:
                    is_there = False
                    break
        if not is_there:
            continue
        for term in range(terms):
            count = _frequencies(freqs, high, read[term], at[term])
            places[term] = _passed(packed, places[term], count)
            read[term], here[term] = at[term], places[term]
            left[term] = freq_at(freqs, high, at[term]) - 1
            current[term] = _step(packed, here, term)
        count, going = 0, True
        while going:
            first, is_met = current[0] - offsets[0], True
            for term in range(1, terms):
                wanted = first + offsets[term]
                while current[term] < wanted and left[term] > 0:
                    current[term] += _step(packed, here, term)
                    left[term] -= 1
                if current[term] != wanted:
                    is_met, going = False, current[term] > wanted  # else it has no more
                    break
            count += is_met
            if left[0] == 0:
                going = False
            if going:
                current[0] += _step(packed, here, 0)
                left[0] -= 1
        if count:
            found[number], counts[number] = doc, count
            number += 1
    return found[:number].copy(), counts[:number].copy()
