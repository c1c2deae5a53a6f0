"""Builders of a segment's fields: postings, norms, columns."""

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.search.analysis.plain_words import cut_all
from graphdb.search.fields import TextTokens
from graphdb.search.segment import Ints, Longs
from graphdb.search.segments.inversion import invert, transpose
from graphdb.search.segments.sections import Key, decode, encode, packed, starts_of

__all__ = [
    "LENGTHS",
    "FieldBuilder",
    "NumberBuilder",
    "PointBuilder",
    "TermsBuilder",
    "TextBuilder",
    "VectorBuilder",
    "encode_lengths",
    "number_starts",
]

# The length of a text in one byte, as Lucene keeps it for BM25.

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


# What the documents of a segment give to one field, gathered in arrays, and the sections it becomes.


class FieldBuilder(Protocol):
    """One field of one segment. Documents come in ascending order, each at most once."""

    def add(self, doc: int, values: Any, /) -> None: ...
    def sections(self, path: str, size: int) -> dict[Key, NDArray[Any]]:
        """What the segment of `size` documents gets; nothing where no document has a value."""


class _Vocabulary(dict[str, int]):
    """Numbers for terms, in the order in which they come."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number

    def terms(self) -> list[bytes]:
        """By number."""
        return [encode(term) for term in self]


class _Cut(NamedTuple):
    """The tokens of documents, which ascend: docs[i] has counts[i] of them; terms are by number."""

    terms: list[bytes]
    tokens: Ints
    positions: Ints
    docs: Ints
    counts: Ints
    lengths: Longs  # as Lucene counts them


class TextBuilder:
    """A field of Storage.TEXT."""

    def __init__(self) -> None:
        self._vocabulary = _Vocabulary()
        self._tokens, self._positions = array("i"), array("i")
        self._docs, self._counts, self._lengths = array("i"), array("i"), array("q")
        self._uncut: list[str] = []
        self._uncut_docs: list[int] = []

    def add_uncut(self, doc: int, text: str) -> None:
        """In the place of `add`, see `ParsedDocument`."""
        self._uncut.append(text)
        self._uncut_docs.append(doc)

    def add(self, doc: int, text: TextTokens) -> None:
        self._tokens.extend(map(self._vocabulary.__getitem__, text.terms))
        self._positions.extend(text.positions)
        self._docs.append(doc)
        self._counts.append(len(text.terms))
        self._lengths.append(max(text.length, 1) if text.terms else 0)

    def sections(self, path: str, size: int) -> dict[Key, NDArray[Any]]:
        cut = self._all_cut()
        terms, ranks = _sorted(cut.terms)
        starts, found, freqs, position_starts, positions = invert(
            cut.tokens, cut.positions, cut.docs, cut.counts, ranks
        )
        norms = np.zeros(size, np.uint8)
        norms[cut.docs] = encode_lengths(cut.lengths)
        return packed("text", path, "dictionary", terms) | {
            ("text", path, "starts"): starts,
            ("text", path, "docs"): found,
            ("text", path, "freqs"): freqs,
            ("text", path, "position_starts"): position_starts,
            ("text", path, "positions"): positions,
            ("text", path, "norms"): norms,
            ("text", path, "empty"): cut.docs[cut.counts == 0],
        }

    def _all_cut(self) -> _Cut:
        if not self._uncut:
            return self._given()
        words = cut_all(self._uncut)
        lengths = words.counts.astype(np.int64)
        if not self._docs:
            return _Cut(
                words.terms, words.tokens, words.positions, _ints(self._uncut_docs), words.counts, lengths
            )
        numbers = _ints([self._vocabulary[decode(term)] for term in words.terms])
        given = self._given()
        tokens = np.concatenate((given.tokens, numbers[words.tokens]))
        positions = np.concatenate((given.positions, words.positions))
        docs = np.concatenate((given.docs, _ints(self._uncut_docs)))
        counts = np.concatenate((given.counts, words.counts))
        order = np.argsort(docs)
        places = _ranges((np.cumsum(counts) - counts)[order], counts[order])
        lengths = np.concatenate((given.lengths, lengths))[order]
        return _Cut(given.terms, tokens[places], positions[places], docs[order], counts[order], lengths)

    def _given(self) -> _Cut:
        """Of the documents that came with their tokens."""
        tokens, positions, docs, counts = map(
            _ints, (self._tokens, self._positions, self._docs, self._counts)
        )
        lengths = np.array(self._lengths, np.int64)
        return _Cut(self._vocabulary.terms(), tokens, positions, docs, counts, lengths)


class TermsBuilder:
    """A field of Storage.TERMS."""

    def __init__(self) -> None:
        self._vocabulary = _Vocabulary()
        self._tokens, self._docs, self._counts = array("i"), array("i"), array("i")

    def add(self, doc: int, values: Sequence[str]) -> None:
        self._tokens.extend(map(self._vocabulary.__getitem__, values))
        self._docs.append(doc)
        self._counts.append(len(values))

    def sections(self, path: str, size: int) -> dict[Key, NDArray[Any]]:
        if not self._tokens:
            return {}
        terms, ranks = _sorted(self._vocabulary.terms())
        tokens = _ints(self._tokens)
        no_positions = np.zeros(len(tokens), np.int32)
        starts, docs, _, _, _ = invert(tokens, no_positions, _ints(self._docs), _ints(self._counts), ranks)
        ordinal_starts, ordinals = transpose(starts, docs, size)
        return packed("terms", path, "dictionary", terms) | {
            ("terms", path, "starts"): starts,
            ("terms", path, "docs"): docs,
            ("terms", path, "ordinal_starts"): ordinal_starts,
            ("terms", path, "ordinals"): ordinals,
        }


class NumberBuilder:
    """A field of Storage.INTS or FLOATS."""

    def __init__(self, storage: str) -> None:
        self._storage = storage
        self._values: array[int] | array[float] = array("d" if storage == "floats" else "q")
        self._docs = array("i")

    def add(self, doc: int, values: Sequence[float]) -> None:
        self._values.extend(sorted(values) if len(values) > 1 else values)  # type: ignore[arg-type]
        self._docs.extend([doc] * len(values))

    def sections(self, path: str, size: int) -> dict[Key, NDArray[Any]]:
        if not self._values:
            return {}
        kind = np.float64 if self._storage == "floats" else np.int64
        values = {(self._storage, path, "values"): np.array(self._values, kind)}
        return values | number_starts(self._storage, path, starts_of(_ints(self._docs), size))


class PointBuilder:
    """A field of Storage.POINTS."""

    def __init__(self) -> None:
        self._latitudes, self._longitudes, self._docs = array("d"), array("d"), array("i")

    def add(self, doc: int, values: Sequence[tuple[float, float]]) -> None:
        for latitude, longitude in values:
            self._latitudes.append(latitude)
            self._longitudes.append(longitude)
            self._docs.append(doc)

    def sections(self, path: str, size: int) -> dict[Key, NDArray[Any]]:
        if not self._docs:
            return {}
        return {
            ("points", path, "latitudes"): np.array(self._latitudes, np.float64),
            ("points", path, "longitudes"): np.array(self._longitudes, np.float64),
            ("points", path, "starts"): starts_of(_ints(self._docs), size),
        }


class VectorBuilder:
    """A field of Storage.VECTORS."""

    def __init__(self) -> None:
        self._docs: list[int] = []
        self._rows: list[NDArray[np.float32]] = []

    def add(self, doc: int, vector: NDArray[np.float32]) -> None:
        self._docs.append(doc)
        self._rows.append(vector)

    def sections(self, path: str, size: int) -> dict[Key, NDArray[Any]]:
        return {
            ("vectors", path, "docs"): np.array(self._docs, np.int32),
            ("vectors", path, "rows"): np.stack(self._rows).astype(np.float32, copy=False),
        }


def number_starts(storage: str, path: str, starts: Ints) -> dict[Key, NDArray[Any]]:
    """The starts of a column of numbers, left out where every document has exactly one value."""
    return {} if bool((np.diff(starts) == 1).all()) else {(storage, path, "starts"): starts}


def _ranges(starts: Longs, counts: Ints) -> Longs:
    """The numbers of range(starts[i], starts[i] + counts[i]), for each i in turn."""
    firsts = np.cumsum(counts, dtype=np.int64) - counts
    shifts: Longs = np.repeat(starts - firsts, counts)
    return np.arange(len(shifts), dtype=np.int64) + shifts


def _sorted(terms: list[bytes]) -> tuple[list[bytes], Ints]:
    """The terms in the order of their bytes, and the place there of each number."""
    order = sorted(range(len(terms)), key=terms.__getitem__)
    ranks = np.empty(len(terms), np.int32)
    ranks[order] = np.arange(len(terms), dtype=np.int32)
    return [terms[number] for number in order], ranks


def _ints(values: "array[int] | list[int]") -> Ints:
    return np.array(values, np.int32)
