"""The texts of some terms in their order: `TextColumn`, and what is found in all of them at once.

The order is that of code points. So the texts with a prefix, and those below a text, stand side by side, and
are found by bisection. What stands within texts is found in one array of the code points of all of them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from duckdb import DuckDBPyConnection

from graphdb.columns.quad_arrays import Ids

__all__ = ["TextColumn", "read_texts"]

Bools: TypeAlias = npt.NDArray[np.bool_]
_BETWEEN: Final = "\n"


class _Slices(Sequence[str]):
    """The texts as a sequence that makes each when it is looked at."""

    def __init__(self, text: str, starts: Ids) -> None:
        self._text, self._starts = text, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, place: int) -> str:  # type: ignore[override]
        return self._text[self._starts[place] : self._starts[place + 1] - 1]


@dataclass(frozen=True, slots=True, eq=False)
class TextColumn:
    """order[k] is the place among the terms of the k-th text, (n,) int64. text has all texts, each with a
    line end after it; code_points has the same as numbers. starts says where each begins, (n + 1,) int64.
    languages are those that occur, and language_codes[k] the place of that of the k-th text.
    """

    order: Ids
    text: str
    code_points: npt.NDArray[np.unsignedinteger]
    starts: Ids
    languages: Sequence[str]
    language_codes: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        own = (self.order, self.code_points, self.starts, self.language_codes)
        return sum(array.nbytes for array in own) + self.code_points.nbytes

    def lengths(self) -> Ids:
        """The code points of each term's text, (n,) int64 in the order of the terms, as in all results."""
        return self._of_terms(np.diff(self.starts) - 1)

    def ranks(self) -> Ids:
        """The place of each term in the order of texts."""
        return self._of_terms(np.arange(len(self.order)))

    def starting(self, prefix: str) -> Bools:
        """Which texts start so."""
        slices = _Slices(self.text, self.starts)
        first = bisect_left(slices, prefix)
        cut = len(prefix)
        return self._between(first, bisect_right(slices, prefix, lo=first, key=lambda text: text[:cut]))

    def ending(self, suffix: str) -> Bools:
        """Which texts end so."""
        wanted = np.fromiter(map(ord, suffix), np.int64, len(suffix))
        begins = self.starts[1:] - 1 - len(suffix)
        found: Bools = begins >= self.starts[:-1]
        begins = np.maximum(begins, 0)
        for place, point in enumerate(wanted):
            found &= self.code_points[begins + place] == point
        return self._of_terms(found)

    def compared(self, operator: str, bound: str) -> Bools:
        """Which texts are <, <=, > or >= a text."""
        slices = _Slices(self.text, self.starts)
        place = (bisect_left if operator in ("<", ">=") else bisect_right)(slices, bound)
        return self._between(0, place) if operator in ("<", "<=") else self._between(place, len(self.order))

    def containing(self, pattern: Sequence[str | None]) -> Bools:
        """In which texts some characters stand side by side; None is any but a line end."""
        found = np.zeros(len(self.order), np.bool_)
        places = self._places(pattern)
        if len(places) < len(found):
            found[np.searchsorted(self.starts, places, side="right") - 1] = True
        else:
            found = self._first_places(places) >= 0
        return self._of_terms(found)

    def before(self, needle: str) -> Ids:
        """How many code points stand before a text that is found first; -1 where it is not. needle is not
        empty.
        """
        return self._of_terms(self._first_places(self._places(needle)))

    def in_language(self, name: str) -> Bools:
        """Which texts have a language, "" for none."""
        codes = [code for code, each in enumerate(self.languages) if each == name]
        return self._of_terms(np.isin(self.language_codes, codes))

    def _first_places(self, places: Ids) -> Ids:
        """From the start of each text to the first of the places that is in it; -1 where none is."""
        at = np.searchsorted(places, self.starts[:-1])
        first = np.append(places, self.starts[-1])[at]
        return np.where(first < self.starts[1:], first - self.starts[:-1], -1)

    def _places(self, pattern: Sequence[str | None]) -> Ids:
        """Where a pattern begins in the text of all, in ascending order. The pattern has no line end, so that
        it does not reach over the end of a text.
        """
        assert _BETWEEN not in pattern
        fixed = [(place, ord(point)) for place, point in enumerate(pattern) if point is not None]
        free = [place for place, point in enumerate(pattern) if point is None]
        points = self.code_points
        count = max(len(points) - len(pattern) + 1, 0)
        if not fixed:
            found = np.arange(count)
        else:
            (first, point), *fixed = fixed
            found = np.flatnonzero(points[first : first + count] == point)
        for place, point in fixed:
            found = found[points[found + place] == point]
        for place in free:
            found = found[points[found + place] != ord(_BETWEEN)]
        return found

    def _between(self, first: int, last: int) -> Bools:
        found = np.zeros(len(self.order), np.bool_)
        found[self.order[first:last]] = True
        return found

    def _of_terms(self, values: npt.NDArray) -> npt.NDArray:  # type: ignore[type-arg]
        """What is in the order of texts in that of the terms."""
        found = np.empty_like(values)
        found[self.order] = values
        return found


def read_texts(connection: DuckDBPyConnection, ids: Ids, bytes_max: int) -> TextColumn | None:
    """Of terms that have a lexical form, by their numbers in ascending order; None where one has none, or
    their texts have more bytes in UTF-8.
    """
    wanted = ids.astype(np.int64)
    connection.register("wanted_texts", {"id": wanted, "place": np.arange(len(wanted))})
    run = connection.execute
    language = "split_part(coalesce(lang, ''), '--', 1)"
    source = "FROM terms JOIN wanted_texts USING (id)"
    try:
        sizes = f"SELECT count(lexical), coalesce(sum(strlen(lexical)), 0) {source}"
        ((found, size),) = run(sizes).fetchall()
        if found < len(ids) or size > bytes_max:
            return None
        languages = [name for (name,) in run(f"SELECT DISTINCT {language} {source} ORDER BY ALL").fetchall()]
        columns = f"place, length(lexical) + 1 AS length, list_position(?, {language}) - 1 AS language"
        rows = run(f"SELECT {columns} {source} ORDER BY lexical", [languages]).fetchnumpy()
        # one text for all: as many texts in Python as there are terms would take three times as long
        ((text,),) = run(f"SELECT string_agg(lexical, ? ORDER BY lexical) {source}", [_BETWEEN]).fetchall()
    finally:
        connection.unregister("wanted_texts")
    text = text + _BETWEEN if found else ""
    starts = np.concatenate(([0], np.cumsum(rows["length"])))
    assert starts[-1] == len(text)
    order, codes = (rows[name].astype(np.int64) for name in ("place", "language"))
    return TextColumn(order, text, _code_points(text), starts, languages, codes)


def _code_points(text: str) -> npt.NDArray[np.unsignedinteger]:
    """In as few bytes for each as they take."""
    try:
        return np.frombuffer(text.encode("latin-1"), np.uint8)
    except UnicodeEncodeError:
        encoded = text.encode("utf-16-le")
    if len(encoded) == 2 * len(text):
        return np.frombuffer(encoded, np.uint16)
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)
