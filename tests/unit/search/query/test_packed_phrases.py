"""The phrases that are found in packed positions, against a naive search in the texts."""

import random

import numpy as np
import pytest

from graphdb.search.query.packed_phrases import phrases_in
from graphdb.search.segments.postings import narrow_freqs, pack_positions

Text = dict[int, list[int]]
"""By term, its positions."""


def _texts(chance: random.Random, documents: int, terms: int) -> list[Text]:
    texts = []
    for _ in range(documents):
        text: Text = {}
        place = 0
        for _ in range(chance.choice((0, 3, 20, 400, 900))):
            place += chance.choice((1, 1, 1, 2, 300, 40_000))
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


@pytest.mark.parametrize("seed", range(6))
def test_phrases_are_found_where_the_texts_have_them(seed: int) -> None:
    chance, terms = random.Random(seed), 4
    texts = _texts(chance, 40, terms)
    listed = [[(doc, text[term]) for doc, text in enumerate(texts) if term in text] for term in range(terms)]
    postings = [posting for one in listed for posting in one]
    docs = np.array([doc for doc, _ in postings], np.int32)
    freqs = np.array([len(places) for _, places in postings], np.int32)
    positions = np.array([place for _, places in postings for place in places], np.int32)
    starts = np.cumsum([0, *map(len, listed)])
    byte_starts, packed = pack_positions(starts, freqs, positions)
    narrow, high = narrow_freqs(freqs)
    assert len(high)
    for _ in range(30):
        length = chance.randrange(2, 5)
        phrase = [chance.randrange(terms) for _ in range(length)]
        offsets = [place * chance.choice((1, 1, 2)) for place in range(length)]
        wanted = _naive(texts, phrase, offsets)
        own = np.array(phrase)
        found, counts = phrases_in(
            docs, narrow, high, starts[own], starts[own + 1], packed, byte_starts[own], np.array(offsets)
        )
        assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == wanted
