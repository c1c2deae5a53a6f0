"""The phrases that are found in packed positions, against a naive search in the texts."""

import gc
import random
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pytest

from graphdb.search.leaf_reader import Ints, Longs
from graphdb.search.query import dense_positions
from graphdb.search.query.dense_phrases import SHIFT_MAX, words_of
from graphdb.search.query.dense_positions import DensePositions
from graphdb.search.query.packed_phrases import phrases_in
from graphdb.search.query.row_room import RowRoom
from graphdb.search.segments.postings import Bytes, narrow_freqs, pack_positions

Text = dict[int, list[int]]
"""By term, its positions."""
Found: TypeAlias = dict[int, int]
"""How often a phrase is in each document."""


def _texts(chance: random.Random, documents: int, terms: int, steps: tuple[int, ...]) -> list[Text]:
    texts = []
    for _ in range(documents):
        text: Text = {}
        place = 0
        for _ in range(chance.choice((0, 3, 20, 400, 900))):
            place += chance.choice(steps)
            text.setdefault(chance.randrange(terms) if chance.random() < 0.7 else 0, []).append(place)
        texts.append(text)
    return texts


def _naive(texts: list[Text], phrase: list[int], offsets: list[int]) -> dict[int, int]:
    found = {}
    for doc, text in enumerate(texts):
        held = [set(text.get(term, ())) for term in phrase]
        starts = (place - offsets[0] for place in held[0])
        count = sum(
            all(start + offset in its for its, offset in zip(held, offsets, strict=True)) for start in starts
        )
        if count:
            found[doc] = count
    return found


@dataclass(frozen=True)
class _Packed:
    """Texts as a segment has them."""

    documents: int
    docs: Ints
    freqs: Bytes
    high: Longs
    starts: Longs
    packed: Bytes
    byte_starts: Longs

    @classmethod
    def of(cls, texts: list[Text], terms: int) -> "_Packed":
        numbered = list(enumerate(texts))
        listed = [[(doc, text[term]) for doc, text in numbered if term in text] for term in range(terms)]
        postings = [posting for one in listed for posting in one]
        freqs = np.array([len(places) for _, places in postings], np.int32)
        starts = np.cumsum([0, *map(len, listed)])
        positions = np.array([place for _, places in postings for place in places], np.int32)
        byte_starts, packed = pack_positions(starts, freqs, positions)
        docs = np.array([doc for doc, _ in postings], np.int32)
        return cls(len(texts), docs, *narrow_freqs(freqs), starts, packed, byte_starts)

    def found(self, dense: DensePositions, phrase: list[int], offsets: list[int], rowless: int = 0) -> Found:
        """rowless: the bits of the places in the phrase whose terms have no row."""
        own = np.array(phrase)
        ranges = self.docs, self.freqs, self.high, self.starts[own], self.starts[own + 1]
        positions = self.packed, self.byte_starts[own], self.byte_starts[own + 1]
        slots, guide, rows = dense.of(own, ranges, positions, self.documents)
        for place in range(len(phrase)):
            rows[place] *= not rowless >> place & 1
        docs, counts = phrases_in(*ranges, *positions[:2], np.array(offsets), slots, guide, rows)
        assert np.all(np.diff(docs) > 0)
        return dict(zip(docs.tolist(), counts.tolist(), strict=True))

    def rows(self, dense: DensePositions, phrase: list[int]) -> list[bool]:
        own = np.array(phrase)
        ranges = self.docs, self.freqs, self.high, self.starts[own], self.starts[own + 1]
        positions = self.packed, self.byte_starts[own], self.byte_starts[own + 1]
        return list(dense.of(own, ranges, positions, self.documents)[2] != 0)


@pytest.mark.parametrize("seed", range(6))
def test_phrases_are_found_where_the_texts_have_them(seed: int) -> None:
    chance, terms = random.Random(seed), 4
    texts = _texts(chance, 40, terms, (1, 1, 1, 2, 300, 40_000))
    packed = _Packed.of(texts, terms)
    assert len(packed.high)
    for _ in range(30):
        length = chance.randrange(2, 5)
        phrase = [chance.randrange(terms) for _ in range(length)]
        offsets = [place * chance.choice((1, 1, 2)) for place in range(length)]
        assert packed.found(DensePositions(), phrase, offsets) == _naive(texts, phrase, offsets)


