"""The loops over rows of a matrix that Numba compiles.

Sums may be taken in any order, so that they use the processor's wide registers; what is infinite or no number
stays so.
"""

import numba
import numpy as np

from graphdb.search.segment import Floats, Ints

__all__ = ["cosines", "dots", "squared_distances"]

_ANY_ORDER = {"reassoc", "contract", "nsz"}
_LEAST, _MOST = np.float32(1e-24), np.float32(1e24)  # squared lengths between which 32 bits are good enough


@numba.njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def dots(rows: Floats, which: Ints, vector: Floats, out: Floats) -> None:
    """out[j] = the dot product of row which[j] and vector."""
    dims = len(vector)
    for j in range(len(which)):
        row = rows[which[j]]
        total = np.float32(0)
        for c in range(dims):
            total += row[c] * vector[c]
        out[j] = total


@numba.njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def squared_distances(rows: Floats, which: Ints, vector: Floats, out: Floats) -> None:
    """out[j] = the squared distance between row which[j] and vector."""
    dims = len(vector)
    for j in range(len(which)):
        row = rows[which[j]]
        total = np.float32(0)
        for c in range(dims):
            step = row[c] - vector[c]
            total += step * step
        out[j] = total


@numba.njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def cosines(rows: Floats, which: Ints, vector: Floats, out: Floats) -> None:
    """out[j] = the cosine of row which[j] and vector; NaN where lengths are too far from 1 for 32 bits."""
    dims = len(vector)
    own = np.float32(0)
    for c in range(dims):
        own += vector[c] * vector[c]
    for j in range(len(which)):
        row = rows[which[j]]
        total, squares = np.float32(0), np.float32(0)
        for c in range(dims):
            total += row[c] * vector[c]
            squares += row[c] * row[c]
        good = _LEAST < squares < _MOST and _LEAST < own < _MOST
        out[j] = total / np.sqrt(squares * own) if good else np.float32(np.nan)
