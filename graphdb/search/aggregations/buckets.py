"""From the cells of an aggregation to the buckets of its answer."""

from collections.abc import Callable

import numpy as np

from graphdb.search.aggregations.base import Answer, Common, answers_below
from graphdb.search.aggregations.rows import Cells, Rows, cells_of
from graphdb.search.aggregations.scope import Scope
from graphdb.search.segment import Bools, Longs

__all__ = ["all_cells", "bucket_lists", "keyed_buckets", "members_of"]


def bucket_lists(
    scope: Scope, common: Common, cells: Cells, count: int, head: Callable[[int], Answer]
) -> list[list[Answer]]:
    """For each of count owners its buckets, in the order of the cells. head shows the key of a number."""
    lists: list[list[Answer]] = [[] for _ in range(count)]
    below = answers_below(scope, common, cells.rows())
    columns = cells.owners.tolist(), cells.keys.tolist(), cells.counts.tolist()
    for owner, key, size, sub in zip(*columns, below, strict=True):
        shown = head(key)
        # An aggregation below may be called `key`: the bucket's own name stays.
        lists[owner].append({**shown, "doc_count": size, **sub, **shown})
    for pipeline in common.pipelines:
        lists = [pipeline.among(buckets) for buckets in lists]
    return lists


def keyed_buckets(buckets: list[Answer]) -> dict[str, Answer]:
    """`keyed`: an object by the buckets' keys, which they then lack themselves."""
    return {bucket.pop("key"): bucket for bucket in buckets}


def members_of(masks: list[Bools]) -> tuple[Longs, Longs]:
    """(places, numbers): the documents at the places that each mask has, with the mask's number."""
    places = [np.flatnonzero(mask) for mask in masks]
    numbers = np.repeat(np.arange(len(masks)), [len(found) for found in places])
    joined = np.concatenate([np.empty(0, np.int64), *places])
    order = np.argsort(joined, kind="stable")
    return joined[order], numbers[order]


def all_cells(scope: Scope, rows: Rows, masks: list[Bools]) -> Cells:
    """A cell for each owner and each mask, empty ones too; a mask says which rows are in its bucket."""
    scope.count_buckets(rows.count * len(masks))
    cells = cells_of(rows, *members_of(masks))
    owners = np.repeat(np.arange(rows.count), len(masks))
    return cells.filled(owners, np.tile(np.arange(len(masks)), rows.count))
