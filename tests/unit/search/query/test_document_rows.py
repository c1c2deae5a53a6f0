"""Rows of bits of documents: which terms have one, how much room they take, and that the same is found."""

import gc
from typing import Any

import numpy as np
import pytest

from graphdb.search.query import collect, document_rows, parse_query
from graphdb.search.query.row_room import RowRoom
from tests.unit.search.query.corpus import Corpus

DOCUMENTS = 5_000  # in a segment, which may have rows then
TEXTS = [
    f"all{' half' * (n % 2)}{' tenth' * (n % 10 == 0)}{' rare' * (n % 100 == 0)}" for n in range(DOCUMENTS)
]
MAPPING: dict[str, Any] = {"properties": {"t": {"type": "text"}}}


def _corpus() -> Corpus:
    return Corpus([{"t": text} for text in TEXTS], MAPPING)


def _rows(corpus: Corpus, words: str) -> list[bool]:
    """Whether the terms have rows, in turn."""
    (leaf,) = corpus.searcher.leaves
    index = leaf.segment.text("t")
    assert index is not None
    rows = document_rows.document_rows(leaf, "t")
    return [rows.address(leaf, "t", index.dictionary.find(word)) != 0 for word in words.split()]


def _found(corpus: Corpus, words: str, operator: str) -> Any:
    query = parse_query({"match": {"t": {"query": words, "operator": operator}}}, corpus.context)
    found = collect(query, corpus.searcher, 10, 10_000)
    return found.docs.tolist(), found.scores.tolist(), found.total


def test_only_frequent_terms_have_rows_that_share_one_room(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, other = _corpus(), _corpus()
    size = 8 * int(document_rows.row_words(DOCUMENTS))
    monkeypatch.setattr(document_rows, "_ROOM", RowRoom(3 * size))
    assert _rows(corpus, "all rare half") == [True, False, True]
    assert _rows(corpus, "all half") == [True, True]  # taken room for once
    assert _rows(other, "all half") == [True, False]
    del corpus
    gc.collect()
    assert _rows(other, "all half tenth") == [True, True, True]


@pytest.mark.parametrize("operator", ["or", "and"])
@pytest.mark.parametrize("words", ["all half", "half tenth", "all half tenth", "all half rare", "tenth rare"])
def test_the_same_is_found_with_and_without(
    monkeypatch: pytest.MonkeyPatch, words: str, operator: str
) -> None:
    matches = [(any, all)[operator == "and"](word in text for word in words.split()) for text in TEXTS]
    with_rows = _found(_corpus(), words, operator)
    monkeypatch.setattr(document_rows, "_ROOM", RowRoom(0))
    assert _found(_corpus(), words, operator) == with_rows
    assert with_rows[2] == np.count_nonzero(matches)
