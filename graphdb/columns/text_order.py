"""The strings of the dictionary in the order of their texts: `TextOrder`, and `TextOrders`, which keeps one.

A term never changes, so an order stays right over changes of the view: terms that came after it was made are
its rest, which is not in order, and small. Terms that were collected do no harm.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from duckdb import DuckDBPyConnection
from duckdb import Error as DuckDBError

from graphdb.columns.term_ids import PAYLOAD_MASK, Tag, tagged

__all__ = ["TEXT_BYTES", "Bound", "TextOrder", "TextOrders", "UnorderedError"]

Ids: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
TEXT_BYTES: Final = 64  # that are kept of each text
_REST_MIN, _REST_SHARE = 1_000, 16
_BYTES_MAX: Final = 1 << 30  # where nobody says how many
_TERM_BYTES, _PLACE_BYTES = 18, 4
_FEW: Final = 32
_BATCH_ROWS: Final = 20_480
_NONE: Final = -1


class UnorderedError(Exception):
    """What the order does not tell without reading texts."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A range of texts: those from first to last, in bytes of UTF-8; last None is without end.

    The ends are in it where is_closed says so.
    """

    first: bytes
    last: bytes | None
    is_closed: tuple[bool, bool] = (True, False)

    @classmethod
    def of_prefix(cls, prefix: str) -> "Bound":
        """The texts that begin with it. No byte of UTF-8 is 255."""
        start = prefix.encode()
        return cls(start, start + b"\xff" if start else None)

    @classmethod
    def compared(cls, operator: str, text: str) -> "Bound":
        """The texts that are = < <= > >= it."""
        end = text.encode()
        match operator:
            case "=":
                return cls(end, end, (True, True))
            case "<" | "<=":
                return cls(b"", end, (True, operator == "<="))
        return cls(end, None, (operator == ">=", False))

    def holds(self, text: bytes) -> bool:
        first, last = self.is_closed
        if not (text >= self.first if first else text > self.first):
            return False
        return self.last is None or (text <= self.last if last else text < self.last)


@dataclass(frozen=True, slots=True)
class TextOrder:
    """ids are the numbers of all strings, with and without a language, in the order of their texts by code
    points, (n,); langs are the places of their languages in languages, (n,), 0 for none. places has the place
    in ids of the term with payload low + i, or -1. rest has the terms beyond: their text and language.

    The first `TEXT_BYTES` of the n texts stand in texts one after the other, and start at starts, (n + 1,).
    A term takes 22 bytes and those of its text, some 60 in all.
    """

    ids: Ids
    langs: npt.NDArray[np.uint16]
    languages: tuple[str, ...]
    low: int
    places: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    texts: bytes
    next_term: int  # no string from here on is known
    rest: dict[int, tuple[bytes, str]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        arrays = (self.ids, self.langs, self.places, self.starts)
        return sum(array.nbytes for array in arrays) + len(self.texts)

    def within(self, bound: Bound, ids: Ids) -> Bools:
        """Which of these terms, ascending, are strings with a text in the bound. Raises UnorderedError."""
        first, last = self.span(bound)
        if (last - first) * _FEW < len(ids):
            found = np.zeros(len(ids), np.bool_)
            hits = self.ids[first:last]
            at = np.searchsorted(ids, hits)
            at[at == len(ids)] = 0
            found[at[ids[at] == hits]] = True
        else:
            places = self.places_of(ids)
            found = (places >= first) & (places < last)
        for at in self._of_rest(ids):
            found[at] = bound.holds(self.rest[int(ids[at])][0])
        return found

    def listed(self, bound: Bound, most: int) -> list[int] | None:
        """The strings with a text in the bound; None if they are more. Raises UnorderedError."""
        first, last = self.span(bound)
        if last - first > most:
            return None
        found: list[int] = self.ids[first:last].tolist()
        found += (number for number, (text, _) in self.rest.items() if bound.holds(text))
        return found if len(found) <= most else None

    def span(self, bound: Bound) -> tuple[int, int]:
        """The places of the texts in a bound: from the first to before the last. Raises UnorderedError."""
        first = self._place(bound.first, is_after=not bound.is_closed[0])
        if bound.last is None:
            return first, len(self.ids)
        return first, max(first, self._place(bound.last, is_after=bound.is_closed[1]))

    def in_language(self, wanted: Callable[[str], bool], ids: Ids) -> Bools:
        """Which of these terms are strings whose language is wanted, "" being that of none."""
        are_wanted = np.array([wanted(language) for language in self.languages])
        places = self.places_of(ids)
        found: Bools = places != _NONE
        found[found] = are_wanted[self.langs[places[found]]]
        for at in self._of_rest(ids):
            found[at] = wanted(self.rest[int(ids[at])][1])
        return found

    def ranks(self, ids: Ids) -> Ids:
        """What orders these strings by their texts, (n,) int64. Raises UnorderedError."""
        found = self.places_of(ids)
        if len(found) and found.min() == _NONE:
            raise UnorderedError
        return found.astype(np.int64)

    def places_of(self, ids: Ids) -> npt.NDArray[np.int32]:
        """The place of each term in ids; -1 of one that is not there."""
        if not len(self.ids):
            return np.full(len(ids), _NONE, np.int32)
        at = (ids & PAYLOAD_MASK) - self.low
        inside = (at >= 0) & (at < len(self.places))
        found = np.where(inside, self.places[np.where(inside, at, 0)], np.int32(_NONE))
        return np.where(self.ids[found] == ids, found, np.int32(_NONE))

    def _of_rest(self, ids: Ids) -> Any:
        """Where in ids the terms of the rest are."""
        if not self.rest:
            return ()
        return np.flatnonzero(np.isin(ids, np.fromiter(self.rest, np.int64, len(self.rest))))

    def _place(self, text: bytes, is_after: bool) -> int:
        """How many texts are less than this, or, is_after, not greater."""
        if len(text) > TEXT_BYTES:
            raise UnorderedError
        find = bisect_right if is_after else bisect_left
        found: int = find(range(len(self.ids)), text, key=self._text)
        if is_after and len(text) == TEXT_BYTES and found and self._text(found - 1) == text:
            raise UnorderedError  # a longer text may begin with it
        return found

    def _text(self, place: int) -> bytes:
        return self.texts[self.starts[place] : self.starts[place + 1]]


class TextOrders:
    """Keeps an order of the strings of one view, and follows it. For any thread.

    It is made when it is first asked for, by start, which runs the function that it is given now or later, on
    a thread of its own: until then there is none, nor where it would have more than bytes_max.
    """

    def __init__(
        self,
        connection: DuckDBPyConnection,
        start: Callable[[Callable[[], None]], None] | None = None,
        bytes_max: int = _BYTES_MAX,
    ) -> None:
        """It is read on a cursor of this connection, and not of a query's: closing that would close it too,
        and DuckDB refuses to close one that works.
        """
        self._connection = connection
        self._start = start or (lambda make: make())
        self._bytes_max = bytes_max
        self._refused_at = -1  # the next term of a state that has too many strings
        self._order: TextOrder | None = None
        self._making: DuckDBPyConnection | None = None
        self._changing = Lock()

    def of(self, connection: DuckDBPyConnection) -> TextOrder | None:
        """The order with all strings of the state that a transaction of this connection sees, and perhaps
        others; None while there is none.
        """
        ((next_term,),) = connection.execute(
            "SELECT value::BIGINT FROM meta WHERE key = 'next_term'"
        ).fetchall()
        order = self._order
        if order is None or len(order.rest) > max(_REST_MIN, len(order.ids) // _REST_SHARE):
            if next_term > self._refused_at:
                self._make(next_term)
            order = self._order
        if order is None or order.next_term >= next_term:
            return order
        with self._changing:
            order = self._order
            assert order is not None
            if order.next_term < next_term:
                order = self._order = _followed(order, connection, next_term)
        return order

    def interrupt(self) -> None:
        """End what makes the order."""
        with self._changing:
            if self._making is not None:
                self._making.interrupt()

    def _make(self, next_term: int) -> None:
        with self._changing:
            if self._making is not None:
                return
            cursor = self._making = self._connection.cursor()

        def make() -> None:
            order, is_refused = self._order, False
            try:
                if _bytes_needed(cursor) <= self._bytes_max:
                    order = _made(cursor)
                else:
                    order, is_refused = None, True
            except DuckDBError:
                pass  # it is asked for again
            with self._changing:
                self._making, self._order = None, order
                if is_refused:
                    self._refused_at = next_term
            cursor.close()

        self._start(make)


def _strings(first: int) -> str:
    """SQL for the strings from a payload on."""
    ranges = (
        f"id BETWEEN {tagged(tag, first)} AND {tagged(tag, PAYLOAD_MASK)}"
        for tag in (Tag.STRING, Tag.LANGUAGE_STRING)
    )
    return f"FROM terms WHERE ({' OR '.join(ranges)})"


def _bytes_needed(connection: DuckDBPyConnection) -> int:
    """What an order of the strings of a state takes."""
    ((count, size, terms),) = connection.execute(
        f"SELECT count(*), coalesce(sum(least(strlen(lexical), {TEXT_BYTES})), 0), "
        f"coalesce(max(id & {PAYLOAD_MASK}) - min(id & {PAYLOAD_MASK}), 0) {_strings(0)}"
    ).fetchall()
    return int(_TERM_BYTES * count + size + _PLACE_BYTES * terms)


def _followed(order: TextOrder, connection: DuckDBPyConnection, next_term: int) -> TextOrder:
    rows = connection.execute(f"SELECT id, lexical, lang {_strings(order.next_term)}").fetchall()
    rest = order.rest | {number: (text.encode(), _language(lang)) for number, text, lang in rows}
    fields = {name: getattr(order, name) for name in TextOrder.__slots__}
    return TextOrder(**fields | {"rest": rest, "next_term": next_term})


def _made(connection: DuckDBPyConnection) -> TextOrder:
    """Raises duckdb.Error."""
    run = connection.execute
    run("BEGIN")
    ((next_term,),) = run("SELECT value::BIGINT FROM meta WHERE key = 'next_term'").fetchall()
    run(f"SELECT id, lexical, lang {_strings(0)} ORDER BY lexical")
    languages = {"": 0}
    ids, langs, lengths, texts = [], [], [], []
    for numbers, batch, tags in _batches(connection):
        cut = [text[:TEXT_BYTES].encode()[:TEXT_BYTES] for text in batch]
        texts.append(b"".join(cut))
        ids.append(np.array(numbers, np.int64))
        lengths.append(np.fromiter(map(len, cut), np.int64, len(cut)))
        known = [languages.setdefault(_language(tag), len(languages)) for tag in tags]
        langs.append(np.array(known, np.uint16))
    run("ROLLBACK")
    found = np.concatenate([np.empty(0, np.int64), *ids])
    payloads = found & PAYLOAD_MASK
    low, high = (int(payloads.min()), int(payloads.max()) + 1) if len(found) else (0, 0)
    places_of = np.full(max(1, high - low), _NONE, np.int32)
    places_of[payloads - low] = np.arange(len(found), dtype=np.int32)
    return TextOrder(
        found,
        np.concatenate([np.empty(0, np.uint16), *langs]),
        tuple(languages),
        low,
        places_of,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]))]),
        b"".join(texts),
        next_term,
    )


def _batches(connection: DuckDBPyConnection) -> Iterator[tuple[tuple[Any, ...], ...]]:
    while rows := connection.fetchmany(_BATCH_ROWS):
        yield tuple(zip(*rows, strict=True))


def _language(lang: str | None) -> str:
    """Of the column lang, without a direction."""
    return "" if lang is None else lang.partition("--")[0]
