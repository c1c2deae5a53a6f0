"""What is kept of arrays, and within which bound."""

import numpy as np
import pytest
from pydantic import ValidationError

from graphdb.columns.quad_arrays import Ends, QuadArrays, Terms, Weights
from graphdb.config.service import Columns


def ends(quads: int) -> Ends:
    """They take four bytes a quad."""
    return Ends(Terms(0, 1), np.zeros(quads, np.uint32))


def test_what_was_not_asked_for_longest_goes_first() -> None:
    arrays, made = QuadArrays(bytes_max=100), list[int]()

    def get(key: int, quads: int) -> None:
        def make() -> Ends:
            made.append(key)
            return ends(quads)

        assert len(arrays.get(((key,),), make).codes) == quads

    for key in (1, 2, 1, 3, 1, 2, 3):  # two of them fit
        get(key, 12)
    assert made == [1, 2, 3, 2, 3]
    get(4, 26)  # too large to be kept
    get(3, 12)
    get(4, 26)
    assert made == [1, 2, 3, 2, 3, 4, 4]


def test_weights_are_kept_in_as_few_bytes_as_they_need() -> None:
    for most, size in ((0, 1), (255, 1), (256, 2), (65_536, 4), (1 << 32, 8), (2**53 - 1, 8)):
        values = np.array([0.0, float(most)])
        small = Weights(Terms(0, 2), values).small().values
        assert small.itemsize == size
        assert small.astype(np.float64).tolist() == values.tolist()


def test_arrays_have_a_part_of_the_memory() -> None:
    columns = Columns(memory_limit_mb=1_000)
    assert (columns.arrays_mb, columns.tables_memory_mb, columns.query_memory_mb) == (250, 750, 150)
    columns = Columns(memory_limit_mb=1_000, arrays_memory_mb=500)
    assert (columns.arrays_mb, columns.tables_memory_mb) == (500, 500)
    columns = Columns(memory_limit_mb=64)
    assert (columns.arrays_mb, columns.tables_memory_mb) == (16, 64)
    with pytest.raises(ValidationError, match="more than half"):
        Columns(memory_limit_mb=1_000, arrays_memory_mb=501)
