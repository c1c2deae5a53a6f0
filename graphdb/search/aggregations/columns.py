"""Columns of values over all segments, and the ordinals that their terms share."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.fields import DOC_COUNT, FieldSpec, Storage
from graphdb.search.leaf_reader import (
    Bools,
    Doubles,
    Leaf,
    Longs,
    NumberColumn,
    Segment,
    TermDictionary,
    TermIndex,
    TextIndex,
    exact_numbers,
    unsigned,
    unsigned_numbers,
)
from graphdb.search.query import Searcher

__all__ = ["COUNTS_OF_ALL", "Columns", "GlobalTerms", "ListedTerms", "Numbers", "Points", "Values", "spread"]

# One order for the terms of a field over all segments, as Elasticsearch's global ordinals.


@dataclass(frozen=True, slots=True)
class ListedTerms:
    """A `TermDictionary` of some terms, ascending."""

    listed: Sequence[str]

    def __len__(self) -> int:
        return len(self.listed)

    def find(self, term: str) -> int:
        number = self.lower_bound(term)
        return number if number < len(self.listed) and self.listed[number] == term else -1

    def lower_bound(self, term: str) -> int:
        return bisect_left(self.listed, term)

    def term(self, number: int) -> str:
        return self.listed[number]

    def terms(self, start: int, stop: int) -> Iterator[str]:
        return iter(self.listed[start:stop])


class GlobalTerms:
    """The terms of all leaves, merged; None stands for a leaf that lacks the field.

    With one dictionary nothing is copied. With several their terms are held once more.
    """

    def __init__(self, dictionaries: Sequence[TermDictionary | None]) -> None:
        held = [dictionary for dictionary in dictionaries if dictionary is not None]
        self._only = held[0] if len(held) == 1 else None
        self._terms: list[str] = []
        self._numbers: list[Longs | None] = [None] * len(dictionaries)
        if len(held) > 1:
            self._merge(dictionaries)

    def _merge(self, dictionaries: Sequence[TermDictionary | None]) -> None:
        own = [[] if one is None else list(one.terms(0, len(one))) for one in dictionaries]
        self._terms = sorted(set().union(*own))
        number = {term: position for position, term in enumerate(self._terms)}
        self._numbers = [np.fromiter((number[term] for term in terms), np.int64) for terms in own]

    def __len__(self) -> int:
        return len(self._terms) if self._only is None else len(self._only)

    def of_leaf(self, leaf: int, ordinals: NDArray[np.int32]) -> Longs:
        """Numbers of a leaf's own dictionary as numbers of this one."""
        numbers = self._numbers[leaf]
        return ordinals.astype(np.int64) if numbers is None else numbers[ordinals]

    def term(self, number: int) -> str:
        return self._terms[number] if self._only is None else self._only.term(number)

    def lower_bound(self, term: str) -> int:
        """The number of the first term that is not before this one; len() where there is none."""
        if self._only is not None:
            return self._only.lower_bound(term)
        return bisect_left(self._terms, term)

    def find(self, term: str) -> int:
        """The number of a term, -1 where it is not there."""
        number = self.lower_bound(term)
        return number if number < len(self) and self.term(number) == term else -1


# The values of fields over all the segments of a searcher, for documents by their number in the whole.

