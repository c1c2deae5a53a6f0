"""One value for a document that has several: min, max, sum, avg, median."""

import numpy as np

from graphdb.search.aggregations.columns import Numbers, Values
from graphdb.search.segment import Longs

__all__ = ["MODES", "combined"]

MODES = ("min", "max", "sum", "avg", "median")


def combined(values: Values, mode: str) -> tuple[Longs, Numbers]:
    """(rows, values): each row once. Means of whole numbers are rounded, as Elasticsearch's are."""
    if not len(values.rows):
        return values.rows, values.data
    starts = np.flatnonzero(np.diff(values.rows, prepend=-1))
    counts = np.diff(np.append(starts, len(values.rows)))
    rows, data = values.rows[starts], values.data
    if mode == "min":
        return rows, data[starts]
    if mode == "max":
        return rows, data[starts + counts - 1]
    if mode == "sum":
        return rows, np.add.reduceat(data, starts)
    if mode == "avg":
        means = _like(np.add.reduceat(data.astype(np.float64), starts) / counts, data)
        return rows, np.where(counts == 1, data[starts], means)
    low, high = data[starts + (counts - 1) // 2], data[starts + counts // 2]
    return rows, np.where(low == high, low, _like((low.astype(np.float64) + high) / 2, data))


def _like(means: Numbers, data: Numbers) -> Numbers:
    return np.floor(means + 0.5).astype(np.int64) if data.dtype == np.int64 else means
