"""Buckets of which only the numbers of documents are asked: counted in one pass over lists of documents, and
written as JSON at once.

`Aggregation.answers` makes an array of each step and an object of each bucket. Of a short search that is most
of the time, so the kinds that programs ask most often have a `Tally`, too.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from graphdb.search.aggregations.columns import COUNTS_OF_ALL, Columns
from graphdb.search.compiled import compiled
from graphdb.search.fields import FieldSpec
from graphdb.search.leaf_reader import Ints, Longs, NumberColumn, Segment, TermIndex

__all__ = ["FIRST_MAX", "StepTally", "Tally", "TermTally", "held_span"]


class Tally(Protocol):
    """For one search, whose documents are added leaf by leaf."""

    def add(self, number: int, docs: Ints) -> None:
        """Count documents of a leaf, given by its number in the list of leaves. docs: their numbers there,
        each once, read-only.
        """

    def written(self) -> tuple[bytes, int]:
        """(the answer as JSON, how many buckets it has). Raises JSONEncodeError where a term is no text."""


# The terms of a field, the most frequent first.

FIRST_MAX = 100  # buckets, of which a list is kept in order
_WIDTH_MAX = 8
_ROWS_MAX = 2_000_000  # documents; the rows of one take some nanoseconds to make
_HEADS_MAX = 4_096

_Rows = NDArray[Any]
"""(documents, width) uint8 or uint16: the numbers of the terms of each document. Where it has fewer there is
one more than the last number, so that no bounds are looked up, and no loop has an end that processors guess.
"""


class _LeafTerms:
    """The terms of one leaf."""

    def __init__(self, index: TermIndex, segment: Segment, path: str) -> None:
        self.size, self._segment, self._path = len(index.dictionary), segment, path
        self._ordinals, self._documents = index.ordinals, segment.size
        self._rows = self._rows_of() if segment.size <= _ROWS_MAX else None

    def _rows_of(self) -> _Rows | None:
        """None where they would take more than the ordinals do, or numbers do not fit."""
        starts, terms = self._ordinals.starts, self._ordinals.terms
        width = int(np.diff(starts).max(initial=0))
        kind = np.uint8 if self.size < 2**8 else np.uint16
        if width > _WIDTH_MAX or self.size >= 2**16:
            return None
        if self._documents * width * kind().itemsize > starts.nbytes + terms.nbytes:
            return None
        rows = np.full((self._documents, width), self.size, kind)
        _fill_rows(starts, terms, rows)
        return rows

    def counts(self, docs: Ints) -> Longs:
        """How many of these documents have each term. Nobody writes into it."""
        is_all = len(docs) == self._documents and not self._segment.live_only
        known: Longs | None = self._segment.derived.get((COUNTS_OF_ALL, self._path)) if is_all else None
        if known is not None:
            return known
        counts = np.zeros(self.size + 1, np.int64)
        if self._rows is None:
            _count_ordinals(self._ordinals.starts, self._ordinals.terms, docs, counts)
        else:
            _count_rows(self._rows, docs, counts)
        counts = counts[:-1]
        if is_all:
            self._segment.derived[COUNTS_OF_ALL, self._path] = counts
        return counts


def _leaf_terms(segment: Segment, path: str) -> _LeafTerms | None:
    """Kept with the segment, unless some of its documents are hidden."""
    key = ("terms to count", path)
    known: _LeafTerms | None = None if segment.live_only else segment.derived.get(key)
    if known is not None:
        return known
    index = segment.terms(path)
    made = None if index is None else _LeafTerms(index, segment, path)
    if made is not None and not segment.live_only:
        segment.derived[key] = made
    return made


class _TermField:
    """What is made once of a field. Buckets begin with heads, by the number of their term."""

    def __init__(self, columns: Columns, spec: FieldSpec) -> None:
        self.terms = columns.dictionary(spec)
        self.leaves: list[_LeafTerms | None] = []
        for number, leaf in enumerate(columns.leaves):
            path = columns.path_in(spec, number)
            self.leaves.append(None if path is None else _leaf_terms(leaf.segment, path))
        self._heads: dict[int, bytes] = {}

    def head(self, number: int) -> bytes:
        known = self._heads.get(number)
        if known is None:
            if len(self._heads) >= _HEADS_MAX:
                self._heads.clear()
            key = orjson.dumps(self.terms.term(number))
            known = self._heads[number] = b'{"key":%b,"doc_count":' % key
        return known


class TermTally:
    """Of a field of keywords. Equal counts come in the order of their terms."""

    def __init__(self, columns: Columns, spec: FieldSpec, size: int, least: int) -> None:
        """size: buckets, at most FIRST_MAX; least: documents in each, at least 1."""
        self._field = columns.keep(("terms to count", spec.path), lambda: _TermField(columns, spec))
        self._size, self._least = size, least
        self._counts: Longs | None = None

    def add(self, number: int, docs: Ints) -> None:
        leaves, terms = self._field.leaves, self._field.terms
        leaf = leaves[number]
        if leaf is None:
            return
        counts = leaf.counts(docs)
        if len(leaves) == 1:
            self._counts = counts
            return
        if self._counts is None:
            self._counts = np.zeros(len(terms), np.int64)
        self._counts[terms.of_leaf(number, np.arange(leaf.size, dtype=np.int32))] += counts

    def written(self) -> tuple[bytes, int]:
        counts = np.empty(0, np.int64) if self._counts is None else self._counts
        numbers, most, others = _first(counts, self._size, self._least)
        head = self._field.head
        buckets = [
            b"%b%d}" % (head(number), count)
            for number, count in zip(numbers.tolist(), most.tolist(), strict=True)
        ]
        answer = b'{"doc_count_error_upper_bound":0,"sum_other_doc_count":%d,"buckets":[%b]}'
        return answer % (others, b",".join(buckets)), len(buckets)


# These keep the interpreter's lock: they would wait for it again longer than they run.


@compiled()
def _fill_rows(starts: Ints, terms: Ints, rows: _Rows) -> None:
    for doc in range(len(rows)):
        for place in range(starts[doc + 1] - starts[doc]):
            rows[doc, place] = terms[starts[doc] + place]


@compiled()
def _count_rows(rows: _Rows, docs: Ints, counts: Longs) -> None:
    """Add 1 to counts for each term of each document."""
    for doc in docs:
        for place in range(rows.shape[1]):
            counts[rows[doc, place]] += 1


@compiled()
def _count_ordinals(starts: Ints, terms: Ints, docs: Ints, counts: Longs) -> None:
    """The same without rows."""
    for doc in docs:
        for position in range(starts[doc], starts[doc + 1]):
            counts[terms[position]] += 1


@compiled()
def _first(counts: Longs, size: int, least: int) -> tuple[Longs, Longs, int]:
    """(numbers, counts, others): the greatest counts of least or more, the sum of those beyond them."""
    numbers, most = np.empty(size, np.int64), np.empty(size, np.int64)
    held = total = shown = 0
    for number in range(len(counts)):
        count = counts[number]
        if count < least:
            continue
        total += count
        if held == size and count <= most[size - 1]:
            continue
        place = held if held < size else size - 1
        while place > 0 and most[place - 1] < count:
            numbers[place], most[place] = numbers[place - 1], most[place - 1]
            place -= 1
        numbers[place], most[place] = number, count
        held = min(held + 1, size)
    for place in range(held):
        shown += most[place]
    return numbers[:held], most[:held], total - shown


# Intervals of equal length over numbers.

_KEY_MAX = 10.0**15  # whole numbers up to there are written with all digits, and ".0"
_BUCKET_BYTES_MAX = 64


class StepTally:
    """Of fields of numbers: value v is in the interval with the number floor((v - offset) / interval)."""

    def __init__(
        self,
        columns: Sequence[NumberColumn | None],
        interval: float,
        offset: float,
        ends: tuple[int, int],
        least: int,
    ) -> None:
        """columns: by leaf; ends: the numbers of the intervals of their least and greatest value; least:
        documents in a bucket that is shown, 0: all between the first and the last that has any are shown.
        """
        self._columns, self._interval, self._offset, self._least = columns, interval, offset, least
        self.first = ends[0]
        self.counts = np.zeros(ends[1] - ends[0] + 1, np.int64)
        """By interval, from the number `first` on."""

    def add(self, number: int, docs: Ints) -> None:
        """A document is in an interval once, however many of its values are."""
        column = self._columns[number]
        if column is None:
            return
        place = self._interval, self._offset, self.first
        if column.starts is None:
            _count_steps(column.values, docs, *place, self.counts)
        else:
            _count_all_steps(column.starts, column.values, docs, *place, self.counts)

    def written(self) -> tuple[bytes, int]:
        low, high = held_span(self.counts)
        if low == high:
            return b'{"buckets":[]}', 0
        first, counts = self.first + low, self.counts[low:high]
        ends = [number * self._interval + self._offset for number in (first, first + len(counts))]
        is_whole = float(self._interval).is_integer() and float(self._offset).is_integer()
        if is_whole and max(map(abs, ends)) < _KEY_MAX:
            text = np.empty(_BUCKET_BYTES_MAX * len(counts), np.uint8)
            step, offset = int(self._interval), int(self._offset)
            length, shown = _write_steps(counts, first * step + offset, step, self._least, text)
            return b'{"buckets":[%b]}' % text[:length].tobytes(), shown
        keys = (np.arange(first, first + len(counts)) * self._interval + self._offset).tolist()
        buckets = [
            {"key": key, "doc_count": count}
            for key, count in zip(keys, counts.tolist(), strict=True)
            if count >= self._least
        ]
        return orjson.dumps({"buckets": buckets}), len(buckets)


@compiled()
def _count_steps(values: Any, docs: Ints, interval: float, offset: float, first: int, counts: Longs) -> None:
    """Add up how many values are in each interval; that with the number `first` is the first of counts."""
    for doc in docs:
        counts[int(np.floor((values[doc] - offset) / interval)) - first] += 1


@compiled()
def _count_all_steps(
    starts: Ints, values: Any, docs: Ints, interval: float, offset: float, first: int, counts: Longs
) -> None:
    """The same of documents with any number of values, which ascend."""
    for doc in docs:
        before = np.int64(-1)
        for position in range(starts[doc], starts[doc + 1]):
            place = int(np.floor((values[position] - offset) / interval)) - first
            if place != before:
                counts[place] += 1
                before = np.int64(place)


@compiled()
def held_span(counts: Longs) -> tuple[int, int]:
    """The first place that is not 0, and that behind the last."""
    low, high = 0, len(counts)
    while high > 0 and counts[high - 1] == 0:
        high -= 1
    while low < high and counts[low] == 0:
        low += 1
    return low, high


_KEY, _COUNT = (np.frombuffer(text, np.uint8) for text in (b'{"key":', b'.0,"doc_count":'))


@compiled()
def _put(piece: Any, text: Any, end: int) -> int:
    """Write bytes at a place; the place behind them."""
    for byte in piece:
        text[end] = byte
        end += 1
    return end


@compiled()
def _put_number(number: int, text: Any, end: int) -> int:
    """The same of a whole number."""
    if number < 0:
        text[end] = 45  # a minus
        end, number = end + 1, -number
    power = 1
    while number >= 10 * power:
        power *= 10
    while power:
        text[end] = 48 + number // power
        end, number, power = end + 1, number % power, power // 10
    return end


@compiled()
def _write_steps(counts: Longs, first: int, step: int, least: int, text: Any) -> tuple[int, int]:
    """(bytes, buckets): those with least documents or more, separated by commas. first, step: the keys."""
    end = shown = 0
    for place in range(len(counts)):
        if counts[place] < least:
            continue
        if shown:
            text[end] = 44  # a comma
            end += 1
        end = _put(_KEY, text, end)
        end = _put_number(first + place * step, text, end)
        end = _put(_COUNT, text, end)
        end = _put_number(counts[place], text, end)
        text[end] = 125  # a closing brace
        end += 1
        shown += 1
    return end, shown