Value = TypeVar("Value")
Numbers = NDArray[Any]  # int64, uint64 or float64, and float32 for scores


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a list of documents: data[i] belongs to the document at rows[i] of that list.

    rows ascend, and so do the values of one row.
    """

    rows: Longs
    data: Numbers


@dataclass(frozen=True, slots=True)
class Points:
    """As Values, with points in degrees."""

    rows: Longs
    latitudes: Doubles
    longitudes: Doubles


def spread(starts: NDArray[np.signedinteger], docs: Longs) -> tuple[Longs, Longs]:
    """(rows, positions) of all that `starts` gives to each of these documents."""
    first = starts[docs].astype(np.int64)
    counts = starts[docs + 1] - first
    rows = np.repeat(np.arange(len(docs)), counts)
    before = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) + np.repeat(first - before, counts)


class Columns:
    """Reads columns of all leaves. Documents are handed in by their number in the whole, in the order of
    their leaves (within a leaf in any order, and more than once if need be). Holds the merged dictionaries
    and what relates nested documents, so keep one as long as its searcher.
    """

    def __init__(self, leaves: Sequence[Leaf], indexes: Sequence[Searcher] = ()) -> None:
        """indexes: of each leaf the searcher of its index, which knows the index's name and fields."""
        self.leaves = leaves
        self._indexes = indexes
        self.size = sum(leaf.segment.size for leaf in leaves)
        self._base_list = [leaf.base for leaf in leaves]
        self._bases = np.array(self._base_list, dtype=np.int64)
        self._terms: dict[str, GlobalTerms] = {}
        self._doc_counts: Longs | None = None
        self._has_doc_counts: bool | None = None  # None: nobody has asked
        self._bounds: dict[str, tuple[float, float]] = {}
        self._parents: Longs | None = None
        self._roots: Longs | None = None
        self._shown: Longs | None = None
        self._kept: dict[Hashable, Any] = {}

    def parts(self, docs: Longs) -> Iterator[tuple[Segment, int, slice]]:
        """(segment, number in the list of leaves, which of the documents are in it)."""
        if len(self.leaves) == 1:
            yield self.leaves[0].segment, 0, slice(0, len(docs))
            return
        leaf_of = np.searchsorted(self._bases, docs, side="right") - 1
        bounds = np.searchsorted(leaf_of, np.arange(len(self.leaves) + 1))
        for number, leaf in enumerate(self.leaves):
            if bounds[number] < bounds[number + 1]:
                yield leaf.segment, number, slice(int(bounds[number]), int(bounds[number + 1]))

    def keep(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """make()'s result, made at the first call with this key; there are to be few."""
        if key not in self._kept:
            self._kept[key] = make()
        value: Value = self._kept[key]
        return value

    def locate(self, doc: int) -> tuple[Leaf, int]:
        """The leaf of a document and its number there."""
        number = bisect_right(self._base_list, doc) - 1
        return self.leaves[number], doc - self._base_list[number]

    @cached_property
    def has_plain_roots(self) -> bool:
        """Whether all documents are roots without metadata, which is all that a hit need show of them."""
        return not any(leaf.segment.parents is not None or leaf.segment.has_metadata for leaf in self.leaves)

    def numbers(self, spec: FieldSpec, docs: Longs) -> Values:
        """The values of a field of INTS or FLOATS: dates, also date_nanos, in milliseconds."""
        if spec.type == "unsigned_long":
            shifted = self.exact(spec, docs)
            return Values(shifted.rows, unsigned(shifted.data))
        if spec.storage is Storage.INTS:
            return self._numbers(spec, lambda segment, path: segment.ints(path), np.int64, docs)
        return self._numbers(spec, _doubles, np.float64, docs)

    def exact(self, spec: FieldSpec, docs: Longs) -> Values:
        """As numbers, but a date_nanos in nanoseconds, and an unsigned_long less 2^63 in 64 signed bits."""
        if spec.type not in ("date_nanos", "unsigned_long"):
            return self.numbers(spec, docs)
        kind = spec.type
        return self._numbers(spec, lambda segment, path: exact_numbers(segment, path, kind), np.int64, docs)

    def column_in(self, spec: FieldSpec, number: int) -> NumberColumn | None:
        """What `numbers` reads of a leaf, None where it has no such values. Not of an unsigned_long."""
        path = self.path_in(spec, number)
        if path is None:
            return None
        segment = self.leaves[number].segment
        return segment.ints(path) if spec.storage is Storage.INTS else _doubles(segment, path)

    def _numbers(
        self,
        spec: FieldSpec,
        column_of: Callable[[Segment, str], NumberColumn | None],
        kind: type[np.generic],
        docs: Longs,
    ) -> Values:
        rows, data = [np.empty(0, np.int64)], [np.empty(0, kind)]
        for segment, number, part in self.parts(docs):
            path = self.path_in(spec, number)
            column = None if path is None else column_of(segment, path)
            if column is not None:
                own_rows, own_data = _gather(column, docs[part] - self.leaves[number].base)
                rows.append(own_rows + part.start)
                data.append(own_data.astype(kind, copy=False))
        return Values(_joined(rows), _joined(data))

    def single_values(self, spec: FieldSpec) -> list[Numbers] | None:
        """Of each leaf, the values of a field of INTS or FLOATS, in milliseconds for dates, where each of all
        documents has one; else None.
        """
        kind = np.int64 if spec.storage is Storage.INTS else np.float64
        columns = [self.column_in(spec, number) for number in range(len(self.leaves))]
        found = [one.values for one in columns if one is not None and one.starts is None]
        return found if len(found) == len(columns) and all(one.dtype == kind for one in found) else None

    def ordinals(self, spec: FieldSpec, docs: Longs) -> Values:
        """The terms of a field of TERMS, or the tokens of a text, by their numbers in `dictionary(spec)`."""
        dictionary = self.dictionary(spec)
        rows, data = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for segment, number, part in self.parts(docs):
            if self.constant_in(spec, number) is not None:
                rows.append(np.arange(part.start, part.stop))
                data.append(dictionary.of_leaf(number, np.zeros(part.stop - part.start, np.int32)))
                continue
            path = self.path_in(spec, number)
            index = None if path is None else _term_index(segment, path, spec)
            if index is not None:
                starts = index.ordinals.starts
                own_rows, positions = spread(starts, docs[part] - self.leaves[number].base)
                terms = index.ordinals.terms[positions]
                if (kept := _frequent(index, spec)) is not None:
                    own_rows, terms = own_rows[kept[terms]], terms[kept[terms]]
                rows.append(own_rows + part.start)
                data.append(dictionary.of_leaf(number, terms))
        return Values(_joined(rows), _joined(data))

    def term_counts(self, spec: FieldSpec, docs: Longs) -> Longs:
        """How many of these documents have each term of a field of TERMS, by its number in
        `dictionary(spec)`: what counting `ordinals` would give, in one pass.
        """
        dictionary, of_all = self.dictionary(spec), docs is self._shown
        counts = np.zeros(len(dictionary), np.int64)
        for segment, number, part in self.parts(docs):
            if self.constant_in(spec, number) is not None:
                counts[dictionary.of_leaf(number, np.zeros(1, np.int32))] += part.stop - part.start
                continue
            path = self.path_in(spec, number)
            index = None if path is None else segment.terms(path)
            if index is None:
                continue
            base, local = self.leaves[number].base, docs[part]
            is_all = of_all and len(local) == segment.size
            own = _term_counts(segment, path or "", index, local - base if base else local, is_all=is_all)
            present = np.flatnonzero(own)
            counts[dictionary.of_leaf(number, present.astype(np.int32))] += own[present]
        return counts

    def knows_term_counts(self, spec: FieldSpec) -> bool:
        """Whether `term_counts` of all documents are kept already."""
        for number, leaf in enumerate(self.leaves):
            path = self.path_in(spec, number)
            if path is None or self.constant_in(spec, number) is not None:
                continue
            if leaf.segment.terms(path) is not None and (COUNTS_OF_ALL, path) not in leaf.segment.derived:
                return False
        return True

    def points(self, spec: FieldSpec, docs: Longs) -> Points:
        """The values of a field of POINTS."""
        rows, latitudes, longitudes = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
        for segment, number, part in self.parts(docs):
            path = self.path_in(spec, number)
            column = None if path is None else segment.points(path)
            if column is not None:
                own_rows, positions = spread(column.starts, docs[part] - self.leaves[number].base)
                rows.append(own_rows + part.start)
                latitudes.append(column.latitudes[positions])
                longitudes.append(column.longitudes[positions])
        return Points(_joined(rows), _joined(latitudes), _joined(longitudes))

    def dictionary(self, spec: FieldSpec) -> GlobalTerms:
        """All the terms of a field, in the order of their code points."""
        if spec.path not in self._terms:
            self._terms[spec.path] = GlobalTerms([*self._dictionaries(spec)])
        return self._terms[spec.path]

    def _dictionaries(self, spec: FieldSpec) -> Iterator[TermDictionary | None]:
        for number, leaf in enumerate(self.leaves):
            if (constant := self.constant_in(spec, number)) is not None:
                yield ListedTerms((constant,))
                continue
            path = self.path_in(spec, number)
            index = None if path is None else _term_index(leaf.segment, path, spec)
            yield None if index is None else index.dictionary

    def has_constants(self, spec: FieldSpec) -> bool:
        """Whether `constant_in` has one for any leaf."""
        return any(self.constant_in(spec, number) is not None for number in range(len(self.leaves)))

    def constant_in(self, spec: FieldSpec, number: int) -> str | None:
        """The one value that all documents of a leaf have in a field, though no segment holds it."""
        if spec.type == "_index":
            return self._indexes[number].index_name
        own = self._indexes[number].mapping.field(spec.path) if self._indexes else spec
        if own is None or own.type != "constant_keyword":
            return None
        value: str | None = own.options["value"]
        return value

    def path_in(self, spec: FieldSpec, number: int) -> str | None:
        """The path of a field in a leaf: in its index the name may be an alias of another field."""
        if not self._indexes:
            return spec.path
        own = self._indexes[number].mapping.field(spec.path)
        return None if own is None else own.path

    def is_merged(self, spec: FieldSpec) -> bool:
        """Whether `dictionary(spec)` is there, or need not be made."""
        return spec.path in self._terms or len(self.leaves) <= 1

    def bounds(self, spec: FieldSpec) -> tuple[float, float]:
        """The least and the greatest value of a field of INTS or FLOATS, those of deleted documents too;
        (0, 0) where there is none.
        """
        if spec.path not in self._bounds:
            data = self.numbers(spec, np.arange(self.size)).data
            self._bounds[spec.path] = (data.min().item(), data.max().item()) if len(data) else (0, 0)
        return self._bounds[spec.path]

    def known_bounds(self, spec: FieldSpec) -> tuple[float, float] | None:
        """`bounds` where somebody has asked for them: of many documents they are dear."""
        return self._bounds.get(spec.path)

    def having(self, path: str) -> Bools:
        """Which of all documents have a value for a path."""
        found = [np.asarray(leaf.segment.having(path), dtype=np.bool_) for leaf in self.leaves]
        return np.concatenate([np.zeros(0, np.bool_), *found])

    @property
    def doc_counts(self) -> Longs | None:
        """For how many documents each of all stands, by its `_doc_count`; None where each is for one."""
        if self._has_doc_counts is None:
            self._has_doc_counts = any(leaf.segment.ints(DOC_COUNT) is not None for leaf in self.leaves)
        if self._has_doc_counts and self._doc_counts is None:
            counts = np.ones(self.size, np.int64)
            for leaf in self.leaves:
                column = leaf.segment.ints(DOC_COUNT)
                if column is not None:
                    rows, values = _gather(column, np.arange(leaf.segment.size))
                    counts[rows + leaf.base] = np.maximum(values, 1)
            self._doc_counts = counts
        return self._doc_counts

    @property
    def parents(self) -> Longs:
        """The document that each of all documents is directly in, -1 for none."""
        if self._parents is None:
            parts = [np.empty(0, np.int64)]
            for leaf in self.leaves:
                local = leaf.segment.parents
                none = np.full(leaf.segment.size, -1, np.int64)
                parts.append(none if local is None else np.where(local < 0, -1, local + np.int64(leaf.base)))
            self._parents = np.concatenate(parts)
        return self._parents

    @property
    def roots(self) -> Longs:
        """The document of the top level that each of all documents is in, or is."""
        if self._roots is None:
            own = np.arange(self.size)
            # A nested document stands right before its root, so its root is the next one after it.
            tops = np.flatnonzero(self.parents < 0)
            self._roots = tops[np.searchsorted(tops, own)] if len(tops) else own
        return self._roots

    def ancestors(self, docs: Longs, path: str | None) -> Longs:
        """The document of the top level (path None) or the nested object at a path that each document is in,
        itself among them; -1 where there is none.
        """
        if path is None:
            return self.roots[docs]
        there, found = self.at_path(path), docs.copy()
        while len(climbing := np.flatnonzero((found >= 0) & ~there[found])):
            found[climbing] = self.parents[found[climbing]]
        return found

    @property
    def shown(self) -> Longs:
        """The live documents of the top level, ascending; kept, so nobody writes into it.

        Searches of all documents come often, and three arrays of all made anew for each cost most of them.
        """
        if self._shown is None:
            own = [np.flatnonzero(leaf.roots) + leaf.base for leaf in self.leaves]
            self._shown = np.concatenate([np.empty(0, np.int64), *own])
        return self._shown

    def at_path(self, path: str | None) -> Bools:
        """Which of all documents are nested objects at this path; None: those of the top level."""
        if path is None:
            return self.parents < 0
        masks = [np.zeros(0, np.bool_)]
        for leaf in self.leaves:
            paths, numbers = list(leaf.segment.nested_paths), leaf.segment.nested_path
            if numbers is not None and path in paths:
                masks.append(np.asarray(numbers == paths.index(path)))
            else:
                masks.append(np.zeros(leaf.segment.size, np.bool_))
        return np.concatenate(masks)


@compiled(nogil=True)
def _count_terms(starts: NDArray[Any], terms: NDArray[Any], docs: Longs, counts: Longs) -> None:
    """Add 1 to counts for each term of each document."""
    for doc in docs:
        for position in range(starts[doc], starts[doc + 1]):
            counts[terms[position]] += 1


COUNTS_OF_ALL = "term counts"
"""Where `term_counts` of all documents of a segment are kept."""


def _term_counts(segment: Segment, path: str, index: TermIndex, docs: Longs, *, is_all: bool) -> Longs:
    """How many of some documents have each term; those of all documents are kept with the segment."""
    is_all = is_all and not segment.live_only
    known: Longs | None = segment.derived.get((COUNTS_OF_ALL, path)) if is_all else None
    if known is not None:
        return known
    counts = np.zeros(len(index.dictionary), np.int64)
    _count_terms(index.ordinals.starts, index.ordinals.terms, docs, counts)
    if is_all:
        segment.derived[COUNTS_OF_ALL, path] = counts
    return counts


def _term_index(segment: Segment, path: str, spec: FieldSpec) -> TermIndex | TextIndex | None:
    return segment.text(path) if spec.type == "text" else segment.terms(path)


def _frequent(index: TermIndex | TextIndex, spec: FieldSpec) -> Bools | None:
    """Which tokens of a segment `fielddata_frequency_filter` keeps; None: all.

    Each segment counts for itself, as in Lucene. A bound up to 1 is a part of the documents with the field.
    """
    bounds = spec.options.get("fielddata_frequency_filter") or {}
    if not bounds or index.doc_count < int(bounds.get("min_segment_size", 0)):
        return None
    least, most = (
        bound if bound > 1 else int(index.doc_count * bound)
        for bound in (float(bounds.get("min", 0)), float(bounds.get("max", 2**31 - 1)))
    )
    counts = np.bincount(index.ordinals.terms, minlength=len(index.dictionary))
    return np.asarray((counts >= int(least)) & (counts <= int(most)))


def _doubles(segment: Segment, path: str) -> NumberColumn | None:
    """Of several indexes one may have whole numbers in the field."""
    if segment.exact(path) is not None:
        return unsigned_numbers(segment, path)
    return segment.floats(path) or segment.ints(path)


def _gather(column: NumberColumn, docs: Longs) -> tuple[Longs, Numbers]:
    if column.starts is None:
        return np.arange(len(docs)), column.values[docs]
    rows, positions = spread(column.starts, docs)
    return rows, column.values[positions]


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """The first part is empty and only gives the type."""
    return parts[1] if len(parts) == 2 else np.concatenate(parts)
