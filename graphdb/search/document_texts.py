"""The texts of many JSON documents, looked through at once before each is parsed (Numba).

Two things take most of the time of parsing, and both are done here without the interpreter's lock: making
sure that a document has no name twice, and reading a long array of numbers, such as a vector. What is not
certain is left alone: then the document is parsed as any other text.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from graphdb.search.compiled import compiled

__all__ = ["NUMBERS_MIN", "LongNumbers", "PlainDocuments"]

NUMBERS_MIN = 16  # of an array that is read here
_ARRAYS_MAX = 200  # in one document: more may be too deep
_QUOTE, _BACKSLASH, _COLON, _COMMA, _MINUS, _PLUS, _DOT, _ZERO, _NINE = b'"\\:,-+.09'
_OPEN_BRACE, _OPEN, _CLOSE, _E, _CAPITAL_E, _SPACE = b"{[]eE "
_POWERS = np.array([10.0**power for power in range(23)])  # all that are exact
_EXACT_MAX = 2**53
_DIGITS_MAX = 19  # so that they fit into 64 bits


class LongNumbers(NamedTuple):
    """A member of a document: doubles, the bytes of which are in `raw`."""

    name: str
    raw: bytes


class PlainDocuments:
    """Those of some texts that are plain: one object without another in it, and without escapes."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
        self._blob = b"".join(texts)
        found = _looked_through(np.frombuffer(self._blob, np.uint8), starts, _POWERS, NUMBERS_MIN)
        kept, kept_starts, members, arrays, numbers = found
        self._kept, self._kept_starts = kept.tobytes(), kept_starts.tolist()
        self._members, self._arrays, self._numbers = members.tolist(), arrays.tolist(), numbers.tobytes()

    def read(self, place: int) -> tuple[dict[str, Any], LongNumbers | None] | None:
        """The members of a document, and one of them that is not there but apart. None where it is not plain,
        or no JSON.
        """
        members = self._members[place]
        if members < 0:
            return None
        try:
            value = orjson.loads(self._kept[self._kept_starts[place] : self._kept_starts[place + 1]])
        except orjson.JSONDecodeError:
            return None
        if type(value) is not dict or len(value) != members:  # a name comes twice
            return None
        name_at, name_end, first, last = self._arrays[place]
        if last == first:
            return value, None
        name = self._blob[name_at:name_end].decode()
        if value.pop(name, self) is not None:
            return None
        return value, LongNumbers(name, self._numbers[8 * first : 8 * last])


