"""What queries ask of fields whose values are not terms as they stand: ranges, versions, constants."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec
from graphdb.search.leaf_reader import Leaf, Longs, TermDictionary
from graphdb.search.mapping.range_fields import RANGE_TYPES, query_range
from graphdb.search.mapping.versions import version_of
from graphdb.search.query.clause import QueryContext
from graphdb.search.query.dictionary_queries import DictionaryQuery, PrefixQuery, RegexpQuery, WildcardQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import ExistsQuery
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query

__all__ = [
    "RangeFieldQuery",
    "VersionQuery",
    "among_versions",
    "of_constant",
    "on_texts",
    "range_field_query",
]

# Ranges: a query compares the bounds of the distinct ranges of a segment, which are the halves of its terms.

Codes = NDArray[np.bytes_]


@dataclass(frozen=True, kw_only=True)
class RangeFieldQuery(DictionaryQuery):
    """Documents with a range that intersects another one, is within it, or contains it.

    low and high are codes of bounds, both included, of `digits` characters; shown is the range as given.
    """

    low: str
    high: str
    digits: int
    relation: str
    shown: str

    def chosen(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Longs:
        lows, highs = self._halves(leaf, dictionary, searcher)
        low, high = self.low.encode(), self.high.encode()
        if self.relation == "within":
            found = (lows >= low) & (highs <= high)
        elif self.relation == "contains":
            found = (lows <= low) & (highs >= high)
        else:
            found = (lows <= high) & (highs >= low)
        return np.flatnonzero(found)

    def _halves(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> tuple[Codes, Codes]:
        """Kept with the segment; with the searcher where the segment's terms depend on who asks."""
        make = partial(_halves, dictionary, self.digits)
        segment, key = leaf.segment, ("range bounds", self.path)
        if segment.live_only:
            return searcher.keep_of(leaf, key, make)
        if key not in segment.derived:
            segment.derived[key] = make()
        halves: tuple[Codes, Codes] = segment.derived[key]
        return halves

    def text(self) -> str:
        return f"{self.path}:<ranges:{self.shown}>"


def _halves(dictionary: TermDictionary, digits: int) -> tuple[Codes, Codes]:
    """The bounds of the ranges of a dictionary, low and high, as texts of a fixed length."""
    codes = "".join(dictionary.terms(0, len(dictionary))).encode()
    halves = np.frombuffer(codes, f"S{digits}").reshape(-1, 2)
    return np.ascontiguousarray(halves[:, 0]), np.ascontiguousarray(halves[:, 1])


def range_field_query(
    spec: FieldSpec,
    low: Any,
    high: Any,
    context: QueryContext,
    with_low: bool = True,
    with_high: bool = True,
    time_zone: str | None = None,
    format: str | None = None,
    relation: str = "intersects",
) -> Query:
    """The query for a range on a field of ranges; fails where a bound cannot be one of its values."""
    try:
        asked = query_range(spec, low, high, with_low, with_high, time_zone, format, context.now_ms)
    except SearchError as error:
        raise context.failed(error.reason, error) from None
    if asked is None:
        return MatchNoneQuery(reason="empty range")
    opening, closing = "[" if with_low else "{", "]" if with_high else "}"
    shown = f"{opening}{'*' if low is None else low} : {'*' if high is None else high}{closing}"
    digits = RANGE_TYPES[spec.type].digits
    return RangeFieldQuery(
        path=spec.path, low=asked.low, high=asked.high, digits=digits, relation=relation, shown=shown
    )


# Texts that are not the terms of a dictionary: those of versions, and the one of a constant_keyword.


class _Pattern(Protocol):
    """A query that knows of a text whether it matches."""

    def accepts(self, term: str, /) -> bool: ...
    def text(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class VersionQuery(DictionaryQuery):
    """The versions that a pattern matches, as they were given."""

    pattern: PrefixQuery | WildcardQuery | RegexpQuery

    def chosen(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Longs:
        terms = enumerate(dictionary.terms(0, len(dictionary)))
        return np.array([n for n, term in terms if self.pattern.accepts(version_of(term))], np.int64)

    def text(self) -> str:
        return self.pattern.text()


def among_versions(spec: FieldSpec, query: Query) -> Query:
    """A pattern for texts, as it is for the terms of a field of versions; of other fields the same."""
    if spec.type == "version" and isinstance(query, PrefixQuery | WildcardQuery | RegexpQuery):
        return VersionQuery(path=query.path, pattern=query)
    return query


def on_texts(spec: FieldSpec, query: Query) -> Query:
    """A query by prefix or pattern, or for existence, that is for the texts of a field."""
    if spec.type != "constant_keyword":
        return among_versions(spec, query)
    if isinstance(query, ExistsQuery):
        return of_constant(spec, lambda own: True)
    assert isinstance(query, PrefixQuery | WildcardQuery | RegexpQuery)
    return of_constant(spec, query.accepts)


def of_constant(spec: FieldSpec, test: Callable[[str], bool]) -> Query:
    """All documents of an index where its constant passes a test; none, where it has no constant yet."""
    own = spec.options["value"]
    if own is not None and test(own):
        return MatchAllQuery()
    return MatchNoneQuery(reason=f"The constant of [{spec.path}] doesn't match")
