"""Sums that lose nothing to rounding, by bucket."""

import numpy as np
from numba import njit

from graphdb.search.segment import Doubles, Longs

__all__ = ["grouped_sums"]


def grouped_sums(values: Doubles, owners: Longs, count: int) -> Doubles:
    """The sum of the values of each of count owners, compensated as Elasticsearch's (Kahan), 0.0 for none."""
    totals, lost = np.zeros(count), np.zeros(count)
    _add(values, owners, totals, lost)
    return np.where(np.isfinite(totals), totals + lost, totals)


@njit(cache=True)
def _add(values: Doubles, owners: Longs, totals: Doubles, lost: Doubles) -> None:
    for i in range(len(values)):
        owner = owners[i]
        corrected = values[i] + lost[owner]
        updated = totals[owner] + corrected
        lost[owner] = corrected - (updated - totals[owner])
        totals[owner] = updated
