"""Which documents come first: a page of some documents, sorted by keys and at last by document number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.columns import Numbers
from graphdb.search.aggregations.scope import Scope
from graphdb.search.results.sort_keys import ByScore, SortColumn, SortKey
from graphdb.search.segment import Bools, Floats, Longs

__all__ = ["Found", "Hit", "Sorting", "first_of"]


@dataclass(frozen=True, slots=True)
class Found:
    """Documents, ascending, and their scores; None: nothing was scored."""

    docs: Longs
    scores: Floats | None

    def kept(self, which: Bools | Longs) -> "Found":
        return Found(self.docs[which], None if self.scores is None else self.scores[which])


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a page. sort is empty where hits are sorted by score alone."""

    doc: int
    score: float | None
    sort: tuple[Any, ...] = ()


class Sorting:
    """The columns of some documents. keys empty: by score."""

    def __init__(self, scope: Scope, found: Found, keys: tuple[SortKey, ...]) -> None:
        self.found, self.keys = found, keys
        used = keys or (ByScore(),)
        self.columns: list[SortColumn] = [key.column(scope, found.docs, found.scores) for key in used]

    @property
    def orders(self) -> list[Numbers]:
        return [column.order for column in self.columns]

    def after(self, values: Sequence[Any]) -> Bools:
        """Which documents come after these sort values. (Those that equal all of them do not.)"""
        later = np.zeros(len(self.found.docs), np.bool_)
        equal = ~later
        for column, value in zip(self.columns, values, strict=True):
            place = column.place(value)
            later |= equal & (column.order > place)
            equal &= column.order == place
        return later

    def first(self, count: int, among: Longs | None = None) -> Longs:
        """The rows of the first `count` documents, in order; among: rows to choose from, ascending."""
        rows = np.arange(len(self.found.docs)) if among is None else among
        return rows[first_of([order[rows] for order in self.orders], count)]

    def hits(self, rows: Longs, scored: bool) -> list[Hit]:
        """Rows as hits, with what the answer says of them."""
        scores = self.found.scores
        return [
            Hit(
                int(self.found.docs[row]),
                None if scores is None or not scored else float(scores[row]),
                tuple(column.shown(row) for column in self.columns) if self.keys else (),
            )
            for row in rows.tolist()
        ]


def first_of(orders: list[Numbers], count: int) -> Longs:
    """The places of the least `count`, in order; equal ones keep their order.

    Only those that the first key does not rule out are sorted at all.
    """
    size = len(orders[0])
    places = np.arange(size)
    if count <= 0:
        return places[:0]
    if size > 4 * count:
        limit = np.partition(orders[0], count - 1)[count - 1]
        places = np.flatnonzero(orders[0] <= limit)
    order = np.lexsort([one[places] for one in reversed(orders)])
    return places[order[:count]]