@pytest.mark.parametrize("seed", range(12))
def test_and_so_where_some_or_all_terms_have_rows(seed: int) -> None:
    chance, terms = random.Random(seed), 4
    texts = _texts(chance, 300, terms, chance.choice(((1, 1, 1, 2), (1, 1, 1, 2, 70, 130))))
    packed, dense = _Packed.of(texts, terms), DensePositions(eager=True)
    for _ in range(30):
        length = chance.randrange(1, 5)
        phrase = [chance.randrange(terms) for _ in range(length)]
        offsets = [place * chance.choice((1, 1, 2, 63, 64)) for place in range(length)]
        wanted = _naive(texts, phrase, offsets)
        assert all(packed.rows(dense, phrase))
        assert packed.found(dense, phrase, offsets, chance.choice((0, 0, 1, 2, 3, 4, 8))) == wanted


def test_no_phrase_goes_from_one_document_to_the_next() -> None:
    texts: list[Text] = [{0: [0, 5]}, {1: [0, 3]}, {}, {0: [2], 1: [3]}]
    packed, dense = _Packed.of(texts, 2), DensePositions(eager=True)
    for rowless in range(4):
        assert packed.found(dense, [0, 1], [0, 1], rowless) == {3: 1}
        assert packed.found(dense, [1, 0], [0, 3], rowless) == {}


def test_places_far_from_one_another() -> None:
    far = SHIFT_MAX + 1
    texts: list[Text] = [{0: [0, 7], 1: [far - 1, far + 7]}, {0: [1], 1: [far]}]
    packed, dense = _Packed.of(texts, 2), DensePositions(eager=True)
    for offset in (far - 1, far):
        wanted = _naive(texts, [0, 1], [0, offset])
        assert wanted
        assert packed.found(dense, [0, 1], [0, offset]) == wanted


def test_a_term_that_stands_twice_at_one_position_has_no_row() -> None:
    """As synonyms may: a phrase counts as often as its first term."""
    texts: list[Text] = [{0: [1, 1, 4], 1: [2, 5], 2: [3, 3]}]
    packed, dense = _Packed.of(texts, 3), DensePositions(eager=True)
    assert packed.rows(dense, [0, 1, 2]) == [False, True, False]
    assert packed.found(dense, [0, 1], [0, 1]) == {0: 3}
    assert packed.found(dense, [1, 2], [0, 1]) == packed.found(DensePositions(), [1, 2], [0, 1]) == {0: 1}


def test_rows_are_made_once_phrases_have_cost_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [{0: [0], 1: [1]}] * 100
    packed, dense = _Packed.of(texts, 2), DensePositions()
    assert [packed.rows(dense, [0, 1]) for _ in range(3)] == [[False, False]] * 3  # a small field
    monkeypatch.setattr(dense_positions, "_POSITIONS_MIN", 200)
    dense = DensePositions()
    assert packed.rows(dense, [0]) == [False]
    assert packed.rows(dense, [0]) == [True]


def test_rare_terms_have_no_rows_and_there_is_room_for_some() -> None:
    texts: list[Text] = [{0: list(range(0, 1000, 2)), 1: list(range(1, 1000, 2))}, {2: [0]}, {3: [500]}]
    packed, dense = _Packed.of(texts, 4), DensePositions(eager=True)
    assert packed.rows(dense, [0, 2]) == [True, False]  # one position in 1,502 slots
    texts = [{term: [term] for term in range(4)}] * 100
    packed = _Packed.of(texts, 4)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dense_positions, "_BYTES_MAX", 2 * 8 * words_of(np.array([400], np.int32)))
        assert packed.rows(DensePositions(eager=True), [0, 1, 2, 3]) == [True, True, False, False]
        patched.setattr(dense_positions, "_SLOTS_MAX", 399)
        assert packed.rows(DensePositions(eager=True), [0]) == [False]


def test_all_rows_of_a_process_share_one_room(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[Text] = [{0: [0], 1: [1]}] * 100
    packed, probe = _Packed.of(texts, 2), DensePositions(eager=True)
    monkeypatch.setattr(dense_positions, "_ROOM", RowRoom(1 << 30))
    assert packed.rows(probe, [0]) == [True]
    (size,) = probe._sizes
    monkeypatch.setattr(dense_positions, "_ROOM", RowRoom(3 * size))
    first, second = DensePositions(eager=True), DensePositions(eager=True)
    assert packed.rows(first, [0, 1]) == [True, True]
    assert packed.rows(second, [0, 1]) == [True, False]
    assert packed.found(second, [0, 1], [0, 1]) == packed.found(first, [0, 1], [0, 1])
    assert second.steps([0]) is not None
    assert second.steps([0, 1]) is None
    del first
    gc.collect()
    assert packed.rows(second, [0, 1]) == [True, True]
    assert second.steps([0, 1]) is not None
