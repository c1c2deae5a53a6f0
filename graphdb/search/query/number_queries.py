"""Queries for columns of numbers, for documents by their `_id`, and for those that have a field at all."""

from dataclasses import dataclass

import numpy as np

from graphdb.search.query import kernels
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Matches, Query
from graphdb.search.segment import Bools, Leaf, NumberColumn, exact_numbers

__all__ = ["ExistsQuery", "IdsQuery", "NumberRangeQuery", "NumbersQuery", "column_of", "values_between"]


def column_of(leaf: Leaf, path: str, exact: str = "") -> NumberColumn | None:
    """The numbers of a field, whole or not. exact: the type of a field whose `exact_numbers` are meant."""
    if exact:
        return exact_numbers(leaf.segment, path, exact)
    return leaf.segment.ints(path) or leaf.segment.floats(path)


def values_between(column: NumberColumn, low: float, high: float) -> Bools:
    """Which documents have a value in [low, high], both included."""
    kind = column.values.dtype.type
    least, most = kind(low), kind(high)
    if column.starts is None:
        return np.asarray((column.values >= least) & (column.values <= most))
    return kernels.any_between(column.values, column.starts, least, most)


@dataclass(frozen=True, kw_only=True)
class NumberRangeQuery(Query):
    """A number in [low, high], both included; every match scores the boost."""

    path: str
    low: float  # int where the field has whole numbers
    high: float
    exact: str = ""  # see column_of

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return Matches(self.mask(leaf, searcher), None, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        column = column_of(leaf, self.path, self.exact)
        if column is None or self.low > self.high:
            return np.zeros(leaf.segment.size, dtype=np.bool_)
        return values_between(column, self.low, self.high)

    def text(self) -> str:
        return f"{self.path}:[{self.low} TO {self.high}]"


@dataclass(frozen=True, kw_only=True)
class NumbersQuery(Query):
    """Any of several numbers; every match scores the boost."""

    path: str
    values: tuple[float, ...]
    exact: str = ""  # see column_of

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask, column = np.zeros(leaf.segment.size, dtype=np.bool_), column_of(leaf, self.path, self.exact)
        if column is not None and len(column.values):
            wanted = np.array(sorted(set(self.values)), dtype=column.values.dtype)
            found = np.isin(column.values, wanted)
            starts = column.starts
            if starts is None:
                mask = found
            else:
                before = np.concatenate(([0], np.cumsum(found)))
                mask = before[starts[1:]] > before[starts[:-1]]
        return Matches(mask, None, boost * self.boost)

    def text(self) -> str:
        return f"{self.path}:{{{' '.join(str(value) for value in self.values)}}}"


@dataclass(frozen=True, kw_only=True)
class IdsQuery(Query):
    """Documents by `_id`; every match scores the boost."""

    ids: tuple[str, ...]

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        docs = [leaf.segment.find(doc_id) for doc_id in self.ids]
        mask[[doc for doc in docs if doc >= 0]] = True
        return Matches(mask, None, boost * self.boost)

    def text(self) -> str:
        return f"_id:({' '.join(self.ids)})"


@dataclass(frozen=True, kw_only=True)
class ExistsQuery(Query):
    """Documents with a value for any of the paths; every match scores the boost."""

    paths: tuple[str, ...]

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        for path in self.paths:
            mask |= leaf.segment.having(path)
        return Matches(mask, None, boost * self.boost)

    def text(self) -> str:
        return " ".join(f"FieldExistsQuery [field={path}]" for path in self.paths)
