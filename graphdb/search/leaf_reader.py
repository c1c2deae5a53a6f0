"""What a segment and a searcher offer to matching, sorting and aggregations.

A segment is immutable. Its documents are numbered from 0; nested objects are documents of their own, numbered
right before the document that they are in (Lucene's block join). All arrays are read-only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.search.errors import illegal_argument
from graphdb.search.index_order import IndexOrder

__all__ = [
    "Bools",
    "Doubles",
    "Floats",
    "Ints",
    "Leaf",
    "Longs",
    "NumberColumn",
    "Ordinals",
    "PointColumn",
    "Segment",
    "TermDictionary",
    "TermIndex",
    "TextArrays",
    "TextIndex",
    "VectorColumn",
    "exact_numbers",
    "unsigned",
    "unsigned_numbers",
]

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


class TermDictionary(Protocol):
    """The terms of one field of one segment, sorted by their UTF-8 bytes, and so by code points."""

    def __len__(self) -> int: ...
    def find(self, term: str) -> int:
        """The number of a term, -1 where it is not there."""

    def lower_bound(self, term: str) -> int:
        """The number of the first term that is not before this one; len() where there is none."""

    def term(self, number: int) -> str: ...
    def terms(self, start: int, stop: int) -> Iterator[str]:
        """Those with numbers in [start, stop)."""


class TextIndex(Protocol):
    """A field of Storage.TEXT."""

    dictionary: TermDictionary
    norms: NDArray[np.uint8]  # by document: the length as Lucene's SmallFloat.intToByte4; 0: lacks the field
    doc_count: int  # documents that have the field, deleted ones too, as Lucene counts
    total_terms: int  # tokens in all of them

    @property
    def ordinals(self) -> "Ordinals":
        """Its tokens by document, for `fielddata`: made of the postings when first asked for, then kept."""

    def postings(self, number: int) -> tuple[Ints, Ints]:
        """Documents, ascending, and how often the term is in each."""

    def docs_of(self, number: int) -> Ints:
        """The documents alone, which takes less."""

    def posting_ranges(self, numbers: Longs) -> tuple[Ints, NDArray[np.uint8], Longs, Longs, Longs]:
        """(docs, freqs, high, starts, stops): the postings of term numbers[i] are docs[starts[i]:stops[i]];
        of freqs and high see `TextArrays`.

        Other than `postings` they may have documents that are hidden.
        """

    def arrays(self) -> "TextArrays | None":
        """All of it; None where some of its postings are hidden."""

    def positions(self, number: int) -> tuple[Ints, Ints]:
        """(starts, positions): the i-th document of the postings has positions[starts[i]:starts[i + 1]]."""

    def packed_positions(self, numbers: Longs) -> tuple[NDArray[np.uint8], Longs, Longs] | None:
        """(packed, starts, stops): those of the postings of term numbers[i] are packed[starts[i]:stops[i]],
        see `pack_positions`; None where they are not packed, or some are hidden.
        """


@dataclass(frozen=True, slots=True)
class TextArrays:
    """Term t is blob[term_starts[t]:term_starts[t + 1]], its postings are docs[starts[t]:starts[t + 1]].

    freqs has how often it is there; of those of 255 and more, whose byte is 255, high has place << 32 |
    frequency, ascending.
    """

    blob: NDArray[np.uint8]
    term_starts: Longs
    starts: Longs
    docs: Ints
    freqs: NDArray[np.uint8]
    high: Longs


@dataclass(frozen=True, slots=True)
class Ordinals:
    """Which terms each document has: terms[starts[d]:starts[d + 1]], ascending and without doubles."""

    starts: Ints  # one more than documents
    terms: Ints


class TermIndex(Protocol):
    """A field of Storage.TERMS."""

    dictionary: TermDictionary
    doc_count: int

    @property
    def ordinals(self) -> Ordinals: ...

    def postings(self, number: int) -> Ints:
        """Documents, ascending."""


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A field of Storage.INTS or FLOATS: document d has values[starts[d]:starts[d + 1]], ascending.

    Where every document has exactly one value, starts is None and values has one for each.
    """

    values: Longs | Doubles
    starts: Ints | None


@dataclass(frozen=True, slots=True)
class PointColumn:
    """A field of Storage.POINTS, laid out as NumberColumn; degrees."""

    latitudes: Doubles
    longitudes: Doubles
    starts: Ints


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """A field of Storage.VECTORS: row i is of document docs[i]; docs ascend."""

    docs: Ints
    rows: NDArray[Any]  # (len(docs), dims) float32, or (len(docs), dims / 8) uint8 of bits


