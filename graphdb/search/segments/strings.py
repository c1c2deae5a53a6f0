"""Strings packed into two arrays: their UTF-8 bytes one after another, and where each begins."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from graphdb.search.segment import Longs

__all__ = ["SortedStrings", "Strings", "decode", "encode", "pack"]


def encode(text: str) -> bytes:
    """UTF-8; JSON can hold half a surrogate pair, which keeps its place in the order of code points."""
    return text.encode("utf-8", "surrogatepass")


def decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def pack(raws: Sequence[bytes]) -> tuple[NDArray[np.uint8], Longs]:
    """(blob, starts): string i is blob[starts[i]:starts[i + 1]]."""
    starts = np.zeros(len(raws) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, raws), np.int64, len(raws)), out=starts[1:])
    return np.frombuffer(b"".join(raws), np.uint8), starts


class Strings:
    """Packed strings, by number."""

    def __init__(self, blob: NDArray[np.uint8], starts: Longs) -> None:
        self.blob, self.starts = blob, starts
        self._bytes = memoryview(blob)  # type: ignore[arg-type]  # an array is a buffer

    def __len__(self) -> int:
        return len(self.starts) - 1

    def raw(self, number: int) -> bytes:
        start, stop = self.starts[number : number + 2].tolist()
        return bytes(self._bytes[start:stop])

    def raws(self, start: int, stop: int) -> Iterator[bytes]:
        """Those with numbers in [start, stop)."""
        bounds = self.starts[start : stop + 1].tolist() if stop > start else []
        view = self._bytes
        return (bytes(view[a:b]) for a, b in pairwise(bounds))


class SortedStrings(Strings):
    """Packed strings in the order of their bytes, none twice: a `TermDictionary`."""

    def lower_bound(self, term: str) -> int:
        return self._place(encode(term))

    def find(self, term: str) -> int:
        raw = encode(term)
        number = self._place(raw)
        return number if number < len(self) and self.raw(number) == raw else -1

    def term(self, number: int) -> str:
        return decode(self.raw(number))

    def terms(self, start: int, stop: int) -> Iterator[str]:
        return map(decode, self.raws(start, stop))

    def _place(self, raw: bytes) -> int:
        return int(_lower_bound(self.blob, self.starts, np.frombuffer(raw, np.uint8)))


# Keeps the interpreter's lock: it would wait for it again longer than it runs.
@numba.njit(cache=True)
def _lower_bound(blob: Any, starts: Any, key: Any) -> Any:
    """The number of the first string that is not before key."""
    low, high = 0, len(starts) - 1
    while low < high:
        middle = (low + high) // 2
        start, length = starts[middle], starts[middle + 1] - starts[middle]
        place = 0
        while place < length and place < len(key) and blob[start + place] == key[place]:
            place += 1
        if place < len(key) and (place == length or blob[start + place] < key[place]):
            low = middle + 1
        else:
            high = middle
    return low
