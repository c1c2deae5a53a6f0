"""Merging segments into one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.index_order import IndexOrder
from graphdb.search.leaf_reader import Ints, Leaf, Longs
from graphdb.search.segments.array_segment import ArraySegment, freqs_of
from graphdb.search.segments.field_builders import (
    freq_sections,
    number_starts,
    position_sections,
    transpose,
)
from graphdb.search.segments.ordering import in_order
from graphdb.search.segments.postings import Bytes, freq_at, pack_positions, packed_length
from graphdb.search.segments.sections import (
    Hashes,
    Key,
    Sections,
    Strings,
    decode,
    encode,
    freeze,
    id_sections,
    packed,
    strings,
)
from graphdb.search.segments.sources import Sources, merged_sources, ordered_sources

__all__ = ["MergedPostings", "Postings", "merge", "merge_postings"]

# The postings of one field in several segments made one.


@dataclass(frozen=True, slots=True)
class Postings:
    """Those of one segment, and the new number of each of its documents, -1 for those that go."""

    terms: list[bytes]  # ascending
    starts: Longs
    docs: Ints
    freqs: Bytes  # see `TextArrays`
    high: Longs
    position_starts: Longs
    positions: Bytes
    new_docs: Ints

    @classmethod
    def of(cls, sections: Sections, storage: str, path: str, new_docs: Ints) -> "Postings":
        """What has no positions is taken to have each term 0 times in its documents."""
        names = ("dictionary_blob", "dictionary_starts", "starts", "docs")
        blob, term_starts, starts, docs = (sections[storage, path, name] for name in names)
        terms = list(Strings(blob, term_starts).raws(0, len(term_starts) - 1))
        if storage != "text":
            none, zeros = np.zeros(0, np.int64), np.zeros(len(starts), np.int64)
            freqs = np.zeros(len(docs), np.uint8)
            return cls(terms, starts, docs, freqs, none, zeros, np.zeros(0, np.uint8), new_docs)
        freqs, high = freqs_of(sections, path)
        position_starts, positions = (
            sections[storage, path, name] for name in ("position_starts", "positions")
        )
        if positions.dtype != np.uint8:  # of a file of format 1 or 2
            position_starts, positions = pack_positions(starts, sections[storage, path, "freqs"], positions)
        return cls(terms, starts, docs, freqs, high, position_starts, positions, new_docs)

    def arrays(self) -> tuple[Longs, Ints, Bytes, Longs, Longs, Bytes]:
        """What the loops take first."""
        return self.starts, self.docs, self.freqs, self.high, self.position_starts, self.positions


@dataclass(frozen=True, slots=True)
class MergedPostings:
    """The same of all segments. Terms whose documents are all gone are gone."""

    terms: list[bytes]
    starts: Longs
    docs: Ints
    freqs: Ints
    position_starts: Longs
    positions: Bytes


def merge_postings(sources: Sequence[Postings]) -> MergedPostings:
    """New document numbers must ascend from source to source and in each."""
    terms = sorted({term for source in sources for term in source.terms})
    numbers = {term: number for number, term in enumerate(terms)}
    new_terms = [
        np.fromiter(map(numbers.__getitem__, source.terms), np.int64, len(source.terms)) for source in sources
    ]
    doc_counts, position_counts = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
    for source, mapped in zip(sources, new_terms, strict=True):
        _count(*source.arrays(), mapped, source.new_docs, doc_counts, position_counts)
    left = doc_counts > 0
    places = np.cumsum(left) - 1
    merged = _room(
        [term for term, stays in zip(terms, left.tolist(), strict=True) if stays],
        doc_counts[left],
        position_counts[left],
    )
    cursors, position_cursors = merged.starts[:-1].copy(), merged.position_starts[:-1].copy()
    for source, mapped in zip(sources, new_terms, strict=True):
        new = (merged.docs, merged.freqs, merged.positions)
        _copy(*source.arrays(), places[mapped], source.new_docs, cursors, position_cursors, *new)
    return merged


def _room(terms: list[bytes], doc_counts: Longs, position_counts: Longs) -> MergedPostings:
    """Arrays of the right size, with the starts filled in."""
    starts, position_starts = (
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64) for counts in (doc_counts, position_counts)
    )
    docs, freqs = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
    return MergedPostings(
        terms, starts, docs, freqs, position_starts, np.empty(position_starts[-1], np.uint8)
    )


@compiled(nogil=True)
def _count(
    starts: Any,
    docs: Any,
    freqs: Any,
    high: Any,
    position_starts: Any,
    positions: Any,
    terms: Any,
    new_docs: Any,
    doc_counts: Any,
    position_counts: Any,
) -> None:
    """Add to each new term's counts what one source has for it in documents that stay: documents, and bytes
    of positions.
    """
    for term in range(len(starts) - 1):
        start = position_starts[term]
        for i in range(starts[term], starts[term + 1]):
            length = packed_length(positions, start, freq_at(freqs, high, i))
            start += length
            if new_docs[docs[i]] >= 0:
                doc_counts[terms[term]] += 1
                position_counts[terms[term]] += length


@compiled(nogil=True)
def _copy(
    starts: Any,
    docs: Any,
    freqs: Any,
    high: Any,
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
            new_doc, freq = new_docs[docs[i]], freq_at(freqs, high, i)
            end = start + packed_length(positions, start, freq)
            if new_doc >= 0:
                merged_docs[cursors[target]] = new_doc
                merged_freqs[cursors[target]] = freq
                cursors[target] += 1
                for place in range(start, end):
                    merged_positions[position_cursors[target]] = positions[place]
                    position_cursors[target] += 1
            start = end


# Several segments made one, without what was deleted. The result is what a builder would make of the same
# documents, array by array.


def merge(leaves: Sequence[Leaf], name: str, order: IndexOrder = ()) -> ArraySegment:
    """A segment of the live documents of all leaves, in their order, or in that of the index. Pure: any
    thread may do it. Raises CorruptionError.
    """
    parts, size = [], 0
    for leaf in leaves:
        parts.append(_Part.of(leaf, size))
        size += len(parts[-1].kept)
    sections = _documents(parts) | _nesting(parts)
    for storage, path in sorted({key[:2] for part in parts for key in part.sections if key[1]}):
        sections |= _MERGES[storage](parts, storage, path, size)
    sources = [(part.sources, part.kept_roots) for part in parts]
    ranks = None
    if order:
        sections, ranks = in_order(sections, order)
    sections |= merged_sources(sources) if ranks is None else ordered_sources(sources, ranks)
    return ArraySegment(name, freeze(sections))


@dataclass(frozen=True, slots=True)
class _Part:
    """One of the segments: its arrays, which documents stay, and the new number of each (-1: none)."""

    sections: Sections
    sources: Sources
    size: int
    kept: Ints
    kept_roots: Ints  # counted without nested documents
    new_docs: Ints

    @classmethod
    def of(cls, leaf: Leaf, base: int) -> "_Part":
        segment = leaf.segment
        assert isinstance(segment, ArraySegment)
        kept = np.flatnonzero(leaf.live).astype(np.int32)
        new_docs = np.full(segment.size, -1, np.int32)
        new_docs[kept] = np.arange(base, base + len(kept), dtype=np.int32)
        kept_roots = np.flatnonzero(leaf.live[segment.root_docs()]).astype(np.int32)
        return cls(segment.sections, segment.sources, segment.size, kept, kept_roots, new_docs)

    def hashes(self) -> Hashes:
        """Those of the roots that stay, in the order of the roots."""
        docs = self.sections["", "", "id_docs"]
        hashes = np.empty(len(docs), np.uint64)
        hashes[docs] = self.sections["", "", "id_hashes"]
        return hashes[self.kept_roots]

    def renumbered(self, docs: Ints) -> Ints:
        """The new numbers of those of docs that stay."""
        new: Ints = self.new_docs[docs]
        return new[new >= 0]


def _documents(parts: Sequence[_Part]) -> dict[Key, NDArray[Any]]:
    """`_id`, sequence number and version."""
    sections = {
        ("", "", part_name): np.concatenate([part.sections["", "", part_name][part.kept] for part in parts])
        for part_name in ("seq_nos", "versions")
    }
    kept = [part.kept_roots for part in parts]
    sections |= _joined_strings("ids", [strings(part.sections, "ids") for part in parts], kept)
    return sections | id_sections(np.concatenate([part.hashes() for part in parts]))


def _joined_strings(
    part_name: str, columns: Sequence[Strings], kept: Sequence[Ints]
) -> dict[Key, NDArray[Any]]:
    pairs = list(zip(columns, kept, strict=True))
    blobs = [piece for column, rows in pairs for piece in _rows(column.blob, column.starts, rows)]
    lengths = [np.diff(column.starts)[rows] for column, rows in pairs]
    return {
        ("", "", part_name + "_blob"): _concatenated(blobs, np.uint8),
        ("", "", part_name + "_starts"): _starts(lengths, np.int64),
    }


def _nesting(parts: Sequence[_Part]) -> dict[Key, NDArray[Any]]:
    """Who is in whom; only the nested paths that are still used have a number."""
    parents, names = [], []
    for part in parts:
        old = part.sections.get(("", "", "parents"), np.full(part.size, -1, np.int32))[part.kept]
        parents.append(np.where(old < 0, -1, part.new_docs[old]).astype(np.int32))
        names += _nested_names(part)
    used = sorted(set(names) - {""})
    if not used:
        return {}
    numbers = {path: number for number, path in enumerate(used)} | {"": -1}
    return packed("", "", "nested_paths", [encode(path) for path in used]) | {
        ("", "", "parents"): np.concatenate(parents),
        ("", "", "nested_path"): np.array([numbers[path] for path in names], np.int32),
    }


def _nested_names(part: _Part) -> list[str]:
    """The nested path of each document that stays, empty for a root."""
    numbers = part.sections.get(("", "", "nested_path"))
    if numbers is None:
        return [""] * len(part.kept)
    column = strings(part.sections, "nested_paths")
    paths = [*map(decode, column.raws(0, len(column))), ""]
    return [paths[number] for number in numbers[part.kept].tolist()]


def _merge_text(parts: Sequence[_Part], storage: str, path: str, size: int) -> dict[Key, NDArray[Any]]:
    having = [part for part in parts if (storage, path, "norms") in part.sections]
    empty = np.concatenate([part.renumbered(part.sections[storage, path, "empty"]) for part in having])
    merged = _merge_terms_of(having, storage, path)
    if not len(merged.docs) and not len(empty):
        return {}
    norms = np.zeros(size, np.uint8)
    for part in having:
        norms[part.new_docs[part.kept]] = part.sections[storage, path, "norms"][part.kept]
    return _posting_sections(merged, storage, path) | {
        **freq_sections(path, merged.freqs),
        **position_sections(path, merged.position_starts, merged.positions),
        (storage, path, "norms"): norms,
        (storage, path, "empty"): empty,
    }


def _merge_terms(parts: Sequence[_Part], storage: str, path: str, size: int) -> dict[Key, NDArray[Any]]:
    having = [part for part in parts if (storage, path, "docs") in part.sections]
    merged = _merge_terms_of(having, storage, path)
    if not len(merged.docs):
        return {}
    ordinal_starts, ordinals = transpose(merged.starts, merged.docs, size)
    return _posting_sections(merged, storage, path) | {
        (storage, path, "ordinal_starts"): ordinal_starts,
        (storage, path, "ordinals"): ordinals,
    }


def _merge_terms_of(parts: Sequence[_Part], storage: str, path: str) -> MergedPostings:
    return merge_postings([Postings.of(part.sections, storage, path, part.new_docs) for part in parts])


def _posting_sections(merged: MergedPostings, storage: str, path: str) -> dict[Key, NDArray[Any]]:
    return packed(storage, path, "dictionary", merged.terms) | {
        (storage, path, "starts"): merged.starts,
        (storage, path, "docs"): merged.docs,
    }


def _merge_numbers(parts: Sequence[_Part], storage: str, path: str, size: int) -> dict[Key, NDArray[Any]]:
    column = _merge_column(parts, storage, path, ["values"])
    if not column:
        return {}
    starts = column.pop((storage, path, "starts"))
    return column | number_starts(storage, path, starts)


def _merge_points(parts: Sequence[_Part], storage: str, path: str, size: int) -> dict[Key, NDArray[Any]]:
    return _merge_column(parts, storage, path, ["latitudes", "longitudes"])


def _merge_column(
    parts: Sequence[_Part], storage: str, path: str, names: Sequence[str]
) -> dict[Key, NDArray[Any]]:
    """Columns that share their starts; nothing where no value is left."""
    all_starts = [_column_starts(part, storage, path, names[0]) for part in parts]
    pairs = list(zip(parts, all_starts, strict=True))
    lengths = [np.diff(starts)[part.kept] for part, starts in pairs]
    if not any(bool(length.any()) for length in lengths):
        return {}
    sections = {(storage, path, "starts"): _starts(lengths, np.int32)}
    for name in names:
        pieces = [
            piece
            for part, starts in pairs
            if (storage, path, name) in part.sections
            for piece in _rows(part.sections[storage, path, name], starts, part.kept)
        ]
        sections[storage, path, name] = np.concatenate(pieces)
    return sections


def _column_starts(part: _Part, storage: str, path: str, name: str) -> Ints:
    """Where each document's values begin, also for a segment that has none, or one for each document."""
    if (storage, path, name) not in part.sections:
        return np.zeros(part.size + 1, np.int32)
    starts = part.sections.get((storage, path, "starts"))
    return np.arange(part.size + 1, dtype=np.int32) if starts is None else starts


