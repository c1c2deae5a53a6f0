"""The one value that a document with several whole numbers of 64 bits is sorted by."""

from fractions import Fraction
from math import floor
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.search.aggregations.columns import Values
from graphdb.search.results.sort_keys import MODES, combined

LONGS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3), st.integers(2**63 - 4, 2**63 - 1))


def expected(mode: str, values: list[int]) -> int:
    if mode in ("min", "max"):
        return min(values) if mode == "min" else max(values)
    if mode == "sum":
        return sum(values)
    exact = Fraction(sum(values), len(values)) if mode == "avg" else median(map(Fraction, values))
    return floor(exact + Fraction(1, 2))


# means of signed ones are what doubles make of them, as Elasticsearch's are
CASES = [*((mode, True) for mode in MODES), *((mode, False) for mode in ("min", "max", "sum"))]


@pytest.mark.parametrize(("mode", "is_unsigned"), CASES)
@given(st.lists(st.lists(LONGS, min_size=1, max_size=5).map(sorted), min_size=1, max_size=4))
def test_modes_are_exact(mode: str, is_unsigned: bool, documents: list[list[int]]) -> None:
    shift = 2**63 if is_unsigned else 0
    rows = np.array([row for row, values in enumerate(documents) for _ in values])
    data = np.array([value for values in documents for value in values], np.int64)
    found_rows, found = combined(Values(rows, data), mode, is_unsigned=is_unsigned)
    assert found_rows.tolist() == list(range(len(documents)))
    wanted = [expected(mode, [value + shift for value in values]) for values in documents]
    # a sum keeps its lowest 64 bits
    assert [value % 2**64 for value in (found.astype(object) + shift)] == [value % 2**64 for value in wanted]
