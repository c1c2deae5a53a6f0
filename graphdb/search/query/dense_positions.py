"""`DensePositions`: where the most frequent terms of a text field stand, as bits, for phrases.

Every position of every document of a segment has a slot: those of one document follow one another, then come
those of the next. A term is then a row of bits, and a phrase of two frequent terms is what one row and the
other, shifted, have in common: nothing is decoded and no document looked up.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Ints, Leaf, Longs
from graphdb.search.query.dense_phrases import GUIDED, words_of
from graphdb.search.query.field_table import address_of
from graphdb.search.query.row_room import RowRoom
from graphdb.search.segments.postings import Bytes, freq_at, varint_at

__all__ = ["DensePositions", "dense_positions"]

_DENSE = 256  # a term that has a position in so many slots, or more
_POSITIONS_MIN = 1 << 16  # of a field; with fewer no phrase is dear, and rows are mostly padding
_SLOTS_MAX = 1 << 25  # numbering more would take a search 0.1 s
_BYTES_MAX = 128 << 20  # for the rows of a field of a segment
_BYTES_TOGETHER_MAX = 256 << 20  # for those of all segments that a process searches
_WORDS_IN_STEP = 10  # that are compared in 10 ns

Words: TypeAlias = NDArray[np.uint64]
PostingRanges: TypeAlias = tuple[Ints, Bytes, Longs, Longs, Longs]
"""See `TextIndex.posting_ranges`."""
PackedPositions: TypeAlias = tuple[Bytes, Longs, Longs]
"""See `TextIndex.packed_positions`."""
_NO_INTS = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class _Slots:
    """Of all documents; count: 0 where there are too many for rows."""

    slots: Ints
    guide: Ints
    count: int


_ROOM = RowRoom(_BYTES_TOGETHER_MAX)


class DensePositions:
    """Of a field of a segment. Threads may share one: whatever two of them make is the same.

    It keeps the rows, so it has to outlive the use of their addresses. eager: they are made for the first
    phrase, also in a small segment.
    """

    def __init__(self, eager: bool = False) -> None:
        self._eager = eager
        self._walked = 0  # positions of the phrases before there were slots
        self._slots: _Slots | None = None
        self._rows: dict[int, Words | None] = {}  # by the number of the term; None: it cannot be a row
        self._sizes: list[int] = []  # of what was taken of the room for all
        weakref.finalize(self, _ROOM.give_back, self._sizes)

    def of(
        self, numbers: Longs, ranges: PostingRanges, positions: PackedPositions, documents: int
    ) -> tuple[Ints, Ints, Longs]:
        """(slots, guide, addresses) for `phrases_in`: of the row of each term, 0 where it has none.

        numbers: of the terms, with what `posting_ranges` and `packed_positions` say of them.
        """
        docs, freqs, high, begins, ends = ranges
        packed, starts, stops = positions
        addresses, sizes = np.zeros(len(numbers), np.int64), (stops - starts).tolist()  # about a byte each
        known = self._slots
        if known is None:
            if not self._is_worth(sum(sizes), len(packed)):
                return _NO_INTS, _NO_INTS, addresses
            slots, guide = number_slots(docs, freqs, high, packed, documents, _SLOTS_MAX)
            known = self._slots = _Slots(slots, guide, int(slots[-1]) if len(slots) else 0)
        if known.count:
            for place, size in enumerate(sizes):
                number = int(numbers[place])
                if size * _DENSE < known.count:
                    continue
                if number not in self._rows and self._takes_room(known.slots):
                    own = begins[place], ends[place], starts[place]
                    made, is_whole = row_of(docs, freqs, high, packed, *own, known.slots)
                    self._rows.setdefault(number, made if is_whole else None)
                row = self._rows.get(number)
                if row is not None:
                    addresses[place] = address_of(row)
        return known.slots, known.guide, addresses

    def _is_worth(self, walked: int, positions: int) -> bool:
        """Slots are for fields where phrases are searched, once these have cost about what numbering does."""
        self._walked += walked
        return self._eager or (positions >= _POSITIONS_MIN and self._walked >= positions)

    def _takes_room(self, slots: Ints) -> bool:
        """For one row more."""
        size = 8 * int(words_of(slots))
        if (len(self._rows) + 1) * size > _BYTES_MAX or not _ROOM.take(size):
            return False
        self._sizes.append(size)
        return True

    def steps(self, numbers: Sequence[int]) -> float | None:
        """How long a phrase of these terms takes, in steps of 10 ns; None where one of them has no row."""
        known = self._slots
        if known is None or any(self._rows.get(number) is None for number in numbers):
            return None
        return known.count / 64 * len(numbers) / _WORDS_IN_STEP


def dense_positions(leaf: Leaf, path: str, eager: bool = False) -> DensePositions:
    """Those that are kept with a segment, from the first call on."""
    kept, key = leaf.segment.derived, ("dense positions", path)
    found: DensePositions = kept[key] if key in kept else kept.setdefault(key, DensePositions(eager))
    return found


@compiled(nogil=True)
def number_slots(
    docs: Ints, freqs: Bytes, high: Longs, packed: Bytes, documents: int, slots_max: int
) -> tuple[Ints, Ints]:
    """(slots, guide): document d has the slots in [slots[d], slots[d + 1]), as many as its last position and
    those before it; guide has the document of each `GUIDED`-th slot. Both are empty beyond `slots_max`.

    The arguments are all postings of a field; packed: see `pack_positions`.
    """
    last = np.full(documents, -1, np.int64)
    place = 0
    for i in range(len(docs)):
        position = np.int64(0)
        for _ in range(freq_at(freqs, high, i)):
            step, place = varint_at(packed, place)
            position += step
        last[docs[i]] = max(last[docs[i]], position)
    number = np.int64(0)
    for doc in range(documents):
        number += last[doc] + 1
    if number > slots_max:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    slots, guide = np.zeros(documents + 1, np.int32), np.zeros(number // GUIDED + 1, np.int32)
    filled = 0
    for doc in range(documents):
        slots[doc + 1] = slots[doc] + last[doc] + 1
        while filled * GUIDED < slots[doc + 1]:
            guide[filled] = doc
            filled += 1
    return slots, guide


@compiled(nogil=True)
def row_of(
    docs: Ints, freqs: Bytes, high: Longs, packed: Bytes, begin: int, end: int, place: int, slots: Ints
) -> tuple[Any, bool]:
    """The bits of the term that has the postings in [begin, end), whose positions begin at a place; and
    whether they are all of it, which they are not where it stands twice at one position.
    """
    row = np.zeros(words_of(slots), np.uint64)
    is_whole = True
    for i in range(begin, end):
        slot = np.int64(slots[docs[i]])
        for _ in range(freq_at(freqs, high, i)):
            step, place = varint_at(packed, place)
            slot += step
            bit = np.uint64(1) << np.uint64(slot & 63)
            is_whole &= row[slot >> 6] & bit == 0
            row[slot >> 6] |= bit
    return row, is_whole
