"""What the loops over postings share (Numba): scores, what they may come to, look-ups, the best so far."""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Longs
from graphdb.search.query.field_table import BLOCK
from graphdb.search.segments.postings import ESCAPE, Bytes, freq_at, high_freq

__all__ = ["FREQ_MAX", "SLACK", "Ceilings", "bounds_of", "floor_of_one", "keep", "score_of", "sought"]

Ceilings: TypeAlias = NDArray[np.uint32]
"""What no posting of a block is above: the highest frequency, and in the last byte the least norm."""

FREQ_MAX: Final = (1 << 24) - 1
"""The highest frequency that a ceiling has; it stands for any from there on."""

SLACK: Final = 1 + 1e-12  # for what sums of doubles lose in rounding
_LOOKED_AT = 8  # times k postings, for a first floor
_NEAR = 8  # postings that are compared at once


@compiled(nogil=True)
def bounds_of(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    begins: Longs,
    ends: Longs,
    weights: Floats,
    norms: Bytes,
    inverse: Floats,
    ceilings: Ceilings,
) -> Doubles:
    """What the terms from each on may add together. A score rises with the frequency and falls with the norm,
    and so does its rounding: none is above that of the highest frequency with the least norm of its block.
    """
    bounds = np.zeros(len(weights) + 1)
    for term in range(len(weights) - 1, -1, -1):
        top = np.float32(0)
        for block in range(begins[term] // BLOCK, (ends[term] + BLOCK - 1) // BLOCK):
            if ceilings[block] == 0:
                ceilings[block] = _ceiling(docs, freqs, high, norms, block)
            freq, norm = ceilings[block] >> 8, ceilings[block] & 255
            top = max(
                top, weights[term] if freq == FREQ_MAX else score_of(weights[term], freq, inverse[norm])
            )
        bounds[term] = (bounds[term + 1] + top) * SLACK
    return bounds


@compiled(nogil=True)
def _ceiling(docs: Ints, freqs: Bytes, high: Longs, norms: Bytes, block: int) -> np.uint32:
    """The highest frequency of a block of postings, and the least norm of its documents in the last byte."""
    freq, norm = 1, 255
    for i in range(block * BLOCK, min((block + 1) * BLOCK, len(docs))):
        freq, norm = max(freq, freq_at(freqs, high, i)), min(norm, norms[docs[i]])
    return np.uint32(min(freq, FREQ_MAX) << 8 | norm)


@compiled(nogil=True)
def floor_of_one(
    docs: Ints,
    freqs: Bytes,
    high: Longs,
    begins: Longs,
    ends: Longs,
    weights: Floats,
    norms: Bytes,
    inverse: Floats,
    allowed: Bools,
    k: int,
) -> float:
    """Right below a score that k documents have by one term alone, the heaviest that soon has so many."""
    for term in range(len(weights)):
        found, least = 0, np.float32(np.inf)
        for i in range(begins[term], min(ends[term], begins[term] + _LOOKED_AT * k)):
            if allowed[docs[i]]:
                freq = np.int64(freqs[i])
                if freq == ESCAPE:
                    freq = high_freq(high, i)
                least = min(least, score_of(weights[term], freq, inverse[norms[docs[i]]]))
                found += 1
                if found == k:
                    return float(np.nextafter(least, np.float32(-np.inf)))
    return -np.inf


@compiled(nogil=True)
def score_of(weight: np.float32, freq: Any, inverse: np.float32) -> np.float32:
    return np.float32(weight - weight / (np.float32(1) + np.float32(freq) * inverse))


@compiled(nogil=True)
def sought(docs: Ints, place: int, stop: int, doc: int) -> int:
    """The first place from there on whose document is not before doc."""
    if place + _NEAR <= stop:  # mostly it is near, and nothing has to be guessed
        passed = 0
        for i in range(_NEAR):
            passed += docs[place + i] < doc
        place += passed
        if passed < _NEAR:
            return place
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


@compiled(nogil=True)
def keep(kept: Longs, best: Floats, doc: int, score: np.float32) -> None:
    """Put it in its place among the best, if it has one."""
    place = len(best)
    if score <= best[place - 1]:
        return
    place -= 1
    while place > 0 and best[place - 1] < score:
        best[place], kept[place] = best[place - 1], kept[place - 1]
        place -= 1
    best[place], kept[place] = score, doc
