"""Documents that can be among the first of a sort by numbers, found without a look at every value.

What blocks of documents have as their best value is kept. The documents in the best blocks give a limit, and
all blocks that have nothing as good are passed over.

Source: the competitive iterator of Lucene's `NumericComparator`, which does so by points.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.aggregations.columns import Columns, Numbers
from graphdb.search.compiled import compiled
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Longs, Segment
from graphdb.search.results.sort_keys import ByField, SortKey

__all__ = ["competitive_rows", "passes_over"]

_COUNT_MAX = 1_000  # documents that are wanted: their values are kept in order
_LEADING = 64  # blocks that are looked at first, for a limit
_WIDE = ("date_nanos", "unsigned_long")  # sorted by columns that are made of others


def competitive_rows(
    columns: Columns, key: ByField, docs: Longs, count: int, *, keeps_equal: bool
) -> Longs | None:
    """The places of those of the documents, which ascend, that the key leaves among the first `count`.

    keeps_equal: others decide among documents with equal values, not their order here. None where the key is
    no number that each document has once.
    """
    values = _values_of(columns, key) if 0 < count <= _COUNT_MAX else None
    if values is None:
        return None
    found, turn = [np.empty(0, np.int64)], _turn(key.spec.storage, key.descending)
    for segment, number, part in columns.parts(docs):
        own = values[number]
        bests, leading = _bests_of(segment, key, own)
        base = columns.leaves[number].base
        rows = _competitive(own, bests, leading, docs[part], base, *turn, count, keeps_equal)
        found.append(rows + part.start)
    return found[1] if len(found) == 2 else np.concatenate(found)


def passes_over(columns: Columns, key: SortKey) -> bool:
    """Whether `competitive_rows` is for this key."""
    return isinstance(key, ByField) and _values_of(columns, key) is not None


def _values_of(columns: Columns, key: ByField) -> list[Numbers] | None:
    spec = key.spec
    is_plain = key.nesting is None and spec.storage in (Storage.INTS, Storage.FLOATS)
    return columns.single_values(spec) if is_plain and spec.type not in _WIDE else None


def _turn(storage: Storage, descending: bool) -> tuple[float, float]:
    """By what a value is multiplied, and what is added then, for the least to come first."""
    if storage is Storage.INTS:
        return (-1, -1) if descending else (1, 0)
    return (-1.0, 0.0) if descending else (1.0, 0.0)


def _bests_of(segment: Segment, key: ByField, values: Numbers) -> tuple[Numbers, Longs]:
    """(of each block of documents the best, the blocks with the best of these), kept with the segment."""
    kind = ("greatest of blocks" if key.descending else "least of blocks", key.spec.path)
    found: tuple[Numbers, Longs] | None = segment.derived.get(kind)
    if found is None:
        bests = _bests(values, *_turn(key.spec.storage, key.descending))
        found = segment.derived[kind] = bests, np.argsort(bests, kind="stable")[:_LEADING].copy()
    return found


@compiled(nogil=True)
def _bests(values: Numbers, sign: Any, shift: Any) -> Any:
    """The least of each block, turned."""
    bests = np.empty((len(values) + 511) >> 9, values.dtype)
    for block in range(len(bests)):
        best = values[block << 9] * sign + shift
        for doc in range((block << 9) + 1, min((block + 1) << 9, len(values))):
            best = min(best, values[doc] * sign + shift)
        bests[block] = best
    return bests


@compiled(nogil=True)
def _limit(
    values: Numbers,
    bests: Numbers,
    leading: Longs,
    docs: NDArray[Any],
    base: int,
    sign: Any,
    shift: Any,
    count: int,
) -> tuple[Any, bool]:
    """(the worst of the best `count` in the leading blocks, whether there are so many)."""
    least, known = np.empty(count, values.dtype), 0
    for block in leading:
        if known == count and bests[block] > least[count - 1]:
            break
        row, end = np.searchsorted(docs, base + (block << 9)), base + ((block + 1) << 9)
        while row < len(docs) and docs[row] < end:
            value = values[docs[row] - base] * sign + shift
            if known < count or value < least[known - 1]:
                known = _put(least, known, value)
            row += 1
    return least[count - 1], known == count


@compiled(nogil=True)
def _put(least: Numbers, known: int, value: Any) -> int:
    """Put a value that belongs there among the least, `known` so far. Returns how many there are now."""
    at = min(known, len(least) - 1)
    while at > 0 and least[at - 1] > value:
        least[at] = least[at - 1]
        at -= 1
    least[at] = value
    return min(known + 1, len(least))


@compiled(nogil=True)
def _competitive(
    values: Numbers,
    bests: Numbers,
    leading: Longs,
    docs: NDArray[Any],
    base: int,
    sign: Any,
    shift: Any,
    count: int,
    keeps_equal: bool,
) -> Any:
    """The places in docs of those that may be among the first `count`; values are of the documents from base
    on, bests of their blocks, and leading the blocks that have the best of these.
    """
    limit, is_limited = _limit(values, bests, leading, docs, base, sign, shift, count)
    least = np.empty(count, values.dtype)  # the best so far, ascending
    rows = np.empty(len(docs), np.int64)
    known, found, row = 0, 0, 0
    while row < len(docs):
        block = (docs[row] - base) >> 9
        end = base + ((block + 1) << 9)
        if known == count or is_limited:
            last = least[count - 1] if known == count else limit
            drops_equal = known == count and not keeps_equal
            if bests[block] > last or (bests[block] == last and drops_equal):
                block += 1
                while block < len(bests) and (bests[block] > last or (bests[block] == last and drops_equal)):
                    block += 1
                end = base + (block << 9)
                low, step = row, 1
                while low + step < len(docs) and docs[low + step] < end:
                    low += step
                    step *= 2
                high = min(low + step, len(docs))
                while low + 1 < high:  # docs[low] is before the end, docs[high] is not
                    middle = (low + high) >> 1
                    if docs[middle] < end:
                        low = middle
                    else:
                        high = middle
                row = high
                continue
        while row < len(docs) and docs[row] < end:
            value = values[docs[row] - base] * sign + shift
            if is_limited and value > limit:
                row += 1
                continue
            if known < count or value < least[known - 1]:
                known = _put(least, known, value)
                rows[found] = row
                found += 1
            elif keeps_equal and value == least[known - 1]:
                rows[found] = row
                found += 1
            row += 1
    kept = 0
    for number in range(found):
        if values[docs[rows[number]] - base] * sign + shift <= least[known - 1]:
            rows[kept] = rows[number]
            kept += 1
    return rows[:kept].copy()
