"""`RowSet`: some rows of a segment as bits; row i is in it where bit i % 64 of word i // 64 is 1."""

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from graphdb.search.bit_words import lowest_bit
from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Ints

__all__ = ["Bits", "RowSet", "is_in"]

Bits = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowSet:
    """bits are only read; count: how many rows are in it."""

    bits: Bits
    count: int

    @classmethod
    def of(cls, mask: Bools) -> "RowSet":
        """The rows where mask is true."""
        found = np.packbits(mask, bitorder="little")
        bits: Bits = np.zeros(-(-len(mask) // 64), np.uint64)
        bits.view(np.uint8)[: len(found)] = found
        return cls._counted(bits)

    @classmethod
    def every(cls, size: int) -> "RowSet":
        """The rows below size."""
        return cls.of(np.ones(size, np.bool_))

    def __and__(self, other: "RowSet") -> "RowSet":
        return self._counted(self.bits & other.bits)

    def rows(self) -> Ints:
        """Ascending."""
        rows = np.empty(self.count, np.int32)
        _list(self.bits, rows)
        return rows

    @classmethod
    def _counted(cls, bits: Bits) -> "RowSet":
        bits.setflags(write=False)
        return cls(bits, int(np.bitwise_count(bits).sum()))


@numba.njit(inline="always")
def is_in(bits: Bits, row: int) -> bool:
    """For compiled code."""
    word = bits[row >> 6]
    return bool((word >> np.uint64(row & 63)) & np.uint64(1))


@compiled(nogil=True)
def _list(bits: Bits, rows: Ints) -> None:
    place = 0
    for word in range(len(bits)):
        left = bits[word]
        while left:
            rows[place] = (word << 6) + lowest_bit(left)
            place += 1
            left &= left - np.uint64(1)
