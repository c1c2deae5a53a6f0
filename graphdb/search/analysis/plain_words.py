"""The words of many ASCII texts at once, in lower case: what the analyzer `standard` makes of them (Numba).

The rules are those of `word_breaks` for letters, digits and underscores. A text is read twice: `_edges` finds
where words begin and end, without a branch, for a processor cannot guess how long the next word is; then each
word is looked up, one of eight characters or less as a number.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Ints

__all__ = ["LENGTH_MAX", "PlainWords", "cut_all"]

LENGTH_MAX = 255
"""A longer word is cut there, and what is left begins another."""

_LOW_LINE = 95
_LETTERS, _DIGITS = 1, 2


class PlainWords(NamedTuple):
    """terms are numbered as they come; tokens are those of all texts in turn, counts[i] of text i."""

    terms: list[bytes]
    tokens: Ints
    positions: Ints
    counts: Ints


def cut_all(texts: Sequence[str]) -> PlainWords:
    """The texts are ASCII."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    blob = np.frombuffer("".join(texts).encode(), np.uint8)
    lowered = np.zeros((int(lengths.max(initial=0)) // 8 + 3) * 8, np.uint8)
    tokens, positions, counts, words, bounds = _cut(
        blob, starts, lowered, lowered.view(np.uint64), _LOWER, _IN_WORDS, _JOINS, LENGTH_MAX
    )
    terms = words.tobytes()
    return PlainWords(
        [terms[first:last] for first, last in pairwise(bounds.tolist())], tokens, positions, counts
    )


def _table(entry: Any) -> NDArray[np.uint8]:
    """A value for each byte; what is no ASCII has none."""
    return np.array([entry(chr(code)) if code < 128 else 0 for code in range(256)], np.uint8)


_LOWER = _table(lambda char: ord(char.lower()))
_IN_WORDS = _table(lambda char: char.isalnum() or char == "_")
_JOINS = _table(lambda char: _LETTERS * (char in "'.:") + _DIGITS * (char in "'.,;"))


@compiled(nogil=True)
def _edges(text: Any, lowered: Any, edges: Any, lower: Any, in_words: Any) -> Any:
    """How many edges there are: runs of letters, digits and underscores begin and end there in turn.

    lowered gets the text in lower case.
    """
    count, before = 0, np.uint8(0)
    for place in range(len(text)):
        lowered[place] = lower[text[place]]
        now = in_words[text[place]]
        edges[count] = place  # to stay where something changes
        count += now ^ before
        before = now
    edges[count] = len(text)
    lowered[len(text)] = 0
    return count + before


@compiled(nogil=True)
def _goes_on(lowered: Any, place: int, joins: Any) -> Any:
    """Whether the character there stands within a word: between two letters, or between two digits."""
    kind = joins[lowered[place]]
    before, after = lowered[place - 1], lowered[place + 1]
    letters = before > _LOW_LINE and after > _LOW_LINE
    digits = before < _LOW_LINE and after < _LOW_LINE
    return (letters and kind & _LETTERS != 0) or (digits and kind & _DIGITS != 0)


@compiled(nogil=True)
def _eight(blocks: Any, place: int) -> Any:
    """Eight characters from a place on, the first one lowest."""
    shift = np.uint64(8 * (place & 7))
    block = place >> 3
    return (blocks[block] >> shift) | ((blocks[block + 1] << np.uint64(1)) << (np.uint64(63) - shift))


@compiled(nogil=True)
def _mixed(code: Any) -> Any:
    code *= np.uint64(0x9FB21C651E98DF25)
    return code ^ (code >> np.uint64(29))


@compiled(nogil=True)
def _code(blocks: Any, first: int, length: int) -> Any:
    """The word itself where it is short; else a code with the highest bit, which another may have as well."""
    if length <= 8:
        return _eight(blocks, first) & (~np.uint64(0) >> np.uint64(64 - 8 * length))
    code = np.uint64(length)
    for place in range(first, first + length - 8, 8):
        code = _mixed(code ^ _eight(blocks, place))
    return _mixed(code ^ _eight(blocks, first + length - 8)) | np.uint64(1 << 63)


@compiled(nogil=True)
def _is_same(lowered: Any, first: int, length: int, words: Any, start: int, stop: int) -> Any:
    if stop - start != length:
        return False
    same = 0
    while same < length and lowered[first + same] == words[start + same]:
        same += 1
    return same == length


@compiled(nogil=True)
def _home(code: Any, mask: Any) -> Any:
    """The first row of the table to look at for a code."""
    mixed = code * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(32))) & mask


