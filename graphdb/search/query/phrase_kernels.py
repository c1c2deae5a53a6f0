"""The loops over positions that find phrases, compiled by Numba."""

import numba
import numpy as np

from graphdb.search.segment import Floats, Ints, Longs

__all__ = ["exact_frequencies", "sloppy_frequencies"]

EXHAUSTED = 2**31 - 1


@numba.njit(cache=True, nogil=True)
def exact_frequencies(starts: Longs, stops: Longs, positions: Ints, offsets: Longs) -> Floats:
    """How often all terms stand at their offsets from one another, by document.

    starts and stops are (documents, terms): where in positions those of a term in a document are.
    """
    documents, terms = starts.shape
    freqs = np.zeros(documents, np.float32)
    at = np.zeros(terms, np.int64)
    for doc in range(documents):
        at[:] = starts[doc]
        for first in range(starts[doc, 0], stops[doc, 0]):
            begin, met = positions[first] - offsets[0], True
            for term in range(1, terms):
                wanted = begin + offsets[term]
                while at[term] < stops[doc, term] and positions[at[term]] < wanted:
                    at[term] += 1
                if at[term] >= stops[doc, term] or positions[at[term]] != wanted:
                    met = False
                    break
            freqs[doc] += met
    return freqs


@numba.njit(cache=True, nogil=True)
def _least(place: Longs, offsets: Longs) -> int:
    """The term whose place is least, ties by offset."""
    best = 0
    for term in range(1, len(place)):
        if place[term] < place[best] or (place[term] == place[best] and offsets[term] < offsets[best]):
            best = term
    return best


@numba.njit(cache=True, nogil=True)
def _advance(term: int, at: Longs, place: Longs, stops: Longs, positions: Ints, offsets: Longs) -> bool:
    """Move one term to its next position; place is the position less its offset."""
    at[term] += 1
    if at[term] >= stops[term]:
        return False
    place[term] = positions[at[term]] - offsets[term]
    return True


@numba.njit(cache=True, nogil=True)
def _separate(
    term: int, group: Longs, at: Longs, place: Longs, stops: Longs, positions: Ints, offsets: Longs
) -> bool:
    """No two of one group of equal terms may stand on the same position: the lesser of two goes on."""
    while True:
        other = -1
        for candidate in range(len(group)):
            same = group[candidate] == group[term] and candidate != term
            if same and place[candidate] + offsets[candidate] == place[term] + offsets[term]:
                other = candidate
                break
        if other < 0:
            return True
        if place[other] < place[term] or (place[other] == place[term] and offsets[other] < offsets[term]):
            term = other
        if not _advance(term, at, place, stops, positions, offsets):
            return False


@numba.njit(cache=True, nogil=True)
def _sloppy(starts: Longs, stops: Longs, positions: Ints, offsets: Longs, group: Longs, slop: int) -> float:
    """The sum of 1 / (1 + distance) over the matches in one document."""
    terms = len(starts)
    at, place = starts.copy(), np.zeros(terms, np.int64)
    for term in range(terms):
        place[term] = positions[at[term]] - offsets[term]
    for term in range(terms):
        if not _separate(term, group, at, place, stops, positions, offsets):
            return 0.0
    end, freq = place.max(), 0.0
    while True:
        term = _least(place, offsets)
        length = end - place[term]
        going = True
        following = EXHAUSTED
        for other in range(terms):
            if other != term:
                following = min(following, place[other])
        while going and place[term] <= following:
            length = min(length, end - place[term])
            going = _advance(term, at, place, stops, positions, offsets)
            if going:
                going = _separate(term, group, at, place, stops, positions, offsets)
                end = max(end, place.max())
        if length <= slop:
            freq += 1.0 / (1.0 + length)
        if not going:
            return freq


@numba.njit(cache=True, nogil=True)
def sloppy_frequencies(
    starts: Longs, stops: Longs, positions: Ints, offsets: Longs, group: Longs, slop: int
) -> Floats:
    """As `exact_frequencies`, with terms up to slop moves away from their offsets; equal terms share a group.

    Source: Lucene's SloppyPhraseMatcher: from the least of the terms' places on, the nearest match to each.
    """
    freqs = np.zeros(len(starts), np.float32)
    for doc in range(len(starts)):
        freqs[doc] = _sloppy(starts[doc], stops[doc], positions, offsets, group, slop)
    return freqs
