"""The length of a text in one byte, as Lucene keeps it for BM25."""

import numpy as np
from numpy.typing import NDArray

from graphdb.search.segment import Longs

__all__ = ["LENGTHS", "encode_lengths"]

_EXACT = 24  # lengths below stand for themselves


def _decode(byte: int) -> int:
    """Four significant bits and a shift, above the first 24 (Lucene's SmallFloat.byte4ToInt)."""
    if byte < _EXACT:
        return byte
    shift, bits = divmod(byte - _EXACT, 8)
    return _EXACT + (bits if shift == 0 else (bits | 8) << (shift - 1))


LENGTHS: Longs = np.array(
    [_decode(byte) for byte in range(256)], np.int64
)  # the length that a byte stands for
LENGTHS.setflags(write=False)


def encode_lengths(lengths: Longs) -> NDArray[np.uint8]:
    """The byte of each length: that of the greatest length in LENGTHS that is not above it."""
    return (np.searchsorted(LENGTHS, lengths, side="right") - 1).astype(np.uint8)