@compiled(nogil=True)
def _grown(table: Any) -> Any:
    """The same in four times the room."""
    grown = np.zeros((4 * len(table), 2), np.uint64)
    mask = np.uint64(len(grown) - 1)
    for old in range(len(table)):
        if table[old, 1] != 0:
            row = _home(table[old, 0], mask)
            while grown[row, 1] != 0:
                row = (row + np.uint64(1)) & mask
            grown[row] = table[old]
    return grown


@compiled(nogil=True)
def _is_low_line(lowered: Any, first: int, last: int) -> Any:
    """A run of underscores alone is no token."""
    while first < last and lowered[first] == _LOW_LINE:
        first += 1
    return first == last


@compiled(nogil=True)
def _cut_word(lowered: Any, first: int, last: int, joins: Any, length_max: int) -> Any:
    """Where a word ends that is too long: it does not end with what would join it to what follows."""
    if last - first <= length_max:
        return last
    last = first + length_max
    return last - 1 if joins[lowered[last - 1]] else last


# A row of the table is a code and the word's number, from 1; open addressing. Each word is kept once, close
# together: words and the table are read at random, and stay in the cache.
@compiled(nogil=True)
def _cut(
    blob: Any, starts: Any, lowered: Any, blocks: Any, lower: Any, in_words: Any, joins: Any, length_max: int
) -> Any:
    """(tokens, positions, counts, words, bounds): term t is words[bounds[t]:bounds[t + 1]].

    lowered has room for any text, and as blocks of eight.
    """
    most = len(blob) // 2 + len(starts)
    tokens, positions = np.empty(most, np.int32), np.empty(most, np.int32)
    counts = np.zeros(len(starts) - 1, np.int32)
    words, bounds = np.empty(len(blob), np.uint8), np.empty(most + 1, np.int64)
    edges = np.empty(len(lowered), np.int64)
    bounds[0] = 0
    table = np.zeros((4096, 2), np.uint64)
    mask = np.uint64(len(table) - 1)
    number = known = 0
    for text in range(len(starts) - 1):
        edge_count = _edges(blob[starts[text] : starts[text + 1]], lowered, edges, lower, in_words)
        before, edge = number, 0
        while edge < edge_count:
            first, last = edges[edge], edges[edge + 1]
            edge += 2
            while edge < edge_count and edges[edge] == last + 1 and _goes_on(lowered, last, joins):
                last = edges[edge + 1]
                edge += 2
            while first < last:
                stop = _cut_word(lowered, first, last, joins, length_max)
                length = stop - first
                if lowered[first] == _LOW_LINE and _is_low_line(lowered, first, stop):
                    first = stop
                    continue
                code = _code(blocks, first, length)
                row = _home(code, mask)
                while table[row, 1] != 0:
                    if table[row, 0] == code:
                        found = np.int64(table[row, 1])
                        if length <= 8 or _is_same(
                            lowered, first, length, words, bounds[found - 1], bounds[found]
                        ):
                            break
                    row = (row + np.uint64(1)) & mask
                if table[row, 1] == 0:
                    words[bounds[known] : bounds[known] + length] = lowered[first:stop]
                    known += 1
                    bounds[known] = bounds[known - 1] + length
                    table[row, 0], table[row, 1] = code, known
                tokens[number], positions[number] = np.int64(table[row, 1]) - 1, number - before
                number += 1
                if 2 * known > len(table):
                    table = _grown(table)
                    mask = np.uint64(len(table) - 1)
                first = stop + 1 if stop < last and joins[lowered[stop]] else stop
        counts[text] = number - before
    return tokens[:number], positions[:number], counts, words[: bounds[known]], bounds[: known + 1]
