"""The order of buckets: by `_count`, `_key`, or what an aggregation below them gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.base import Common, measure_below
from graphdb.search.aggregations.columns import Numbers
from graphdb.search.aggregations.rows import Cells
from graphdb.search.aggregations.scope import Scope
from graphdb.search.errors import illegal_request, parsing
from graphdb.search.segment import Longs

__all__ = ["ByCount", "ByKey", "ByMetric", "Order", "parse_order", "parse_path", "sorted_cells"]

Places = Callable[[Longs], Numbers]


@dataclass(frozen=True, slots=True)
class ByCount:
    descending: bool


@dataclass(frozen=True, slots=True)
class ByKey:
    descending: bool


@dataclass(frozen=True, slots=True)
class ByMetric:
    """path leads through single-bucket aggregations; metric is empty where a metric has one value only."""

    path: tuple[str, ...]
    metric: str
    descending: bool


Order = tuple[ByCount | ByKey | ByMetric, ...]


def parse_order(value: Any, default: Order) -> Order:
    """`order`: an object with one entry, or a list of those. Equal buckets are ordered by key in the end."""
    entries = value if isinstance(value, list) else [value]
    parts = default if value is None else tuple(_entry(entry) for entry in entries)
    return parts if any(isinstance(part, ByKey) for part in parts) else (*parts, ByKey(False))


def _entry(entry: Any) -> ByCount | ByKey | ByMetric:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise parsing("Must specify at least one field for [order]")
    ((path, direction),) = entry.items()
    if str(direction).lower() not in ("asc", "desc"):
        raise parsing(f"Unknown order direction [{direction}]")
    descending = str(direction).lower() == "desc"
    if path == "_count":
        return ByCount(descending)
    if path in ("_key", "_term", "_time"):
        return ByKey(descending)
    return ByMetric(*parse_path(path), descending)


def parse_path(path: str) -> tuple[tuple[str, ...], str]:
    """`a>b.avg` or `a>b[avg]` as (("a", "b"), "avg")."""
    if not path or len(path) > 1000:
        raise illegal_request(f"Invalid aggregation order path [{path[:100]}]")
    *names, last = path.split(">")
    if last.endswith("]") and "[" in last:
        last, _, metric = last[:-1].partition("[")
    else:
        last, _, metric = last.partition(".")
    return (*names, last), metric


def sorted_cells(scope: Scope, common: Common, cells: Cells, order: Order, places: Places) -> Longs:
    """The numbers of all cells, by owner and then in order. places tells the order of keys."""
    keys = []
    for part in order:
        if isinstance(part, ByCount):
            column = cells.counts.astype(np.float64)
        elif isinstance(part, ByKey):
            column = places(cells.keys)
        else:
            column = measure_below(scope, common, cells.rows(), part.path, part.metric)
        column = -column if part.descending else column
        keys.append(np.where(np.isnan(column), np.inf, column))  # what has no value comes last either way
    return np.lexsort((*reversed(keys), cells.owners))
