"""What is kept of arrays, and within which bound."""

import numpy as np
import pytest
from pydantic import ValidationError

from graphdb.columns.quad_arrays import Ends, PastArrays, QuadArrays, Terms, Weights
from graphdb.config.service import Columns
from tests.support.array_bounds import array_bounds


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


def test_several_states_have_one_bound() -> None:
    made = list[int]()

    def get(arrays: QuadArrays, key: int) -> None:
        def make() -> Ends:
            made.append(key)
            return ends(12)  # two of them fit

        arrays.get(((key,),), make)

    present = QuadArrays(bytes_max=100)
    past = present.beside()
    for arrays, key in ((present, 1), (past, 1), (present, 1), (past, 2), (present, 1)):
        get(arrays, key)
    assert made == [1, 1, 2]
    past.let_go()
    get(present, 3)  # there is room again
    get(present, 1)
    assert made == [1, 1, 2, 3]
    later = present.without({3})
    for key in (1, 3, 1):
        get(later, key)
    get(present, 1)  # whoever still reads the old state has what there was
    assert made == [1, 1, 2, 3, 3]


def test_a_past_state_reads_of_the_present_what_has_not_changed_since() -> None:
    present = QuadArrays(bytes_max=1_000)
    past = PastArrays(present.beside(), present, lambda predicate: predicate == 2)

    def get(arrays: QuadArrays, key: tuple[int, ...], quads: int) -> int:
        return len(arrays.get((key,), lambda: ends(quads)).codes)

    for key in ((1,), (2,), (1, 2)):
        assert get(present, key, 3) == 3
    assert [get(past, key, 4) for key in ((1,), (2,), (1, 2), (3,))] == [3, 4, 4, 4]
    assert get(present, (3,), 5) == 4


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


@pytest.mark.parametrize("seed", range(20))
def test_the_quads_of_few_terms_are_all_that_weigh_something(seed: int) -> None:
    random = np.random.default_rng(seed)
    span = int(random.integers(1, 60))
    codes = random.integers(0, span, 300).astype(np.uint32)
    weights = np.where(random.random(span) < 0.05, random.integers(1, 9, span), 0).astype(np.float64)
    expected = np.flatnonzero(weights[np.sort(codes)])
    found = Ends.of(Terms(0, span), np.sort(codes)).quads_of_few(weights)
    assert (found is None) == (4 * len(expected) > len(codes))
    if found is not None:
        assert found.tolist() == expected.tolist()
    in_no_order = Ends.of(Terms(0, span), codes).quads_of_few(weights)
    assert in_no_order is None or not weights.any()


def test_whether_codes_ascend_is_seen_across_pieces() -> None:
    codes = np.array([0, 1, 1, 2, 1], np.uint32)
    with array_bounds(2, 1):
        assert Ends.of(Terms(0, 3), codes[:4]).is_ascending
        assert not Ends.of(Terms(0, 3), codes).is_ascending
        assert not Ends.of(Terms(0, 3), np.array([0, 2, 1], np.uint32)).is_ascending
        assert Ends.of(Terms(0, 0), codes[:0]).is_ascending
