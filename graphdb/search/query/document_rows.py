"""`DocumentRows`: which documents of a segment have its frequent terms, as bits.

A row of a term has a bit for each document, and before each word of 64 of them the number of its postings
so far. So whether a document has the term takes one look, and where its posting is one more, whatever was
looked up before; and what terms have in common is found for 64 documents at a time.
"""

import weakref
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.search.bit_words import set_bits
from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Ints, Leaf, Longs
from graphdb.search.query.field_table import address_of, bytes_at, eights_at, words_at
from graphdb.search.query.row_room import RowRoom
from graphdb.search.segments.postings import Bytes

__all__ = [
    "DOCUMENTS_MIN",
    "DocumentRows",
    "Words",
    "bits_of",
    "document_rows",
    "fill_row",
    "freqs_of",
    "ranks_of",
    "row_of",
    "row_words",
    "rows_in",
    "words_in",
]

DOCUMENTS_MIN: Final = 1 << 12  # of a segment; in a smaller one nothing takes long
_DENSE = 64  # a term that one document of so many has, or more: its row is at most three times its postings
_BYTES_TOGETHER_MAX = 128 << 20  # for the rows of all segments that a process searches
_HEAD = 32  # words before the bits
_ROOM = RowRoom(_BYTES_TOGETHER_MAX)

Words: TypeAlias = NDArray[np.uint64]


class DocumentRows:
    """Of a text field of a segment. Threads may share one: whatever two of them make is the same.

    It keeps the rows, so it has to outlive the use of their addresses.
    """

    def __init__(self) -> None:
        self._rows: dict[int, Any] = {}  # by the number of the term
        self._sizes: list[int] = []  # of what was taken of the room for all
        weakref.finalize(self, _ROOM.give_back, self._sizes)

    def address(self, leaf: Leaf, path: str, number: int) -> int:
        """Of the row of the term with this number; 0 where it has none."""
        row = self._rows.get(number)
        if row is None:
            index, size = leaf.segment.text(path), leaf.segment.size
            assert index is not None
            docs, freqs, _, starts, stops = index.posting_ranges(np.array([number], np.int64))
            begin, end = int(starts[0]), int(stops[0])
            if (end - begin) * _DENSE < size or not self._takes_room(size):
                return 0
            row = self._rows.setdefault(number, row_of(docs[begin:end], freqs[begin:end], index.norms))
        return address_of(row)

    def _takes_room(self, documents: int) -> bool:
        """For one row more."""
        size = 8 * int(row_words(documents))
        if not _ROOM.take(size):
            return False
        self._sizes.append(size)
        return True


def document_rows(leaf: Leaf, path: str) -> DocumentRows:
    """Those that are kept with a segment, from the first call on."""
    kept, key = leaf.segment.derived, ("document rows", path)
    found: DocumentRows = kept[key] if key in kept else kept.setdefault(key, DocumentRows())
    return found


def rows_in(leaves: Sequence[Leaf], path: str, numbers: Longs, documents: int) -> Longs:
    """The addresses of the rows of a term in each leaf, 0 where it has none; numbers: of the term in each, -1
    where it is not there; documents: no more have it in a leaf.
    """
    found = np.zeros(len(leaves), np.int64)
    for place, (leaf, number) in enumerate(zip(leaves, numbers.tolist(), strict=True)):
        size = leaf.segment.size
        if number >= 0 and size >= DOCUMENTS_MIN and documents * _DENSE >= size:
            found[place] = document_rows(leaf, path).address(leaf, path, number)
    return found


# A row: the highest frequency of the term in documents of each norm, 256 bytes of which `ESCAPE` says that it
# is that or more; the bits; the number of the postings before each word of them. Rows are read by addresses.


@compiled(nogil=True)
def words_in(documents: int) -> Any:
    """Of bits, of so many documents."""
    return documents // 64 + 1


@compiled(nogil=True)
def row_words(documents: int) -> Any:
    """Of a whole row."""
    return _HEAD + words_in(documents) + (words_in(documents) + 1) // 2


@compiled(nogil=True)
def freqs_of(row: int) -> Any:
    return bytes_at(row, 8 * _HEAD)


@compiled(nogil=True)
def bits_of(row: int, words: int) -> Any:
    return eights_at(row + 8 * _HEAD, words)


@compiled(nogil=True)
def ranks_of(row: int, words: int) -> Any:
    return words_at(row + 8 * (_HEAD + words), words)


@compiled(nogil=True)
def row_of(docs: Ints, freqs: Bytes, norms: Bytes) -> Words:
    """That of the term with these postings; norms: of all documents."""
    row = np.zeros(row_words(len(norms)), np.uint64)
    fill_row(row, docs, freqs, norms)
    return row


@compiled(nogil=True)
def fill_row(row: Words, docs: Ints, freqs: Bytes, norms: Bytes) -> None:
    """The same, in an array of zeros."""
    words = words_in(len(norms))
    most, bits = row[:_HEAD].view(np.uint8), row[_HEAD : _HEAD + words]
    ranks = row[_HEAD + words :].view(np.uint32)
    for i in range(len(docs)):
        doc, norm = docs[i], norms[docs[i]]
        most[norm] = max(most[norm], freqs[i])
        bits[doc >> 6] |= np.uint64(1) << np.uint64(doc & 63)
    before = np.int64(0)
    for word in range(words):
        ranks[word] = before
        before += set_bits(bits[word])
