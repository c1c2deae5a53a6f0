"""`Codes`: the rows of a graph, small: an element in 8 bits, or as it is where those are too few, or bits.

Distances between codes and a query only say whom to look at: scores are of the rows themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.leaf_reader import Floats
from graphdb.search.mapping.vectors import HAMMING

__all__ = ["LINE_BYTES", "Codes", "aligned", "prepared", "prepared_parts"]

_MOST = 127
_TINY = np.finfo(np.float32).tiny
LINE_BYTES = 64  # what a processor fetches at a time
_BATCH = 2_048  # rows that are prepared at a time


@dataclass(frozen=True, slots=True)
class Codes:
    """Of the prepared rows; row[c] is about codes[row, c] * steps[c] + offsets[c]. Nearness is distance for
    l2_norm, a larger dot product for all others; of HAMMING how many bits of words differ.
    """

    similarity: str
    codes: NDArray[Any]  # (rows, dims) int8 or float32; of bits (rows, words) uint64, the last one filled up
    steps: Floats
    offsets: Floats

    @classmethod
    def of(cls, rows: NDArray[Any], similarity: str, whole: bool) -> "Codes":
        """whole: elements as they are."""
        if similarity == HAMMING:
            one = np.ones(1, np.float32)
            return cls(similarity, _words(rows), one, one)
        dims = rows.shape[1]
        codes = aligned(rows.shape, np.float32 if whole else np.int8)
        steps, offsets = (np.ones(dims), np.zeros(dims)) if whole else _scale(rows, similarity)
        start = 0
        for part in prepared_parts(rows, similarity):
            scaled = part if whole else np.rint((part - offsets) / steps)
            codes[start : start + len(part)] = scaled
            start += len(part)
        codes.setflags(write=False)
        return cls(similarity, codes, steps.astype(np.float32), offsets.astype(np.float32))

    def asked(self, vector: NDArray[Any]) -> tuple[Floats, Floats | None, NDArray[np.uint64] | None]:
        """A query as the loops of `walk` take it: (query, weights, words) in the measure of the codes."""
        if self.similarity == HAMMING:
            return self.steps, None, _words(vector[np.newaxis])[0]
        if self.similarity == "l2_norm":
            weights = self.steps / self.steps.max()
            return (vector - self.offsets) / self.steps, weights * weights, None
        # Neither the query's length nor what the offsets add changes which rows are nearer than others.
        return vector / np.abs(vector).max(initial=_TINY) * self.steps, None, None


def aligned(shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    """Room for an array, its beginning where a line of the processor's cache begins."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    room = np.empty(size + LINE_BYTES, np.uint8)
    start = -room.ctypes.data % LINE_BYTES
    array: NDArray[Any] = room[start : start + size].view(kind).reshape(shape)
    return array


def _words(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bytes as rows of words."""
    words: NDArray[np.uint64] = aligned((len(rows), -(-rows.shape[1] // 8)), np.uint64)
    words[:] = 0
    words.view(np.uint8)[:, : rows.shape[1]] = rows
    words.setflags(write=False)
    return words


def prepared(rows: NDArray[Any], similarity: str) -> NDArray[Any]:
    """Rows as they are compared: of unit length for cosines."""
    if similarity == HAMMING:
        return rows
    if similarity != "cosine":
        return np.ascontiguousarray(rows, np.float32)
    wide = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    return np.ascontiguousarray(wide / np.where(lengths > 0, lengths, 1), np.float32)


def prepared_parts(rows: NDArray[Any], similarity: str) -> Iterator[NDArray[Any]]:
    """All rows, some at a time."""
    for start in range(0, len(rows), _BATCH):
        yield prepared(rows[start : start + _BATCH], similarity)


def _scale(rows: Floats, similarity: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(steps, offsets) such that the least and the greatest of each element can be distinguished."""
    least = np.full(rows.shape[1], np.inf)
    greatest = -least
    for part in prepared_parts(rows, similarity):
        np.minimum(least, part.min(axis=0), out=least)
        np.maximum(greatest, part.max(axis=0), out=greatest)
    steps = (greatest - least) / (2 * _MOST)
    return np.where(steps > 0, steps, 1), (greatest + least) / 2
