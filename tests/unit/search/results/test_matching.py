"""Which documents come first, against sorting all of them."""

import numpy as np
import pytest

from graphdb.search.results import matching


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
