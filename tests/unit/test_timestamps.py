"""Periodic work of several loops is done at the same moments."""

import math

from hypothesis import given
from hypothesis import strategies as st

from graphdb.timestamps import until_whole


@given(now=st.floats(0, 1e7), period=st.sampled_from([0.001, 0.5, 1.0, 2.0]))
def test_it_ends_at_a_whole_number_of_periods_and_not_at_once(now: float, period: float) -> None:
    left = until_whole(period, now)
    assert 0.1 * period < left <= 1.1 * period + 1e-6
    periods = (now + left) / period
    assert math.isclose(periods, round(periods), rel_tol=0, abs_tol=1e-5)
