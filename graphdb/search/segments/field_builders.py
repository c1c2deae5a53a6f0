"""Builders of a segment's fields: postings, norms, columns; and inverting terms to postings."""

from array import array
from collections.abc import Sequence
from itertools import accumulate, repeat
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.search.analysis.plain_words import cut_all
from graphdb.search.compiled import compiled
from graphdb.search.fields import TextTokens
from graphdb.search.leaf_reader import Bools, Ints, Longs
from graphdb.search.segments.postings import Bytes, narrow_freqs, pack_positions
from graphdb.search.segments.sections import Key, decode, encode, packed, starts_of

__all__ = [
    "LENGTHS",
    "FieldBuilder",
    "NumberBuilder",
    "PointBuilder",
    "TermsBuilder",
    "TextBuilder",
    "VectorBuilder",
    "any_in",
    "encode_lengths",
    "freq_sections",
    "invert",
    "number_starts",
    "position_sections",
    "ranges",
    "transpose",
]

# From the terms of each document to the documents of each term, and back (Numba).


@compiled(nogil=True)
def invert(tokens: Any, positions: Any, docs: Any, counts: Any, ranks: Any) -> Any:
    """Postings of one field.

    tokens (int32) are all documents' tokens in turn, docs ascend, and docs[i] has counts[i] of them. ranks
    gives each token its term's number in the dictionary. Returns (starts, docs, freqs, position_starts,
    positions): term t is in docs[starts[t]:starts[t + 1]], at positions[position_starts[t]:...] of them all.
    """
    token_starts = np.zeros(len(ranks) + 1, np.int64)
    for token in tokens:
        token_starts[ranks[token] + 1] += 1
    token_starts = np.cumsum(token_starts)
    cursors = token_starts[ranks]
    # document and position together, so that the one random write is one
    places = np.empty(len(tokens), np.int64)
    number = 0
    for i in range(len(docs)):
        doc = np.int64(docs[i]) << 32
        for _ in range(counts[i]):
            token = tokens[number]
            places[cursors[token]] = doc | positions[number]
            cursors[token] += 1
            number += 1
    starts, found, freqs, sorted_positions = _group(token_starts, places)
    return starts, found, freqs, token_starts, sorted_positions


@compiled(nogil=True)
def _group(token_starts: Any, places: Any) -> Any:
    """Make one posting of a term's tokens in the same document: (starts, docs, freqs, positions)."""
    starts = np.zeros(len(token_starts), np.int64)
    docs, freqs = np.empty(len(places), np.int32), np.empty(len(places), np.int32)
    positions = np.empty(len(places), np.int32)
    count = 0
    for term in range(len(token_starts) - 1):
        before = np.int64(-1)
        for i in range(token_starts[term], token_starts[term + 1]):
            doc, positions[i] = places[i] >> 32, places[i] & 0xFFFFFFFF
            if doc == before:
                freqs[count - 1] += 1
            else:
                before = doc
                docs[count], freqs[count] = doc, 1
                count += 1
        starts[term + 1] = count
    return starts, docs[:count].copy(), freqs[:count].copy(), positions


@compiled(nogil=True)
def transpose(starts: Any, docs: Any, size: int) -> Any:
    """Ordinals from postings: (starts, terms), the terms of each of `size` documents, ascending."""
    doc_starts = np.zeros(size + 1, np.int32)
    for doc in docs:
        doc_starts[doc + 1] += 1
    doc_starts = np.cumsum(doc_starts).astype(np.int32)
    cursors = doc_starts[:-1].copy()
    terms = np.empty(len(docs), np.int32)
    for term in range(len(starts) - 1):
        for i in range(starts[term], starts[term + 1]):
            terms[cursors[docs[i]]] = term
            cursors[docs[i]] += 1
    return doc_starts, terms


@compiled(nogil=True)
def any_in(members: Any, starts: Any, chosen: Any) -> Bools:
    """Which groups have a member that is chosen: of documents their terms, of terms their documents.

    Group g has members[starts[g]:starts[g + 1]]; chosen (bool) is by member.
    """
    mask = np.zeros(len(starts) - 1, np.bool_)
    for group in range(len(starts) - 1):
        for i in range(starts[group], starts[group + 1]):
            if chosen[members[i]]:
                mask[group] = True
                break
    return mask


