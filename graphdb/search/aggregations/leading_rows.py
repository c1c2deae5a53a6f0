"""The documents that can be in a page of a `composite` whose first source is what the index is sorted by.

Of each segment those with the first keys are enough, as many as make a full page.

Source: `CompositeAggregator` of Elasticsearch 8, which ends a segment early by the order of its index.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import Rows, Scope
from graphdb.search.aggregations.columns import Numbers
from graphdb.search.fields import FieldSpec
from graphdb.search.index_order import column_of
from graphdb.search.leaf_reader import Ints, Leaf, Longs

__all__ = ["leading_rows"]

_COLUMNS = ("ints", "floats", "terms")  # of dates with nanoseconds buckets know no more than milliseconds
_FEW = 4_096  # documents for which it is not worth while
_FIRST, _GROWTH = 4, 8  # documents of a segment for each bucket of a page, and how many times more each time


@dataclass(frozen=True, slots=True)
class _Led:
    """The documents of a leaf that have a value, by their numbers among all; keys ascend with the buckets."""

    leaf: Leaf
    spec: FieldSpec
    descending: bool
    docs: Longs
    keys: Numbers

    @classmethod
    def of(cls, leaf: Leaf, spec: FieldSpec, descending: bool, docs: Longs) -> "_Led | None":
        """None where the leaf is in no such order, or documents have several values."""
        column, order = column_of(spec), leaf.segment.order
        if column not in _COLUMNS or not order:
            return None
        if (order[0].path, order[0].column, order[0].descending) != (spec.path, column, descending):
            return None
        found = _values(leaf, spec, docs - leaf.base)
        if found is None:
            return None
        having, values = found
        return cls(leaf, spec, descending, docs[having], _turned(values, descending))

    def value(self, place: int) -> Any:
        """That of a document, as all leaves know it."""
        stored = _turned(self.keys[place : place + 1], self.descending)[0].item()
        terms = self.leaf.segment.terms(self.spec.path) if column_of(self.spec) == "terms" else None
        return stored if terms is None else terms.dictionary.term(stored)

    def place_of(self, value: Any) -> int:
        """How many documents come before those with a value."""
        terms = self.leaf.segment.terms(self.spec.path) if column_of(self.spec) == "terms" else None
        if terms is None:
            key = value
            if self.descending:
                key = -value if self.keys.dtype == np.float64 else -1 - value
        else:
            dictionary = terms.dictionary
            bound = dictionary.lower_bound(str(value))
            is_there = bound < len(dictionary) and dictionary.term(bound) == str(value)
            key = (-1 - bound if is_there else -bound) if self.descending else bound
        return int(np.searchsorted(self.keys, key))


def _turned(values: Numbers, descending: bool) -> Numbers:
    """Keys that ascend, and of these the values again. The least whole number has no negative."""
    if not descending:
        return values
    return -values if values.dtype == np.float64 else -1 - values


def _values(leaf: Leaf, spec: FieldSpec, docs: Longs) -> tuple[Longs, Numbers] | None:
    """(places, values) of those documents that have a value; None where one has several."""
    segment = leaf.segment
    starts: Ints | None = None
    values: Numbers = np.empty(0, np.int64)
    if column_of(spec) == "terms":
        terms = segment.terms(spec.path)
        if terms is None:
            return np.empty(0, np.int64), values
        starts, values = terms.ordinals.starts, terms.ordinals.terms
    else:
        column = segment.floats(spec.path) if column_of(spec) == "floats" else segment.ints(spec.path)
        if column is None:
            return np.empty(0, np.int64), values
        starts, values = column.starts, column.values
    if starts is None:
        return np.arange(len(docs)), values[docs]
    begins, counts = starts[docs], starts[docs + 1] - starts[docs]
    if len(counts) and counts.max() > 1:
        return None
    having = np.flatnonzero(counts)
    return having, values[begins[having]]


def leading_rows(
    scope: Scope, rows: Rows, spec: FieldSpec, descending: bool, size: int, after: Any
) -> Iterator[Rows]:
    """Parts of the documents, each larger than the one before, at last all of them.

    Each has all documents with the keys that it has at all, from `after` on (None: from the first on), which
    is the key of the first source as it is stored; and none with a later key is missing before one that it
    has. So a part that makes a full page makes the right one.
    """
    leaders = _leaders(scope, rows, spec, descending)
    count = _FIRST * size
    begins = [] if leaders is None else [0 if after is None else one.place_of(after) for one in leaders]
    while leaders:
        ends = [
            (one, begin + count)
            for one, begin in zip(leaders, begins, strict=True)
            if begin + count < len(one.docs)
        ]
        if not ends:
            break
        values = [one.value(end) for one, end in ends]
        bound = max(values) if descending else min(values)
        parts = [one.docs[begin : one.place_of(bound)] for one, begin in zip(leaders, begins, strict=True)]
        docs = np.concatenate(parts)
        if len(docs):
            yield Rows(docs, np.zeros(len(docs), rows.owners.dtype), rows.count)
        count *= _GROWTH
    yield rows


def _leaders(scope: Scope, rows: Rows, spec: FieldSpec, descending: bool) -> list[_Led] | None:
    """None where some leaf is in no such order, or it would not be worth while."""
    docs = rows.docs
    if scope.searcher.peers is not None or spec.options.get("runtime") or rows.count != 1:
        return None
    if len(docs) < _FEW or not bool((np.diff(docs) > 0).all()):
        return None
    leaders = []
    for leaf in scope.columns.leaves:
        begin, end = np.searchsorted(docs, [leaf.base, leaf.base + leaf.segment.size])
        led = _Led.of(leaf, spec, descending, docs[begin:end]) if begin < end else None
        if begin < end and led is None:
            return None
        if led is not None:
            leaders.append(led)
    return leaders
