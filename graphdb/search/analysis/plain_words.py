"""The words of many ASCII texts at once, in lower case: what the analyzer `standard` makes of them (Numba).

The rules are those of `word_breaks` for letters, digits and low lines.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from graphdb.search.segment import Ints

__all__ = ["PlainWords", "cut_all", "has_long_run"]

_NONE, _DIGIT, _LETTER, _LOW_LINE = 0, 1, 2, 3


class PlainWords(NamedTuple):
    """terms are numbered as they come; tokens are those of all texts in turn, counts[i] of text i."""

    terms: list[bytes]
    tokens: Ints
    positions: Ints
    counts: Ints


def cut_all(texts: Sequence[bytes]) -> PlainWords:
    """No text has a run of more characters than a token may have, see `has_long_run`."""
    blob = b"\n".join(texts).lower() + b"\n"  # the line feed ends a word
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1, out=starts[1:])
    tokens, positions, counts, words, bounds = _cut(np.frombuffer(blob, np.uint8), starts, _KINDS)
    terms = words.tobytes()
    return PlainWords(
        [terms[first:last] for first, last in pairwise(bounds.tolist())], tokens, positions, counts
    )


def has_long_run(text: str, length_max: int) -> bool:
    """Whether more characters than that follow each other without white space, in ASCII."""
    start = 0
    while len(text) - start > length_max:
        space = text.rfind(" ", start, start + length_max + 1)
        if space < 0:  # there may be other white space
            return max(map(len, text[start:].split()), default=0) > length_max
        start = space + 1
    return False


def _kind(code: int) -> int:
    char = chr(code)
    if char == "_":
        return _LOW_LINE
    return _DIGIT if char.isdigit() else _LETTER if char.isalpha() else _NONE


_KINDS: NDArray[np.uint8] = np.array([_kind(code) if code < 128 else _NONE for code in range(256)], np.uint8)


@numba.njit(cache=True, nogil=True, inline="always")
def _goes_on(blob: Any, place: int, kinds: Any) -> Any:
    """Whether the character there stands within a word: between two letters, or between two digits."""
    before, after, code = kinds[blob[place - 1]], kinds[blob[place + 1]], blob[place]
    letters = before == _LETTER and (code == 39 or code == 46 or code == 58)  # ' . :
    digits = before == _DIGIT and (code == 39 or code == 46 or code == 44 or code == 59)  # ' . , ;
    return before == after and (letters or digits)


@numba.njit(cache=True, nogil=True, inline="always")
def _word_end(blob: Any, place: int, kinds: Any) -> Any:
    """(end, whether there is more than low lines, FNV-1a code) of the word that begins there."""
    is_word, code = False, np.uint32(2166136261)
    while True:
        kind = kinds[blob[place]]
        if _DIGIT <= kind <= _LETTER:
            is_word = True
        elif kind != _LOW_LINE and not _goes_on(blob, place, kinds):
            break
        code = np.uint32((code ^ blob[place]) * np.uint32(16777619))
        place += 1
    return place, is_word, code


@numba.njit(cache=True, nogil=True, inline="always")
def _is_same(blob: Any, one: int, words: Any, other: int, length: int) -> Any:
    same = 0
    while same < length and blob[one + same] == words[other + same]:
        same += 1
    return same == length


@numba.njit(cache=True, nogil=True, inline="always")
def _slot(blob: Any, first: int, last: int, code: Any, table: Any, words: Any, bounds: Any) -> Any:
    """Where a word is in the table of numbers and codes, or is to be: open addressing."""
    mask = len(table) - 1
    slot = np.int64(code) & mask
    while table[slot, 0] >= 0:
        number = table[slot, 0]
        is_likely = table[slot, 1] == code and bounds[number + 1] - bounds[number] == last - first
        if is_likely and _is_same(blob, first, words, bounds[number], last - first):
            break
        slot = (slot + 1) & mask
    return slot


@numba.njit(cache=True, nogil=True)
def _grown(table: Any) -> Any:
    """The same in four times the room."""
    grown = np.full((4 * len(table), 2), -1, np.int64)
    mask = len(grown) - 1
    for row in range(len(table)):
        if table[row, 0] >= 0:
            slot = table[row, 1] & mask
            while grown[slot, 0] >= 0:
                slot = (slot + 1) & mask
            grown[slot] = table[row]
    return grown


# Each word is kept once, close together: words and the table are read at random, and stay in the cache.
@numba.njit(cache=True, nogil=True)
def _cut(blob: Any, starts: Any, kinds: Any) -> Any:
    """(tokens, positions, counts, words, bounds): term t is words[bounds[t]:bounds[t + 1]]."""
    tokens, positions = np.empty(len(blob) // 2 + 1, np.int32), np.empty(len(blob) // 2 + 1, np.int32)
    counts = np.zeros(len(starts) - 1, np.int32)
    words, bounds = np.empty(len(blob), np.uint8), np.empty(len(blob) // 2 + 2, np.int64)
    bounds[0] = 0
    table = np.full((4096, 2), -1, np.int64)
    number = known = 0
    for text in range(len(starts) - 1):
        place = starts[text]
        while place < starts[text + 1]:
            if not _DIGIT <= kinds[blob[place]] <= _LOW_LINE:
                place += 1
                continue
            last, is_word, code = _word_end(blob, place, kinds)
            if is_word:
                slot = _slot(blob, place, last, code, table, words, bounds)
                if table[slot, 0] < 0:
                    table[slot, 0], table[slot, 1] = known, code
                    bounds[known + 1] = bounds[known] + last - place
                    words[bounds[known] : bounds[known + 1]] = blob[place:last]
                    known += 1
                tokens[number], positions[number] = table[slot, 0], counts[text]
                number += 1
                counts[text] += 1
                if 2 * known > len(table):
                    table = _grown(table)
            place = last
    return (
        tokens[:number].copy(),
        positions[:number].copy(),
        counts,
        words[: bounds[known]].copy(),
        bounds[: known + 1].copy(),
    )