# The builders.

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
    def add_all(self, docs: Sequence[int], values: Any, counts: Sequence[int] | None, /) -> None:
        """`add` of these documents; values and counts: see `Column`."""

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

    def add_all(self, docs: Sequence[int], values: Sequence[str], counts: Sequence[int] | None) -> None:
        """As `add_uncut`."""
        assert counts is None, "one text each"
        self._uncut.extend(values)
        self._uncut_docs.extend(docs)

    def add(self, doc: int, text: TextTokens) -> None:
        self._tokens.extend(map(self._vocabulary.__getitem__, text.terms))
        self._positions.extend(text.positions)
        self._docs.append(doc)
        self._counts.append(len(text.terms))
        self._lengths.append(max(text.length, 1) if text.terms else 0)

    def sections(self, path: str, size: int) -> dict[Key, NDArray[Any]]:
        cut = self._all_cut()
        terms, ranks = _sorted(cut.terms)
        starts, found, freqs, _, positions = invert(cut.tokens, cut.positions, cut.docs, cut.counts, ranks)
        norms = np.zeros(size, np.uint8)
        norms[cut.docs] = encode_lengths(cut.lengths)
        return packed("text", path, "dictionary", terms) | {
            ("text", path, "starts"): starts,
            ("text", path, "docs"): found,
            **freq_sections(path, freqs),
            **position_sections(path, *pack_positions(starts, freqs, positions)),
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
        places = ranges((np.cumsum(counts) - counts)[order], counts[order])
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

    def add_all(self, docs: Sequence[int], values: Sequence[str], counts: Sequence[int] | None) -> None:
        self._tokens.extend(map(self._vocabulary.__getitem__, values))
        self._docs.extend(docs)
        self._counts.extend(repeat(1, len(docs)) if counts is None else counts)

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
        if len(values) == 1:
            self._values.append(values[0])  # type: ignore[arg-type]
            self._docs.append(doc)
        else:
            self._values.extend(sorted(values))  # type: ignore[arg-type]
            self._docs.extend([doc] * len(values))

    def add_all(self, docs: Sequence[int], values: Sequence[float], counts: Sequence[int] | None) -> None:
        if counts is None:
            self._values.extend(values)  # type: ignore[arg-type]
            self._docs.extend(docs)
            return
        for doc, count, end in zip(docs, counts, accumulate(counts), strict=True):
            self.add(doc, values[end - count : end])

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

    def add_all(
        self, docs: Sequence[int], values: Sequence[tuple[float, float]], counts: Sequence[int] | None
    ) -> None:
        raise NotImplementedError("points are read one by one")

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
        self._rows: list[NDArray[Any]] = []  # one or several in turn

    def add(self, doc: int, vector: NDArray[Any]) -> None:
        self._docs.append(doc)
        self._rows.append(vector)

    def add_all(self, docs: Sequence[int], values: NDArray[np.float32], counts: Sequence[int] | None) -> None:
        self._docs.extend(docs)
        self._rows.append(values)

    def sections(self, path: str, size: int) -> dict[Key, NDArray[Any]]:
        # joined as bytes, as `np.stack` takes ten times as long for rows this short
        kind = self._rows[0].dtype if self._rows else np.float32
        rows = np.frombuffer(b"".join(map(memoryview, self._rows)), kind)  # type: ignore[arg-type]
        return {
            ("vectors", path, "docs"): np.array(self._docs, np.int32),
            ("vectors", path, "rows"): rows.reshape(len(self._docs), -1),
        }


def freq_sections(path: str, freqs: Ints) -> dict[Key, NDArray[Any]]:
    """The frequencies of a text, and the number of its tokens."""
    narrow, high = narrow_freqs(freqs)
    return {
        ("text", path, "freqs"): narrow,
        ("text", path, "high_freqs"): high,
        ("text", path, "tokens"): np.array([freqs.sum(dtype=np.int64)]),
    }


def position_sections(path: str, starts: Longs, packed_positions: Bytes) -> dict[Key, NDArray[Any]]:
    """Where the tokens of a text stand, see `pack_positions`."""
    return {("text", path, "position_starts"): starts, ("text", path, "positions"): packed_positions}


def number_starts(storage: str, path: str, starts: Ints) -> dict[Key, NDArray[Any]]:
    """The starts of a column of numbers, left out where every document has exactly one value."""
    return {} if bool((np.diff(starts) == 1).all()) else {(storage, path, "starts"): starts}


def ranges(starts: Longs, counts: Ints) -> Longs:
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
