"""Metrics between vectors, and their kernels."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Floats, Ints
from graphdb.search.mapping.vectors import HAMMING

__all__ = ["Metric", "cosines", "dots", "of_usual_length", "squared_distances"]

# The loops over rows of a matrix that Numba compiles.
#
# Sums may be taken in any order, so that they use the processor's wide registers; what is infinite or no
# number stays so.

_ANY_ORDER = {"reassoc", "contract", "nsz"}
_LEAST, _MOST = np.float32(1e-24), np.float32(1e24)  # squared lengths between which 32 bits are good enough


@compiled(nogil=True, fastmath=_ANY_ORDER)
def dots(rows: Floats, which: Ints, vector: Floats, out: Floats) -> None:
    """out[j] = the dot product of row which[j] and vector."""
    dims = len(vector)
    for j in range(len(which)):
        row = rows[which[j]]
        total = np.float32(0)
        for c in range(dims):
            total += row[c] * vector[c]
        out[j] = total


@compiled(nogil=True, fastmath=_ANY_ORDER)
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


@compiled(nogil=True, fastmath=_ANY_ORDER)
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


# `Metric`: how alike two vectors are, as a score; Elasticsearch's formulas.

_SCORE_MAX = 1e30  # as of any score: sums of a few stay numbers in 32 bits
_BYTE_SCALE = 1 << 15
_SHORT, _LONG = 1e-10, 1e10
_KERNELS = {"cosine": cosines, "l2_norm": squared_distances}


@dataclass(frozen=True, slots=True)
class Metric:
    """similarity is one of `mapping.vectors.SIMILARITIES`, or HAMMING: then rows and vectors are of bytes,
    each of eight of the dims.
    """

    similarity: str
    dims: int
    is_byte: bool = False

    def scores(self, rows: NDArray[Any], which: Ints, vector: NDArray[Any]) -> Floats:
        """The scores of some rows: the same for a row whatever others are asked for with it."""
        if self.similarity == HAMMING:
            differ = np.bitwise_count(rows[which] ^ vector).sum(axis=1, dtype=np.int64)
            return self._score(differ).astype(np.float32)
        out = np.empty(len(which), np.float32)
        _KERNELS.get(self.similarity, dots)(rows, which, vector, out)
        if not np.isfinite(out).all():
            self._mend(rows, which, vector, out)
        if self.similarity == "cosine":
            return (np.clip(out, np.float32(-1), np.float32(1)) + np.float32(1)) * np.float32(0.5)
        with np.errstate(over="ignore"):
            scores: Floats = np.clip(self._score(out), np.float32(0), np.float32(_SCORE_MAX))
        return scores

    def threshold(self, similarity: float) -> float:
        """The score at a `similarity` of a request: of l2_norm the distance, not its square; of bits how many
        of them differ.
        """
        raw = similarity * similarity if self.similarity == "l2_norm" else similarity
        with np.errstate(over="ignore"):
            return float(self._score(np.array([raw], np.float64))[0])

    def _score(self, raw: NDArray[Any]) -> NDArray[Any]:
        """raw is cosine, dot product, squared distance or Hamming distance."""
        if self.similarity == HAMMING:
            return (self.dims - raw) / self.dims
        if self.similarity == "l2_norm":
            return 1 / (1 + raw)
        if self.similarity == "max_inner_product":
            return np.where(raw < 0, 1 / (1 - np.minimum(raw, 0)), raw + 1)
        if self.similarity == "dot_product" and self.is_byte:
            return 0.5 + raw / (self.dims * _BYTE_SCALE)
        return (1 + raw) / 2

    def _mend(self, rows: Floats, which: Ints, vector: Floats, out: Floats) -> None:
        """Once more in 64 bits what 32 are too few for."""
        lost = np.flatnonzero(~np.isfinite(out))
        wide, query = rows[which[lost]].astype(np.float64), vector.astype(np.float64)
        is_distance = self.similarity == "l2_norm"
        exact = np.square(wide - query).sum(axis=1) if is_distance else wide @ query
        if self.similarity == "cosine":
            exact /= np.linalg.norm(wide, axis=1) * math.sqrt(float(query @ query))
        limit = np.finfo(np.float32).max
        out[lost] = np.clip(exact, -limit, limit)


def of_usual_length(vector: Floats) -> Floats:
    """The same vector, of unit length where its own is one that 32 bits are too few for; for cosines."""
    wide = vector.astype(np.float64)
    length = math.sqrt(float(wide @ wide))
    return vector if _SHORT < length < _LONG else (wide / length).astype(np.float32)