def _merge_vectors(parts: Sequence[_Part], storage: str, path: str, size: int) -> dict[Key, NDArray[Any]]:
    having = [part for part in parts if (storage, path, "docs") in part.sections]
    docs = [part.new_docs[part.sections[storage, path, "docs"]] for part in having]
    if not any(bool((new >= 0).any()) for new in docs):
        return {}
    pairs = zip(having, docs, strict=True)
    return {
        (storage, path, "docs"): np.concatenate([new[new >= 0] for new in docs]),
        (storage, path, "rows"): np.concatenate(
            [part.sections[storage, path, "rows"][new >= 0] for part, new in pairs]
        ),
    }


_MERGES = {
    "text": _merge_text,
    "terms": _merge_terms,
    "ints": _merge_numbers,
    "exact": _merge_numbers,
    "floats": _merge_numbers,
    "points": _merge_points,
    "vectors": _merge_vectors,
}


def _rows(values: NDArray[Any], starts: Ints | Longs, rows: Ints) -> Iterator[NDArray[Any]]:
    """The values of some rows, ascending; rows that stand side by side are copied as one."""
    if not len(rows):
        return
    breaks = np.flatnonzero(np.diff(rows) != 1)
    firsts = rows[np.concatenate([[0], breaks + 1])]
    lasts = rows[np.concatenate([breaks, [len(rows) - 1]])]
    for start, stop in zip(starts[firsts].tolist(), starts[lasts + 1].tolist(), strict=True):
        yield values[start:stop]


def _concatenated(pieces: Sequence[NDArray[Any]], kind: type[np.uint8]) -> NDArray[Any]:
    return np.concatenate(pieces) if pieces else np.zeros(0, kind)


def _starts(lengths: Sequence[NDArray[Any]], kind: type[np.int32] | type[np.int64]) -> NDArray[Any]:
    lengths_of_all = np.concatenate(lengths)
    starts = np.zeros(len(lengths_of_all) + 1, kind)
    np.cumsum(lengths_of_all, out=starts[1:])
    return starts
