"""Scores that are made where somebody asks for them, in shards that wait for one another meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.columns import Columns
from graphdb.search.results import matching
from graphdb.search.results.matching import Found, ScoredLater

ANY: Any = None


def test_two_shards_make_theirs_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As each needs the statistics of the other, none may keep the other from going on."""
    both, found = Barrier(2), Found(np.arange(3), np.array([1, 2, 3], np.float32))

    def collected(*_: object) -> Found:
        both.wait(30)
        return found

    monkeypatch.setattr(matching, "collected", collected)
    scopes = [Scope(ANY, Columns([]), ANY, ScoredLater(np.array([2]), ANY, ANY)) for _ in range(2)]
    for scope in scopes:
        scope.columns.size = 3
    with ThreadPoolExecutor(2) as pool:
        for scores in pool.map(lambda scope: scope.scores, scopes):
            assert scores is not None
            assert scores.tolist() == [0, 0, 3]
    first = scopes[0].scores
    assert first is scopes[0].scores
