"""`FieldTable`: the postings of a text field in all leaves, for compiled loops that go over all of them.

A call of a compiled loop costs about 10 µs, whatever it does, because each of its arrays is unpacked, and an
index has ten segments and more. So these loops take the addresses of all leaves' arrays as one array.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Leaf, Longs, TextIndex

__all__ = [
    "BASE",
    "BLOCK",
    "CEILINGS",
    "DOCS",
    "FREQS",
    "HIDDEN",
    "HIGH",
    "HIGHS",
    "NORMS",
    "POSTINGS",
    "SIZE",
    "STARTS",
    "FieldTable",
    "address_of",
    "bytes_at",
    "ceilings_of",
    "eights_at",
    "flags_at",
    "ints_at",
    "longs_at",
    "with_masks",
    "words_at",
]

BLOCK = 128  # postings with one ceiling

# The columns of a table. A leaf without the field has no terms, and nothing else of its row is read.
SIZE, BASE, TERMS, BLOB, BLOB_BYTES, TERM_STARTS = range(6)
POSTINGS, STARTS, DOCS, FREQS, NORMS, CEILINGS, HIGH, HIGHS, HIDDEN = range(6, 15)
_COLUMNS = 15


def _pointer(typing: Any, address: Any) -> Any:
    """An address as a pointer, which `carray` takes."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), lower


_pointer_of: Any = intrinsic(_pointer)
_numba: Any = numba  # without type hints
_array = _numba.carray


@compiled(nogil=True)
def ints_at(address: int, size: int) -> Any:
    """The array of 32-bit integers at an address."""
    return _array(_pointer_of(address), (size,), np.int32)


@compiled(nogil=True)
def longs_at(address: int, size: int) -> Any:
    """Of 64-bit integers."""
    return _array(_pointer_of(address), (size,), np.int64)


@compiled(nogil=True)
def words_at(address: int, size: int) -> Any:
    """Of unsigned 32-bit integers."""
    return _array(_pointer_of(address), (size,), np.uint32)


@compiled(nogil=True)
def eights_at(address: int, size: int) -> Any:
    """Of unsigned 64-bit integers."""
    return _array(_pointer_of(address), (size,), np.uint64)


@compiled(nogil=True)
def bytes_at(address: int, size: int) -> Any:
    """Of bytes."""
    return _array(_pointer_of(address), (size,), np.uint8)


@compiled(nogil=True)
def flags_at(address: int, size: int) -> Any:
    """Of booleans."""
    return _array(_pointer_of(address), (size,), np.bool_)


# Keeps the interpreter's lock: it would wait for it again longer than it runs.
@compiled()
def _find(table: Longs, term: NDArray[np.uint8], numbers: Longs) -> int:
    """Write the number of a term in each leaf to numbers, -1 where it is not there; returns its documents."""
    found = 0
    for leaf in range(len(table)):
        numbers[leaf] = -1
        count = table[leaf, TERMS]
        if count == 0:
            continue
        starts = longs_at(table[leaf, TERM_STARTS], count + 1)
        blob = bytes_at(table[leaf, BLOB], table[leaf, BLOB_BYTES])
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if _order(blob, starts[middle], starts[middle + 1], term) < 0:
                low = middle + 1
            else:
                high = middle
        if low < count and _order(blob, starts[low], starts[low + 1], term) == 0:
            numbers[leaf] = low
            places = longs_at(table[leaf, STARTS], count + 1)
            found += places[low + 1] - places[low]
    return found


@compiled()
def _order(blob: NDArray[np.uint8], start: int, stop: int, term: NDArray[np.uint8]) -> int:
    """Below 0 where a string of the blob is before the term, 0 where it is the term."""
    common = min(stop - start, len(term))
    for place in range(common):
        if blob[start + place] != term[place]:
            return -1 if blob[start + place] < term[place] else 1
    return (stop - start) - len(term)


def address_of(array: NDArray[Any]) -> int:
    """Where its first element is."""
    address: int = array.__array_interface__["data"][0]
    return address


@dataclass(frozen=True, slots=True)
class FieldTable:
    """rows: (leaves, _COLUMNS). live: the addresses of the documents that count as hits, by leaf.

    The addresses hold as long as this object, which keeps their arrays.
    """

    rows: Longs
    live: Longs
    _kept: list[NDArray[Any]]

    @classmethod
    def of(cls, leaves: Sequence[Leaf], path: str) -> "FieldTable | None":
        """None where a leaf has the field in another form, or hides some of its postings."""
        rows, live = np.zeros((len(leaves), _COLUMNS), np.int64), np.zeros(len(leaves), np.int64)
        kept: list[NDArray[Any]] = [rows]
        for number, leaf in enumerate(leaves):
            text = leaf.segment.text(path)
            if leaf.segment.live_only or (text is None and leaf.segment.terms(path) is not None):
                return None
            roots = leaf.roots
            hidden = leaf.segment.size - int(np.count_nonzero(roots))
            rows[number, [SIZE, BASE, HIDDEN]] = leaf.segment.size, leaf.base, hidden
            if roots.dtype != np.bool_ or not roots.flags.c_contiguous:
                return None
            if text is not None and not _fill(rows[number], leaf, path, text, kept):
                return None
            kept.append(roots)
            live[number] = address_of(roots)
        return cls(rows, live, kept)

    def find(self, term: str) -> tuple[Longs, int]:
        """(its number in each leaf, -1 where it is not there; how many documents hold it)."""
        numbers = np.empty(len(self.rows), np.int64)
        raw = np.frombuffer(term.encode("utf-8", "surrogatepass"), np.uint8)
        return numbers, int(_find(self.rows, raw, numbers))


def with_masks(live: Longs, masks: Sequence[Bools | None]) -> Longs:
    """Addresses with those of these arrays, where there are some, in their place. The caller keeps them."""
    addresses = live.copy()
    for number, mask in enumerate(masks):
        if mask is not None:
            addresses[number] = address_of(mask)
    return addresses


def ceilings_of(leaf: Leaf, path: str, postings: int) -> NDArray[np.uint32]:
    """Of a field of a segment, a place for each block of its postings: what a search has learnt of it."""
    made = np.zeros(postings // BLOCK + 1, np.uint32)
    found: NDArray[np.uint32] = leaf.segment.derived.setdefault(("ceilings", path), made)
    return found


def _fill(row: Longs, leaf: Leaf, path: str, text: TextIndex, kept: list[NDArray[Any]]) -> bool:
    """Put the addresses of a leaf into its row; returns whether its arrays are as the loops read them."""
    arrays = text.arrays()
    if arrays is None:
        return False
    columns: dict[int, tuple[NDArray[Any], type]] = {
        BLOB: (arrays.blob, np.uint8),
        TERM_STARTS: (arrays.term_starts, np.int64),
        STARTS: (arrays.starts, np.int64),
        DOCS: (arrays.docs, np.int32),
        FREQS: (arrays.freqs, np.uint8),
        HIGH: (arrays.high, np.int64),
        NORMS: (text.norms, np.uint8),
        CEILINGS: (ceilings_of(leaf, path, len(arrays.docs)), np.uint32),
    }
    for column, (array, wanted) in columns.items():
        if array.dtype != wanted or not array.flags.c_contiguous:
            return False
        row[column] = address_of(array)
        kept.append(array)
    row[TERMS], row[BLOB_BYTES] = len(arrays.starts) - 1, len(arrays.blob)
    row[POSTINGS], row[HIGHS] = len(arrays.docs), len(arrays.high)
    return True