@compiled(nogil=True)
def _looked_through(blob: Any, starts: Any, powers: Any, numbers_min: int) -> Any:
    """(kept, kept_starts, members, arrays, numbers).

    kept: the texts in turn, with null in the place of a long array. members (int32): how many a document has
    if it is plain, else -1. arrays (int64): the bounds of a name in blob, and of its numbers among all.
    """
    count = len(starts) - 1
    kept, kept_starts = np.empty(len(blob), np.uint8), np.zeros(count + 1, np.int64)
    members, arrays = np.empty(count, np.int32), np.zeros((count, 4), np.int64)
    numbers = np.empty(len(blob) // 2 + 1, np.float64)
    at = known = 0
    for doc in range(count):
        place, last = starts[doc], starts[doc + 1]
        copied = place  # what comes before is kept
        before = np.uint8(0)  # the last byte outside of texts that is no space
        colons = braces = brackets = 0
        text_at = text_end = place
        is_plain = True
        while place < last:
            byte = blob[place]
            place += 1
            if byte <= _SPACE:
                continue
            if byte == _QUOTE:
                text_at = place
                while place < last and blob[place] != _QUOTE and blob[place] != _BACKSLASH:
                    place += 1
                text_end = place
                place += 1
                if text_end >= last or blob[text_end] == _BACKSLASH:
                    is_plain = False
                    break
            elif byte == _COLON:
                colons += 1
            elif byte == _OPEN_BRACE:
                braces += 1
            elif byte == _OPEN:
                brackets += 1
                if before == _COLON and arrays[doc, 3] == arrays[doc, 2]:
                    end, found = _read_numbers(blob, place, last, powers, numbers, known)
                    if found >= numbers_min:
                        arrays[doc] = text_at, text_end, known, known + found
                        known += found
                        at = _copied(blob, copied, place - 1, kept, at)
                        for null in (110, 117, 108, 108):
                            kept[at] = null
                            at += 1
                        place = copied = end
            before = byte
        at = _copied(blob, copied, last, kept, at)
        if braces != 1 or brackets >= _ARRAYS_MAX:
            is_plain = False
        members[doc] = colons if is_plain else -1
        kept_starts[doc + 1] = at
    return kept[:at], kept_starts, members, arrays, numbers[:known]


@compiled(nogil=True)
def _copied(blob: Any, first: int, last: int, kept: Any, at: int) -> Any:
    for place in range(last - first):
        kept[at + place] = blob[first + place]
    return at + last - first


@compiled(nogil=True)
def _read_numbers(blob: Any, place: int, last: int, powers: Any, numbers: Any, at: int) -> Any:
    """(end, count) of an array that begins before place, whose numbers get into `numbers` at a place.

    No numbers, where one of them is none, or is not certain to the last bit.
    """
    count = 0
    while True:
        while place < last and blob[place] <= _SPACE:
            place += 1
        place, number = _read_number(blob, place, last, powers)
        if place < 0:
            return place, 0
        numbers[at + count] = number
        count += 1
        while place < last and blob[place] <= _SPACE:
            place += 1
        if place >= last:
            return place, 0
        if blob[place] == _CLOSE:
            return place + 1, count
        if blob[place] != _COMMA:
            return place, 0
        place += 1


@compiled(nogil=True)
def _read_number(blob: Any, place: int, last: int, powers: Any) -> Any:
    """(end, number) of a number as JSON has it; end is -1 where it is not to be told."""
    is_negative = place < last and blob[place] == _MINUS
    if is_negative:
        place += 1
    first, digits, scale, count = place, np.uint64(0), 0, 0
    while place < last and _ZERO <= blob[place] <= _NINE:
        digits = digits * np.uint64(10) + np.uint64(blob[place] - _ZERO)
        count += digits != 0
        place += 1
    if place == first or (place - first > 1 and blob[first] == _ZERO):
        return -1, 0.0
    is_whole = True
    if place < last and blob[place] == _DOT:
        is_whole = False
        place += 1
        first = place
        while place < last and _ZERO <= blob[place] <= _NINE:
            digits = digits * np.uint64(10) + np.uint64(blob[place] - _ZERO)
            count += digits != 0
            place += 1
        scale = first - place
        if scale == 0:
            return -1, 0.0
    if count > _DIGITS_MAX:
        return -1, 0.0
    if place < last and (blob[place] == _E or blob[place] == _CAPITAL_E):
        is_whole = False
        place += 1
        is_small = place < last and blob[place] == _MINUS
        if place < last and (blob[place] == _MINUS or blob[place] == _PLUS):
            place += 1
        first, exponent = place, 0
        while place < last and _ZERO <= blob[place] <= _NINE and place - first < 4:
            exponent = exponent * 10 + (int(blob[place]) - _ZERO)
            place += 1
        if place == first or (place < last and _ZERO <= blob[place] <= _NINE):
            return -1, 0.0
        scale += -exponent if is_small else exponent
    if digits == 0:
        return place, -0.0 if is_negative and not is_whole else 0.0
    is_certain, number = _scaled(digits, scale, powers)
    return place if is_certain else -1, -number if is_negative else number


@compiled(nogil=True)
def _scaled(digits: Any, scale: int, powers: Any) -> Any:
    """(whether it is certain, the double nearest to digits * 10**scale)."""
    if scale >= len(powers) or -scale >= len(powers):
        return False, 0.0
    if digits <= np.uint64(_EXACT_MAX):  # both are exact, and one operation rounds once
        number = np.float64(digits)
        return True, number * powers[scale] if scale >= 0 else number / powers[-scale]
    if scale >= 0:
        return False, 0.0
    # Divided in two steps: the second divides what the first has left, which is exact (Dekker, 1971).
    power = powers[-scale]
    high = np.float64(digits >> np.uint64(11)) * 2048.0
    low = np.float64(digits & np.uint64(2047))
    quotient = high / power
    product, error = _exact_product(quotient, power)
    rest = ((high - product) - error + low) / power
    number = quotient + rest
    beyond = abs(rest - (number - quotient))
    half = math.ldexp(1.0, math.frexp(number)[1] - 54)  # of what is between two doubles there
    return abs(beyond - half) > abs(rest) * 2.0**-40 + half * 2.0**-40, number


@compiled(nogil=True)
def _exact_product(one: float, other: float) -> Any:
    """(product, error): their sum is exact (Veltkamp and Dekker)."""
    product = one * other
    spread = one * 134217729.0  # 2**27 + 1
    one_high = spread - (spread - one)
    one_low = one - one_high
    spread = other * 134217729.0
    other_high = spread - (spread - other)
    other_low = other - other_high
    error = ((one_high * other_high - product) + one_high * other_low + one_low * other_high) + (
        one_low * other_low
    )
    return product, error
