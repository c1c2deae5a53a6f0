"""Scores as the fewest decimal digits that tell them from other 32-bit floats, written by compiled code."""

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled

__all__ = ["DIGITS_MAX", "write_digits"]

DIGITS_MAX = 24
"""Bytes that one takes at most."""

_LEAST, _BOUND = 1e-3, 1e6  # that are written: there a score times a power of ten is exact as a double
_PLACES_MAX = 12  # behind the point
_POWERS = np.array([10**places for places in range(_PLACES_MAX + 1)], np.int64)


@compiled()
def write_digits(out: NDArray[np.uint8], place: int, score: np.float32, bits: int) -> int:
    """Write a score, whose bits these are, to out from a place on; returns the place behind it. -1 for one
    that is below 0.001, or not below a million.

    A score has 24 bits and five to the twelfth 28, so its product with a power of ten up to that is exact,
    and so is its distance from the nearest integer. As few places are taken as bring that within half of the
    distance to the next float, on its side.
    """
    value = np.float64(score)
    if not _LEAST <= value < _BOUND:
        return -1
    half = 2.0 ** ((bits >> 23) - 127 - 24)
    below = half if bits & 0x7FFFFF else half / 2  # of a power of two, the float before is nearer
    is_even = bits & 1 == 0
    places, whole = _PLACES_MAX, 0
    for some in range(_PLACES_MAX + 1):
        power = np.float64(_POWERS[some])
        nearest = np.rint(value * power)
        off = nearest - value * power
        bound = half * power if off > 0 else below * power
        if abs(off) < bound or (is_even and abs(off) == bound):
            places, whole = some, int(nearest)
            break
    return _write(out, place, whole, places)


@compiled()
def _write(out: NDArray[np.uint8], place: int, whole: int, places: int) -> int:
    """An integer with a point before the last of its digits."""
    front, back = whole // _POWERS[places], whole % _POWERS[places]
    count = 1
    while count <= _PLACES_MAX and front >= _POWERS[count]:
        count += 1
    for digit in range(count):
        out[place + count - 1 - digit] = 48 + front % 10
        front //= 10
    place += count
    if places:
        out[place] = 46
        for digit in range(places):
            out[place + places - digit] = 48 + back % 10
            back //= 10
        place += places + 1
    return place
