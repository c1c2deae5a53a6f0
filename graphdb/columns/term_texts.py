"""Numbers of terms as text, for the rows that an answer has."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final

from duckdb import DuckDBPyConnection

from graphdb.columns.term_ids import INLINE_TAGS, PAYLOAD_BITS, PAYLOAD_MASK, inline_literal

__all__ = ["TermTexts"]

_KEPT: Final = 131_072  # texts
_INLINE = range(min(INLINE_TAGS) << PAYLOAD_BITS, (max(INLINE_TAGS) << PAYLOAD_BITS | PAYLOAD_MASK) + 1)


class TermTexts:
    """The texts of the terms of one database, in N-Triples. Those that were asked for last are kept: a number
    never gets another term, so they stay right while the view changes. For any thread.
    """

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self._kept: dict[int, str] = {}
        self._fetch_on: DuckDBPyConnection | None = None

    def within(self, cursor: DuckDBPyConnection) -> "TermTexts":
        """The same, with look-ups on this cursor, which is for this alone: interrupting it ends them. In a
        transaction that it has open, terms are found that are collected after its beginning.
        """
        texts = TermTexts(cursor)
        texts._kept = self._kept
        texts._fetch_on = cursor
        return texts

    def of(self, numbers: AbstractSet[int], unseen: Mapping[int, str]) -> dict[int, str]:
        """The text of each number. unseen are the terms of a query that the view does not hold."""
        kept = self._kept
        found = {number: text for number in numbers if (text := kept.get(number)) is not None}
        missing: list[int] = []
        for number in numbers - found.keys():
            if number in _INLINE:
                found[number] = _inline_text(number)
            elif number in unseen:
                found[number] = unseen[number]
            else:
                missing.append(number)
        if missing:
            fetched = self._fetched(missing)
            found.update(fetched)
            if len(kept) + len(fetched) > _KEPT:
                kept.clear()
            if len(fetched) <= _KEPT:
                kept.update(fetched)
        return found

    def _fetched(self, numbers: list[int]) -> dict[int, str]:
        sql = "SELECT id, text FROM terms WHERE id IN (SELECT unnest(?::BIGINT[]))"
        if self._fetch_on is not None:
            return dict(self._fetch_on.execute(sql, [numbers]).fetchall())
        with self._connection.cursor() as cursor:
            return dict(cursor.execute(sql, [numbers]).fetchall())


@lru_cache(maxsize=65_536)
def _inline_text(number: int) -> str:
    return str(inline_literal(number))
