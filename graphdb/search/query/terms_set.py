"""`terms_set`: as many of some terms as the document itself asks for, in a field of numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.errors import illegal_request
from graphdb.search.query.clause import field_clause, malformed
from graphdb.search.query.context import QueryContext
from graphdb.search.query.exact import exact
from graphdb.search.query.number_queries import column_of
from graphdb.search.query.parsers import ClauseParser, Parse
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query
from graphdb.search.segment import Leaf, Longs

__all__ = ["PARSERS", "TermsSetQuery"]

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class TermsSetQuery(Query):
    """At least `minimum` of the queries, or as many as the number at minimum_path says; without it, no match.

    Scores are the sum of those that match. Source: Lucene's CoveringQuery.
    """

    queries: tuple[Query, ...]
    minimum_path: str | None
    minimum: int = 1

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        sums = np.zeros(leaf.segment.size, dtype=np.float64)
        counts = np.zeros(leaf.segment.size, dtype=np.int32)
        for query in self.queries:
            query.accumulate(leaf, searcher, boost * self.boost, sums, counts)
        mask = counts >= np.maximum(1, self._needed(leaf))
        return Matches(mask, np.where(mask, sums, 0).astype(np.float32))

    def _needed(self, leaf: Leaf) -> Longs:
        if self.minimum_path is None:
            return np.full(leaf.segment.size, self.minimum, np.int64)
        needed, column = np.full(leaf.segment.size, _NEVER, np.int64), column_of(leaf, self.minimum_path)
        if column is None:
            return needed
        if column.starts is None:
            return column.values.astype(np.int64)
        having = np.flatnonzero(column.starts[1:] > column.starts[:-1])
        needed[having] = column.values[column.starts[having]]
        return needed

    def children(self) -> tuple[Query, ...]:
        return self.queries

    def text(self) -> str:
        return f"CoveringQuery({', '.join(map(str, self.queries))})"


def _terms_set(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, clause = field_clause("terms_set", body, "terms")
    terms, minimum_path = clause.take("terms"), clause.string("minimum_should_match_field")
    if "minimum_should_match_script" in clause:
        raise illegal_request(
            "[minimum_should_match_script] is not supported, use [minimum_should_match_field]"
        )
    minimum = clause.integer("minimum_should_match", 0)
    clause.done()
    if not isinstance(terms, list) or any(term is None or isinstance(term, dict | list) for term in terms):
        raise malformed("[terms_set] requires [terms], an array of values")
    if minimum_path is None and minimum < 1:
        raise illegal_request("No minimum should match has been specified")
    if not terms:
        return MatchNoneQuery(reason="No terms supplied for terms_set")
    found = None if minimum_path is None else context.mapping.field(minimum_path)
    if minimum_path is not None and found is None:
        raise context.failed(f"failed to find minimum_should_match field [{minimum_path}]")
    return TermsSetQuery(
        queries=tuple(exact(path, term, context) for term in terms),
        minimum_path=None if found is None else found.path,
        minimum=minimum,
        boost=clause.boost,
        name=clause.name,
    )


PARSERS: dict[str, ClauseParser] = {"terms_set": _terms_set}
