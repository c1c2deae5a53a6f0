"""The compiled function behind `WordAnswers`: from the terms of a search to the bytes of its answer.

What it reads is handed over as addresses in one array, the layout, as of a `FieldTable`: each array of its
own would cost a call a microsecond, and there are twenty.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Floats, Longs
from graphdb.search.query.field_table import BASE, HIDDEN, SIZE, bytes_at, flags_at, ints_at, longs_at
from graphdb.search.query.max_score import top_of_leaves
from graphdb.text.score_digits import DIGITS_MAX, write_digits

__all__ = ["answer_of", "load"]

Bytes = NDArray[np.uint8]

# The layout: this head, then a part for each pattern, then one for each column. What has an address has its
# size behind it.
LIMIT, LENGTH, ROWS_MAX, DOCS, MET, PATTERNS, COLUMNS, BEGIN, TAIL, END = 0, 1, 2, 3, 4, 5, 6, 7, 9, 11
HEAD_SIZE: Final = 13
# of a pattern; WANTED is the code of its object
STARTS, KNOWN, CODES, MARKS, TAKING_IN, WANTED = 0, 1, 2, 3, 5, 7
PATTERN_SIZE: Final = 8
# of a column; the cells of a score are FRONT, its digits, BACK
SOURCE, LEAD, BLOB, CELL_STARTS, CELL_LENGTHS, CELLS = 0, 1, 3, 4, 5, 6
FRONT, BACK = 3, 5
COLUMN_SIZE: Final = 7
# where a column comes from, if not from the pattern of that number
SUBJECT, SCORE = -1, -2
ANY, NOWHERE = -1, -2  # objects of a pattern: all of them, and one that no subject has
# what is returned in place of a size: a subject has to be looked up, or it is more than may be written here;
# a cell is not there; there is no room
UNKNOWN, LACKS_CELLS, FULL = -1, -2, -3


def load() -> None:
    """Read the compiled code from where it is kept, or compile it, which takes eight seconds, so that no
    question has to.
    """
    one = np.zeros(1, np.float32)
    table, live, numbers = (
        np.zeros((0, HIDDEN + 1), np.int64),
        np.zeros(0, np.int64),
        np.zeros((1, 0), np.int64),
    )
    answer_of(table, live, numbers, one, one, np.zeros(HEAD_SIZE, np.int64), np.zeros(1, np.uint8))


@compiled()
def answer_of(
    table: Longs, live: Longs, numbers: Longs, weights: Floats, inverse: Floats, layout: Longs, out: Bytes
) -> tuple[int, int]:
    """(the bytes that were written to out, or why there are none; how many hits there are).

    table, live, numbers, weights and inverse: see `top_of_leaves`; one of the terms is enough for a hit. It
    keeps the interpreter's lock: it takes some ten microseconds, and would wait longer for it.
    """
    limit = layout[LIMIT]
    kept, best = np.empty(limit, np.int64), np.empty(limit, np.float32)
    dense, order = np.zeros_like(numbers), np.arange(len(weights))
    hits, _ = top_of_leaves(
        table, live, numbers, dense, weights, inverse, False, order, kept, best, 0, 0, False
    )
    met = longs_at(layout[MET], limit)
    _number(table, layout, kept[:hits], met)
    return _write_rows(met[:hits], best[:hits], layout, out), hits


@compiled()
def _number(table: Longs, layout: Longs, docs: Longs, met: Longs) -> None:
    """The numbers of the subjects of documents, to met."""
    own = longs_at(layout[DOCS], len(table))
    for hit in range(len(docs)):
        leaf = 0
        while leaf + 1 < len(table) and table[leaf + 1, BASE] <= docs[hit]:
            leaf += 1
        met[hit] = ints_at(own[leaf], table[leaf, SIZE])[docs[hit] - table[leaf, BASE]]


@compiled()
def _write_rows(met: Longs, best: Floats, layout: Longs, out: Bytes) -> int:
    patterns, columns = layout[PATTERNS], HEAD_SIZE + layout[PATTERNS] * PATTERN_SIZE
    bits, digits = best.view(np.int32), np.empty(DIGITS_MAX, np.uint8)
    first, counts, at = (
        np.zeros(patterns, np.int64),
        np.zeros(patterns, np.int64),
        np.zeros(patterns, np.int64),
    )
    size, rows = _copy(out, 0, layout, BEGIN), 0
    for hit in range(len(met)):
        found = _locate(met[hit], layout, first, counts)
        if found < 0:
            return UNKNOWN
        digits_size = write_digits(digits, 0, best[hit], bits[hit])
        at[:] = 0
        while found:
            if rows == layout[LENGTH]:
                found = 0
                break
            if rows == layout[ROWS_MAX]:
                return UNKNOWN
            for column in range(columns, columns + layout[COLUMNS] * COLUMN_SIZE, COLUMN_SIZE):
                size = _copy(out, size, layout, column + LEAD)
                source = layout[column + SOURCE]
                if source == SCORE:
                    if digits_size < 0:
                        return UNKNOWN
                    size = _copy(out, size, layout, column + FRONT)
                    size = _copy_bytes(out, size, digits, 0, digits_size)
                    size = _copy(out, size, layout, column + BACK)
                    continue
                number = met[hit]
                if source != SUBJECT:
                    part = HEAD_SIZE + source * PATTERN_SIZE
                    codes = ints_at(layout[part + CODES], first[source] + counts[source])
                    number = np.int64(codes[first[source] + at[source]])
                if number >= layout[column + CELLS]:
                    return LACKS_CELLS
                length = ints_at(layout[column + CELL_LENGTHS], number + 1)[number]
                if length < 0:
                    return LACKS_CELLS
                start = longs_at(layout[column + CELL_STARTS], number + 1)[number]
                size = _copy_bytes(out, size, bytes_at(layout[column + BLOB], start + length), start, length)
            size = _copy(out, size, layout, TAIL)
            if size > len(out):
                return FULL
            rows += 1
            found = _next(at, counts)
    if rows and layout[END + 1]:
        size -= 1  # the comma behind the last row
    size = _copy(out, size, layout, END)
    return FULL if size > len(out) else size


@compiled()
def _locate(number: int, layout: Longs, first: Longs, counts: Longs) -> int:
    """Where its objects are, for each pattern. 1: there are some of each; 0: not so; -1: it is not known."""
    if number < 0:
        return -1
    found = 1
    for pattern in range(layout[PATTERNS]):
        part = HEAD_SIZE + pattern * PATTERN_SIZE
        if number >= layout[part + KNOWN]:
            return -1
        for marks in (MARKS, TAKING_IN):
            count = layout[part + marks + 1]
            if number < count and flags_at(layout[part + marks], count)[number]:
                return -1
        starts = ints_at(layout[part + STARTS], number + 2)
        first[pattern], counts[pattern] = starts[number], starts[number + 1] - starts[number]
        wanted = layout[part + WANTED]
        if wanted != ANY:
            codes, has = ints_at(layout[part + CODES], starts[number + 1]), 0
            for place in range(starts[number], starts[number + 1]):
                if codes[place] == wanted:
                    has = 1
            counts[pattern] = has
        if counts[pattern] == 0:
            found = 0
    return found


@compiled()
def _next(at: Longs, counts: Longs) -> int:
    """The next of the combinations of objects, the last pattern's first; 0 after the last of them."""
    for pattern in range(len(at) - 1, -1, -1):
        at[pattern] += 1
        if at[pattern] < counts[pattern]:
            return 1
        at[pattern] = 0
    return 0


@compiled()
def _copy(out: Bytes, place: int, layout: Longs, part: int) -> int:
    """Bytes of the layout."""
    count = layout[part + 1]
    return _copy_bytes(out, place, bytes_at(layout[part], count), 0, count)


@compiled()
def _copy_bytes(out: Bytes, place: int, of: Bytes, start: int, count: int) -> int:
    """Returns the place behind them, which is behind the end of out where there was no room for them."""
    if place + count <= len(out):
        for i in range(count):
            out[place + i] = of[start + i]
    return place + count
