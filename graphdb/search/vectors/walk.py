"""The loops of a search in a graph, compiled: the walk through it, and going over all allowed rows.

Both compare codes, and give the nearest rows by them in no particular order.

Source of the walk: algorithms 2 and 5 of Malkov and Yashunin, 2016. A filter only says whether a row may be
among those that are found; the walk goes through all.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from graphdb.search.bit_words import lowest_bit, set_bits
from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Floats, Ints
from graphdb.search.vectors.quantizing import ADDEND, FACTOR, PLANES, SUM
from graphdb.search.vectors.row_set import Bits, is_in

__all__ = [
    "prefetch",
    "scan",
    "walk",
]

# `prefetch`, an instruction of processors that Numba has no name for; for compiled code only.

_tools: Any = cgutils  # without type hints
_BYTE, _INT, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LINES, _LINE_BYTES = 2, 64  # what follows them processors fetch by themselves
_READ, _KEEP, _DATA = ir.Constant(_INT, 0), ir.Constant(_INT, 3), ir.Constant(_INT, 1)


def _prefetch(typing_context: Any, rows: Any, row: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = _tools.unpack_tuple(builder, array.strides)[0]
        start = builder.bitcast(array.data, _BYTE.as_pointer())
        place = builder.gep(start, [builder.mul(arguments[1], stride)])
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
        function = _tools.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for line in range(_LINES):
            at = builder.gep(place, [ir.Constant(_LONG, line * _LINE_BYTES)])
            builder.call(function, [at, _READ, _KEEP, _DATA])
        return context.get_dummy_value()

    return types.void(rows, types.int64), emit


prefetch: Any = intrinsic(_prefetch)
"""prefetch(rows, row): ask for the beginning of rows[row] to be brought near; row is an int64, and there."""


# The loops.

_ANY_ORDER = {"reassoc", "contract", "nsz"}


@numba.njit(inline="always", fastmath=_ANY_ORDER)
def _distance(
    codes: NDArray[Any],
    row: int,
    query: NDArray[Any],
    weights: Floats | None,
    words: Bits | None,
    terms: Floats | None,
) -> Any:
    """A squared distance; without weights a dot product with its sign changed; with words how many of their
    bits are others; with terms `_estimate`. (For the compiler None is a type, so that one loop is left:
    beside another it would not use the processor's wide registers.)
    """
    code = codes[row]
    if terms is not None:
        return _estimate(code, query, weights, words, terms[row])
    if words is not None:
        differ = np.int64(0)
        for c in range(len(words)):
            differ += set_bits(code[c] ^ words[c])
        return np.float32(differ)
    total = np.float32(0)
    if weights is not None:
        for c in range(len(query)):
            step = np.float32(code[c]) - query[c]
            total += step * step * weights[c]
        return total
    for c in range(len(query)):
        total += np.float32(code[c]) * query[c]
    return -total


@numba.njit(forceinline=True, fastmath=_ANY_ORDER)
def _estimate(
    code: NDArray[Any], query: NDArray[Any], weights: Any, words: Bits | None, terms: Floats
) -> Any:
    """Half a squared distance, or a dot product with its sign changed, of a row in 1 bit an element (with
    words) or in 4 bits; what is the same for all rows is left out. See `quantizing`.

    weights: the least of the query's elements, a step of it, half of the grid times the sum of all
    elements, and how often the row's addend counts. words: bit 0 of each element of the query, then bit 1
    of each, and so on; query: else its codes.
    """
    if words is not None:
        size = len(words) // PLANES
        ones, twos, fours, eights = words[:size], words[size:], words[2 * size :], words[3 * size :]
        count_1, count_2, count_4, count_8 = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for c in range(len(ones)):
            word = code[c]
            count_1 += set_bits(word & ones[c])
            count_2 += set_bits(word & twos[c])
            count_4 += set_bits(word & fours[c])
            count_8 += set_bits(word & eights[c])
        product = np.float32(count_1 + 2 * count_2 + 4 * count_4 + 8 * count_8)
    else:
        half = len(query) >> 1
        low, high = query[:half], query[half:]
        total = np.int32(0)
        for c in range(len(low)):
            below, above = np.uint8(code[c] & np.uint8(15)), np.uint8(code[c] >> np.uint8(4))
            total = np.int32(total + np.int32(np.int32(below) * np.int32(low[c])))
            total = np.int32(total + np.int32(np.int32(above) * np.int32(high[c])))
        product = np.float32(total)
    product = weights[0] * terms[SUM] + weights[1] * product - weights[2]
    return weights[3] * terms[ADDEND] - terms[FACTOR] * product


@numba.njit(inline="always")
def _push(keys: Floats, rows: Ints, count: int, key: np.float32, row: int) -> None:
    """Add to a heap of count, the least key first."""
    place = count
    while place > 0:
        above = (place - 1) >> 1
        if keys[above] <= key:
            break
        keys[place], rows[place] = keys[above], rows[above]
        place = above
    keys[place], rows[place] = key, row


@numba.njit(inline="always")
def _put_first(keys: Floats, rows: Ints, count: int, key: np.float32, row: int) -> None:
    """Take the first out of a heap of count, and add this instead."""
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[place], rows[place] = keys[below], rows[below]
        place = below
    keys[place], rows[place] = key, row


@numba.njit(inline="always", fastmath=_ANY_ORDER)
def _descended(
    codes: NDArray[Any],
    upper_at: Ints,
    upper: Ints,
    entry: int,
    level: int,
    query: NDArray[Any],
    weights: Floats | None,
    words: Bits | None,
    terms: Floats | None,
) -> int:
    """The row that is nearest as far as the levels above the lowest show."""
    nearest = entry
    least = _distance(codes, nearest, query, weights, words, terms)
    while level > 0:
        before = nearest
        for row in upper[upper_at[before] + level - 1]:
            if row < 0:
                break
            distance = _distance(codes, row, query, weights, words, terms)
            if distance < least:
                nearest, least = row, distance
        if nearest == before:
            level -= 1
    return nearest


@compiled(nogil=True, fastmath=_ANY_ORDER)
def walk(
    codes: NDArray[Any],
    links: Ints,
    upper_at: Ints,
    upper: Ints,
    entry: int,
    level: int,
    query: NDArray[Any],
    weights: Floats | None,
    words: Bits | None,
    terms: Floats | None,
    allowed: Bits,
    effort: int,
    met_max: int,
    hidden: int,
) -> Ints:
    """The nearest `effort` allowed rows that the graph leads to; fewer where it leads to no more, or has led
    to met_max rows.

    links: of each row its neighbours on the lowest level, then -1. upper[upper_at[row] + l - 1]: the same on
    level l, of rows that are there. level: the highest. allowed is empty where all are. hidden: a row that is
    walked past as if it were not there, -1 for none.
    """
    nearest = _descended(codes, upper_at, upper, entry, level, query, weights, words, terms)
    filtered = len(allowed) > 0
    seen = np.zeros((len(links) + 63) >> 6, np.uint64)
    fresh = np.empty(links.shape[1], np.int64)
    ahead_keys = np.empty(met_max + len(fresh), np.float32)
    ahead_rows = np.empty(met_max + len(fresh), np.int32)
    # Those found, the farthest first: by distance with its sign changed.
    found_keys, found_rows = np.empty(effort, np.float32), np.empty(effort, np.int32)
    ahead, found, met, new = 0, 0, 1, 1
    fresh[0] = nearest
    seen[nearest >> 6] |= np.uint64(1) << np.uint64(nearest & 63)
    if hidden >= 0:
        seen[hidden >> 6] |= np.uint64(1) << np.uint64(hidden & 63)
    while True:
        for j in range(new):
            row = fresh[j]
            distance = _distance(codes, row, query, weights, words, terms)
            if found == effort and distance >= -found_keys[0]:
                continue
            _push(ahead_keys, ahead_rows, ahead, distance, row)
            ahead += 1
            if not filtered or is_in(allowed, row):
                if found == effort:
                    _put_first(found_keys, found_rows, found, -distance, row)
                else:
                    _push(found_keys, found_rows, found, -distance, row)
                    found += 1
        if ahead == 0 or met >= met_max or (found == effort and ahead_keys[0] > -found_keys[0]):
            return found_rows[:found]
        here = ahead_rows[0]
        ahead -= 1
        _put_first(ahead_keys, ahead_rows, ahead, ahead_keys[ahead], ahead_rows[ahead])
        prefetch(links, np.int64(ahead_rows[0]))  # likely the next, or what was there before
        new = 0
        for row in links[here]:
            if row < 0:
                break
            bit = np.uint64(1) << np.uint64(row & 63)
            if not seen[row >> 6] & bit:
                seen[row >> 6] |= bit
                prefetch(codes, np.int64(row))
                fresh[new] = row
                new += 1
        met += new


@compiled(nogil=True, fastmath=_ANY_ORDER)
def scan(
    codes: NDArray[Any],
    query: NDArray[Any],
    weights: Floats | None,
    words: Bits | None,
    terms: Floats | None,
    allowed: Bits,
    count: int,
) -> Ints:
    """The nearest `count` of all allowed rows."""
    keys, rows = np.empty(count, np.float32), np.empty(count, np.int32)
    found = 0
    for word in range(len(allowed)):
        left = allowed[word + 1] if word + 1 < len(allowed) else np.uint64(0)
        while left:
            prefetch(codes, np.int64((word + 1 << 6) + lowest_bit(left)))
            left &= left - np.uint64(1)
        left = allowed[word]
        while left:
            row = (word << 6) + lowest_bit(left)
            left &= left - np.uint64(1)
            distance = _distance(codes, row, query, weights, words, terms)
            if found < count:
                _push(keys, rows, found, -distance, row)
                found += 1
            elif distance < -keys[0]:
                _put_first(keys, rows, found, -distance, row)
    return rows[:found]
