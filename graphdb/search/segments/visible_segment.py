"""Leaves for a principal that may not see all documents: the hidden ones are as if they did not exist."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Ints, Leaf, Longs, Ordinals, TermDictionary, TextArrays
from graphdb.search.protection import ALLOW_SIDS, without_protection
from graphdb.search.segments.array_segment import ArraySegment, ArrayTerms, ArrayText
from graphdb.search.segments.field_builders import any_in
from graphdb.search.segments.postings import Bytes, freq_at
from graphdb.search.segments.shard_view import array_segment
from graphdb.search.segments.sources import source_lengths

__all__ = ["VisibleLeaves", "VisibleSegment"]


class _VisibleDictionary:
    """Some terms of a dictionary, renumbered; numbers are theirs there, ascending: a `TermDictionary`."""

    def __init__(self, whole: TermDictionary, numbers: Longs) -> None:
        self._whole, self._numbers = whole, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def lower_bound(self, term: str) -> int:
        return int(self._numbers.searchsorted(self._whole.lower_bound(term)))

    def find(self, term: str) -> int:
        number = self._whole.find(term)
        place = int(self._numbers.searchsorted(number))
        return place if number >= 0 and place < len(self) and self._numbers[place] == number else -1

    def term(self, number: int) -> str:
        return self._whole.term(int(self._numbers[number]))

    def terms(self, start: int, stop: int) -> Iterator[str]:
        return map(self._whole.term, self._numbers[start:stop].tolist())


class _VisibleText:
    """`TextIndex` of the live documents."""

    def __init__(self, whole: ArrayText, live: Bools) -> None:
        self._whole, self._live = whole, live
        self.norms = whole.norms
        arrays = whole.all_postings()
        self._numbers = np.flatnonzero(any_in(arrays.docs, arrays.starts, live))
        self.dictionary: TermDictionary = _VisibleDictionary(whole.dictionary, self._numbers)
        self.doc_count = int(np.count_nonzero((whole.norms > 0) & live))
        self.total_terms = int(_total(arrays.docs, arrays.freqs, arrays.high, live))

    @cached_property
    def ordinals(self) -> Ordinals:
        return _visible_ordinals(self._whole.ordinals, self._numbers, self._live)

    def postings(self, number: int) -> tuple[Ints, Ints]:
        docs, freqs = self._whole.postings(int(self._numbers[number]))
        live = self._live[docs]
        return docs[live], freqs[live]

    def docs_of(self, number: int) -> Ints:
        docs = self._whole.docs_of(int(self._numbers[number]))
        return docs[self._live[docs]]

    def posting_ranges(self, numbers: Longs) -> tuple[Ints, Bytes, Longs, Longs, Longs]:
        return self._whole.posting_ranges(self._numbers[numbers])

    def arrays(self) -> TextArrays | None:
        return None

    def packed_positions(self, numbers: Longs) -> tuple[Bytes, Longs, Longs] | None:
        return None

    def positions(self, number: int) -> tuple[Ints, Ints]:
        own = int(self._numbers[number])
        live, (starts, positions) = self._live[self._whole.postings(own)[0]], self._whole.positions(own)
        counts = np.diff(starts)
        return _starts_of(counts[live]), positions[np.repeat(live, counts)]


def _visible_ordinals(whole: Ordinals, numbers: Longs, live: Bools) -> Ordinals:
    """Of the live documents; numbers are those of their terms in the whole dictionary."""
    counts = np.diff(whole.starts)
    terms = numbers.searchsorted(whole.terms[np.repeat(live, counts)])
    return Ordinals(_starts_of(counts * live), terms.astype(np.int32))


class _VisibleTerms:
    """`TermIndex` of the live documents."""

    def __init__(self, whole: ArrayTerms, live: Bools) -> None:
        self._whole, self._live = whole, live
        starts, docs = whole.all_postings()
        self._numbers = np.flatnonzero(any_in(docs, starts, live))
        self.dictionary: TermDictionary = _VisibleDictionary(whole.dictionary, self._numbers)
        self.doc_count = int(np.count_nonzero(np.diff(whole.ordinals.starts)[live]))

    @cached_property
    def ordinals(self) -> Ordinals:
        return _visible_ordinals(self._whole.ordinals, self._numbers, self._live)

    def postings(self, number: int) -> Ints:
        docs = self._whole.postings(int(self._numbers[number]))
        return docs[self._live[docs]]


class VisibleSegment(ArraySegment):
    """A segment of an index that has protected documents, for a principal that may not know their SIDs.

    Of documents that are not live, hidden or deleted, no term and no figure is there; what is left by number
    of document (sources, columns, vectors) is for callers to mask, as with any segment. It shares what the
    segment has, and what was derived of it; what is made of its terms is its own.
    """

    live_only = True

    def __init__(self, segment: ArraySegment, live: Bools) -> None:
        self.__dict__ = dict(segment.__dict__)
        self._whole, self._live = segment, live
        self._opened = {}

    @property
    def size_bytes(self) -> int:
        """About what the documents that are visible would take: their ids and sources."""
        roots = self.root_docs()
        visible = self._live[roots]
        lengths = np.diff(self._ids.starts) + source_lengths(self.sources)
        return int(lengths[visible].sum())

    @property
    def root_count(self) -> int:
        return int(np.count_nonzero(self._live[self.root_docs()]))

    def source(self, doc: int) -> bytes:
        return without_protection(super().source(doc))

    def shown(self, docs: Sequence[int]) -> Iterator[tuple[str, bytes]]:
        return ((doc_id, without_protection(source)) for doc_id, source in super().shown(docs))

    def whole_source(self, doc: int) -> bytes:
        """With the list of SIDs, which a client that writes the document again must keep."""
        return super().source(doc)

    def fields(self) -> frozenset[str]:
        return self._visible_fields

    @cached_property
    def _visible_fields(self) -> frozenset[str]:
        return frozenset(path for path in super().fields() if self.having_itself(path)[self._live].any())

    def text(self, path: str) -> _VisibleText | None:  # type: ignore[override]
        whole = self._whole.text(path)
        return None if whole is None else self._open("text", path, lambda: _VisibleText(whole, self._live))

    def terms(self, path: str) -> _VisibleTerms | None:  # type: ignore[override]
        whole = self._whole.terms(path)
        return None if whole is None else self._open("terms", path, lambda: _VisibleTerms(whole, self._live))


@dataclass(slots=True)
class VisibleLeaves:
    """The leaves of a shard as who has these SIDs sees them. It keeps those of last time, for any thread."""

    sids: frozenset[str]
    _made: dict[str, tuple[Leaf, Leaf | None]] = field(default_factory=dict)  # by the name of the segment

    def of(self, leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
        """The same ones where no document is protected.

        Where one is, deleted documents count nowhere either: it may be what such a one was before.
        """
        if not any(ALLOW_SIDS in array_segment(leaf).fields() for leaf in leaves):
            return leaves
        before, made = self._made, dict[str, tuple[Leaf, Leaf | None]]()
        found: list[Leaf] = []
        base = 0
        for leaf in leaves:
            known = before.get(leaf.segment.name)
            if known is None or known[0].segment is not leaf.segment or known[0].live is not leaf.live:
                known = leaf, self._visible(leaf)
            made[leaf.segment.name] = known
            if known[1] is not None:
                found.append(replace(known[1], base=base))
                base += leaf.segment.size
        self._made = made
        return tuple(found)

    def _visible(self, leaf: Leaf) -> Leaf | None:
        segment, live = array_segment(leaf), leaf.live
        if ALLOW_SIDS in segment.fields():
            live = live & ~_hidden(segment, self.sids)
            live.setflags(write=False)
            return Leaf(VisibleSegment(segment, live), live, leaf.base) if live.any() else None
        return leaf if live.all() else Leaf(VisibleSegment(segment, live), live, leaf.base)


def _hidden(segment: ArraySegment, sids: frozenset[str]) -> Bools:
    """Documents that list SIDs, none of these, with what is nested in them."""
    hidden = segment.having(ALLOW_SIDS)
    listed = segment.terms(ALLOW_SIDS)
    if listed is not None:
        for number in map(listed.dictionary.find, sids):
            if number >= 0:
                hidden[listed.postings(number)] = False
    if segment.parents is not None:
        for doc in np.flatnonzero(hidden).tolist():
            hidden[segment.block(doc)] = True
    return hidden


def _starts_of(counts: NDArray[np.integer]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


@compiled(nogil=True)
def _total(docs: Ints, freqs: Bytes, high: Longs, live: Bools) -> int:
    """The frequencies of live documents, added up."""
    total = 0
    for place in range(len(docs)):
        if live[docs[place]]:
            total += freq_at(freqs, high, place)
    return total
