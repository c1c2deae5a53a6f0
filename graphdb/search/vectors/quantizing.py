"""Rows of vectors in 4 bits or in 1 bit an element, with what corrects the products of such codes.

A row is centred, rotated, and put on a grid of 16 or 2 steps that is as wide as suits the row best. What is
left of it are the codes and, in 32 bits each, a factor, an addend and the sum of its codes. The factor is
such that the row's product with itself comes out exact, so the estimate of a product with anything else is
not biased. A query is centred and rotated, too, and has 16 steps against bits, and 2 * 8191 + 1 against codes
of 4 bits.

The rotation spreads what differs in a few elements over all: grids of equal steps then suit every row alike.

Source: Gao and Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound for
Approximate Nearest Neighbor Search", 2024; for more than one bit Gao and others, "Practical and
Asymptotically Optimal Quantization of High-Dimensional Vectors in Euclidean Space", 2025. The rotation by
signs and fast Hadamard transforms: Ailon and Chazelle, "The Fast Johnson-Lindenstrauss Transform", 2009.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Floats

__all__ = [
    "ADDEND",
    "FACTOR",
    "PLANES",
    "SUM",
    "TERMS",
    "asked_of_bits",
    "asked_of_nibbles",
    "quantized",
    "rotated",
    "signs_for",
]

Bytes = NDArray[np.uint8]

TERMS = 4  # floats at the end of a row's codes
FACTOR, ADDEND, SUM = 0, 1, 2  # their places; the last one fills a word
PLANES = 4  # bits of an element of a query that is compared with bits
_WORD = 64
_MOST = 8_191  # of an element of a query that is compared with 4 bits: products of 4,096 fit into 32 bits
_TURNS = 2  # of signs and transforms: after one, rows of few elements are not spread over all
_NARROWEST, _WIDTHS = (
    0.35,
    14,
)  # grids that are tried: from this part of a row's greatest element to all of it
_LEAST = np.float32(1e-18)  # of a row's greatest element: squares of smaller ones are not numbers of 32 bits
_ANY_ORDER = {"reassoc", "contract", "nsz"}


def signs_for(dims: int, bits: int) -> Floats:
    """(turns, width) of -1 and 1: what rows of dims elements are rotated by, width elements wide then."""
    width = -(-dims // _WORD) * _WORD if bits == 1 else dims + dims % 2
    chosen = np.random.default_rng(dims).integers(0, 2, (_TURNS, width))
    signs = (2 * chosen - 1).astype(np.float32)
    signs.setflags(write=False)
    return signs


@compiled(nogil=True, fastmath=_ANY_ORDER)
def rotated(rows: Floats, signs: Floats) -> Floats:
    """(rows, width): distances and products stay. Elements that rows do not have count as 0."""
    turns, width = signs.shape
    block = 1
    while 2 * block <= width:
        block *= 2
    scale = np.float32(1 / math.sqrt(block))
    out = np.zeros((len(rows), width), np.float32)
    for i in range(len(rows)):
        row = out[i]
        for c in range(rows.shape[1]):
            row[c] = rows[i, c]
        for turn in range(turns):
            sign = signs[turn]
            for c in range(width):
                row[c] *= sign[c]
            _transform(row[:block], scale)
            if block < width:
                _transform(row[width - block :], scale)
    return out


@numba.njit(inline="always", fastmath=_ANY_ORDER)
def _transform(row: Floats, scale: np.float32) -> None:
    """The Hadamard transform, in place; as many elements as a power of 2."""
    half = 1
    while half < len(row):
        for start in range(0, len(row), 2 * half):
            low, high = row[start : start + half], row[start + half : start + 2 * half]
            for c in range(half):
                one, two = low[c], high[c]
                low[c], high[c] = one + two, one - two
        half *= 2
    for c in range(len(row)):
        row[c] *= scale


def quantized(rows: Floats, addends: Floats, bits: int, out: NDArray[np.uint8]) -> None:
    """The codes of rotated rows, and their terms. out: (rows, row_bytes(width, bits)) of zeros."""
    terms = out.view(np.float32)[:, -TERMS:]
    terms[:, ADDEND] = addends
    if bits == 1:
        _to_bits(rows, out, terms)
    else:
        _to_nibbles(rows, out, terms)


@compiled(nogil=True, fastmath=_ANY_ORDER)
def _to_bits(rows: Floats, out: Bytes, terms: Floats) -> None:
    for i in range(len(rows)):
        row = rows[i]
        squares, product, count = np.float32(0), np.float32(0), 0
        for c in range(len(row)):
            squares += row[c] * row[c]
            product += abs(row[c]) * np.float32(0.5)
            if row[c] > 0:
                out[i, c >> 3] |= np.uint8(1 << (c & 7))
                count += 1
        terms[i, FACTOR] = squares / product if product > 0 else np.float32(0)
        terms[i, SUM] = count


@compiled(nogil=True, fastmath=_ANY_ORDER)
def _to_nibbles(rows: Floats, out: Bytes, terms: Floats) -> None:
    """Byte c has the code of element c, and above it that of the element half a row on."""
    half = rows.shape[1] >> 1
    for i in range(len(rows)):
        row = rows[i]
        most, squares = np.float32(0), np.float32(0)
        for c in range(len(row)):
            most = max(most, abs(row[c]))
            squares += row[c] * row[c]
        if most < _LEAST:
            continue
        best, factor, steps = np.float32(-1), np.float32(0), np.float32(0)
        for width in range(_WIDTHS):
            part = _NARROWEST + (1 - _NARROWEST) * width / (_WIDTHS - 1)
            per_step = np.float32(7.5 / (most * part))
            product, length = np.float32(0), np.float32(0)
            for c in range(len(row)):
                code = _nibble(row[c], per_step) - np.float32(7.5)
                product += code * row[c]
                length += code * code
            nearness = product / math.sqrt(length)
            if nearness > best:
                best, factor, steps = nearness, squares / product, per_step
        for c in range(half):
            low, high = _nibble(row[c], steps), _nibble(row[half + c], steps)
            out[i, c] = np.uint8(int(low) | int(high) << 4)
        terms[i, FACTOR] = factor


@numba.njit(inline="always", fastmath=_ANY_ORDER)
def _nibble(value: np.float32, per_step: np.float32) -> np.float32:
    return min(max(np.floor(value * per_step + np.float32(8)), np.float32(0)), np.float32(15))


@compiled(nogil=True, fastmath=_ANY_ORDER)
def asked_of_bits(query: Floats, words: NDArray[np.uint64], weights: Floats) -> None:
    """A rotated query in PLANES bits an element: words, of zeros, and weights[:3] as `walk` takes them."""
    least, most, total = query[0], query[0], np.float32(0)
    for value in query:
        least, most = min(least, value), max(most, value)
    steps = np.float32((1 << PLANES) - 1)
    step = (most - least) / steps
    per_step = steps / (most - least) if most > least else np.float32(0)
    size = len(words) // PLANES
    for c in range(len(query)):
        code = np.floor((query[c] - least) * per_step + np.float32(0.5))
        total += code
        for plane in range(PLANES):
            bit = np.uint64((int(code) >> plane) & 1)
            words[plane * size + (c >> 6)] |= bit << np.uint64(c & 63)
    weights[0], weights[1] = least, step
    weights[2] = np.float32(0.5) * (least * len(query) + step * total)


@compiled(nogil=True, fastmath=_ANY_ORDER)
def asked_of_nibbles(query: Floats, codes: NDArray[np.int16], weights: Floats) -> None:
    """A rotated query: codes, and weights[:3] as `walk` takes them."""
    most, total = np.float32(0), 0
    for value in query:
        most = max(most, abs(value))
    step = most / _MOST
    per_step = _MOST / most if most > 0 else np.float32(0)
    for c in range(len(query)):
        code = int(np.floor(query[c] * per_step + np.float32(0.5)))
        codes[c] = code
        total += code
    weights[0], weights[1], weights[2] = 0, step, np.float32(7.5) * (step * total)
