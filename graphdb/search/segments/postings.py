"""How often terms are in documents, and where: frequencies of one byte, positions of as few as they need.

Most frequencies are small. One of 255 or more has 255 in its byte, and is found whole in a second array. The
positions of a posting are LEB128 varints of 7 bits a byte: the first one, then the steps to the next.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Ints, Longs

__all__ = [
    "ESCAPE",
    "Bytes",
    "freq_at",
    "high_freq",
    "narrow_freqs",
    "pack_positions",
    "packed_length",
    "unpack_positions",
    "varint_at",
    "whole_freqs",
]

Bytes: TypeAlias = NDArray[np.uint8]
ESCAPE = 255  # the byte of all frequencies from there on


def narrow_freqs(freqs: Ints) -> tuple[Bytes, Longs]:
    """(bytes, high): high has, ascending, place << 32 | frequency of each whose byte is 255."""
    places = np.flatnonzero(freqs >= ESCAPE)
    return np.minimum(freqs, ESCAPE).astype(np.uint8), places << 32 | freqs[places]


def whole_freqs(narrow: Bytes, high: Longs, start: int, stop: int) -> Ints:
    """The frequencies at the places in [start, stop)."""
    freqs = narrow[start:stop].astype(np.int32)
    if len(high):
        first, last = np.searchsorted(high, np.array([start, stop], np.int64) << 32)
        freqs[(high[first:last] >> 32) - start] = high[first:last] & 0xFFFFFFFF
    freqs.setflags(write=False)  # as the other arrays of a segment: loops are compiled for one kind
    return freqs


@compiled(nogil=True)
def freq_at(narrow: Bytes, high: Longs, place: int) -> Any:
    """The frequency at a place."""
    freq = np.int64(narrow[place])
    return high_freq(high, place) if freq == ESCAPE else freq


@compiled(nogil=True)
def high_freq(high: Longs, place: int) -> Any:
    """That at a place whose byte is `ESCAPE`."""
    return high[np.searchsorted(high, np.int64(place) << 32)] & 0xFFFFFFFF


@compiled(nogil=True)
def pack_positions(starts: Any, freqs: Any, positions: Any) -> Any:
    """(byte_starts, packed): of term t, whose postings are those in [starts[t], starts[t + 1]), the positions
    are packed[byte_starts[t]:byte_starts[t + 1]]. freqs are whole; positions are those of all postings.
    """
    packed = np.empty(5 * len(positions), np.uint8)
    byte_starts = np.zeros(len(starts), np.int64)
    number = end = 0
    for term in range(len(starts) - 1):
        for i in range(starts[term], starts[term + 1]):
            before = np.int64(0)
            for _ in range(freqs[i]):
                step = positions[number] - before
                before += step
                number += 1
                while step >= 128:
                    packed[end] = step & 127 | 128
                    step >>= 7
                    end += 1
                packed[end] = step
                end += 1
        byte_starts[term + 1] = end
    return byte_starts, packed[:end].copy()


@compiled(nogil=True)
def unpack_positions(packed: Any, freqs: Any) -> Any:
    """The positions (int32) of postings with these whole frequencies, in turn."""
    positions = np.empty(freqs.sum(), np.int32)
    number = posting = left = 0
    step = shift = position = np.int64(0)
    for place in range(len(packed)):  # one loop, for most steps have one byte: half the time of three
        byte = np.int64(packed[place])
        if byte >= 128:
            step |= (byte & 127) << shift
            shift += 7
            continue
        if left == 0:
            left, position = freqs[posting], np.int64(0)
            posting += 1
        position += step | byte << shift
        positions[number] = position
        step = shift = np.int64(0)
        number += 1
        left -= 1
    return positions


@compiled(nogil=True)
def varint_at(packed: Bytes, place: int) -> Any:
    """(the varint at a place, the place behind it)."""
    byte = np.int64(packed[place])
    number, shift = byte & 127, 7
    while byte >= 128:
        place += 1
        byte = np.int64(packed[place])
        number |= (byte & 127) << shift
        shift += 7
    return number, place + 1


@compiled(nogil=True)
def packed_length(packed: Any, start: int, freq: int) -> Any:
    """How many bytes the positions of a posting take that begin at start."""
    end = start
    for _ in range(freq):
        while packed[end] >= 128:
            end += 1
        end += 1
    return end - start
