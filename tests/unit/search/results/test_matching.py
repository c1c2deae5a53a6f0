"""Which documents come first, against sorting all of them."""

import numpy as np
import pytest

from graphdb.search.query.tree import MatchAllQuery
from graphdb.search.results import matching
from graphdb.search.results.search import scope_of
from tests.unit.search.query.corpus import Corpus


@pytest.mark.parametrize("few", [100, 0])
def test_the_first_are_those_that_sorting_all_of_them_gives(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_FEW", few)
    chance = np.random.default_rng(3)
    for _ in range(100):
        size, count = int(chance.integers(1, 2_000)), int(chance.integers(0, 120))
        first = chance.integers(-50, int(chance.integers(1, 10_000)), size)
        second = chance.random(size).round(1)
        found = matching.first_of([first, second], count)
        assert found.tolist() == np.lexsort((second, first))[:count].tolist()
        found = matching.first_of([second, first], count)
        assert found.tolist() == np.lexsort((first, second))[:count].tolist()


@pytest.mark.parametrize("segments", [1, 3])
def test_all_documents_are_the_live_ones_of_the_top_level(segments: int) -> None:
    mappings = {"properties": {"part": {"type": "nested"}}}
    documents = [{"n": number, "part": [{"of": number}] * (number % 3)} for number in range(20)]
    corpus = Corpus(documents, mappings, segments)
    for leaf in corpus.searcher.leaves:
        leaf.live[-2:] = False  # the last document, and what is nested in it or stands before it
    scope = scope_of(corpus.searcher, corpus.context)
    asked = MatchAllQuery()
    wanted = matching.collected(scope, asked, None, None).docs
    assert 0 < len(wanted) < 20
    for _ in range(2):
        assert matching.matched(scope, asked).docs.tolist() == wanted.tolist()
