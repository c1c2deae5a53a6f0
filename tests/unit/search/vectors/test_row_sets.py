"""Sets of rows against masks."""

import numpy as np
import pytest

from graphdb.search.vectors import RowSet


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1_000])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_a_set_has_the_rows_of_its_mask(size: int, share: float) -> None:
    random = np.random.default_rng(size)
    one, two = random.random(size) < share, random.random(size) < 0.5
    rows = RowSet.of(one)
    assert rows.count == one.sum()
    assert rows.rows().tolist() == np.flatnonzero(one).tolist()
    both = rows & RowSet.of(two)
    assert both.rows().tolist() == np.flatnonzero(one & two).tolist()
    assert both.count == (one & two).sum()


def test_every_row() -> None:
    assert RowSet.every(70).rows().tolist() == list(range(70))
