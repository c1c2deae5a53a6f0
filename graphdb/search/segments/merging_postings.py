"""The postings of one field in several segments made one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from graphdb.search.segment import Ints, Longs
from graphdb.search.segments.sections import Sections
from graphdb.search.segments.strings import Strings

__all__ = ["MergedPostings", "Postings", "merge_postings"]


@dataclass(frozen=True, slots=True)
class Postings:
    """Those of one segment, and the new number of each of its documents, -1 for those that go."""

    terms: list[bytes]  # ascending
    starts: Longs
    docs: Ints
    freqs: Ints
    position_starts: Longs
    positions: Ints
    new_docs: Ints

    @classmethod
    def of(cls, sections: Sections, storage: str, path: str, new_docs: Ints) -> "Postings":
        """What has no positions is taken to have each term 0 times in its documents."""
        names = ("dictionary_blob", "dictionary_starts", "starts", "docs")
        blob, term_starts, starts, docs = (sections[storage, path, name] for name in names)
        none = np.zeros(0, np.int32)
        return cls(
            list(Strings(blob, term_starts).raws(0, len(term_starts) - 1)),
            starts,
            docs,
            sections.get((storage, path, "freqs"), np.zeros(len(docs), np.int32)),
            sections.get((storage, path, "position_starts"), np.zeros(len(starts), np.int64)),
            sections.get((storage, path, "positions"), none),
            new_docs,
        )


@dataclass(frozen=True, slots=True)
class MergedPostings:
    """The same of all segments. Terms whose documents are all gone are gone."""

    terms: list[bytes]
    starts: Longs
    docs: Ints
    freqs: Ints
    position_starts: Longs
    positions: Ints


def merge_postings(sources: Sequence[Postings]) -> MergedPostings:
    """New document numbers must ascend from source to source and in each."""
    terms = sorted({term for source in sources for term in source.terms})
    numbers = {term: number for number, term in enumerate(terms)}
    new_terms = [
        np.fromiter(map(numbers.__getitem__, source.terms), np.int64, len(source.terms)) for source in sources
    ]
    doc_counts, position_counts = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
    for source, mapped in zip(sources, new_terms, strict=True):
        _count(source.starts, source.docs, source.freqs, mapped, source.new_docs, doc_counts, position_counts)
    left = doc_counts > 0
    places = np.cumsum(left) - 1
    merged = _room(
        [term for term, stays in zip(terms, left.tolist(), strict=True) if stays],
        doc_counts[left],
        position_counts[left],
    )
    cursors, position_cursors = merged.starts[:-1].copy(), merged.position_starts[:-1].copy()
    for source, mapped in zip(sources, new_terms, strict=True):
        old = (source.starts, source.docs, source.freqs, source.position_starts, source.positions)
        new = (merged.docs, merged.freqs, merged.positions)
        _copy(*old, places[mapped], source.new_docs, cursors, position_cursors, *new)
    return merged


def _room(terms: list[bytes], doc_counts: Longs, position_counts: Longs) -> MergedPostings:
    """Arrays of the right size, with the starts filled in."""
    starts, position_starts = (
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64) for counts in (doc_counts, position_counts)
    )
    docs, freqs = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
    return MergedPostings(
        terms, starts, docs, freqs, position_starts, np.empty(position_starts[-1], np.int32)
    )


@numba.njit(cache=True, nogil=True)
def _count(
    starts: Any, docs: Any, freqs: Any, terms: Any, new_docs: Any, doc_counts: Any, position_counts: Any
) -> None:
    """Add to each new term's counts what one source has for it in documents that stay."""
    for term in range(len(starts) - 1):
        for i in range(starts[term], starts[term + 1]):
            if new_docs[docs[i]] >= 0:
                doc_counts[terms[term]] += 1
                position_counts[terms[term]] += freqs[i]


@numba.njit(cache=True, nogil=True)
def _copy(
    starts: Any,
    docs: Any,
    freqs: Any,
    position_starts: Any,
    positions: Any,
    terms: Any,
    new_docs: Any,
    cursors: Any,
    position_cursors: Any,
    merged_docs: Any,
    merged_freqs: Any,
    merged_positions: Any,
) -> None:
    """Write one source's postings where the cursors of its terms stand, and move these on."""
    for term in range(len(starts) - 1):
        target, start = terms[term], position_starts[term]
        for i in range(starts[term], starts[term + 1]):
            new_doc = new_docs[docs[i]]
            if new_doc >= 0:
                merged_docs[cursors[target]] = new_doc
                merged_freqs[cursors[target]] = freqs[i]
                cursors[target] += 1
                for place in range(start, start + freqs[i]):
                    merged_positions[position_cursors[target]] = positions[place]
                    position_cursors[target] += 1
            start += freqs[i]