class Segment(Protocol):
    """Documents, none of which changes. name is unique in its index, also after a restart."""

    name: str
    size: int  # documents, nested ones too
    parents: Ints | None  # the document that each is directly in, -1 for none; None: there are no nested ones
    nested_paths: Sequence[str]  # by number
    nested_path: Ints | None  # which path each is at, -1 for none
    seq_nos: Longs
    versions: Longs
    order: IndexOrder  # which order the documents are in; empty: as they were written
    live_only: bool  # documents that are not live count nowhere: not in terms, statistics or numbers shown
    derived: dict[tuple[str, str], Any]  # what others made of it and keep with it, by kind and path

    def doc_id(self, doc: int) -> str:
        """The `_id` of a document, or of the one that a nested one is in."""

    def find(self, doc_id: str) -> int:
        """The document with that `_id`, -1 where it is not there."""

    def source(self, doc: int) -> bytes:
        """The JSON that was stored; of a nested one that of the document it is in."""

    def shown(self, docs: Sequence[int]) -> Iterator[tuple[str, bytes]]:
        """`doc_id` and `source` of each, read as they are taken."""

    def routing(self, doc: int) -> str | None: ...

    @property
    def has_metadata(self) -> bool:
        """Whether any document has a routing, or fields that were ignored."""

    def fields(self) -> frozenset[str]:
        """The paths that any document has a value for, in whatever storage."""

    def text(self, path: str) -> TextIndex | None: ...
    def terms(self, path: str) -> TermIndex | None: ...
    def ints(self, path: str) -> NumberColumn | None: ...
    def exact(self, path: str) -> NumberColumn | None:
        """See `ParsedDocument.exact`; `exact_numbers` has them all."""

    def floats(self, path: str) -> NumberColumn | None: ...
    def points(self, path: str) -> PointColumn | None: ...
    def vectors(self, path: str) -> VectorColumn | None: ...
    def having(self, path: str) -> Bools:
        """Which documents have a value for a path; for an object's path, for any below it."""

    def having_itself(self, path: str) -> Bools:
        """The same without those that only have one below it."""

    def ignored(self, doc: int) -> Sequence[str]:
        """The paths whose values were left out."""


def exact_numbers(segment: Segment, path: str, type_name: str) -> NumberColumn | None:
    """The column of a date_nanos in nanoseconds, of an unsigned_long less 2^63; made of `ints` where a
    segment has no more, as of a date that is read as date_nanos.

    Errors: illegal_argument_exception for a date that has no nanoseconds in 64 bits.
    """
    exact, ints = segment.exact(path), segment.ints(path)
    if ints is None or (exact is not None and len(exact.values) == len(ints.values)):
        return exact
    key = ("exact", path)
    if key not in segment.derived:
        values = _nanoseconds(ints.values) if type_name == "date_nanos" else ints.values + _LONG_MIN
        if exact is not None:
            # Some documents are from before there were exact numbers.
            docs = np.arange(segment.size)
            has_exact = np.diff(docs if exact.starts is None else exact.starts) > 0
            owners = docs if ints.starts is None else np.repeat(docs, np.diff(ints.starts))
            values[has_exact[owners]] = exact.values
        segment.derived[key] = NumberColumn(values, ints.starts)
    column: NumberColumn = segment.derived[key]
    return column


def unsigned_numbers(segment: Segment, path: str) -> NumberColumn | None:
    """The column of an unsigned_long as doubles."""
    exact = exact_numbers(segment, path, "unsigned_long")
    return None if exact is None else NumberColumn(unsigned(exact.values).astype(np.float64), exact.starts)


def unsigned(less: NDArray[Any]) -> NDArray[np.uint64]:
    """The numbers of which `exact` has 2^63 less."""
    return less.view(np.uint64) ^ np.uint64(2**63)


def _nanoseconds(milliseconds: Longs | Doubles) -> Longs:
    beyond = np.abs(milliseconds) > _LONG_MAX // 1_000_000
    if beyond.any():
        raise illegal_argument(
            f"date[{milliseconds[beyond][0]}] in milliseconds cannot be converted to nanoseconds: sort with "
            "[numeric_type] [date]"
        )
    return milliseconds.astype(np.int64) * 1_000_000


@dataclass(frozen=True, slots=True)
class Leaf:
    """A segment as of one point in time. live: not deleted since; nested documents live with their root."""

    segment: Segment
    live: Bools
    base: int  # number of its first document in the whole searcher

    @property
    def counted(self) -> Bools | None:
        """The documents that count in statistics; None: all, deleted ones too, as Lucene counts."""
        return self.live if self.segment.live_only else None

    @property
    def count(self) -> int:
        """How many documents count in statistics, nested ones too."""
        return self.segment.size if self.counted is None else int(np.count_nonzero(self.counted))

    def shown_number(self, doc: int) -> int:
        """The number of a document among those that count."""
        return doc if self.counted is None else int(np.count_nonzero(self.counted[:doc]))

    @property
    def roots(self) -> Bools:
        """The live documents that are no nested ones: what a search at the top matches against."""
        parents = self.segment.parents
        return self.live if parents is None else self.live & (parents < 0)
