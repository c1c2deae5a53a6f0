"""The loops that find phrases where all terms, or all but one, have their positions as bits.

Of slots, rows and the guide see `DensePositions`. The rows are given by their addresses, as their number
varies: `_row` reads one.
"""

from typing import Any

import numpy as np

from graphdb.search.bit_words import lowest_bit
from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Ints, Longs
from graphdb.search.query.field_table import eights_at
from graphdb.search.query.posting_steps import sought
from graphdb.search.segments.postings import Bytes, freq_at, varint_at

__all__ = ["GUIDED", "SHIFT_MAX", "phrases_of_rows", "phrases_with_rows", "words_of"]

_CHUNK = 512  # words of rows that are compared at once
GUIDED = 512  # slots for which the guide has one document
SHIFT_MAX = 64 * _CHUNK - 1  # how far the places of a phrase may be from one another
_GROUP = 8  # words that are passed over at once where they have nothing in common


@compiled(nogil=True)
def words_of(slots: Ints) -> Any:
    """How many words a row has: whole chunks, and behind them one more and a word, for rows are shifted."""
    return (slots[-1] // (64 * _CHUNK) + 2) * _CHUNK + 1


@compiled(nogil=True)
def _row(address: int, slots: Ints) -> Any:
    return eights_at(address, words_of(slots))


@compiled(nogil=True)
def phrases_of_rows(rows: Longs, offsets: Longs, slots: Ints, guide: Ints, most: int) -> Any:
    """As `phrases_in`, of terms that all have a row; most: no more documents hold the phrase."""
    lead, span = int(np.argmin(offsets)), offsets.max() - offsets.min()
    first = _row(rows[lead], slots)
    found, counts, number = np.empty(most, np.int32), np.empty(most, np.float32), 0
    common, doc, end = np.empty(_CHUNK, np.uint64), -1, np.int64(0)
    for base in range(0, len(first) - _CHUNK - 1, _CHUNK):
        common[:] = first[base : base + _CHUNK]
        for term in range(len(rows)):
            if term != lead:
                shift = offsets[term] - offsets[lead]
                start, right = base + (shift >> 6), np.uint64(shift & 63)
                left = np.uint64(63) - right
                row = _row(rows[term], slots)
                here, then = row[start : start + _CHUNK], row[start + 1 : start + 1 + _CHUNK]
                for i in range(_CHUNK):
                    common[i] &= (here[i] >> right) | (then[i] << left << np.uint64(1))
        for group in range(0, _CHUNK, _GROUP):
            held = np.uint64(0)
            for i in range(_GROUP):
                held |= common[group + i]
            if held == 0:
                continue
            for i in range(group, group + _GROUP):
                word = common[i]
                while word != 0:
                    slot = 64 * (base + i) + lowest_bit(word)
                    word &= word - np.uint64(1)
                    if slot >= end:
                        doc = sought(slots, max(guide[slot // GUIDED], doc), len(slots), slot + 1) - 1
                        end = np.int64(slots[doc + 1])
                    if slot + span >= end:  # its last term is of another document
                        continue
                    if number > 0 and found[number - 1] == doc:
                        counts[number - 1] += 1
                    else:
                        found[number], counts[number] = doc, 1
                        number += 1
    return found[:number].copy(), counts[:number].copy()


@compiled(nogil=True)
def phrases_with_rows(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    begin: int,
    end: int,
    packed: Bytes,
    place: int,
    alone: int,
    offsets: Longs,
    slots: Ints,
    rows: Longs,
) -> Any:
    """As `phrases_in`, where all but the term `alone` have a row, and this one has the postings in
    [begin, end), whose positions begin at a place.
    """
    found, counts, number = np.empty(end - begin, np.int32), np.empty(end - begin, np.float32), 0
    for i in range(begin, end):
        low, stop = np.int64(slots[docs[i]]), np.int64(slots[docs[i] + 1])
        slot, count = low, 0
        for nth in range(freq_at(freqs, high, i)):
            step, place = varint_at(packed, place)
            slot += step
            if nth > 0 and step == 0 and alone > 0:
                continue  # a phrase counts as often as its first term
            is_met = True
            for term in range(len(rows)):
                if term != alone:
                    wanted = slot + offsets[term] - offsets[alone]
                    if wanted < low or wanted >= stop:
                        is_met = False
                        break
                    word = _row(rows[term], slots)[wanted >> 6]
                    is_met &= (word >> np.uint64(wanted & 63)) & np.uint64(1) != 0
            count += is_met
        found[number], counts[number] = docs[i], count
        number += count > 0
    return found[:number].copy(), counts[:number].copy()
