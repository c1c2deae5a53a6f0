"""`Codes`: the rows of a graph, small: an element in 8, 4 or 1 bits, or as it is where those are too few; or
bits.

Distances between codes and a query only say whom to look at: scores are of the rows themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.search.leaf_reader import Floats
from graphdb.search.mapping.vectors import HAMMING
from graphdb.search.vectors.quantizing import (
    PLANES,
    TERMS,
    asked_of_bits,
    asked_of_nibbles,
    quantized,
    rotated,
    signs_for,
)

__all__ = ["BITS", "LINE_BYTES", "Asked", "Codes", "aligned", "prepared", "prepared_parts"]

BITS = (1, 4, 8, 32)
"""What an element of a row may take: see `Codes.of`."""

_BYTE = 8
_MOST = 127
_TINY = np.finfo(np.float32).tiny
LINE_BYTES = 64  # what a processor fetches at a time
_BATCH = 2_048  # rows that are prepared at a time


@dataclass(frozen=True, slots=True)
class Codes:
    """Of the prepared rows. Nearness is distance for l2_norm, a larger product for all others; of HAMMING
    how many bits of words differ.

    In 8 bits, or as they are: row[c] is about codes[row, c] * steps[c] + offsets[c]. In 4 bits or 1 bit:
    offsets is the rows' centre, steps the signs of the rotation, and a row of codes ends with its terms
    (`quantizing`).
    """

    similarity: str
    codes: NDArray[
        Any
    ]  # (rows, dims) int8 or float32; of 4 bits (rows, bytes) uint8; of bits (rows, words) uint64
    steps: Floats
    offsets: Floats

    @classmethod
    def of(cls, rows: NDArray[Any], similarity: str, bits: int) -> "Codes":
        """bits an element: one of BITS. Rows of bits stay as they are, whatever it says."""
        if similarity == HAMMING:
            one = np.ones(1, np.float32)
            return cls(similarity, _words(rows), one, one)
        if bits < _BYTE:
            return cls._quantized(rows, similarity, bits)
        dims = rows.shape[1]
        codes = aligned(rows.shape, np.float32 if bits > _BYTE else np.int8)
        steps, offsets = (np.ones(dims), np.zeros(dims)) if bits > _BYTE else _scale(rows, similarity)
        start = 0
        for part in prepared_parts(rows, similarity):
            scaled = part if bits > _BYTE else np.rint((part - offsets) / steps)
            codes[start : start + len(part)] = scaled
            start += len(part)
        codes.setflags(write=False)
        return cls(similarity, codes, steps.astype(np.float32), offsets.astype(np.float32))

    @classmethod
    def _quantized(cls, rows: Floats, similarity: str, bits: int) -> "Codes":
        centre = _centre(rows, similarity)
        signs = signs_for(rows.shape[1], bits)
        raw = aligned((len(rows), row_bytes(signs.shape[1], bits)), np.uint8)
        raw[:] = 0
        start = 0
        for part in prepared_parts(rows, similarity):
            centred = part - centre
            is_distance = similarity == "l2_norm"
            addends = np.einsum("ij,ij->i", centred, centred) / 2 if is_distance else part @ centre
            quantized(rotated(centred, signs), addends, bits, raw[start : start + len(part)])
            start += len(part)
        codes: NDArray[Any] = raw.view(np.uint64) if bits == 1 else raw
        codes.setflags(write=False)
        return cls(similarity, codes, signs, centre)

    @property
    def bits(self) -> int:
        """How many an element of a row takes, without the terms."""
        if self.codes.dtype == np.uint64:
            return 1
        return 4 if self.codes.dtype == np.uint8 else 8 * self.codes.itemsize

    @property
    def row_bytes(self) -> int:
        return int(self.codes.strides[0])

    def terms(self) -> Floats | None:
        """(rows, TERMS) of rows in 4 bits or 1 bit: what corrects products of their codes."""
        if self.similarity == HAMMING or self.bits not in (1, 4):
            return None
        terms: Floats = self.codes.view(np.float32)[:, -TERMS:]
        return terms

    def asked(self, vector: NDArray[Any]) -> "Asked":
        """A query in the measure of the codes."""
        if self.similarity == HAMMING:
            return Asked(self.steps, None, _words(vector[np.newaxis])[0], None)
        terms = self.terms()
        if terms is not None:
            return self._asked_of_few(vector, terms)
        if self.similarity == "l2_norm":
            weights = self.steps / self.steps.max()
            return Asked((vector - self.offsets) / self.steps, weights * weights, None, None)
        # Neither the query's length nor what the offsets add changes which rows are nearer than others.
        return Asked(_of_length_one(vector) * self.steps, None, None, None)

    def _asked_of_few(self, vector: Floats, terms: Floats) -> "Asked":
        """With <row, centre> of each row the product is <row - centre, query - share * centre> +
        share * <row, centre>, whatever the share, but for what is the same for all rows. The share
        that leaves the shortest query loses least.
        """
        weights = np.ones(4, np.float32)
        centred = vector - self.offsets
        if self.similarity != "l2_norm":
            query, centre = _of_length_one(vector), self.offsets
            length = float(centre @ centre)
            share = np.float32(query @ centre / length if length > _TINY else 0)
            centred, weights[3] = query - share * centre, -share
        turned = rotated(centred[np.newaxis], self.steps)[0]
        if self.bits == 1:
            words = np.zeros(PLANES * len(turned) // 64, np.uint64)
            asked_of_bits(turned, words, weights)
            return Asked(turned, weights, words, terms)
        codes = np.empty(len(turned), np.int16)
        asked_of_nibbles(turned, codes, weights)
        return Asked(codes, weights, None, terms)


class Asked(NamedTuple):
    """A query as the loops of `walk` take it."""

    query: NDArray[Any]
    weights: Floats | None
    words: NDArray[np.uint64] | None
    terms: Floats | None


def row_bytes(width: int, bits: int) -> int:
    """What a row of width elements takes in 4 bits or 1 bit, its terms included."""
    size = width * bits // 8
    return size + -size % 4 + 4 * TERMS


def _of_length_one(vector: Floats) -> Floats:
    """Its greatest element is 1 or -1."""
    scaled: Floats = vector / np.abs(vector).max(initial=_TINY)
    return scaled


def _centre(rows: Floats, similarity: str) -> Floats:
    total = np.zeros(rows.shape[1])
    for part in prepared_parts(rows, similarity):
        total += part.sum(axis=0, dtype=np.float64)
    return (total / max(len(rows), 1)).astype(np.float32)


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
